/** Makes the texts that the kernel inserts for each field. */
import { continentTable } from '../../country/continents.js';
import { recordResult } from '../../database/binary-engine.js';
import { MAX_ADDRESS_LENGTH } from '../../limits.js';
import { type RangeRecord, RECORD_WORD, RECORD_WORDS } from '../../rangefile/layout.js';
import {
  type CountryAnswer,
  openMembers,
  openTexts,
  type ResultFormat,
  resultFormat,
  resultTexts,
  schemaFormat,
  stylesOf,
} from '../formats/results.js';
import { type Addable, isLabel, NETWORK_MEMBERS } from '../members.js';
import type { EnrichOptions, KernelInput } from '../options.js';
import type { Others } from '../ranges.js';
import * as abi from './abi.js';
import type { MemoryPlan } from './memory-plan.js';
import { buildResultTree, placeResultTree } from './result-tree.js';
import { asNumbers, labelValues, type Pairs } from './rows.js';

/** Length of the longest block: an IPv6 address and `/128`. */
const MAX_BLOCK_LENGTH = MAX_ADDRESS_LENGTH + 4;

const GAP_KINDS: { [Name in Addable]?: number } = {
  asn: abi.GAP_ASN,
  as_name: abi.GAP_NAME,
  network: abi.GAP_BLOCK,
  address: abi.GAP_ADDRESS,
  release_date: abi.GAP_DATE,
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
  const encoded = texts.map((text) => Buffer.from(text));
  const table = new Uint32Array((texts.length * abi.TEXT_BYTES) / 4);
  let at = plan.place(Buffer.concat(encoded));
  let longest = 0;
  encoded.forEach(({ length }, index) => {
    table.set([at, length], 2 * index);
    at += length;
    longest = Math.max(longest, length);
  });
  return { table: plan.place(table), longest };
}

/** Returns the characters because of which a format writes a name differently. All are ASCII. */
function specialCharacters(format: ResultFormat): string[] {
  const [before, after] = openTexts(format, 'as_name');
  const characters = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
  return characters.filter((text) => format.member('as_name', text) !== before + text + after);
}

/** Places the networks of a release, see `NETWORK_…` in abi.ts, once for each way of writing their names; the values of labels likewise. */
class NetworkTables {
  readonly #plan: MemoryPlan;
  readonly #others: Others;
  readonly #pairs: Pairs | undefined;
  readonly #tables = new Map<string, { table: number; longest: number }>();
  /** The address of the texts of the file, once they are placed. */
  #texts: number | undefined;

  /**
   * @param others for what a release does not have there is one record, which is none
   * @param pairs what the rows have the numbers of, if labels are asked for
   */
  constructor(plan: MemoryPlan, others: Others, pairs: Pairs | undefined) {
    this.#plan = plan;
    this.#others = others;
    this.#pairs = pairs;
  }

  /** Returns the table of the networks, or of a label, for a format, and the length of the longest name in bytes. */
  table(format: ResultFormat, name: Addable): { table: number; longest: number } {
    const special = specialCharacters(format).join('');
    const key = isLabel(name) ? `${name} ${special}` : special;
    const known =
      this.#tables.get(key) ?? (isLabel(name) ? this.#placeLabel(format, name) : this.#place(format, special));
    this.#tables.set(key, known);
    return known;
  }

