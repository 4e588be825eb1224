/**
 * Merging by evidence: where several sources cover an address, they vote on its country.
 *
 * The rules, for one address:
 *
 * 1. Of each source, the narrowest row that covers the address counts; of equally wide ones, the latest.
 * 2. If the operator of the network or its geofeed (RFC 8805) has a row, that row decides; of several, the narrowest. The
 *    caller passes such rows only inside space of their owner, as far as it is known.
 * 3. Otherwise, each lineage has one vote, that of its narrowest row. Sources of one lineage share their origin, so they
 *    repeat each other instead of confirming each other. The country with the most votes wins. Of countries with as many
 *    votes, one wins that a lineage without a registry located; then the one whose source is listed first.
 * 4. A lineage has no vote if its row is one of geolocation, contradicts the vote of the registry's lineage, and is as wide
 *    as {@link WIDE_PREFIX} or wider. Locations are measured for single networks; wider rows are extrapolated.
 * 5. Nor has a lineage a vote if its row begins or ends inside a {@link NETWORK_PREFIX}, is of a source that interpolates, and
 *    another lineage has a row that is not so: the publisher interpolated it between the networks that it measured.
 * 6. A row of geolocation in the lineage of the registries that is smaller than a {@link NETWORK_PREFIX} goes before the rows of
 *    sources that locate networks: nothing smaller is routed, so an operator has said it, in a geofeed. Where all three sources of
 *    the default differed, such rows were right 67 : 3 (IPv4) and 59 : 0 (IPv6), November 2026; see docs/rebuild.md.
 * 7. In anycast space, a source that locates networks has no vote if another lineage has a row: one address is in many places, and
 *    the source tells the one that was near. Of 5,755 anycast prefixes, 31 % had another country than the registry's, August 2026.
 * 8. In space that no registry has delegated, only rows of rule 2 count: nobody uses it, whatever other sources say. The
 *    caller passes that space as candidates in {@link UNDELEGATED_LAYER}, whose value is 0.
 */
import { addressWords, compareSizes, isAsWideAs, isOnBoundaries } from '../address/words.js';
import type { CandidateRanges, MergedRanges } from './columns.js';
import { type CoveringCandidates, countDuplicates, MergedBuilder, sortCandidates, sweep } from './merge.js';

/**
 * Length of the prefix from which on a geolocation row is too wide to contradict the registry, by family. An IPv4 /12 has
 * a million addresses; the RIPE NCC gives a network up to an IPv6 /29 without further justification (RIPE-738 §5.1.2).
 * truth/README.md has the measurements.
 */
export const WIDE_PREFIX = { 4: 12, 6: 28 } as const;

/**
 * Length of the longest prefix that networks accept from each other, by family (RFC 7454 §6.1.3). Where a row of DB-IP of June 2026
 * that ends inside such a prefix and the registries' lineage named different countries, it was right at 10 of 197
 * addresses and the lineage at 152; of its other rows, 296 of 322 were right, the lineage at 15. truth/README.md has more.
 */
export const NETWORK_PREFIX = { 4: 24, 6: 48 } as const;

/** What a source's rows are made of. */
export const SOURCE_KINDS = ['operator', 'geofeed', 'geolocation', 'routing', 'registry', 'anycast', 'other'] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/** Layer of the candidates for anycast space, see rule 7, and for space that no registry has delegated, see rule 8. */
export const ANYCAST_LAYER = 28;
export const UNDELEGATED_LAYER = 29;

/** A source that takes part in the vote. */
export interface Voter {
  /** Layer of its rows among the candidates; no other voter has it. */
  layer: number;
  /** Name of its origin; sources with the same name have one vote together. */
  lineage: string;
  /** Rows of kind `anycast` name no country; they say that rule 7 holds. */
  kind: SourceKind;
  /** Whether its publisher interpolates; see rule 5. */
  interpolates?: boolean | undefined;
}

/** Why a geolocation row has no vote: see rules 4 to 7. */
export type DropReason = 'too wide' | 'interpolated' | 'operator' | 'anycast';

/** Counts the votes at one address after another. */
export class VoteCounter {
  /** Whether each voter's row counted in the last vote: as the vote of its lineage, or as the operator's decision. */
  readonly counted: boolean[];
  /** Why each voter's row lost the vote of its lineage in the last vote; undefined if it did not. */
  readonly dropped: (DropReason | undefined)[];
  /** Whether each voter's row in the last vote locates a network, and repeats no registry. */
  readonly located: boolean[];
  /** Lineages with a row in the last vote. */
  lineages = 0;
  /** Those of them whose narrowest row names the winning country. */
  agreeing = 0;
  /** Whether voters made the last decision. */
  isByVote = false;
  readonly #candidates: CandidateRanges;
  readonly #words: number;
  /** Number of each voter's lineage. */
  readonly #lineageOf: Uint8Array;
  /** Whether each voter's rows decide. */
  readonly #decides: boolean[];
  readonly #kinds: SourceKind[];
  readonly #interpolates: boolean[];
  /** Whether each voter locates networks, and repeats no registry. */
  readonly #locates: boolean[];
  /** Voter whose row is the vote of each lineage, or -1. */
  readonly #lineageVotes: Int8Array;
  readonly #voterLayers: readonly number[];
  readonly #highestVoter: number;

