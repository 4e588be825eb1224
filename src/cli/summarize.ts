/** `ipatlas summarize`: counts the records of a stream by country. */
import { seedFacts } from '../database/origin.js';
import type { EnrichCounts } from '../enrich/counts.js';
import { type EnrichRequest, enrich } from '../enrich/enrich.js';
import { formatCount } from '../enrich/progress.js';
import { CountrySummary } from '../enrich/query.js';
import { percent } from '../text-table.js';
import { type Command, type Invocation, print, table } from './command.js';
import { choice, INPUT_FLAGS, parseStreamRequest, runStream } from './records.js';

const GROUPINGS = ['country', 'eu'] as const;
type Grouping = (typeof GROUPINGS)[number];

/** The values without a country, as `enrich --stats` counts them. */
function otherCounts({ bytes: _bytes, found: _found, ...others }: EnrichCounts) {
  return others;
}

function summaryJson(by: Grouping, summary: CountrySummary, counts: EnrichCounts, database: string): string {
  const groups = by === 'eu' ? summary.byEu() : { countries: summary.byCountry() };
  return `${JSON.stringify({ by, ...groups, ...otherCounts(counts), ...seedFacts(database) })}\n`;
}

function summaryTable(by: Grouping, summary: CountrySummary, counts: EnrichCounts): string {
  const groups: [code: string, name: string, count: number][] =
    by === 'eu'
      ? [
          ['', 'in the European Union', summary.byEu().eu],
          ['', 'not in the European Union', summary.byEu().not_eu],
        ]
      : summary.byCountry().map(({ country_code, country, count }) => [country_code, country, count]);
  const others: typeof groups = [
    ['', 'no country', counts.no_country],
    ['', 'invalid address', counts.invalid_address],
    ['', 'missing field', counts.missing_field],
    ['', 'missing date', counts.missing_date],
    ['', 'invalid line', counts.invalid_line],
  ];
  const rows = [...groups, ...others.filter(([, , count]) => count > 0)];
  const total = rows.reduce((sum, [, , count]) => sum + count, 0);
  const cells = rows.map(([code, name, count]) => [code, name, formatCount(count), percent(count / total)]);
  const withCode = [['code', 'country', 'lines', 'share'], ...cells];
  return by === 'country'
    ? table(withCode, [2, 3])
    : table(
        withCode.map(([, name, count, share]) => [name!, count!, share!]),
        [1, 2],
      );
}

async function run(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  const by = choice(values, 'by', GROUPINGS, 'country');
  const request = parseStreamRequest(invocation);
  const summary = new CountrySummary();
  const query = { kind: 'summarize', summary } as const;
  const options: EnrichRequest['options'] = { ...request.options, add: [], onInvalid: 'drop', query };
  return runStream(
    request,
    (work) => enrich({ ...request, ...work, output: { write() {} }, options }),
    (counts) => print((values.json === true ? summaryJson : summaryTable)(by, summary, counts, request.database)),
  );
}

export const command: Command = {
  usage: ['summarize [--by country|eu] [--json] [FILE…]'],
  description: `Counts lines, records or items by the country of their address, most frequent first. With several fields, each address
counts. Reads several files one after the other; without a file, or for "-", it reads stdin. gzip is recognized, and zstd
from Node 22.15 on.`,
  options: {
    by: { value: 'GROUP', choices: GROUPINGS, help: 'country (default), or eu: in and outside the European Union' },
    json: { help: 'one JSON object' },
    ...INPUT_FLAGS,
  },
  examples: {
    'ipatlas summarize access.jsonl': 'a table of countries',
    'ipatlas summarize --by eu --format combined /var/log/nginx/access.log':
      'how many requests came from the European Union',
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  answersFromSeed: true,
  run,
};
