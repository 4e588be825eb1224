/**
 * Checks a release against the rows of its sources, by means that share nothing with the code that made it: ipaddr.js parses
 * the rows, the rules of the merge are those of plain-rules.ts, and the range file and the mirror are asked at both ends of each
 * row and at the addresses beside them.
 */
import type Sqlite from 'better-sqlite3';
import ipaddr from 'ipaddr.js';
import type { Family } from '../../src/address/parse.js';
import { addressWords, compareAddresses } from '../../src/address/words.js';
import { resolveCountry } from '../../src/country/country.js';
import { recordLabel } from '../../src/database/diff.js';
import type { VerifiedRelease } from '../../src/database/verify.js';
import type { BoundedRanges } from '../../src/range/columns.js';
import { COUNTRIES, KINDS, NETWORKS, type Partition } from '../../src/rangefile/partitions.js';
import type { PartitionFile } from '../../src/rangefile/reader.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import type { Override } from '../config/overrides.js';
import type { Reference } from '../config/reference.js';
import type { OwnedRange, SourceEvidence } from '../merging/evidence.js';
import { type KindLists, prefixesOf } from '../merging/kind-merger.js';
import { anycastOf } from '../merging/range-merger.js';
import type { IngestedSource } from '../stage.js';
import {
  type FixedRange,
  lastAddress,
  numberOf,
  type PlainRange,
  type PlainRow,
  PlainRules,
  PlainSpace,
} from './plain-rules.js';
import type { SampledRow } from './sample.js';

/** What a release was made from. */
export interface CheckInput {
  /** The source with the highest priority first. */
  sources: readonly IngestedSource[];
  /** For each source, if they are merged by evidence. */
  evidence: readonly SourceEvidence[] | undefined;
  /** The ranges that belong to networks, as far as the sources tell. */
  owned: readonly OwnedRange[];
  overrides: readonly Override[];
  reference: Reference;
  lists: KindLists;
}

/** A row at which the release does not say what it should. */
export interface Disagreement {
  row: SampledRow;
  /** What differs, as a phrase. */
  text: string;
}

/** What a release must say at an address, because it is at an end of a row or beside it. */
export interface Expectation {
  row: SampledRow;
  partition: Partition;
  address: bigint;
  answer: string;
}

/** The IPv4-mapped IPv6 addresses: `::ffff:0:0/96`. */
const MAPPED = 0xffffn << 32n;

/** Returns a number as the words of an address. */
function wordsOf(family: Family, address: bigint): Uint32Array {
  const count = addressWords(family);
  return Uint32Array.from({ length: count }, (_, i) => Number((address >> BigInt(32 * (count - 1 - i))) & 0xffffffffn));
}

function textOf(family: Family, address: bigint): string {
  const bytes = Buffer.from(address.toString(16).padStart(family === 4 ? 8 : 32, '0'), 'hex');
  return ipaddr.fromByteArray([...bytes]).toString();
}

/** Parses the range of a row by ipaddr.js. @throws Error if it cannot */
export function parsePlain({
  notation,
  texts,
}: Pick<SampledRow, 'notation' | 'texts'>): PlainRange & { family: Family } {
  const [a, b] = texts as [string, string];
  const parse = (text: string): { family: Family; number: bigint } => {
    const address = ipaddr.parse(text);
    const number = BigInt(`0x${Buffer.from(address.toByteArray()).toString('hex')}`);
    return { family: address.kind() === 'ipv4' ? 4 : 6, number };
  };
  const { family, number: start } = parse(a.split('/')[0]!);
  let first = start;
  let last = start;
  if ('text' in notation) last = parse(b).number;
  else if ('count' in notation || ('rir' in notation && family === 4)) last = start + BigInt(b) - 1n;
  else {
    const [, prefix] = ipaddr.parseCIDR(
      'cidr' in notation ? (a.includes('/') ? a : `${a}/${family === 4 ? 32 : 128}`) : `${a}/${b}`,
    );
    const hosts = (1n << BigInt((family === 4 ? 32 : 128) - prefix)) - 1n;
    first = start & ~hosts;
    last = start | hosts;
  }
  const isMapped = family === 6 && first >> 32n === 0xffffn && last >> 32n === 0xffffn;
  return isMapped ? { family: 4, first: first - MAPPED, last: last - MAPPED } : { family, first, last };
}

/** An address to check, because it is at an end of a row or beside it. */
interface Point {
  address: bigint;
  row: SampledRow;
}

