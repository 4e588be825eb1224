/** `ipatlas history`: the answers that an address had, and what was imported. */
import { importHistory, removeHistory, repairHistory } from '../../pipeline/index.js';
import { formatAddress } from '../address/format.js';
import { parseAddress } from '../address/parse.js';
import { AtlasError, EXIT, misuse, RESTORE_DAYS } from '../errors.js';
import { type Archive, openArchive, WITHOUT_HISTORY } from '../history/archive.js';
import { answersOverTime } from '../history/over-time.js';
import { type MemberPeriod, memberPeriodsOf, type Period, periodsOf, type UnknownPeriod } from '../history/periods.js';
import { changesIn, type Subnet } from '../history/subnet.js';
import { parseBlock } from '../range/cidr.js';
import type { FileRecord } from '../rangefile/layout.js';
import { archivedPartitions, COUNTRIES, type Partition } from '../rangefile/partitions.js';
import { printable } from '../text-table.js';
import {
  type Command,
  type Invocation,
  type OptionValues,
  parseDay,
  print,
  printNote,
  table,
  text,
} from './command.js';
import { parseWait, WAIT_FLAG } from './number-flags.js';

/** What the history keeps besides the countries. */
const OTHERS = archivedPartitions().filter((partition) => partition !== COUNTRIES);

/** Returns the periods that overlap the days asked for, cut to them. */
function within<Each extends { from: string; to: string | null }>(
  periods: Each[],
  from = '',
  to = '9999-12-31',
): Each[] {
  return periods
    .filter((period) => period.from <= to && (period.to === null || period.to >= from))
    .map((period) => ({
      ...period,
      from: period.from < from ? from : period.from,
      to: period.to === null || period.to > to ? (to === '9999-12-31' ? period.to : to) : period.to,
    }));
}

const isUnknown = (period: Period | MemberPeriod | UnknownPeriod): period is UnknownPeriod => !('release' in period);

function row(ip: string, period: Period | MemberPeriod | UnknownPeriod, members: readonly string[]): string[] {
  const { from, to } = period;
  if (isUnknown(period)) return [ip, from, to ?? '', '?'];
  const release = printable(period.release);
  if (!('is_eu' in period)) {
    const values = members.map((name) => printable(String((period as MemberPeriod)[name] ?? '-')));
    return [ip, from, to ?? '', ...values, release];
  }
  const { country, country_code, is_eu } = period as Period;
  return [ip, from, to ?? '', country ?? '-', country_code ?? '-', is_eu ? 'yes' : 'no', release];
}

/** Returns the days of --from and --to. Throws E_USAGE if they are not days, or in the wrong order. */
function parseSpan(values: OptionValues): { from: string | undefined; to: string | undefined } {
  const [from, to] = [parseDay(values, 'from'), parseDay(values, 'to')];
  if (from === undefined || to === undefined || from <= to) return { from, to };
  throw misuse(`--from ${from} is after --to ${to}; swap them`);
}

async function importFiles({ dataDir, values, positionals }: Invocation): Promise<number> {
  await importHistory(dataDir, {
    paths: positionals,
    day: parseDay(values, 'date'),
    format: text(values, 'format'),
    waitMs: parseWait(values),
    note: (note) => printNote(`${note}\n`),
  });
  return EXIT.ok;
}

async function remove({ dataDir, values }: Invocation): Promise<number> {
  const { from, to } = parseSpan(values);
  if (from === undefined || to === undefined) {
    throw misuse('"history remove" needs --from and --to, the first and the last day');
  }
  const days = await removeHistory(dataDir, from, to);
  for (const day of days) printNote(`${day} is removed\n`);
  if (days.length === 0) printNote(`nothing was imported for the days from ${from} to ${to}\n`);
  return EXIT.ok;
}

