/**
 * The rules of a merge, written down once more for the check of a release: one address at a time, with numbers of any size,
 * and without any of the code that merges. A rule that changes in src/range or pipeline/merging must be changed here, too.
 */
import type { Family } from '../../src/address/parse.js';

/** Addresses from `first` to `last`, both inclusive. */
export interface PlainRange {
  first: bigint;
  last: bigint;
}

/** A row of a source. */
export interface PlainRow extends PlainRange {
  /** Position of the source in the list of sources. */
  source: number;
  /** A country code, or an AS number as `AS15169`; undefined if the row names none. */
  answer: string | undefined;
}

/** How a source takes part in a vote. */
export interface PlainVoter {
  lineage: string;
  kind: string;
  /** Whether its publisher interpolates between the networks that it measured. */
  interpolates: boolean;
}

/** A range whose meaning is fixed: one of IANA's registries, a row of overrides.csv, or anycast space. */
export interface FixedRange extends PlainRange {
  family: Family;
  answer: string;
  /** `embedded`: addresses in it carry an IPv4 address. `anycast` has no answer of its own. */
  kind: 'override' | 'over' | 'under' | 'embedded' | 'anycast';
}

/** Returns an address in words as a number. */
export function numberOf(words: Uint32Array, at = 0, count = words.length): bigint {
  let number = 0n;
  for (let i = at; i < at + count; i++) number = (number << 32n) | BigInt(words[i]!);
  return number;
}

const BITS = { 4: 32n, 6: 128n } as const;
/** Size of the prefix from which on a location is too wide to contradict a registry: a /12, a /28. */
const WIDE = { 4: 1n << 20n, 6: 1n << 100n } as const;
/** Size of the smallest network that is routed: a /24, a /48. */
const NETWORK = { 4: 1n << 8n, 6: 1n << 80n } as const;

const size = ({ first, last }: PlainRange): bigint => last - first + 1n;
const covers = ({ first, last }: PlainRange, address: bigint): boolean => first <= address && address <= last;

/** Returns the narrowest of ranges; of equally narrow ones the last. */
function narrowest<Range extends PlainRange>(ranges: readonly Range[]): Range | undefined {
  return ranges.reduce<Range | undefined>(
    (best, range) => (best === undefined || size(range) <= size(best) ? range : best),
    undefined,
  );
}

/** Returns the narrowest of rows of different sources; of equally narrow ones the first. */
function narrowestVote(rows: readonly PlainRow[]): PlainRow | undefined {
  return narrowest([...rows].reverse());
}

/** The rules of one release. */
export class PlainRules {
  /** The prefixes whose addresses carry an IPv4 address. */
  readonly #embedded: Record<Family, readonly FixedRange[]>;
  readonly #voters: readonly PlainVoter[] | undefined;
  readonly #hasRegistry: Record<Family, boolean>;