/** Returns the points of rows of one family, in ascending order. */
function pointsOf(sampled: readonly SampledRow[]): Point[] {
  const points: Point[] = [];
  // The ends of rows first: of several rows at one address, a message names the one that covers it.
  for (const outside of [0n, 1n]) {
    for (const row of sampled) {
      const { family } = row;
      for (const address of [row.first - outside, row.last + outside]) {
        if (address < 0n || address > lastAddress(family)) continue;
        points.push({ address, row });
      }
    }
  }
  points.sort((a, b) => (a.address < b.address ? -1 : a.address > b.address ? 1 : 0));
  return points.filter(({ address }, i) => address !== points[i - 1]?.address);
}

/** Returns the index of the first address of an ascending column that is not below another one. */
function firstFrom(column: Uint32Array, address: Uint32Array, index: number, words: number): number {
  let low = 0;
  for (let high = column.length / words; low < high; ) {
    const middle = (low + high) >> 1;
    if (compareAddresses(column, middle, address, index, words) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A range whose meaning is fixed, as numbers and as words. */
interface FixedWords {
  range: FixedRange;
  first: Uint32Array;
  last: Uint32Array;
}

/** The ranges of a source that say something of a partition. */
interface SourcePart {
  partition: Partition;
  source: number;
  ranges: readonly BoundedRanges[];
  answerOf: (value: number) => string | undefined;
  /** In which they count; undefined if all do. */
  space: PlainSpace | undefined;
}

/** Tells by the rows of the sources what a release must say. */
export class ExpectedAnswers {
  readonly #rules: PlainRules;
  readonly #fixed: FixedWords[];
  readonly #parts: SourcePart[];
  readonly #unlisted: KindLists['unlisted'];

  constructor({ sources, evidence, owned, overrides, reference, lists }: CheckInput) {
    this.#unlisted = lists.unlisted;
    type Words = Pick<OwnedRange, 'family' | 'first' | 'last'>;
    const plain = ({ family, first, last }: Words) => ({ family, first: numberOf(first), last: numberOf(last) });
    const fixed = (words: Words, answer: string, kind: FixedRange['kind']): FixedWords => {
      return { range: { ...plain(words), answer, kind }, first: words.first, last: words.last };
    };
    const special = reference.special.map((range) => {
      const { result, layer } = range;
      return result.kind === 'embedded' ? fixed(range, result.scheme, 'embedded') : fixed(range, result.reason, layer);
    });
    const own = overrides.map((override) => {
      const { result } = override;
      return fixed(override, result.kind === 'country' ? result.code : result.reason, 'override');
    });
    const listed = sources.flatMap(anycastOf).flatMap(({ family, count, first, last }) => {
      const words = addressWords(family);
      const at = (column: Uint32Array, i: number): Uint32Array => column.subarray(i * words, (i + 1) * words);
      return Array.from({ length: count }, (_, i) => ({ family, first: at(first, i), last: at(last, i) }));
    });
    const anycast = [...reference.anycast, ...listed].map((range) => fixed(range, '', 'anycast'));
    this.#fixed = [...special, ...own, ...anycast];
    const hasRegistry = (family: Family): boolean =>
      sources.some((source, position) => evidence?.[position]?.kind === 'registry' && source[`v${family}`].count > 0);
    this.#rules = new PlainRules(
      special.map(({ range }) => range),
      evidence,
      { 4: hasRegistry(4), 6: hasRegistry(6) },
    );
    const spaceOf = ({ space = [], asns = [] }: Partial<SourceEvidence> = {}): PlainSpace | undefined => {
      if (space.length + asns.length === 0) return undefined;
      const blocks = space.map((block) => parsePlain({ notation: { cidr: { network: 0 } }, texts: [block] }));
      return new PlainSpace([...blocks, ...owned.filter(({ asn }) => asns.includes(asn)).map(plain)]);
    };
    this.#parts = sources.flatMap((ingested, source): SourcePart[] => {
      const { codes, networks, v4, v6 } = ingested;
      const space = spaceOf(evidence?.[source]);
      const answers = codes.map((code) => {
        const country = resolveCountry(reference, code);
        return typeof country === 'object' ? country.code : undefined;
      });
      const list = lists.networks[source];
      const isList = list !== undefined || ingested.listed !== undefined;
      const ofKind = { answerOf: () => list && `${list.kind} ${list.operator}`, space: undefined };
      return [
        networks === undefined
          ? { partition: COUNTRIES, source, ranges: [v4, v6], answerOf: (code) => answers[code], space }
          : {
              ...{ partition: NETWORKS, source, ranges: [networks.v4, networks.v6], space },
              answerOf: (network) => `AS${networks.asns[network]}`,
            },
        ...(isList ? [{ partition: KINDS, source, ranges: prefixesOf(ingested), ...ofKind }] : []),
      ];
    });
  }

  /**
   * Returns what a release must say at both ends of rows and beside them.
   *
   * @param rows by position of their source; those of overrides.csv may have any other key
   * @returns also the rows that ipaddr.js reads differently
   */
  at(rows: ReadonlyMap<number, readonly SampledRow[]>): { expected: Expectation[]; misread: Disagreement[] } {
    const misread: Disagreement[] = [];
    const isRead = (row: SampledRow): boolean => {
      const text = misreading(row);
      if (text !== undefined) misread.push({ row, text });
      return text === undefined;
    };
    const readable = [...rows].map(([source, sampled]) => [source, sampled.filter(isRead)] as const);
    const expected = [COUNTRIES, NETWORKS, KINDS].flatMap((partition) => {
      const isOf = (position: number): boolean =>
        this.#parts.some((part) => part.partition === partition && part.source === position);
      const own = readable.flatMap(([source, sampled]) =>
        isOf(source) || (source < 0 && partition === COUNTRIES) ? sampled : [],
      );
      return ([4, 6] as const).flatMap((family) =>
        this.#expectedAt(partition, family, pointsOf(own.filter((row) => row.family === family))),
      );
    });
    return { expected, misread };
  }

  /** @param points in ascending order, each once */
  #expectedAt(partition: Partition, family: Family, points: readonly Point[]): Expectation[] {
    if (points.length === 0) return [];
    const words = addressWords(family);
    const column = new Uint32Array(points.length * words);
    for (const [at, { address }] of points.entries()) column.set(wordsOf(family, address), at * words);
    /** The rows that cover points: of each its part, its number, and the place here of the row before it at the same point. */
    const covering: number[] = [];
    const lastOf = new Int32Array(points.length).fill(-1);
    /** By point. */
    const fixedAt: FixedRange[][] = [];
    /** Passes on the points that a range covers, from the first one that is not below it. */
    const eachInside = (start: number, last: Uint32Array, index: number, onPoint: (point: number) => void): void => {
      for (let at = start; at < points.length && compareAddresses(column, at, last, index, words) <= 0; at++)
        onPoint(at);
    };
    const parts = this.#parts.flatMap((part) => {
      const ranges = part.ranges.find((each) => each.family === family)!;
      return part.partition === partition ? [{ ...part, ...ranges }] : [];
    });
    /** The row of each part that was made last: it often covers the next point, too. */
    const made: [index: number, row: PlainRow][] = [];
    const rowOf = (number: number, index: number): PlainRow => {
      if (made[number]?.[0] === index) return made[number][1];
      const { source, answerOf, value, ...part } = parts[number]!;
      const first = numberOf(part.first, index * words, words);
      const row = { first, last: numberOf(part.last, index * words, words), source, answer: answerOf(value[index]!) };
      made[number] = [index, row];
      return row;
    };
    for (const [number, { first, last, count, space }] of parts.entries()) {
      // Rows are mostly in ascending order: the search goes on from the row before.
      let start = 0;
      for (let i = 0; i < count; i++) {
        if (i > 0 && compareAddresses(first, i, first, i - 1, words) < 0) start = firstFrom(column, first, i, words);
        while (start < points.length && compareAddresses(column, start, first, i, words) < 0) start++;
        if (start === points.length || compareAddresses(column, start, last, i, words) > 0) continue;
        if (space?.contains(family, rowOf(number, i)) === false) continue;
        eachInside(start, last, i, (at) => {
          lastOf[at] = covering.push(number, i, lastOf[at]!) - 3;
        });
      }
    }
    for (const { range, first, last } of this.#fixed) {
      if (range.family !== family) continue;
      eachInside(firstFrom(column, first, 0, words), last, 0, (at) => {
        fixedAt[at] ??= [];
        fixedAt[at].push(range);
      });
    }
    return points.flatMap(({ address, row }, at) => {
      const rows: PlainRow[] = [];
      for (let place = lastOf[at]!; place >= 0; place = covering[place + 2]!) {
        rows.unshift(rowOf(covering[place]!, covering[place + 1]!));
      }
      const fixed = fixedAt[at] ?? [];
      const answer =
        partition === COUNTRIES
          ? this.#rules.countryAt(family, address, rows, fixed)
          : partition === NETWORKS
            ? this.#rules.networkAt(family, address, rows, fixed)
            : this.#rules.kindAt(family, address, rows, fixed, this.#unlisted);
      return answer === undefined ? [] : [{ row, partition, address, answer }];
    });
  }
}

