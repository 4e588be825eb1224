/** `ipatlas filter`: passes on the records whose address is in certain countries. */
import { countryWords } from '../country/continents.js';
import { parseCountryList } from '../country/memberships.js';
import { manifestOfDatabase } from '../database/origin.js';
import { knownKinds, listsOfKinds, type Manifest } from '../database/release.js';
import { type EnrichRequest, enrich } from '../enrich/enrich.js';
import type { Filter } from '../enrich/query.js';
import { AtlasError, misuse } from '../errors.js';
import { KIND_VALUES, KINDS } from '../rangefile/partitions.js';
import { type Command, type Invocation, noteMissing, type OptionValues, parseAsns } from './command.js';
import { INPUT_FLAGS, OUTPUT_FLAGS, refuseEachDay, withLogs } from './records/flags.js';
import { planOf } from './records/plan.js';
import { runPlan } from './records/run.js';

function parseFilter(values: OptionValues): Filter {
  const named = (values.country ?? []) as string[];
  const { codes, groups } = parseCountryList(values.eu === true ? [...named, 'EU'] : named, '--country');
  const lists = values.asn as string[] | undefined;
  const kinds = values.kind as string[] | undefined;
  if (codes.size + groups.size === 0 && (lists ?? kinds) === undefined) {
    throw misuse(
      'choose countries with --country LIST or --eu, or networks with --asn LIST or --kind LIST; see "ipatlas filter --help"',
    );
  }
  if (kinds !== undefined) refuseEachDay(values, '--kind');
  const asns = lists && new Set(lists.flatMap((list) => parseAsns(list)));
  if (asns !== undefined) refuseEachDay(values, '--asn');
  const [selectsEu, selectsEea] = [groups.has('EU'), groups.has('EEA')];
  return {
    kind: 'filter',
    countries: codes,
    selectsEu,
    selectsEea,
    ...(asns && { asns }),
    ...(kinds && { kinds: parseKinds(kinds) }),
    isInverted: values.not === true,
  };
}

/** Parses lists of kinds of networks. @throws AtlasError E_USAGE for what is none */
function parseKinds(lists: readonly string[]): ReadonlySet<string> {
  const kinds = lists.flatMap((list) => list.split(',').map((part) => part.trim()));
  const unknown = kinds.find((kind) => !KIND_VALUES.includes(kind));
  if (unknown === undefined) return new Set(kinds);
  throw misuse(`--kind has ${JSON.stringify(unknown)}; choose from ${KIND_VALUES.join(', ')}`);
}

function noKind({ id }: Manifest, kind: string): AtlasError {
  const what = kind === 'none' ? 'does not have all lists of kinds of networks' : `has no list of the kind ${kind}`;
  return new AtlasError(
    'E_NO_DATABASE',
    `release ${id} ${what}; build it again with the missing ones among its sources`,
  );
}

function filter(invocation: Invocation): Promise<number> {
  const query = parseFilter(invocation.values);
  const plan = planOf(invocation);
  if (query.kinds !== undefined && plan.options.at === undefined) {
    const manifest = manifestOfDatabase(plan.database);
    const kinds = new Set(['none', ...listsOfKinds(manifest).map(({ network }) => network.kind)]);
    const [unlisted] = [...query.kinds].filter(
      (kind) => !kinds.has(kind) || (kind === 'none' && !knownKinds(manifest).has(kind)),
    );
    if (unlisted !== undefined) throw noKind(manifest, unlisted);
    noteMissing(manifest, [KINDS]);
  }
  // An invalid line has no address.
  const onInvalid = query.isInverted ? 'keep' : 'drop';
  const options: EnrichRequest['options'] = { ...plan.options, add: [], onInvalid, query };
  return runPlan(plan, (work) => enrich({ ...plan, ...work, options }));
}

export const command: Command = {
  usage: ['filter --country LIST|--eu|--asn LIST|--kind LIST [--not] [FILE…]'],
  description: `Passes on the lines, records or items whose address is in one of the countries or networks, byte for byte; the header of a table is
always passed on. With several fields, one address in the countries is enough. Reads several files one after the other;
without a file, or for "-", it reads stdin. gzip is recognized, and zstd from Node 22.15 on. Writes to stdout.`,
  options: {
    country: {
      value: 'LIST',
      repeatable: true,
      common: countryWords,
      help: 'ISO 3166-1 alpha-2 codes, EU for the European Union, EEA for the European Economic Area, such as DE,FR or EEA,GB; repeatable',
    },
    eu: { help: 'all countries of the European Union, as --country EU' },
    asn: {
      value: 'LIST',
      repeatable: true,
      help: 'networks by the number of their autonomous system, such as 13335,AS15169; repeatable',
    },
    kind: {
      value: 'LIST',
      repeatable: true,
      help: `kinds of networks by the lists of their operators: of ${KIND_VALUES.join(', ')}; repeatable`,
    },
    not: { help: 'pass on all other lines instead, including those without an address' },
    ...INPUT_FLAGS,
    ...OUTPUT_FLAGS,
  },
  examples: {
    'ipatlas filter --eu access.jsonl': 'the lines with an address in the European Union',
    'ipatlas filter --asn 13335,AS15169 access.jsonl': 'the lines with an address of two networks',
    'ipatlas filter --kind cloud,tor access.jsonl': 'the lines with an address of a cloud, or of an exit of Tor',
    'ipatlas filter --not --country DE,FR --format list ips.txt':
      'the addresses that are neither in Germany nor in France',
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  answersFromSeed: true,
  run: (invocation) => withLogs(invocation, () => filter(invocation)),
};