  /**
   * @param fixed the special-purpose ranges
   * @param voters by position of the source; undefined if sources are merged by priority
   * @param hasRegistry whether registries have any rows of a family, so that the rest of it is not delegated
   */
  constructor(
    fixed: readonly FixedRange[],
    voters: readonly PlainVoter[] | undefined,
    hasRegistry: Record<Family, boolean>,
  ) {
    const embedded = fixed.filter(({ kind }) => kind === 'embedded');
    this.#embedded = {
      4: embedded.filter(({ family }) => family === 4),
      6: embedded.filter(({ family }) => family === 6),
    };
    this.#voters = voters;
    this.#hasRegistry = hasRegistry;
  }

  /**
   * Returns the country of an address.
   *
   * @param rows all that cover it and count, those of the first source first
   * @param fixed special-purpose ranges and rows of overrides.csv that cover it, in their order
   * @returns the code; the reason for no country; the scheme of an embedded IPv4 address; or undefined if only the rows around
   *   the address could tell whether its space is delegated
   */
  countryAt(
    family: Family,
    address: bigint,
    rows: readonly PlainRow[],
    fixed: readonly FixedRange[],
  ): string | undefined {
    const override = narrowest(fixed.filter(({ kind }) => kind === 'override'));
    if (override !== undefined) return override.answer;
    const over = narrowest(this.#cutOver(fixed, family, address));
    if (over !== undefined) return over.answer;
    const named = rows.flatMap((row) => (row.answer === undefined ? [] : (this.#cut(row, family, address) ?? [])));
    const voters = this.#voters;
    if (voters === undefined) {
      const first = named.filter(({ source }) => source === named[0]!.source);
      const winner = narrowest(first);
      if (winner !== undefined) return winner.answer;
    } else {
      const isRegistry = ({ source }: PlainRow): boolean => voters[source]!.kind === 'registry';
      const isDelegated = !this.#hasRegistry[family] || rows.some(isRegistry);
      if (!isDelegated && fixed.some(({ kind }) => kind === 'embedded')) return undefined;
      const isAnycast = fixed.some(({ kind }) => kind === 'anycast');
      const winner = this.#vote(family, named, voters, isDelegated, isAnycast);
      if (winner !== undefined) return winner;
      if (!isDelegated) return 'unallocated';
    }
    const below = narrowest(fixed.filter(({ kind }) => kind === 'under' || kind === 'embedded'));
    if (below !== undefined) return below.answer;
    return rows.some(({ answer }) => answer === undefined) ? 'unknown' : 'unallocated';
  }

  /** Returns the network of an address, as `AS15169`; or why it has none. See {@link countryAt}. */
  networkAt(family: Family, address: bigint, rows: readonly PlainRow[], fixed: readonly FixedRange[]): string {
    if (this.#cutOver(fixed, family, address).length > 0) return 'unannounced';
    const cut = rows.flatMap((row) => this.#cut(row, family, address) ?? []);
    const winner = narrowest(cut.filter(({ source }) => source === cut[0]!.source));
    return winner?.answer ?? narrowest(fixed.filter(({ kind }) => kind === 'embedded'))?.answer ?? 'unannounced';
  }

  /**
   * Returns what kind of network an address is of, as JSON: whether it is anycast, the kind, and the operator. See {@link countryAt}.
   *
   * @param rows of lists, with kind and operator
   * @param unlisted whether addresses in no list are anycast, and their kind
   */
  kindAt(
    family: Family,
    address: bigint,
    rows: readonly PlainRow[],
    fixed: readonly FixedRange[],
    unlisted: readonly [boolean | null, string | null],
  ): string {
    const isSpecial = this.#cutOver(fixed, family, address).length > 0;
    const embedded = narrowest(fixed.filter(({ kind }) => kind === 'embedded'));
    if (!isSpecial && embedded !== undefined) return embedded.answer;
    const cut = isSpecial ? [] : rows.flatMap((row) => this.#cut(row, family, address) ?? []);
    const isAnycast = !isSpecial && fixed.some(({ kind }) => kind === 'anycast');
    const ofKind = (kind: string): PlainRow | undefined =>
      narrowest(cut.filter(({ answer }) => answer?.startsWith(`${kind} `)));
    const row = ofKind('tor') ?? ofKind('relay') ?? ofKind('cloud');
    const [kind, operator] = row?.answer?.split(' ') ?? [unlisted[1], null];
    const values = [isAnycast || unlisted[0], kind, operator];
    return values.every((value) => value === null) ? 'unlabeled' : JSON.stringify(values);
  }

  /** Returns the special-purpose ranges that come before all sources. */
  #cutOver(ranges: readonly FixedRange[], family: Family, address: bigint): FixedRange[] {
    return ranges.flatMap((range) => (range.kind === 'over' ? (this.#cut(range, family, address) ?? []) : []));
  }

  /**
   * Returns the part of a range around an address, without the prefixes whose addresses carry an IPv4 address, unless it is
   * strictly inside of them: it then says something about its own addresses, and otherwise only who registered the prefix.
   */
  #cut<Range extends PlainRange>(range: Range, family: Family, address: bigint): Range | undefined {
    const part = { ...range };
    for (const prefix of this.#embedded[family]) {
      if (part.last < prefix.first || part.first > prefix.last) continue;
      if (part.first >= prefix.first && part.last <= prefix.last && size(part) < size(prefix)) continue;
      if (covers(prefix, address)) return undefined;
      if (prefix.last < address) part.first = prefix.last + 1n;
      else part.last = prefix.first - 1n;
    }
    return part;
  }

  /**
   * Returns the country that wins a vote; undefined if nobody may vote.
   *
   * @param rows with a country
   */
  #vote(
    family: Family,
    rows: readonly PlainRow[],
    voters: readonly PlainVoter[],
    isDelegated: boolean,
    isAnycast: boolean,
  ): string | undefined {
    // Of each source the narrowest row.
    const sources = [...new Set(rows.map(({ source }) => source))];
    const ofSources = sources.map((source) => narrowest(rows.filter((row) => row.source === source))!);
    const kindOf = ({ source }: PlainRow): string => voters[source]!.kind;
    const lineageOf = ({ source }: PlainRow): string => voters[source]!.lineage;
    const operators = ofSources.filter((row) => ['operator', 'geofeed'].includes(kindOf(row)));
    if (operators.length > 0) return narrowestVote(operators)!.answer;
    if (!isDelegated) return undefined;

    // Of each lineage the narrowest row.
    const voteOf = (lineage: string): PlainRow => narrowestVote(ofSources.filter((row) => lineageOf(row) === lineage))!;
    let votes = [...new Set(ofSources.map(lineageOf))].map(voteOf);
    const registry = narrowestVote(ofSources.filter((row) => kindOf(row) === 'registry'));
    if (registry !== undefined) {
      const { answer } = voteOf(lineageOf(registry));
      const isTooWide = (row: PlainRow): boolean =>
        kindOf(row) === 'geolocation' && row.answer !== answer && size(row) >= WIDE[family];
      votes = votes.filter((row) => !isTooWide(row));
    }
    const registries = voters.filter(({ kind }) => kind === 'registry').map(({ lineage }) => lineage);
    const locates = (row: PlainRow): boolean => kindOf(row) === 'geolocation' && !registries.includes(lineageOf(row));
    const isOperatorsWord = (row: PlainRow): boolean =>
      kindOf(row) === 'geolocation' && !locates(row) && size(row) < NETWORK[family];
    if ((isAnycast || votes.some(isOperatorsWord)) && !votes.every(locates))
      votes = votes.filter((row) => !locates(row));
    const isInterpolated = (row: PlainRow): boolean =>
      voters[row.source]!.interpolates &&
      (row.first % NETWORK[family] !== 0n || (row.last + 1n) % NETWORK[family] !== 0n);
    if (!votes.every(isInterpolated)) votes = votes.filter((row) => !isInterpolated(row));

    const isLocated = (row: PlainRow): boolean => locates(row) && !isInterpolated(row);
    const strength = (answer: string | undefined): number => {
      const same = votes.filter((row) => row.answer === answer);
      return 2 * same.length + (same.some(isLocated) ? 1 : 0);
    };
    votes.sort((a, b) => strength(b.answer) - strength(a.answer) || a.source - b.source);
    return votes[0]?.answer;
  }
}

/** The space in which the rows of a source count. */
export class PlainSpace {
  readonly #ranges: Record<Family, PlainRange[]>;

  /** @param ranges of the owner, in any order */
  constructor(ranges: readonly (PlainRange & { family: Family })[]) {
    const union = (family: Family): PlainRange[] => {
      const united: PlainRange[] = [];
      const sorted = ranges.filter((range) => range.family === family).sort((a, b) => (a.first < b.first ? -1 : 1));
      for (const { first, last } of sorted) {
        const before = united.at(-1);
        if (before === undefined || first > before.last + 1n) united.push({ first, last });
        else if (last > before.last) before.last = last;
      }
      return united;
    };
    this.#ranges = { 4: union(4), 6: union(6) };
  }

  contains(family: Family, { first, last }: PlainRange): boolean {
    return this.#ranges[family].some((range) => range.first <= first && last <= range.last);
  }
}

/** Returns the last address of a family. */
export function lastAddress(family: Family): bigint {
  return (1n << BITS[family]) - 1n;
}
