/** Makes the texts that the kernel inserts for each field. */
import { continentTable } from '../../country/continents.js';
import { recordResult } from '../../database/binary-engine.js';
import { MAX_ADDRESS_LENGTH } from '../../limits.js';
import { type RangeRecord, RECORD_WORD, RECORD_WORDS } from '../../rangefile/layout.js';
import type { NetworkFile } from '../../rangefile/reader.js';
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
import { type Addable, NETWORK_MEMBERS } from '../members.js';
import type { EnrichOptions, KernelInput } from '../options.js';
import * as abi from './abi.js';
import type { MemoryPlan } from './memory-plan.js';
import { buildResultTree, placeResultTree } from './result-tree.js';
import { asNumbers } from './rows.js';

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

/** Places the networks of a release, see `NETWORK_…` in abi.ts, once for each way of writing their names. */
class NetworkTables {
  readonly #plan: MemoryPlan;
  readonly #networks: NetworkFile | undefined;
  readonly #tables = new Map<string, { table: number; longest: number }>();
  /** The address of the texts of the file, once they are placed. */
  #texts: number | undefined;

  /** @param networks undefined for a release without networks: then there is one network, which is none */
  constructor(plan: MemoryPlan, networks: NetworkFile | undefined) {
    this.#plan = plan;
    this.#networks = networks;
  }

  /** Returns the table for a format, and the length of the longest name in bytes. */
  table(format: ResultFormat): { table: number; longest: number } {
    const special = specialCharacters(format).join('');
    const known = this.#tables.get(special) ?? this.#place(format, special);
    this.#tables.set(special, known);
    return known;
  }

  #place(format: ResultFormat, special: string) {
    const networks = this.#networks;
    if (networks === undefined) return { table: this.#plan.place(new Uint32Array(abi.NETWORK_BYTES / 4)), longest: 0 };
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
    return { table: this.#plan.place(table), longest };
  }
}

/** Places what fills the gaps between the texts of the record. Returns the table of the gaps, their number and longest text. */
function placeGaps(plan: MemoryPlan, format: ResultFormat, add: readonly Addable[], networks: NetworkTables) {
  const gaps = openMembers(add).map((name) => {
    const texts = placeTexts(plan, openTexts(format, name));
    const names = NETWORK_MEMBERS.includes(name) ? networks.table(format) : { table: 0, longest: 0 };
    const longest = 2 * texts.longest + Math.max(names.longest, MAX_BLOCK_LENGTH);
    return { entry: [GAP_KINDS[name]!, texts.table, names.table], longest };
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
  file: NetworkFile | undefined,
  options: EnrichOptions,
) {
  const { input = JSON_LINES, fields, add, schema } = options;
  const networks = new NetworkTables(plan, file);
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