  /** Places entries by record; for pairs, each of them gets that of its record. */
  #placeEntries(entries: Uint32Array, records: Uint32Array | undefined): number {
    if (records === undefined) return this.#plan.place(entries);
    const words = abi.NETWORK_BYTES / 4;
    const table = new Uint32Array(words * records.length);
    for (let pair = 0; pair < records.length; pair++) {
      for (let k = 0; k < words; k++) table[words * pair + k] = entries[words * records[pair]! + k]!;
    }
    return this.#plan.place(table);
  }

  /** Places the values of a label as names. */
  #placeLabel(format: ResultFormat, name: Addable) {
    const { labels, networks } = this.#others;
    // Without labels, the rows have the numbers of networks.
    const none = Array<null>(networks === undefined ? 1 : networks.recordWords.length / RECORD_WORDS).fill(null);
    const values = labels === undefined ? none : labelValues(labels, name);
    const [before, after] = openTexts(format, name);
    const different = [...new Set(values)].filter((value) => value !== null);
    const texts = different.map((value) => {
      const written = format.member(name, value);
      return Buffer.from(written.slice(before.length, written.length - after.length));
    });
    let at = this.#plan.place(Buffer.concat(texts));
    const places = new Map<string | null, [at: number, length: number]>();
    texts.forEach(({ length }, index) => {
      places.set(different[index]!, [at, length]);
      at += length;
    });
    const entries = new Uint32Array((values.length * abi.NETWORK_BYTES) / 4);
    values.forEach((value, record) => {
      entries.set(places.get(value) ?? [], (record * abi.NETWORK_BYTES + abi.NETWORK_NAME) / 4);
    });
    const longest = texts.reduce((most, { length }) => Math.max(most, length), 0);
    return { table: this.#placeEntries(entries, this.#pairs?.label), longest };
  }

  #place(format: ResultFormat, special: string) {
    const { networks } = this.#others;
    const none = new Uint32Array(abi.NETWORK_BYTES / 4);
    if (networks === undefined) return { table: this.#placeEntries(none, this.#pairs?.network), longest: 0 };
    const { recordWords: words, text } = networks;
    this.#texts ??= this.#plan.place(text);
    const numbers = asNumbers(networks);
    const table = new Uint32Array((numbers.length * abi.NETWORK_BYTES) / 4);
    // A byte each: the characters that count are ASCII.
    const bytes = Buffer.from(text.buffer, text.byteOffset, text.length).toString('latin1');
    const isSpecial = new RegExp(`[${special.replaceAll(/[\]\\^-]/g, '\\$&')}]`);
    const [before, after] = openTexts(format, 'as_name');
    const others: { at: number; name: string }[] = [];
    let longest = 0;
    for (let record = 0; record < numbers.length; record++) {
      if (numbers[record] === 0) continue;
      const at = (record * abi.NETWORK_BYTES) / 4;
      const offset = words[record * RECORD_WORDS + RECORD_WORD.textOffset]!;
      const length = words[record * RECORD_WORDS + RECORD_WORD.textLength]!;
      table[at] = numbers[record]!;
      table[at + abi.NETWORK_NAME / 4] = this.#texts + offset;
      table[at + abi.NETWORK_NAME_LENGTH / 4] = length;
      longest = Math.max(longest, length);
      if (!isSpecial.test(bytes.slice(offset, offset + length))) continue;
      const name = Buffer.from(text.buffer, text.byteOffset + offset, length).toString();
      const written = format.member('as_name', name);
      others.push({ at, name: written.slice(before.length, written.length - after.length) });
    }
    let to = this.#plan.place(Buffer.from(others.map(({ name }) => name).join('')));
    for (const { at, name } of others) {
      const length = Buffer.byteLength(name);
      table.set([to, length], at + abi.NETWORK_NAME / 4);
      to += length;
      longest = Math.max(longest, length);
    }
    return { table: this.#placeEntries(table, this.#pairs?.network), longest };
  }
}

/** Places what fills the gaps between the texts of the record. Returns the table of the gaps, their number and longest text. */
function placeGaps(plan: MemoryPlan, format: ResultFormat, add: readonly Addable[], networks: NetworkTables) {
  const gaps = openMembers(add).map((name) => {
    const texts = placeTexts(plan, openTexts(format, name));
    const isNamed = NETWORK_MEMBERS.includes(name) || isLabel(name);
    const names = isNamed ? networks.table(format, name) : { table: 0, longest: 0 };
    const longest = 2 * texts.longest + Math.max(names.longest, MAX_BLOCK_LENGTH);
    return { entry: [GAP_KINDS[name] ?? abi.GAP_NAME, texts.table, names.table], longest };
  });
  return {
    table: plan.place(Uint32Array.from(gaps.flatMap(({ entry }) => entry))),
    count: gaps.length,
    longest: gaps.reduce((sum, { longest }) => sum + longest, 0),
  };
}

/** What is inserted for a field, as numbers of `INSERT_…` in abi.ts, and its length in bytes at most. */
function placeInsert(
  plan: MemoryPlan,
  answers: readonly CountryAnswer[],
  networks: NetworkTables,
  format: ResultFormat,
  add: readonly Addable[],
) {
  const texts = placeTexts(plan, [...answers.flatMap((answer) => resultTexts(format, add, answer)), format.none]);
  const gaps = placeGaps(plan, format, add, networks);
  return {
    numbers: [texts.table, gaps.count, gaps.table],
    longest: (gaps.count + 1) * texts.longest + gaps.longest + abi.LONGEST_INDENT,
  };
}

/** Places what is inserted: for each style and field, and the tree of the objects that results go into, if they are not all at the top. */
export function placeInserts(
  plan: MemoryPlan,
  answers: readonly CountryAnswer[],
  others: Others,
  options: EnrichOptions,
  pairs: Pairs | undefined,
) {
  const { input = JSON_LINES, fields, add, schema } = options;
  const networks = new NetworkTables(plan, others, pairs);
  let longestInsert = 0;
  const insert = (format: ResultFormat, members: readonly Addable[]): number[] => {
    const { numbers, longest } = placeInsert(plan, answers, networks, format, members);
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
