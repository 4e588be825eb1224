/** Makes the texts that the kernel inserts for each field. */
import { continentTable } from '../../country/continents.js';
import { isInEea } from '../../country/memberships.js';
import { countryNames } from '../../country/names.js';
import { recordResult } from '../../database/binary-engine.js';
import { MAX_ADDRESS_LENGTH } from '../../limits.js';
import { type Cell, type RangeRecord, RECORD_WORD, RECORD_WORDS } from '../../rangefile/layout.js';
import { LABELS, NETWORKS, type Partition } from '../../rangefile/partitions.js';
import type { NetworkFile, PartitionFile } from '../../rangefile/reader.js';
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
import { inlineFormat } from '../inline.js';
import { type Addable, otherPartitionOf } from '../members.js';
import type { EnrichOptions, KernelInput } from '../options.js';
import * as abi from './abi.js';
import type { MemoryPlan } from './memory-plan.js';
import { buildResultTree, placeResultTree } from './result-tree.js';
import { asNumbers, columnValues, type OtherRows } from './rows.js';

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

/** Returns what each record says of the country. @param day of memberships, `YYYY-MM-DD`, for records without one */
export function countryAnswers(
  records: readonly RangeRecord[],
  { add, lang }: Pick<EnrichOptions, 'add' | 'lang'>,
  day: string,
): CountryAnswer[] {
  const continents = add.includes('continent') ? continentTable() : undefined;
  const nameOf = lang === undefined ? undefined : countryNames(lang, 'lang');
  return records.map((record) => {
    const result = recordResult(record);
    const code = result.country_code;
    return {
      ...result,
      ...(nameOf && record.kind === 'country' && { country: nameOf(record.code, record.name) }),
      ...(continents && { continent: continents.get(code ?? '')?.code ?? null }),
      ...(add.includes('is_eea') && { is_eea: isInEea(code, memberDay(record, day)) }),
    };
  });
}

