/** `ipatlas summarize`: counts the records of a stream by country. */

import { continentTable } from '../country/continents.js';
import { type CountryNames, countryNames } from '../country/names.js';
import { manifestOfDatabase, seedFacts } from '../database/origin.js';
import type { EnrichCounts } from '../enrich/counts.js';
import { type EnrichRequest, enrich } from '../enrich/enrich.js';
import type { Addable } from '../enrich/members.js';
import { CountrySummary, type LabelSummary, type NetworkSummary, type Summarize } from '../enrich/query.js';
import { misuse } from '../errors.js';
import { KINDS } from '../rangefile/partitions.js';
import { grouped, percent } from '../text-table.js';
import { type Command, type Invocation, LANG_FLAG, noteMissing, print, table, text } from './command.js';
import { wholeNumber } from './number-flags.js';
import { INPUT_FLAGS, refuseEachDay, withLogs } from './records/flags.js';
import { planOf } from './records/plan.js';
import { runPlan } from './records/run.js';

const GROUPINGS = ['country', 'eu', 'continent', 'asn', 'network', 'kind', 'operator', 'anycast'] as const;
type Grouping = (typeof GROUPINGS)[number];

/** The values without a country, as `enrich --stats` counts them. */
function otherCounts({ bytes: _bytes, found: _found, ...others }: EnrichCounts) {
  return others;
}

/** Groups as JSON names them, without their number of lines; most lines first. */
interface Groups {
  /** The key of the groups, and the names of the columns of a table. */
  key: string;
  columns: string[];
  rows: { fields: Record<string, unknown>; cells: string[]; count: number }[];
  /** Addresses that are in no group, and what a table calls them. */
  rest: number;
  restName: string;
}

function countryGroups(summary: CountrySummary, { no_country }: EnrichCounts, nameOf: CountryNames): Groups {
  const rows = summary.byCountry().map(({ count, ...english }) => {
    const fields = { ...english, country: nameOf(english.country_code, english.country) };
    return { fields, cells: [fields.country_code, fields.country], count };
  });
  return { key: 'countries', columns: ['code', 'country'], rows, rest: no_country, restName: 'no country' };
}

function continentGroups(summary: CountrySummary, { no_country }: EnrichCounts): Groups {
  const continents = continentTable();
  const sums = new Map<string, { name: string; count: number }>();
  for (const { country_code, count } of summary.byCountry()) {
    const { code, name } = continents.get(country_code)!;
    sums.set(code, { name, count: (sums.get(code)?.count ?? 0) + count });
  }
  const rows = [...sums]
    .sort(([a, one], [b, other]) => other.count - one.count || (a < b ? -1 : 1))
    .map(([continent, { name, count }]) => ({ fields: { continent }, cells: [continent, name], count }));
  return { key: 'continents', columns: ['code', 'continent'], rows, rest: no_country, restName: 'no country' };
}

function networkGroups(networks: NetworkSummary, { found, no_country }: EnrichCounts): Groups {
  const rows = networks.counts.map(({ count, ...fields }) => {
    const cells = [`AS${fields.asn}`, fields.as_name ?? ''];
    return { fields, cells: fields.network === undefined ? cells : [fields.network, ...cells], count };
  });
  const counted = rows.reduce((sum, { count }) => sum + count, 0);
  const columns = networks.by === 'asn' ? ['number', 'name'] : ['network', 'number', 'name'];
  return { key: 'networks', columns, rows, rest: found + no_country - counted, restName: 'no network' };
}

/** The groups by members of the kind of network, and what addresses without a value are called. */
const KIND_GROUPS: Partial<Record<string, Pick<Groups, 'key' | 'restName'>>> = {
  kind: { key: 'kinds', restName: 'unknown' },
  operator: { key: 'operators', restName: 'no operator' },
  anycast: { key: 'anycast', restName: 'unknown' },
};

function labelGroups({ name, counts }: LabelSummary, { found, no_country }: EnrichCounts): Groups {
  const sorted = [...counts].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1));
  const rows = sorted.map(([value, count]) => {
    return { fields: { [name]: name === 'anycast' ? value === 'true' : value }, cells: [value], count };
  });
  const counted = rows.reduce((sum, { count }) => sum + count, 0);
  const named = KIND_GROUPS[name] ?? { key: 'labels', restName: 'no label' };
  return { ...named, columns: [name], rows, rest: found + no_country - counted };
}

function euGroups(summary: CountrySummary, { no_country }: EnrichCounts): Groups {
  const { eu, not_eu } = summary.byEu();
  const row = (name: string, count: number) => ({ fields: {}, cells: [name], count });
  const rows = [row('in the European Union', eu), row('not in the European Union', not_eu)];
  return { key: 'eu', columns: ['country'], rows, rest: no_country, restName: 'no country' };
}

function groupsOf({ by, query: { summary, networks, label }, counts, nameOf }: Shown): Groups {
  if (label !== undefined) return labelGroups(label, counts);
  if (networks !== undefined) return networkGroups(networks, counts);
  if (by === 'eu') return euGroups(summary, counts);
  return by === 'continent' ? continentGroups(summary, counts) : countryGroups(summary, counts, nameOf);
}

