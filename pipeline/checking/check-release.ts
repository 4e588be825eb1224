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
import type { VerifiedRelease } from '../../src/database/verify.js';
import { NETWORKS } from '../../src/rangefile/partitions.js';
import type { PartitionFile } from '../../src/rangefile/reader.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import type { Override } from '../config/overrides.js';
import type { Reference } from '../config/reference.js';
import { eachInside, type Target } from '../explain/covering-rows.js';
import type { OwnedRange, SourceEvidence } from '../merging/evidence.js';
import { anycastOf } from '../merging/range-merger.js';
import type { IngestedSource } from '../stage.js';
import { type FixedRange, lastAddress, type PlainRange, type PlainRow, PlainRules, PlainSpace } from './plain-rules.js';
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
}

/** A row at which the release does not say what it should. */
export interface Disagreement {
  row: SampledRow;
  /** What differs, as a phrase. */
  text: string;
}

/** The IPv4-mapped IPv6 addresses: `::ffff:0:0/96`. */
const MAPPED = 0xffffn << 32n;

/** Returns an address in words as a number. */
function numberOf(words: Uint32Array, at = 0, count = words.length): bigint {
  let number = 0n;
  for (let i = at; i < at + count; i++) number = (number << 32n) | BigInt(words[i]!);
  return number;
}

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

/** An address to check, because it is at an end of a row or beside it, with what covers it. */
interface Point extends Target {
  address: bigint;
  row: SampledRow;
  rows: PlainRow[];
  fixed: FixedRange[];
}

/** Returns the points of rows of one family, in ascending order. */
function pointsOf(sampled: readonly SampledRow[]): Point[] {
  const points: Point[] = [];
  // The ends of rows first: of several rows at one address, a message names the one that covers it.
  for (const outside of [0n, 1n]) {
    for (const row of sampled) {
      const { family } = row;
      for (const address of [numberOf(row.first) - outside, numberOf(row.last) + outside]) {
        if (address < 0n || address > lastAddress(family)) continue;
        points.push({ family, words: wordsOf(family, address), address, row, rows: [], fixed: [] });
      }
    }
  }
  points.sort((a, b) => compareAddresses(a.words, 0, b.words, 0, a.words.length));
  return points.filter(({ address }, i) => address !== points[i - 1]?.address);
}

/** A range whose meaning is fixed, as numbers and as words. */
interface FixedWords {
  range: FixedRange;
  first: Uint32Array;
  last: Uint32Array;
}

/** Asks a range file and its mirror. */
class Answers {
  readonly #file: PartitionFile;
  readonly #mirror: Record<Family, Sqlite.Statement>;

  constructor(file: PartitionFile, mirror: Sqlite.Database, table: string, column: string) {
    const statement = (family: Family): Sqlite.Statement =>
      mirror
        .prepare(
          `SELECT coalesce(${column}, reason) FROM ipv${family}_${table} WHERE first <= ? ORDER BY first DESC LIMIT 1`,
        )
        .pluck();
    this.#file = file;
    this.#mirror = { 4: statement(4), 6: statement(6) };
  }

  inFile(family: Family, address: bigint): string {
    const words = wordsOf(family, address);
    const file = this.#file;
    const record =
      file.records[family === 4 ? file.record4[findIPv4(file, words[0]! | 0)]! : file.record6[findIPv6(file, words)]!]!;
    if (record.kind === 'country') return record.code;
    if (record.kind === 'network') return `AS${record.asn}`;
    return record.kind === 'embedded' ? record.scheme : 'reason' in record ? record.reason : '';
  }

  inMirror(family: Family, address: bigint): string {
    const key = family === 4 ? Number(address) : Buffer.from(address.toString(16).padStart(32, '0'), 'hex');
    const answer = this.#mirror[family].get(key) as string | number;
    return typeof answer === 'number' ? `AS${answer}` : answer;
  }
}

/** Checks rows of the sources of a release. */
export class ReleaseCheck {
  readonly #input: CheckInput;
  readonly #rules: PlainRules;
  readonly #fixed: FixedWords[];
  readonly #spaces: PlainSpace[];
  /** The answer of each code of each source. */
  readonly #answers: (string | undefined)[][];
  readonly #countries: Answers;
  readonly #networks: Answers | undefined;