/** Returns the day for which the memberships of a record's country count. */
export function memberDay(record: RangeRecord, day: string): string {
  return record.kind === 'country' ? (record.day ?? day) : day;
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

/** Places the networks of a release, see `NETWORK_…` in abi.ts, once for each way of writing their names; columns of values likewise. */
class NetworkTables {
  readonly #plan: MemoryPlan;
  readonly #others: OtherRows | undefined;
  readonly #tables = new Map<string, { table: number; longest: number }>();
  /** The address of the texts of the file, once they are placed. */
  #texts: number | undefined;

  /** @param others what the rows have the numbers of */
  constructor(plan: MemoryPlan, others: OtherRows | undefined) {
    this.#plan = plan;
    this.#others = others;
  }

  /** The names of the labels, if they are opened. */
  get labels(): readonly string[] {
    return this.#others?.files.get(LABELS)?.columns ?? [];
  }

  /** Returns the partition besides the countries that answers a member; undefined if none does. */
  partitionOf(name: Addable): Partition | undefined {
    return otherPartitionOf(name, this.labels);
  }

  /** Returns the table of the networks, or of a column of values, for a format, and the length of the longest text in bytes. */
  table(format: ResultFormat, name: Addable): { table: number; longest: number } {
    const partition = this.partitionOf(name)!;
    const isOfNetworks = partition === NETWORKS;
    const special = specialCharacters(format).join('');
    const key = isOfNetworks ? special : `${name} ${special}`;
    const known = this.#tables.get(key) ?? this.#placeTable(partition, format, name, special);
    this.#tables.set(key, known);
    return known;
  }

  #placeTable(partition: Partition, format: ResultFormat, name: Addable, special: string) {
    const file = this.#others?.files.get(partition);
    if (file === undefined) {
      // For what the release does not have, each number has none.
      const none = new Uint32Array(((this.#others?.count ?? 1) * abi.NETWORK_BYTES) / 4);
      return { table: this.#plan.place(none), longest: 0 };
    }
    const { entries, longest } =
      partition === NETWORKS ? this.#networks(file as NetworkFile, format, special) : this.#values(file, format, name);
    return { table: this.#placeEntries(entries, this.#others!.records?.get(partition)), longest };
  }

  /** Places entries by record; of combinations, each gets that of its record. */
  #placeEntries(entries: Uint32Array, records: Uint32Array | undefined): number {
    if (records === undefined) return this.#plan.place(entries);
    const words = abi.NETWORK_BYTES / 4;
    const table = new Uint32Array(words * records.length);
    for (let number = 0; number < records.length; number++) {
      for (let k = 0; k < words; k++) table[words * number + k] = entries[words * records[number]! + k]!;
    }
    return this.#plan.place(table);
  }

  /** Places the values of a column as names. */
  #values(file: PartitionFile, format: ResultFormat, name: Addable) {
    const values = columnValues(file, name);
    const [before, after] = openTexts(format, name);
    const different = [...new Set(values)].filter((value) => value !== null);
    const texts = different.map((value) => {
      const written = format.member(name, value);
      return Buffer.from(written.slice(before.length, written.length - after.length));
    });
    let at = this.#plan.place(Buffer.concat(texts));
    const places = new Map<Cell, [at: number, length: number]>();
    texts.forEach(({ length }, index) => {
      places.set(different[index]!, [at, length]);
      at += length;
    });
    const entries = new Uint32Array((values.length * abi.NETWORK_BYTES) / 4);
    values.forEach((value, record) => {
      entries.set(places.get(value) ?? [], (record * abi.NETWORK_BYTES + abi.NETWORK_NAME) / 4);
    });
    const longest = texts.reduce((most, { length }) => Math.max(most, length), 0);
    return { entries, longest };
  }

  #networks(networks: NetworkFile, format: ResultFormat, special: string) {
    const { recordWords: words, text } = networks;
    this.#texts ??= this.#plan.place(text);
    const numbers = asNumbers(networks);
    const entries = new Uint32Array((numbers.length * abi.NETWORK_BYTES) / 4);
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
      entries[at] = numbers[record]!;
      entries[at + abi.NETWORK_NAME / 4] = this.#texts + offset;
      entries[at + abi.NETWORK_NAME_LENGTH / 4] = length;
      longest = Math.max(longest, length);
      if (!isSpecial.test(bytes.slice(offset, offset + length))) continue;
      const name = Buffer.from(text.buffer, text.byteOffset + offset, length).toString();
      const written = format.member('as_name', name);
      others.push({ at, name: written.slice(before.length, written.length - after.length) });
    }
    let to = this.#plan.place(Buffer.from(others.map(({ name }) => name).join('')));
    for (const { at, name } of others) {
      const length = Buffer.byteLength(name);
      entries.set([to, length], at + abi.NETWORK_NAME / 4);
      to += length;
      longest = Math.max(longest, length);
    }
    return { entries, longest };
  }
}

/** Places what fills the gaps between the texts of the record. Returns the table of the gaps, their number and longest text. */
function placeGaps(plan: MemoryPlan, format: ResultFormat, open: readonly Addable[], networks: NetworkTables) {
  const gaps = open.map((name) => {
    const texts = placeTexts(plan, openTexts(format, name));
    const names = networks.partitionOf(name) !== undefined ? networks.table(format, name) : { table: 0, longest: 0 };
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
  const open = openMembers(add, networks.labels);
  const texts = placeTexts(plan, [...answers.flatMap((answer) => resultTexts(format, add, open, answer)), format.none]);
  const gaps = placeGaps(plan, format, open, networks);
  return {
    numbers: [texts.table, gaps.count, gaps.table],
    longest: (gaps.count + 1) * texts.longest + gaps.longest + abi.LONGEST_INDENT,
  };
}

/** Places what is inserted: for each style and field, and the tree of the objects that results go into, if they are not all at the top. */
export function placeInserts(
  plan: MemoryPlan,
  answers: readonly CountryAnswer[],
  options: EnrichOptions,
  others: OtherRows | undefined,
) {
  const { input = JSON_LINES, fields, add, schema, inline } = options;
  const networks = new NetworkTables(plan, others);
  let longestInsert = 0;
  const insert = (format: ResultFormat, members: readonly Addable[]): number[] => {
    const { numbers, longest } = placeInsert(plan, answers, networks, format, members);
    longestInsert += longest;
    return numbers;
  };
  const table =
    schema === undefined
      ? stylesOf(input).flatMap((style) =>
          fields.flatMap(({ resultPath }) =>
            insert(inline ? inlineFormat(inline) : resultFormat(input, add, resultPath.at(-1)!, style), add),
          ),
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
