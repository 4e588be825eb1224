/**
 * Checks a release against the rows of its sources, by means that share nothing with the code that made it: ipaddr.js parses
 * the rows, the rules of the merge are those of plain-rules.ts, and the range file and the mirror are asked at both ends of each
 * row and at the addresses beside them.
 */
import type Sqlite from 'better-sqlite3';
import ipaddr from 'ipaddr.js';
import type { Family } from '../../src/address/parse.js';
import { resolveCountry } from '../../src/country/country.js';
import type { VerifiedRelease } from '../../src/database/verify.js';
import { NETWORKS } from '../../src/rangefile/partitions.js';
import type { PartitionFile } from '../../src/rangefile/reader.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import type { Override } from '../config/overrides.js';
import type { Reference } from '../config/reference.js';
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

/** Addresses of one family, to find those that ranges cover. */
class Points {
  /** In ascending order, each once. */
  readonly points: readonly Point[];
  /** The first 53 bits of each address, which a search compares first. */
  readonly #tops: Float64Array;
  readonly #family: Family;
  /** Where the last search ended. */
  #hint = 0;

  constructor(family: Family, points: Point[]) {
    this.#family = family;
    // Not in a Map: V8 hashes 64 bits of a BigInt, and those of most IPv6 addresses here are all zeros or all ones.
    points.sort((a, b) => (a.address < b.address ? -1 : a.address > b.address ? 1 : 0));
    this.points = points.filter(({ address }, index) => address !== points[index - 1]?.address);
    this.#tops = Float64Array.from(this.points, ({ address }) => Number(family === 4 ? address : address >> 75n));
  }

  /** Calls `visit` with the number of each point in a range of columns, and with the range. */
  each(first: Uint32Array, last: Uint32Array, index: number, visit: (point: number, range: PlainRange) => void): void {
    const words = this.#family === 4 ? 1 : 4;
    const at = index * words;
    const topOf = (column: Uint32Array): number =>
      words === 1 ? column[at]! : column[at]! * 2 ** 21 + (column[at + 1]! >>> 11);
    const [from, to] = [topOf(first), topOf(last)];
    const tops = this.#tops;
    // Sources are sorted, so the place is nearly always the last one or after it.
    let low = this.#hint;
    if (low > 0 && tops[low - 1]! >= from) low = 0;
    for (let step = 1; low < tops.length && tops[low]! < from; step *= 2) {
      if (low + step < tops.length && tops[low + step]! < from) low += step;
      else {
        step = 0.5;
        low++;
      }
    }
    this.#hint = low;
    if (low === tops.length || tops[low]! > to) return;
    const range = { first: numberOf(first, at, words), last: numberOf(last, at, words) };
    for (; low < tops.length && tops[low]! <= to; low++) {
      const { address } = this.points[low]!;
      if (range.first <= address && address <= range.last) visit(low, range);
    }
  }
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
    const words = Uint32Array.from({ length: 4 }, (_, i) => Number((address >> BigInt(96 - 32 * i)) & 0xffffffffn));
    const file = this.#file;
    const record =
      file.records[family === 4 ? file.record4[findIPv4(file, words[3]! | 0)]! : file.record6[findIPv6(file, words)]!]!;
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
  readonly #fixed: FixedRange[];
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
    const special = reference.special.map((range): FixedRange => {
      const { result, layer } = range;
      const embedded = result.kind === 'embedded';
      return { ...plain(range), answer: embedded ? result.scheme : result.reason, kind: embedded ? 'embedded' : layer };
    });
    const own = overrides.map((override): FixedRange => {
      const { result } = override;
      return { ...plain(override), answer: result.kind === 'country' ? result.code : result.reason, kind: 'override' };
    });
    const listed = sources.flatMap(anycastOf).flatMap(({ family, count, first, last }) => {
      const words = family === 4 ? 1 : 4;
      const range = (i: number): PlainRange => ({
        first: numberOf(first, i * words, words),
        last: numberOf(last, i * words, words),
      });
      return Array.from({ length: count }, (_, i) => ({ family, ...range(i) }));
    });
    const anycast = [...reference.anycast.map(plain), ...listed].map((range): FixedRange => {
      return { ...range, answer: '', kind: 'anycast' };
    });
    this.#fixed = [...special, ...own, ...anycast];
    const hasRegistry = (family: Family): boolean =>
      sources.some((source, position) => evidence?.[position]?.kind === 'registry' && source[`v${family}`].count > 0);
    this.#rules = new PlainRules(special, evidence, { 4: hasRegistry(4), 6: hasRegistry(6) });
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
    const points = { country: { 4: [], 6: [] }, network: { 4: [], 6: [] } } as Record<string, Record<Family, Point[]>>;
    const isRead = (row: SampledRow): boolean => {
      const text = this.#misread(row);
      if (text !== undefined) found.push({ row, text });
      return text === undefined;
    };
    const readable = [...rows].map(([source, sampled]) => [source, sampled.filter(isRead)] as const);
    // The ends of rows first: of several rows at one address, a message names the one that covers it.
    for (const ends of [true, false]) {
      for (const [source, sampled] of readable) {
        const what = this.#input.sources[source]?.networks === undefined ? 'country' : 'network';
        for (const row of sampled) {
          const [first, last] = [numberOf(row.first), numberOf(row.last)];
          for (const address of ends ? [first, last] : [first - 1n, last + 1n]) {
            if (address >= 0n && address <= lastAddress(row.family)) points[what]![row.family].push({ address, row });
          }
        }
      }
    }
    for (const what of ['country', 'network'] as const) {
      for (const family of [4, 6] as const) found.push(...this.#checkPoints(what, family, points[what]![family]));
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

  #checkPoints(what: 'country' | 'network', family: Family, wanted: Point[]): Disagreement[] {
    const answers = what === 'country' ? this.#countries : this.#networks;
    if (answers === undefined || wanted.length === 0) return [];
    const points = new Points(family, wanted);
    const rows: PlainRow[][] = points.points.map(() => []);
    const fixed: FixedRange[][] = points.points.map(() => []);
    for (const [source, ingested] of this.#input.sources.entries()) {
      if ((ingested.networks === undefined) !== (what === 'country')) continue;
      const { first, last, value, count } = (ingested.networks ?? ingested)[`v${family}`];
      const space = this.#spaces[source]!;
      for (let i = 0; i < count; i++) {
        points.each(first, last, i, (point, range) => {
          const answer = this.#answers[source]![value[i]!];
          if (space.contains(family, range)) rows[point]!.push({ ...range, source, answer });
        });
      }
    }
    const words = family === 4 ? 1 : 4;
    for (const range of this.#fixed) {
      if (range.family !== family) continue;
      const [first, last] = [range.first, range.last].map((end) =>
        Uint32Array.from({ length: words }, (_, i) => Number((end >> BigInt(32 * (words - 1 - i))) & 0xffffffffn)),
      );
      points.each(first!, last!, 0, (point) => fixed[point]!.push(range));
    }
    const found: Disagreement[] = [];
    for (const [point, { address, row }] of points.points.entries()) {
      const expected =
        what === 'country'
          ? this.#rules.countryAt(family, address, rows[point]!, fixed[point]!)
          : this.#rules.networkAt(family, address, rows[point]!, fixed[point]!);
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
