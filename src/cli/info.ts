/** `ipatlas info`: what the current release is and what it was made of. */
import { ageDays, ageText, changeRate, parseMaxAge, releaseAge, staleWarning } from '../database/age.js';
import { manifestOfDatabase, seedFacts } from '../database/origin.js';
import { hasPartition, listsOfKinds, type Manifest } from '../database/release.js';
import { EXIT } from '../errors.js';
import { DEFAULT_MAX_AGE_DAYS } from '../limits.js';
import { KINDS } from '../rangefile/partitions.js';
import { percent } from '../text-table.js';
import {
  type Command,
  databaseOf,
  factLines,
  type Invocation,
  type OptionValues,
  print,
  printNote,
  text,
} from './command.js';

function facts(manifest: Manifest, isSeed: boolean, rate: number): [string, string | number][] {
  const { counts, forced } = manifest;
  return [
    ['release', manifest.id],
    ...(isSeed ? [['seed', 'the database that comes with ipatlas, not a release'] as [string, string]] : []),
    ['as of', manifest.as_of],
    ['date of the data', manifest.data_date ?? 'unknown'],
    ['age of the data', ageText(ageDays(releaseAge(manifest)), rate)],
    ['made by', `ipatlas ${manifest.tool_version}`],
    ...(forced === undefined
      ? []
      : [['forced by', `${forced.by ?? 'the origin'} at ${forced.at}`] as [string, string]]),
    ['IPv4 ranges', counts.ipv4_ranges],
    ['IPv6 ranges', counts.ipv6_ranges],
    ['countries', counts.countries],
    ['IPv4 addresses with a country', counts.ipv4_addresses_with_country],
    ['IPv6 /48s with a country', counts.ipv6_48s_with_country],
    ...networkFacts(manifest),
    ...kindFacts(manifest),
    ...labelFacts(manifest),
    ...manifest.inputs.map(({ id, version, license, rows }): [string, string] => [
      `source ${id}`,
      `${version}, ${rows} rows, ${license}`,
    ]),
    ...seedRows(manifest),
    ...manifest.inputs.flatMap(({ id, data_date_problem: problem }): [string, string][] =>
      problem === undefined ? [] : [[`date of source ${id}`, `does not count: ${problem}`]],
    ),
    ...(manifest.missing ?? []).map(({ id }): [string, string] => [`source ${id}`, 'missing; it is optional']),
    ...manifest.outputs.map(({ name, bytes, sha256 }): [string, string] => [
      name,
      `${bytes} bytes, sha256 ${sha256.slice(0, 16)}…`,
    ]),
  ];
}

/** Names the sources of which only a seed was there; those with the same warning share a row. */
function seedRows({ inputs }: Manifest): [string, string][] {
  const warnings = new Set(inputs.flatMap(({ seed }) => seed ?? []));
  return [...warnings].map((warning) => {
    const ids = inputs.filter(({ seed }) => seed === warning).map(({ id }) => id);
    return ['only for a first build', `${ids.join(', ')}: ${warning}`];
  });
}

function networkFacts({ counts, networks_date: date }: Manifest): [string, string | number][] {
  const { networks } = counts;
  if (networks === undefined) return [['networks', 'none: no source says who announces the addresses']];
  const share = (part: string, whole: string): string =>
    whole === '0' ? part : `${part} (${percent(Number(part) / Number(whole))} of those with a country)`;
  return [
    ['networks', networks.networks],
    ['date of the networks', date ?? 'unknown'],
    ...(date === undefined
      ? []
      : [['age of the networks', ageText(ageDays(releaseAge({ as_of: date }))).split(':')[0]!] as [string, string]]),
    ['IPv4 addresses with a network', share(networks.ipv4_addresses, counts.ipv4_addresses_with_country)],
    ['IPv6 /48s with a network', share(networks.ipv6_48s, counts.ipv6_48s_with_country)],
  ];
}

function kindFacts(manifest: Manifest): [string, string | number][] {
  if (!hasPartition(manifest, KINDS)) return [];
  const missing = (manifest.kinds?.missing ?? []).map(({ id }) => id).join(', ');
  const lists = listsOfKinds(manifest).map(({ network: { kind, operator }, data_date: date }): [string, string] => {
    return [`list of ${operator}`, `${kind}, ${date ?? 'of unknown date'}`];
  });
  const anycast = manifest.inputs.filter(({ kind }) => kind === 'anycast').map(({ id }) => id);
  const unknown =
    missing === '' ? 'null: there are no lists' : `null outside the lists that are there; missing: ${missing}`;
  return [
    [
      'anycast',
      ['data/reference/anycast.csv', ...anycast].join(', ') + (anycast.length === 0 ? '; null elsewhere' : ''),
    ],
    ...lists,
    ...(lists.length === 0 || missing !== '' ? [['kind of network', unknown] as [string, string]] : []),
  ];
}

function labelFacts({ labels }: Manifest): [string, string | number][] {
  if (labels === undefined) return [];
  const { columns, rows, date } = labels;
  const age = ageText(ageDays(releaseAge({ as_of: date }))).split(':')[0]!;
  return [
    ['labels', columns.join(', ')],
    ['rows of labels', rows],
    ['date of the labels', date],
    ['age of the labels', age],
  ];
}

/** The age above which data is stale, and where it was given. */
function maxAge(values: OptionValues): { value: string | undefined; name: string } {
  const flag = text(values, 'max-age');
  if (flag !== undefined) return { value: flag, name: '--max-age' };
  return { value: process.env.IPATLAS_MAX_AGE, name: 'IPATLAS_MAX_AGE' };
}

async function run(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  const { value, name } = maxAge(values);
  const maxDays = parseMaxAge(value, name);
  const database = databaseOf(invocation);
  const manifest = manifestOfDatabase(database);
  const seed = seedFacts(database);
  const rate = changeRate(database);
  const json = { ...manifest, age_seconds: releaseAge(manifest), ...seed };
  await print(
    values.json === true ? `${JSON.stringify(json)}\n` : factLines(facts(manifest, seed !== undefined, rate)),
  );
  // The note about the seed has its age already.
  const warning = seed === undefined ? staleWarning(manifest, maxDays, rate) : undefined;
  if (warning !== undefined) printNote(`ipatlas: warning: ${warning}\n`);
  return EXIT.ok;
}

export const command: Command = {
  usage: ['info'],
  description: `Shows the current release: its date and age, sources, counts and files.`,
  options: {
    json: { help: `print the release's manifest, with the age of the data in seconds` },
    'max-age': {
      value: 'DAYS',
      help: `print a warning if the data is older (or IPATLAS_MAX_AGE; default ${DEFAULT_MAX_AGE_DAYS}); the exit code stays 0`,
    },
  },
  examples: {
    'ipatlas info': 'the current release',
    'ipatlas info --json --max-age 7': 'for a monitor: warns if the data is older than a week',
  },
  answersFromSeed: true,
  run,
};