/** What is shown of a summary. */
interface Shown {
  by: string;
  query: Summarize;
  counts: EnrichCounts;
  /** Groups that are shown at most. */
  top: number;
  database: string;
  nameOf: CountryNames;
}

function summaryJson(shown: Shown): string {
  const { by, query, counts, top, database } = shown;
  const { key, rows, rest, restName } = groupsOf(shown);
  const listed = rows.slice(0, top).map(({ fields, count }) => ({ ...fields, count }));
  const groups = by === 'eu' ? query.summary.byEu() : { [key]: listed };
  const others = rows.slice(top).reduce((sum, { count }) => sum + count, 0);
  const cut = by === 'eu' || rows.length <= top ? {} : { others };
  const networks = query.networks === undefined ? {} : { no_network: rest };
  const labels = query.label === undefined ? {} : { [restName.replace(' ', '_')]: rest };
  return `${JSON.stringify({ by, ...groups, ...cut, ...networks, ...labels, ...otherCounts(counts), ...seedFacts(database) })}\n`;
}

function summaryTable(shown: Shown): string {
  const { counts, top } = shown;
  const { columns, rows, rest, restName } = groupsOf(shown);
  const cut = rows.slice(top);
  const blank = columns.slice(1).map(() => '');
  const others: [name: string, count: number][] = [
    [`${cut.length} more`, cut.reduce((sum, { count }) => sum + count, 0)],
    [restName, rest],
    ['invalid address', counts.invalid_address],
    ['missing field', counts.missing_field],
    ['missing date', counts.missing_date],
    ['damaged history', counts.damaged_history],
    ['invalid line', counts.invalid_line],
  ];
  const all = [
    ...rows.slice(0, top),
    ...others.filter(([, count]) => count > 0).map(([name, count]) => ({ cells: [...blank, name], count })),
  ];
  const total = all.reduce((sum, { count }) => sum + count, 0);
  const cells = all.map(({ cells: texts, count }) => [...texts, grouped(count), percent(count / Math.max(1, total))]);
  return table([[...columns, 'lines', 'share'], ...cells], [columns.length, columns.length + 1]);
}

function summarize(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  const plan = planOf(invocation);
  const isPast = (values.at ?? values['at-field']) !== undefined;
  const by = text(values, 'by') ?? 'country';
  const isGrouping = GROUPINGS.includes(by as Grouping);
  const labels = isGrouping || isPast ? [] : (manifestOfDatabase(plan.database).labels?.columns ?? []);
  const choices: readonly string[] = [...GROUPINGS, ...labels];
  if (!choices.includes(by)) throw misuse(`--by is ${JSON.stringify(by)}; it can be ${choices.join(', ')}`);
  const nameOf = countryNames(text(values, 'lang') ?? 'en', '--lang');
  const query: Summarize = { kind: 'summarize', summary: new CountrySummary() };
  const top = wholeNumber(values, 'top', 1, 999_999_999) ?? Number.POSITIVE_INFINITY;
  if (by === 'asn' || by === 'network') {
    refuseEachDay(values, `--by ${by}`);
    query.networks = { by, counts: [] };
  }
  if (!isGrouping || by in KIND_GROUPS) query.label = { name: by as Addable, counts: new Map() };
  if (by in KIND_GROUPS) {
    refuseEachDay(values, `--by ${by}`);
    if (!isPast) noteMissing(manifestOfDatabase(plan.database), [KINDS]);
  }
  const options: EnrichRequest['options'] = { ...plan.options, add: [], onInvalid: 'drop', query };
  return runPlan(
    plan,
    (work) => enrich({ ...plan, ...work, output: { write() {} }, options }),
    (counts) => {
      const shown = { by, query, counts, top, database: plan.database, nameOf };
      return print((values.json === true ? summaryJson : summaryTable)(shown));
    },
  );
}

export const command: Command = {
  usage: ['summarize [--by GROUP] [--top N] [--json] [FILE…]'],
  description: `Counts lines, records or items by the country or network of their address, most frequent first. With several fields, each address
counts. Reads several files one after the other; without a file, or for "-", it reads stdin. gzip is recognized, and zstd
from Node 22.15 on.`,
  options: {
    by: {
      value: 'GROUP',
      choices: {
        country: 'the country (default)',
        eu: 'in and outside the European Union',
        continent: 'the continent of the country',
        asn: 'the autonomous system that announces the address',
        network: 'the largest CIDR block that it announces around the address',
        kind: 'the kind of network, by the lists of operators',
        operator: 'the operator whose list has the address',
        anycast: 'whether the address is anycast',
      } satisfies Record<Grouping, string>,
      hasOthers: true,
      help: 'what lines are counted by, or the name of a label:',
    },
    top: { value: 'N', help: 'only the N most frequent' },
    json: { help: 'one JSON object' },
    lang: LANG_FLAG,
    ...INPUT_FLAGS,
  },
  examples: {
    'ipatlas summarize access.jsonl': 'a table of countries',
    'ipatlas summarize --by asn --top 10 access.jsonl': 'the ten networks with the most lines',
    'ipatlas summarize --by eu --format combined /var/log/nginx/access.log':
      'how many requests came from the European Union',
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  answersFromSeed: true,
  run: (invocation) => withLogs(invocation, () => summarize(invocation)),
};
