/** Makes the texts that the kernel inserts for each field. */
import { continentTable } from '../../country/continents.js';
import { recordResult } from '../../database/binary-engine.js';
import { MAX_ADDRESS_LENGTH } from '../../limits.js';
import type { RangeRecord } from '../../rangefile/layout.js';
import {
  type CountryAnswer,
  openTexts,
  type ResultFormat,
  type Run,
  resultFormat,
  resultTexts,
  runsOf,
  stylesOf,
} from '../formats/results.js';
import type { Addable, EnrichOptions, KernelInput } from '../options.js';
import * as abi from './abi.js';
import type { MemoryPlan } from './memory-plan.js';

/** Length of the longest block: an IPv6 address and `/128`. */
const MAX_BLOCK_LENGTH = MAX_ADDRESS_LENGTH + 4;

const JSON_LINES: KernelInput = { kind: 'jsonl' };

/** Returns what each record says of the country. */
export function countryAnswers(records: readonly RangeRecord[], add: readonly Addable[]): CountryAnswer[] {
  const results = records.map(recordResult);
  if (!add.includes('continent')) return results;
  const continents = continentTable();
  return results.map((result) => ({ ...result, continent: continents.get(result.country_code ?? '')?.code ?? null }));
}

/** Places a table of texts, `TEXT_BYTES` each, and the texts, equal ones once. */
export function placeTexts(plan: MemoryPlan, texts: readonly string[]): { table: number; longest: number } {
  const unique = [...new Set(texts)];
  const bytes = unique.map((text) => Buffer.from(text));
  let at = plan.place(Buffer.concat(bytes));
  const places = new Map<string, [at: number, length: number]>();
  unique.forEach((text, index) => {
    const { length } = bytes[index]!;
    places.set(text, [at, length]);
    at += length;
  });
  const table = plan.place(Uint32Array.from(texts.flatMap((text) => places.get(text)!)));
  return { table, longest: Math.max(...bytes.map(({ length }) => length)) };
}

/** Places what fills the gaps between the texts of the record. Returns the table of the gaps, their number and longest text. */
function placeGaps(plan: MemoryPlan, format: ResultFormat, runs: readonly Run[]) {
  const gaps = runs.filter(({ origin }) => origin !== 'country');
  const texts = gaps.map(({ names }) => placeTexts(plan, openTexts(format, names[0]!)));
  const kinds = gaps.map(({ origin }) => (origin === 'address' ? abi.GAP_ADDRESS : abi.GAP_BLOCK));
  return {
    table: plan.place(Uint32Array.from(kinds.flatMap((kind, index) => [kind, texts[index]!.table]))),
    count: gaps.length,
    longest: texts.reduce((sum, { longest }) => sum + 2 * longest + MAX_BLOCK_LENGTH, 0),
  };
}

/** Places what is inserted for each style and field, see `INSERT_…` in abi.ts. */
export function placeInserts(plan: MemoryPlan, answers: readonly CountryAnswer[], options: EnrichOptions) {
  const { input = JSON_LINES, fields, add } = options;
  const runs = runsOf(add);
  let longestInsert = 0;
  const styled = stylesOf(input).flatMap((style) =>
    fields.map(({ resultPath }) => ({ style, key: resultPath.at(-1)! })),
  );
  const inserts = styled.flatMap(({ style, key }) => {
    const format = resultFormat(input, add, key, style);
    const texts = placeTexts(plan, [...answers.flatMap((answer) => resultTexts(format, runs, answer)), format.none]);
    const gaps = placeGaps(plan, format, runs);
    longestInsert += (gaps.count + 1) * texts.longest + gaps.longest + abi.LONGEST_INDENT;
    return [texts.table, gaps.count, gaps.table];
  });
  return { inserts: plan.place(Uint32Array.from(inserts)), longestInsert };
}