  /** @param voters in the order in which they are listed */
  constructor(candidates: CandidateRanges, voters: readonly Voter[]) {
    this.#candidates = candidates;
    this.#words = addressWords(candidates.family);
    const names = [...new Set(voters.map(({ lineage }) => lineage))];
    this.#lineageOf = Uint8Array.from(voters, ({ lineage }) => names.indexOf(lineage));
    this.#decides = voters.map(({ kind }) => kind === 'operator' || kind === 'geofeed');
    this.#kinds = voters.map(({ kind }) => kind);
    this.#interpolates = voters.map(({ interpolates }) => interpolates === true);
    const registries = voters.filter(({ kind }) => kind === 'registry').map(({ lineage }) => lineage);
    this.#locates = voters.map(({ kind, lineage }) => kind === 'geolocation' && !registries.includes(lineage));
    this.#lineageVotes = new Int8Array(names.length);
    this.#voterLayers = layersOf(voters);
    this.#highestVoter = Math.max(...this.#voterLayers);
    this.counted = voters.map(() => false);
    this.dropped = voters.map(() => undefined);
    this.located = voters.map(() => false);
  }

  /**
   * Decides which candidate wins at an address.
   *
   * @returns the winner, or -1 if no candidate covers the address. Of the rows that name the winning country, it is the
   *   narrowest that counted
   */
  decide({ rows, other }: CoveringCandidates): number {
    const { layer, value } = this.#candidates;
    this.counted.fill(false);
    this.dropped.fill(undefined);
    this.located.fill(false);
    this.isByVote = false;
    const isUndelegated = other >= 0 && layer[other] === UNDELEGATED_LAYER;
    if (other >= 0 && layer[other]! > this.#highestVoter && !isUndelegated) return other;
    const decisive = this.#findLineageVotes(rows);
    if (decisive >= 0) {
      this.counted[decisive] = true;
    } else if (isUndelegated) {
      return other;
    } else {
      this.#dropWide(rows);
      if (this.#isAnycast(rows)) this.#dropWeak('anycast', (voter) => this.#locates[voter]!);
      else if (this.#hasOperatorsWord(rows)) this.#dropWeak('operator', (voter) => this.#locates[voter]!);
      this.#dropWeak('interpolated', (voter) => this.#isInterpolated(voter, rows));
      for (const voter of this.#lineageVotes) {
        if (voter < 0 || this.dropped[voter] !== undefined) continue;
        this.counted[voter] = true;
        this.located[voter] = this.#locates[voter]! && !this.#isInterpolated(voter, rows);
      }
    }
    const winner = this.#winner(rows);
    if (winner < 0) return other;
    this.isByVote = true;
    this.agreeing = 0;
    for (const voter of this.#lineageVotes) {
      if (voter < 0 || value[rows[voter]!] !== value[winner]) continue;
      this.agreeing++;
      if (this.dropped[voter] === undefined) continue;
      // It could not decide, but it agrees.
      this.dropped[voter] = undefined;
      this.counted[voter] = true;
    }
    return winner;
  }

  /** Returns one bit per layer of the voters whose row counted in the last vote and names a country. */
  agreeingLayers(rows: Int32Array, country: number): number {
    const { value } = this.#candidates;
    let bits = 0;
    for (let i = 0; i < rows.length; i++) {
      if (this.counted[i] && value[rows[i]!] === country) bits |= 1 << this.#voterLayers[i]!;
    }
    return bits >>> 0;
  }

  /** Finds the vote of each lineage. Returns the voter whose row decides, or -1. */
  #findLineageVotes(rows: Int32Array): number {
    const lineageVotes = this.#lineageVotes;
    lineageVotes.fill(-1);
    this.lineages = 0;
    let decisive = -1;
    for (let i = 0; i < rows.length; i++) {
      if (rows[i]! < 0 || this.#kinds[i] === 'anycast') continue;
      const lineage = this.#lineageOf[i]!;
      if (lineageVotes[lineage]! < 0) this.lineages++;
      if (this.#isNarrower(rows, i, lineageVotes[lineage]!)) lineageVotes[lineage] = i;
      if (this.#decides[i] && this.#isNarrower(rows, i, decisive)) decisive = i;
    }
    return decisive;
  }

  /** Drops the votes of geolocation rows that contradict the vote of the registry's lineage and are too wide. */
  #dropWide(rows: Int32Array): void {
    const { family, first, last, value } = this.#candidates;
    const registry = this.#registryOf(rows);
    if (registry < 0) return;
    const country = value[rows[this.#lineageVotes[this.#lineageOf[registry]!]!]!];
    for (const voter of this.#lineageVotes) {
      if (voter < 0 || this.#kinds[voter] !== 'geolocation' || value[rows[voter]!] === country) continue;
      if (isAsWideAs(first, last, rows[voter]!, this.#words, WIDE_PREFIX[family])) this.dropped[voter] = 'too wide';
    }
  }

  #isAnycast(rows: Int32Array): boolean {
    return this.#kinds.some((kind, voter) => kind === 'anycast' && rows[voter]! >= 0);
  }

  /** Whether the vote of the registries' lineage is a row of geolocation that is smaller than a network. */
  #hasOperatorsWord(rows: Int32Array): boolean {
    const { family, first, last } = this.#candidates;
    return this.#lineageVotes.some(
      (voter) =>
        voter >= 0 &&
        this.#kinds[voter] === 'geolocation' &&
        !this.#locates[voter] &&
        !isAsWideAs(first, last, rows[voter]!, this.#words, NETWORK_PREFIX[family]),
    );
  }

  /** Drops the votes that are weak, unless there are no others. */
  #dropWeak(reason: DropReason, isWeak: (voter: number) => boolean): void {
    const counts = (voter: number): boolean => voter >= 0 && this.dropped[voter] === undefined;
    if (!this.#lineageVotes.some((voter) => counts(voter) && !isWeak(voter))) return;
    for (const voter of this.#lineageVotes) if (counts(voter) && isWeak(voter)) this.dropped[voter] = reason;
  }

  /** Whether the row of a voter begins or ends inside a network. */
  #isInterpolated(voter: number, rows: Int32Array): boolean {
    const { family, first, last } = this.#candidates;
    if (!this.#interpolates[voter]) return false;
    return !isOnBoundaries(first, last, rows[voter]!, this.#words, NETWORK_PREFIX[family]);
  }

  /** Returns the voter with the narrowest row of a registry, or -1. */
  #registryOf(rows: Int32Array): number {
    let registry = -1;
    for (let i = 0; i < rows.length; i++) {
      if (rows[i]! >= 0 && this.#kinds[i] === 'registry' && this.#isNarrower(rows, i, registry)) registry = i;
    }
    return registry;
  }

  /** Whether the row of a voter is narrower than that of another voter, which may be -1. */
  #isNarrower(rows: Int32Array, voter: number, other: number): boolean {
    const { first, last } = this.#candidates;
    return other < 0 || compareSizes(first, last, rows[voter]!, rows[other]!, this.#words) < 0;
  }

  /** Returns the narrowest of the rows that count and name the country that wins, or -1. */
  #winner(rows: Int32Array): number {
    const { value } = this.#candidates;
    let winner = -1;
    let most = 0;
    for (let i = 0; i < rows.length; i++) {
      if (!this.counted[i]) continue;
      const country = value[rows[i]!]!;
      const strength = this.#strengthOf(country, rows);
      const isSame = winner >= 0 && value[rows[winner]!] === country;
      if (winner < 0 || strength > most || (isSame && this.#isNarrower(rows, i, winner))) {
        winner = i;
        most = strength;
      }
    }
    return winner < 0 ? -1 : rows[winner]!;
  }

  /** Returns twice the number of votes for a country, and one more if a lineage without a registry located it. */
  #strengthOf(country: number, rows: Int32Array): number {
    const { value } = this.#candidates;
    let votes = 0;
    let located = 0;
    for (let i = 0; i < rows.length; i++) {
      if (!this.counted[i] || value[rows[i]!] !== country) continue;
      votes++;
      if (this.located[i]) located = 1;
    }
    return 2 * votes + located;
  }
}

/** Returns the layer of each voter. */
export function layersOf(voters: readonly Voter[]): number[] {
  return voters.map(({ layer }) => layer);
}

/**
 * Merges candidates, of which those in the layers of voters vote. A candidate in another layer that is above all voters
 * wins without a vote, except against an operator in {@link UNDELEGATED_LAYER}; one that is below them wins where no voter
 * has evidence.
 *
 * @param candidates any number of candidates, in any order, overlapping at will
 * @param voters at least one, in the order in which they are listed; no other layer is between the lowest and the
 *   highest of theirs
 * @returns the whole address space of the family as ranges; `layers` has the voters that agree with the result
 */
export function voteRanges(candidates: CandidateRanges, voters: readonly Voter[]): MergedRanges {
  const { family, count, value, layer } = candidates;
  const order = sortCandidates(candidates);
  const counter = new VoteCounter(candidates, voters);
  const ranges = new MergedBuilder(addressWords(family), count);
  sweep(candidates, order, layersOf(voters), (position, covering) => {
    const winner = counter.decide(covering);
    if (winner < 0 || layer[winner] === UNDELEGATED_LAYER) ranges.add(position, 0, 0);
    else if (!counter.isByVote) ranges.add(position, value[winner]!, (1 << layer[winner]!) >>> 0);
    else {
      const confidence = Math.floor((100 * counter.agreeing) / counter.lineages);
      ranges.add(position, value[winner]!, counter.agreeingLayers(covering.rows, value[winner]!), confidence);
    }
  });
  return { ...ranges.finish(family), ...countDuplicates(candidates, order) };
}