/** Returns in what the range that was read from a row differs from what ipaddr.js reads; undefined if it does not. */
function misreading(row: SampledRow): string | undefined {
  const { family, texts, first, last } = row;
  const rangeText = (range: PlainRange & { family: Family }): string =>
    `${textOf(range.family, range.first)} – ${textOf(range.family, range.last)}`;
  const wrong = (other: string): string => `${texts.join(' ')} was read as ${rangeText(row)}, but ipaddr.js ${other}`;
  try {
    const plain = parsePlain(row);
    if (plain.family === family && plain.first === first && plain.last === last) return undefined;
    return wrong(`reads ${rangeText(plain)}`);
  } catch {
    return wrong('cannot read it');
  }
}

/** Asks the range file of a partition and its tables in the mirror. */
class PartitionAnswers {
  readonly #partition: Partition;
  readonly #file: PartitionFile;
  readonly #mirror: Record<Family, Sqlite.Statement<unknown[], (string | number | null)[]>>;

  constructor(partition: Partition, file: PartitionFile, mirror: Sqlite.Database) {
    const { table, subject } = partition;
    const [values, join] =
      file.columns === undefined
        ? [subject, '']
        : [file.columns.map((column) => `"${column}"`).join(), `LEFT JOIN ${table} USING (${subject})`];
    const statement = (family: Family) =>
      mirror
        .prepare<unknown[], (string | number | null)[]>(
          `SELECT reason, ${values} FROM ipv${family}_${table} ${join} WHERE first <= ? ORDER BY first DESC LIMIT 1`,
        )
        .raw();
    this.#partition = partition;
    this.#file = file;
    this.#mirror = { 4: statement(4), 6: statement(6) };
  }