  constructor(input: CheckInput, { file, others }: VerifiedRelease, mirror: Sqlite.Database) {
    const { sources, evidence, owned, overrides, reference } = input;
    this.#input = input;
    const plain = ({ family, first, last }: Pick<OwnedRange, 'family' | 'first' | 'last'>) => ({
      family,
      first: numberOf(first),
      last: numberOf(last),
    });
    type Words = Pick<OwnedRange, 'family' | 'first' | 'last'>;
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
    this.#spaces = sources.map((_source, position) => {
      const { space = [], asns = [] } = evidence?.[position] ?? {};
      if (space.length + asns.length === 0) return new PlainSpace(undefined);
      const blocks = space.map((block) => parsePlain({ notation: { cidr: { network: 0 } }, texts: [block] }));
      return new PlainSpace([...blocks, ...owned.filter(({ asn }) => asns.includes(asn)).map(plain)]);
    });
    this.#answers = sources.map(({ codes, networks: ofNetworks }) => {
      if (ofNetworks !== undefined) return ofNetworks.asns.map((asn) => `AS${asn}`);
      const resolved = codes.map((code) => resolveCountry(reference, code));
      return resolved.map((country) => (typeof country === 'object' ? country.code : undefined));
    });
    this.#countries = new Answers(file, mirror, 'range', 'country_code');
    const networks = others.get(NETWORKS);
    this.#networks = networks && new Answers(networks, mirror, 'network', 'asn');
  }

  /**
   * Checks rows.
   *
   * @param rows by position of their source; those of overrides.csv may have any other key
   * @returns the rows at which the release is wrong, or that ipaddr.js reads differently
   */
  check(rows: ReadonlyMap<number, readonly SampledRow[]>): Disagreement[] {
    const found: Disagreement[] = [];
    const isRead = (row: SampledRow): boolean => {
      const text = this.#misread(row);
      if (text !== undefined) found.push({ row, text });
      return text === undefined;
    };
    const readable = [...rows].map(([source, sampled]) => [source, sampled.filter(isRead)] as const);
    const isOfNetworks = (source: number): boolean => this.#input.sources[source]?.networks !== undefined;
    for (const what of ['country', 'network'] as const) {
      const ofKind = readable
        .filter(([source]) => isOfNetworks(source) === (what === 'network'))
        .flatMap(([, sampled]) => sampled);
      for (const family of [4, 6] as const) {
        const points = pointsOf(ofKind.filter((row) => row.family === family));
        found.push(...this.#checkPoints(what, family, points));
      }
    }
    return found;
  }

  /** Returns in what the range that was read differs from what ipaddr.js reads; undefined if it does not. */
  #misread(row: SampledRow): string | undefined {
    const { family, texts } = row;
    const [first, last] = [numberOf(row.first), numberOf(row.last)];
    const rangeText = (range: PlainRange & { family: Family }): string =>
      `${textOf(range.family, range.first)} – ${textOf(range.family, range.last)}`;
    const wrong = (other: string): string =>
      `${texts.join(' ')} was read as ${rangeText({ family, first, last })}, but ipaddr.js ${other}`;
    try {
      const plain = parsePlain(row);
      if (plain.family === family && plain.first === first && plain.last === last) return undefined;
      return wrong(`reads ${rangeText(plain)}`);
    } catch {
      return wrong('cannot read it');
    }
  }

  /** @param points in ascending order, each once */
  #checkPoints(what: 'country' | 'network', family: Family, points: readonly Point[]): Disagreement[] {
    const answers = what === 'country' ? this.#countries : this.#networks;
    if (answers === undefined || points.length === 0) return [];
    const words = addressWords(family);
    for (const [source, ingested] of this.#input.sources.entries()) {
      if ((ingested.networks === undefined) !== (what === 'country')) continue;
      const { first, last, value, count } = (ingested.networks ?? ingested)[`v${family}`];
      const space = this.#spaces[source]!;
      let i = 0;
      const addRow = ({ rows }: Point): void => {
        const range = { first: numberOf(first, i * words, words), last: numberOf(last, i * words, words) };
        const answer = this.#answers[source]![value[i]!];
        if (space.contains(family, range)) rows.push({ ...range, source, answer });
      };
      for (; i < count; i++) eachInside(points, first, last, i, addRow);
    }
    for (const { range, first, last } of this.#fixed) {
      if (range.family === family) eachInside(points, first, last, 0, ({ fixed }) => fixed.push(range));
    }
    const found: Disagreement[] = [];
    for (const { address, row, rows, fixed } of points) {
      const expected =
        what === 'country'
          ? this.#rules.countryAt(family, address, rows, fixed)
          : this.#rules.networkAt(family, address, rows, fixed);
      if (expected === undefined) continue;
      const [inFile, inMirror] = [answers.inFile(family, address), answers.inMirror(family, address)];
      if (inFile === expected && inMirror === expected) continue;
      const said = inFile === inMirror ? inFile : `${inFile} in the range file and ${inMirror} in the mirror`;
      found.push({
        row,
        text: `at ${textOf(family, address)} the release has ${said}, but the rows of the sources give ${expected}`,
      });
    }
    return found;
  }
}