async function repair({ dataDir }: Invocation): Promise<number> {
  const days = await repairHistory(dataDir);
  for (const day of days) printNote(`the entry of ${day} is removed\n`);
  if (days.length === 0) printNote('no entry is of the future; nothing was removed\n');
  return EXIT.ok;
}

interface NamedSubnet extends Subnet {
  name: string;
}

/** Parses a block. @throws AtlasError E_USAGE if it is none */
function parseSubnet(name: string): NamedSubnet {
  const block = parseBlock(name);
  if (block === undefined) throw misuse(`${JSON.stringify(name)} is not a block such as 10.0.0.0/8`);
  return { name, ...block };
}

/** Prints what changed inside blocks. */
async function showSubnets(archive: Archive, subnets: readonly NamedSubnet[], values: OptionValues): Promise<void> {
  const { from = '', to = '9999-12-31' } = parseSpan(values);
  const all = answersOverTime(archive);
  const rows = [['NETWORK', 'DAY', 'FIRST', 'LAST', 'FROM', 'TO']];
  for (const subnet of subnets) {
    const changes = changesIn(all, subnet).filter(({ day }) => from <= day && day <= to);
    for (const { day, from, to, fromEu, toEu, ...block } of changes) {
      const [first, last] = [block.first, block.last].map((each) => formatAddress(subnet.family, each));
      const facts = { network: subnet.name, day, first, last, from, to, from_is_eu: fromEu, to_is_eu: toEu };
      if (values.json === true) await print(`${JSON.stringify(facts)}\n`);
      else rows.push([subnet.name, day, first!, last!, fromEu ? `${from} (EU)` : from, toEu ? `${to} (EU)` : to]);
    }
    if (changes.length === 0) printNote(`nothing has changed in ${subnet.name}\n`);
  }
  if (values.json !== true && rows.length > 1) await print(table(rows));
  const unknown = archive.spans().filter((span) => 'missing' in span);
  for (const span of unknown) printNote(`nothing is known of ${span.from} to ${span.to}\n`);
}

async function show({ dataDir, values, positionals }: Invocation): Promise<number> {
  const { from, to } = parseSpan(values);
  const archive = openArchive(dataDir);
  const [other, more] = OTHERS.filter(({ name }) => values[name] === true);
  if (more !== undefined) throw misuse(`--${other!.name} does not go with --${more.name}; leave out one of them`);
  const others = other && openArchive<FileRecord>(dataDir, other as Partition<never>);
  if ((others ?? archive).span === undefined) {
    const what = other === undefined ? 'history' : `history of ${other.name}`;
    throw new AtlasError(
      'E_NO_DATABASE',
      `there is no ${what} in ${dataDir}: "ipatlas build" and "ipatlas pull" add to it`,
    );
  }
  const subnets = positionals.filter((each) => each.includes('/')).map(parseSubnet);
  if (subnets.length > 0 && other !== undefined) {
    throw misuse(`--${other.name} needs addresses, not blocks such as ${subnets[0]!.name}`);
  }
  if (subnets.length > 0) await showSubnets(archive, subnets, values);
  const addresses = positionals.filter((each) => !each.includes('/'));
  if (addresses.length === 0) return EXIT.ok;
  const members = other?.members ?? ['country', 'code', 'EU'];
  const columns = members.map((name) => name.replace('as_name', 'name').toUpperCase());
  const rows = [['IP', 'FROM', 'TO', ...columns, 'RELEASE']];
  const add = (cells: string[]): void => void rows.push(rows[0]!.map((_, column) => cells[column] ?? ''));
  let invalid = 0;
  const problems: string[] = [];
  for (const ip of addresses) {
    const words = new Uint32Array(4);
    const family = parseAddress(ip, words);
    if (family === 0) {
      invalid++;
      if (values.json === true) await print(`${printable(JSON.stringify({ ip, error: 'invalid ip' }))}\n`);
      else add([printable(ip), '', '', 'invalid ip']);
      continue;
    }
    const address = { family, words: family === 4 ? words.slice(0, 1) : words };
    const periods: (Period | MemberPeriod | UnknownPeriod)[] =
      others === undefined ? periodsOf(archive, address) : memberPeriodsOf(others, address, other!);
    for (const period of within(periods, from, to)) {
      if (values.json === true) await print(`${printable(JSON.stringify({ ip, ...period }))}\n`);
      else add(row(ip, period, members));
      if (isUnknown(period) && !period.error.endsWith(WITHOUT_HISTORY)) {
        problems.push(
          `ipatlas: E_DAMAGED: ${period.from} to ${period.to ?? 'today'}: ${period.error}; ${RESTORE_DAYS}\n`,
        );
      }
    }
  }
  if (values.json !== true) await print(table(rows));
  for (const problem of new Set(problems)) printNote(problem);
  if (invalid > 0) printNote(`ipatlas: ${invalid} of the addresses given ${invalid === 1 ? 'is' : 'are'} not valid\n`);
  if (problems.length > 0) return EXIT.noDatabase;
  return invalid > 0 ? EXIT.badInput : EXIT.ok;
}

