/** `ipatlas history`: the answers that an address had, and what was imported. */
import { parseAddress } from '../address/parse.js';
import { AtlasError, EXIT } from '../errors.js';
import { openArchive } from '../history/archive.js';
import { type Period, periodsOf, type UnknownPeriod } from '../history/periods.js';
import { printable } from '../text-table.js';
import { type Command, type Invocation, parseDay, print, printNote, table } from './command.js';

/** Returns the periods that overlap the days asked for, cut to them. */
function within<Each extends Period | UnknownPeriod>(periods: Each[], from = '', to = '9999-12-31'): Each[] {
  return periods
    .filter((period) => period.from <= to && (period.to === null || period.to >= from))
    .map((period) => ({
      ...period,
      from: period.from < from ? from : period.from,
      to: period.to === null || period.to > to ? (to === '9999-12-31' ? period.to : to) : period.to,
    }));
}

function row(ip: string, period: Period | UnknownPeriod): string[] {
  const { from, to } = period;
  if ('error' in period) return [ip, from, to ?? '', printable(period.error), '', '', ''];
  const { country, country_code, is_eu, release } = period;
  return [ip, from, to ?? '', country ?? '-', country_code ?? '-', is_eu ? 'yes' : 'no', printable(release)];
}

async function run({ dataDir, values, positionals }: Invocation): Promise<number> {
  const [from, to] = [parseDay(values, 'from'), parseDay(values, 'to')];
  if (from !== undefined && to !== undefined && from > to) {
    throw new AtlasError('E_USAGE', `--from ${from} is after --to ${to}`);
  }
  const archive = openArchive(dataDir);
  if (archive.span === undefined) {
    throw new AtlasError('E_NO_DATABASE', `there is no history in ${dataDir}: each build and pull adds to it`);
  }
  const rows = [['IP', 'FROM', 'TO', 'COUNTRY', 'CODE', 'EU', 'RELEASE']];
  let invalid = 0;
  for (const ip of positionals) {
    const words = new Uint32Array(4);
    const family = parseAddress(ip, words);
    if (family === 0) {
      invalid++;
      if (values.json === true) await print(`${printable(JSON.stringify({ ip, error: 'invalid ip' }))}\n`);
      else rows.push([printable(ip), '', '', 'invalid ip', '', '', '']);
      continue;
    }
    const address = { family, words: family === 4 ? words.slice(0, 1) : words };
    for (const period of within(periodsOf(archive, address), from, to)) {
      if (values.json === true) await print(`${printable(JSON.stringify({ ip, ...period }))}\n`);
      else rows.push(row(ip, period));
    }
  }
  if (values.json !== true) await print(table(rows));
  if (invalid === 0) return EXIT.ok;
  printNote(`ipatlas: ${invalid} of the addresses given ${invalid === 1 ? 'is' : 'are'} not valid\n`);
  return EXIT.badInput;
}

export const command: Command = {
  usage: ['history IP…'],
  description: `Shows which answers an address had, and when: one line for each period. The answer of a day (UTC) is that of the release
that was current at its end, and the membership in the European Union that of the day. A period without an end goes on.

Each build, pull and rollback adds to the history, unless --no-history is given.`,
  options: {
    from: { value: 'YYYY-MM-DD', help: 'only periods that end on this day or later' },
    to: { value: 'YYYY-MM-DD', help: 'only periods that begin on this day or earlier' },
    json: { help: 'print one JSON object for each period' },
  },
  examples: {
    'ipatlas history 193.0.6.139': 'all periods of an address',
    'ipatlas history --from 2026-01-01 --json 193.0.6.139': 'what it had since then, as JSON',
  },
  operand: 'none',
  arguments: [1, Number.POSITIVE_INFINITY],
  run,
};
