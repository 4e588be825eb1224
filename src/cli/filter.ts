/** `ipatlas filter`: passes on the records whose address is in certain countries. */
import { parseCountryList } from '../country/memberships.js';
import { type EnrichRequest, enrich } from '../enrich/enrich.js';
import type { Filter } from '../enrich/query.js';
import { misuse } from '../errors.js';
import { type Command, type Invocation, type OptionValues, parseAsns } from './command.js';
import { INPUT_FLAGS, OUTPUT_FLAGS, refuseEachDay, withLogs } from './records/flags.js';
import { planOf } from './records/plan.js';
import { runPlan } from './records/run.js';

function parseFilter(values: OptionValues): Filter {
  const named = (values.country ?? []) as string[];
  const { codes, groups } = parseCountryList(values.eu === true ? [...named, 'EU'] : named, '--country');
  const lists = values.asn as string[] | undefined;
  if (codes.size + groups.size === 0 && lists === undefined) {
    throw misuse(
      'choose countries with --country LIST or --eu, or networks with --asn LIST; see "ipatlas filter --help"',
    );
  }
  const asns = lists && new Set(lists.flatMap((list) => parseAsns(list)));
  if (asns !== undefined) refuseEachDay(values, '--asn');
  const [selectsEu, selectsEea] = [groups.has('EU'), groups.has('EEA')];
  return {
    kind: 'filter',
    countries: codes,
    selectsEu,
    selectsEea,
    ...(asns && { asns }),
    isInverted: values.not === true,
  };
}

function filter(invocation: Invocation): Promise<number> {
  const query = parseFilter(invocation.values);
  const plan = planOf(invocation);
  // An invalid line has no address.
  const onInvalid = query.isInverted ? 'keep' : 'drop';
  const options: EnrichRequest['options'] = { ...plan.options, add: [], onInvalid, query };
  return runPlan(plan, (work) => enrich({ ...plan, ...work, options }));
}

export const command: Command = {
  usage: ['filter --country LIST|--eu|--asn LIST [--not] [FILE…]'],
  description: `Passes on the lines, records or items whose address is in one of the countries or networks, byte for byte; the header of a table is
always passed on. With several fields, one address in the countries is enough. Reads several files one after the other;
without a file, or for "-", it reads stdin. gzip is recognized, and zstd from Node 22.15 on. Writes to stdout.`,
  options: {
    country: {
      value: 'LIST',
      repeatable: true,
      help: 'ISO 3166-1 alpha-2 codes, EU for the European Union, EEA for the European Economic Area, such as DE,FR or EEA,GB; repeatable',
    },
    eu: { help: 'all countries of the European Union, as --country EU' },
    asn: {
      value: 'LIST',
      repeatable: true,
      help: 'networks by the number of their autonomous system, such as 13335,AS15169; repeatable',
    },
    not: { help: 'pass on all other lines instead, including those without an address' },
    ...INPUT_FLAGS,
    ...OUTPUT_FLAGS,
  },
  examples: {
    'ipatlas filter --eu access.jsonl': 'the lines with an address in the European Union',
    'ipatlas filter --asn 13335,AS15169 access.jsonl': 'the lines with an address of two networks',
    'ipatlas filter --not --country DE,FR --format list ips.txt':
      'the addresses that are neither in Germany nor in France',
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  answersFromSeed: true,
  run: (invocation) => withLogs(invocation, () => filter(invocation)),
};