  inFile(family: Family, address: bigint): string {
    const words = wordsOf(family, address);
    const file = this.#file;
    const record =
      file.records[family === 4 ? file.record4[findIPv4(file, words[0]! | 0)]! : file.record6[findIPv6(file, words)]!]!;
    return record.kind === 'label' ? record.row : recordLabel(record);
  }

  inMirror(family: Family, address: bigint): string {
    const key = family === 4 ? Number(address) : Buffer.from(address.toString(16).padStart(32, '0'), 'hex');
    const [reason, ...values] = this.#mirror[family].get(key)!;
    if (typeof reason === 'string') return reason;
    const { columns } = this.#file;
    const { flags = [] } = this.#partition;
    // The mirror has no booleans.
    if (columns !== undefined)
      return JSON.stringify(
        values.map((value, i) => (flags.includes(columns[i]!) && value !== null ? value === 1 : value)),
      );
    return typeof values[0] === 'number' ? `AS${values[0]}` : values[0]!;
  }
}

/** Compares a release, its range files and its mirror, with what it must say. */
export class ReleaseComparison {
  readonly #answers = new Map<Partition, PartitionAnswers>();

  constructor({ file, others }: VerifiedRelease, mirror: Sqlite.Database) {
    this.#answers.set(COUNTRIES, new PartitionAnswers(COUNTRIES, file, mirror));
    for (const partition of [NETWORKS, KINDS]) {
      const other: PartitionFile | undefined = others.get(partition as Partition);
      if (other !== undefined) this.#answers.set(partition, new PartitionAnswers(partition, other, mirror));
    }
  }

  /** Returns where the release says something else. */
  with(expected: readonly Expectation[]): Disagreement[] {
    return expected.flatMap(({ row, partition, address, answer }) => {
      const { family } = row;
      const answers = this.#answers.get(partition);
      const [inFile, inMirror] = [answers?.inFile(family, address), answers?.inMirror(family, address)];
      if (answers === undefined || (inFile === answer && inMirror === answer)) return [];
      const said = inFile === inMirror ? inFile : `${inFile} in the range file and ${inMirror} in the mirror`;
      const text = `at ${textOf(family, address)} the release has ${said}, but the rows of the sources give ${answer}`;
      return [{ row, text }];
    });
  }
}