export const command: Command = {
  usage: [],
  description: `Shows which answers an address had, and when: one line for each period. The answer of a day (UTC) is that of the release
that was current at its end, and the membership in the European Union that of the day. A period without an end goes on. Of a block, such as
193.0.0.0/16, it shows what changed inside it, and on which day.

Each build, pull and rollback adds to the history, unless --no-history is given. "history import" adds what was kept elsewhere, for
days before the first of them.`,
  actions: {
    '': {
      usage: 'IP|BLOCK…',
      help: '',
      arguments: [1, Number.POSITIVE_INFINITY],
      flags: [...OTHERS.map(({ name }) => name), 'from', 'to', 'json'],
    },
    import: {
      usage: '[--date YYYY-MM-DD] [--format NAME] FILE…',
      help:
        'adds past releases, compact forms (.ipc), or tables of a source format, each from its date until the next entry. ' +
        'The files of one date are one table. Of a folder, all files are taken',
      arguments: [1, Number.POSITIVE_INFINITY],
      flags: ['date', 'format', 'wait'],
    },
    remove: {
      usage: '--from YYYY-MM-DD --to YYYY-MM-DD',
      help: 'removes what was imported for these days',
      flags: ['from', 'to'],
    },
    repair: {
      usage: '',
      help: 'removes entries of the future, which a wrong clock made, and adds the current release from today on. Set the clock first',
    },
  },
  options: {
    networks: { help: 'who announced the addresses instead of their countries' },
    kinds: { help: 'the kinds of networks: anycast, clouds, relays, Tor' },
    from: { value: 'YYYY-MM-DD', help: 'only periods that end on this day or later; the first day to remove' },
    to: { value: 'YYYY-MM-DD', help: 'only periods that begin on this day or earlier; the last day to remove' },
    json: { help: 'print one JSON object for each period' },
    date: { value: 'YYYY-MM-DD', help: 'the day of all files; by default the date in the name of each' },
    format: { value: 'NAME', help: 'a source format, such as dbip-lite; by default it is recognized' },
    ...WAIT_FLAG,
  },
  examples: {
    'ipatlas history 193.0.6.139': 'all periods of an address',
    'ipatlas history --from 2026-01-01 --json 193.0.6.139': 'what it had since then, as JSON',
    'ipatlas history 193.0.0.0/16': 'what changed inside a block',
    'ipatlas history import --date 2020-01-01 ipv4.csv ipv6.csv': 'the two tables of a day',
    'ipatlas history import years/': 'all files of a folder, each with a date in its name',
  },
  run: (invocation) => {
    if (invocation.action === 'import') return importFiles(invocation);
    if (invocation.action === 'repair') return repair(invocation);
    return invocation.action === 'remove' ? remove(invocation) : show(invocation);
  },
};
