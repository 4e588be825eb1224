/** Makes the texts that the kernel inserts for each field. */
import { continentTable } from '../../country/continents.js';
import { recordResult } from '../../database/binary-engine.js';
import { MAX_ADDRESS_LENGTH } from '../../limits.js';
import type { RangeRecord } from '../../rangefile/layout.js';
import type { NetworkFile } from '../../rangefile/reader.js';
import {
  type CountryAnswer,
  type Origin,
  openTexts,
  type ResultFormat,
  type Run,
  resultFormat,
  resultTexts,
  runsOf,
  schemaFormat,
  stylesOf,
} from '../formats/results.js';
import type { Addable } from '../members.js';
import type { EnrichOptions, KernelInput } from '../options.js';
import * as abi from './abi.js';
import type { MemoryPlan } from './memory-plan.js';
import { buildResultTree, placeResultTree } from './result-tree.js';

/** Length of the longest block: an IPv6 address and `/128`. */
const MAX_BLOCK_LENGTH = MAX_ADDRESS_LENGTH + 4;

const GAP_KINDS: { [From in Origin]?: number } = {
  network: abi.GAP_NETWORK,
  address: abi.GAP_ADDRESS,
  block: abi.GAP_BLOCK,
  date: abi.GAP_DATE,
};

const JSON_LINES: KernelInput = { kind: 'jsonl' };

/** Returns what each record says of the country. */
export function countryAnswers(records: readonly RangeRecord[], add: readonly Addable[]): CountryAnswer[] {
  const results = records.map(recordResult);
  if (!add.includes('continent')) return results;
  const continents = continentTable();
  return results.map((result) => ({ ...result, continent: continents.get(result.country_code ?? '')?.code ?? null }));
}

/** Places a table of texts, `TEXT_BYTES` each, and the texts. Returns the table and the length of the longest text, in bytes. */
export function placeTexts(plan: MemoryPlan, texts: readonly string[]): { table: number; longest: number } {
  // There may be a hundred thousand, so they are encoded at once.
  const joined = texts.join('');
  const bytes = Buffer.from(joined);
  const isAscii = bytes.length === joined.length;
  const table = new Uint32Array((texts.length * abi.TEXT_BYTES) / 4);
  let at = plan.place(bytes);
  let longest = 0;
  for (let i = 0; i < texts.length; i++) {
    const length = isAscii ? texts[i]!.length : Buffer.byteLength(texts[i]!);
    table[2 * i] = at;
    table[2 * i + 1] = length;
    at += length;
    if (length > longest) longest = length;
  }
  return { table: plan.place(table), longest };
}

/** What is said of a network. */
export interface NetworkAnswer {
  asn: number | null;
  as_name: string | null;
}

/** What is said of the networks of a release, equal answers once, and for each record, which answer is its own. */
export interface NetworkAnswers {
  answers: NetworkAnswer[];
  ofRecord: Uint32Array;
}

/**
 * Returns what is said of each network.
 *
 * @param networks undefined for a release without networks: then there is one answer, with nulls
 * @param names the members that are asked for
 */
export function networkAnswers(networks: NetworkFile | undefined, names: readonly Addable[]): NetworkAnswers {
  const wantsNumber = names.includes('asn');
  const wantsName = names.includes('as_name');
  // The first one is for addresses that nobody announces.
  const answers: NetworkAnswer[] = [{ asn: null, as_name: null }];
  const named = new Map<string, number>();
  const records = networks?.records ?? [];
  const ofRecord = new Uint32Array(Math.max(records.length, 1));
  for (let i = 0; i < records.length; i++) {
    const record = records[i]!;
    if (record.kind !== 'network') continue;
    const { asn, name } = record;
    // A number has one record, but several numbers may have one name.
    if (wantsNumber) ofRecord[i] = answers.push({ asn, as_name: wantsName && name !== '' ? name : null }) - 1;
    else if (name !== '') {
      const known = named.get(name) ?? answers.push({ asn: null, as_name: name }) - 1;
      named.set(name, known);
      ofRecord[i] = known;
    }
  }
  return { answers, ofRecord };
}

/** Returns the texts that fill a gap, see `GAP_TEXTS` in abi.ts. */
function gapTexts(format: ResultFormat, { origin, names }: Run, { answers }: NetworkAnswers): string[] {
  if (origin !== 'network') return openTexts(format, names[0]!);
  return answers.map((answer) =>
    names.map((name) => format.member(name, answer[name as keyof NetworkAnswer])).join(format.separator),
  );
}

/** Places what fills the gaps between the texts of the record. Returns the table of the gaps, their number and longest text. */
function placeGaps(plan: MemoryPlan, format: ResultFormat, runs: readonly Run[], networks: NetworkAnswers) {
  const gaps = runs.filter(({ origin }) => origin !== 'country');
  const texts = gaps.map((run) => placeTexts(plan, gapTexts(format, run, networks)));
  const kinds = gaps.map(({ origin }) => GAP_KINDS[origin]!);
  return {
    table: plan.place(Uint32Array.from(kinds.flatMap((kind, index) => [kind, texts[index]!.table]))),
    count: gaps.length,
    longest: texts.reduce((sum, { longest }) => sum + 2 * longest + MAX_BLOCK_LENGTH, 0),
  };
}

/** What is said of each record of the countries, and of the networks. */
export interface Answers {
  countries: readonly CountryAnswer[];
  networks: NetworkAnswers;
}

/** What is inserted for a field, as numbers of `INSERT_…` in abi.ts, and its length in bytes at most. */
function placeInsert(
  plan: MemoryPlan,
  { countries: answers, networks }: Answers,
  format: ResultFormat,
  add: readonly Addable[],
) {
  const runs = runsOf(add);
  const texts = placeTexts(plan, [...answers.flatMap((answer) => resultTexts(format, runs, answer)), format.none]);
  const gaps = placeGaps(plan, format, runs, networks);
  return {
    numbers: [texts.table, gaps.count, gaps.table],
    longest: (gaps.count + 1) * texts.longest + gaps.longest + abi.LONGEST_INDENT,
  };
}

/** Places what is inserted: for each style and field, and the tree of the objects that results go into, if they are not all at the top. */
export function placeInserts(plan: MemoryPlan, answers: Answers, options: EnrichOptions) {
  const { input = JSON_LINES, fields, add, schema } = options;
  let longestInsert = 0;
  const insert = (format: ResultFormat, members: readonly Addable[]): number[] => {
    const { numbers, longest } = placeInsert(plan, answers, format, members);
    longestInsert += longest;
    return numbers;
  };
  const table =
    schema === undefined
      ? stylesOf(input).flatMap((style) =>
          fields.flatMap(({ resultPath }) => insert(resultFormat(input, add, resultPath.at(-1)!, style), add)),
        )
      : [];
  const inserts = plan.place(Uint32Array.from(table));
  if (schema === undefined && fields.every(({ resultPath }) => resultPath.length === 1)) {
    return { inserts, longestInsert, results: 0, resultCount: 0 };
  }
  const tree = placeResultTree(plan, buildResultTree(options), ({ field, add: members }) =>
    members === undefined
      ? inserts + field * abi.INSERT_BYTES
      : plan.place(Uint32Array.from(insert(schemaFormat(schema!), members))),
  );
  return { inserts, longestInsert: longestInsert + tree.longest, results: tree.results, resultCount: tree.count };
}
