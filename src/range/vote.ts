/**
 * Merging by evidence: where several sources cover an address, they vote on its country.
 *
 * The rules, for one address:
 *
 * 1. Of each source, the narrowest row that covers the address counts; of equally wide ones, the latest.
 * 2. If the operator of the network or its geofeed (RFC 8805) has a row, that row decides; of several, the narrowest. The
 *    caller passes such rows only inside space of their owner, as far as it is known.
 * 3. Otherwise, each lineage has one vote, that of its narrowest row. Sources of one lineage share their origin, so they
 *    repeat each other instead of confirming each other. The country with the most votes wins; of countries with as
 *    many votes, the one with the narrowest row; then the one whose source is listed first.
 * 4. A lineage has no vote if its row is one of geolocation, contradicts the vote of the registry's lineage, and is as wide
 *    as {@link WIDE_PREFIX} or wider. Locations are measured for single networks; wider rows are extrapolated.
 * 5. Nor has an IPv4 row of geolocation a vote if it contradicts the registry's lineage, which has locations too, and the
 *    lineage seldom confirms such locations: neither where the source names this country against that of the registry,
 *    nor where it names this country in the same /12 ({@link Confirmations}). Those are systematic errors, such as one
 *    country for all unused space of a large network. Rows of exactly 256 addresses, an announced network, keep the vote.
 * 6. In space that no registry has delegated, only rows of rule 2 count: nobody uses it, whatever other sources say. The
 *    caller passes that space as candidates in {@link UNDELEGATED_LAYER}, whose value is 0.
 */
import { addressWords, compareSizes, isAsWideAs } from '../address/words.js';
import type { CandidateRanges, MergedRanges } from './columns.js';
import { Confirmations, type DoubtfulLocations, type Location } from './confirmation.js';
import { type CoveringCandidates, countDuplicates, MergedBuilder, sortCandidates, sweep } from './merge.js';

/**
 * Length of the prefix from which on a geolocation row is too wide to contradict the registry, by family. An IPv4 /12 has
 * a million addresses; the RIPE NCC gives a network up to an IPv6 /29 without further justification (RIPE-738 §5.1.2).
 * truth/README.md has the measurements.
 */
export const WIDE_PREFIX = { 4: 12, 6: 28 } as const;

/** What a source's rows are made of. */
export const SOURCE_KINDS = ['operator', 'geofeed', 'geolocation', 'routing', 'registry'] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/** Layer of the candidates for space that no registry has delegated; see rule 6. */
export const UNDELEGATED_LAYER = 29;

/** A source that takes part in the vote. */
export interface Voter {
  /** Layer of its rows among the candidates; no other voter has it. */
  layer: number;
  /** Name of its origin; sources with the same name have one vote together. */
  lineage: string;
  kind: SourceKind;
}

/** Why a geolocation row that contradicts the registry has no vote: see rules 4 and 5. */
export type DropReason = 'too wide' | 'doubtful';

/** Counts the votes at one address after another. */
export class VoteCounter {
  /** Whether each voter's row counted in the last vote: as the vote of its lineage, or as the operator's decision. */
  readonly counted: boolean[];
  /** Why each voter's row lost the vote of its lineage in the last vote; undefined if it did not. */
  readonly dropped: (DropReason | undefined)[];
  /** Lineages with a row in the last vote. */
  lineages = 0;
  /** Those of them whose narrowest row names the winning country. */
  agreeing = 0;
  /** Whether voters made the last decision. */
  isByVote = false;
  readonly #candidates: CandidateRanges;
  readonly #doubtful: DoubtfulLocations | undefined;
  readonly #words: number;
  /** Number of each voter's lineage. */
  readonly #lineageOf: Uint8Array;
  /** Whether each voter's rows decide. */
  readonly #decides: boolean[];
  readonly #kinds: SourceKind[];
  /** Length of a prefix that is too wide to contradict the registry. */
  readonly #wideLength: number;
  /** Voter whose row is the vote of each lineage, or -1. */
  readonly #lineageVotes: Int8Array;
  readonly #voterLayers: readonly number[];
  readonly #highestVoter: number;

  /**
   * @param voters in the order in which they are listed
   * @param doubtful of the locations of all rows, not only of the candidates; undefined if rule 5 does not apply
   */
  constructor(candidates: CandidateRanges, voters: readonly Voter[], doubtful?: DoubtfulLocations) {
    this.#candidates = candidates;
    this.#doubtful = doubtful;
    this.#words = addressWords(candidates.family);
    const names = [...new Set(voters.map(({ lineage }) => lineage))];
    this.#lineageOf = Uint8Array.from(voters, ({ lineage }) => names.indexOf(lineage));
    this.#decides = voters.map(({ kind }) => kind === 'operator' || kind === 'geofeed');
    this.#kinds = voters.map(({ kind }) => kind);
    this.#wideLength = WIDE_PREFIX[candidates.family];
    this.#lineageVotes = new Int8Array(names.length);
    this.#voterLayers = layersOf(voters);
    this.#highestVoter = Math.max(...this.#voterLayers);
    this.counted = voters.map(() => false);
    this.dropped = voters.map(() => undefined);
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
    this.isByVote = false;
    const isUndelegated = other >= 0 && layer[other] === UNDELEGATED_LAYER;
    if (other >= 0 && layer[other]! > this.#highestVoter && !isUndelegated) return other;
    const decisive = this.#findLineageVotes(rows);
    if (decisive >= 0) {
      this.counted[decisive] = true;
    } else if (isUndelegated) {
      return other;
    } else {
      this.#dropLocations(rows);
      for (const voter of this.#lineageVotes) if (voter >= 0) this.counted[voter] = true;
    }
    const winner = this.#winner(rows);
    if (winner < 0) return other;
    this.isByVote = true;
    this.agreeing = this.#votesFor(value[winner]!, rows);
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
      if (rows[i]! < 0) continue;
      const lineage = this.#lineageOf[i]!;
      if (lineageVotes[lineage]! < 0) this.lineages++;
      if (this.#isNarrower(rows, i, lineageVotes[lineage]!)) lineageVotes[lineage] = i;
      if (this.#decides[i] && this.#isNarrower(rows, i, decisive)) decisive = i;
    }
    return decisive;
  }

  /** Drops the votes of geolocation rows that contradict the vote of the registry's lineage and are weak evidence. */
  #dropLocations(rows: Int32Array): void {
    const { value } = this.#candidates;
    const lineageVotes = this.#lineageVotes;
    const registry = this.#registryOf(rows);
    if (registry < 0) return;
    const registered = value[rows[registry]!]!;
    const country = value[rows[lineageVotes[this.#lineageOf[registry]!]!]!];
    for (let lineage = 0; lineage < lineageVotes.length; lineage++) {
      const voter = lineageVotes[lineage]!;
      if (voter < 0 || this.#kinds[voter] !== 'geolocation' || value[rows[voter]!] === country) continue;
      this.dropped[voter] = this.#weaknessOf(rows[voter]!, registered);
      if (this.dropped[voter] !== undefined) lineageVotes[lineage] = -1;
    }
  }

  /** Returns why a location is weak evidence against the country in the registry; undefined if it is not. */
  #weaknessOf(row: number, registered: number): DropReason | undefined {
    const { first, last } = this.#candidates;
    if (isAsWideAs(first, last, row, this.#words, this.#wideLength)) return 'too wide';
    return this.#doubtful?.has(this.#locationOf(row, registered)) ? 'doubtful' : undefined;
  }

  /** Returns an IPv4 row as a location. */
  #locationOf(row: number, registered: number): Location {
    const { layer, first, last, value } = this.#candidates;
    return { layer: layer[row]!, first: first[row]!, last: last[row]!, country: value[row]!, registered };
  }

  /**
   * Counts the IPv4 locations that begin at an address and contradict the registry.
   *
   * @param address one word
   * @param rows for each voter the candidate that covers the address, or -1
   */
  countLocations(address: Uint32Array, rows: Int32Array, confirmations: Confirmations): void {
    const { first, value } = this.#candidates;
    const registry = this.#registryOf(rows);
    if (registry < 0) return;
    const registered = value[rows[registry]!]!;
    const lineage = this.#lineageOf[registry]!;
    this.#findLineageVotes(rows);
    const country = value[rows[this.#lineageVotes[lineage]!]!];
    for (let voter = 0; voter < rows.length; voter++) {
      const row = rows[voter]!;
      if (row < 0 || this.#kinds[voter] !== 'geolocation' || this.#lineageOf[voter] === lineage) continue;
      if (value[row] === registered || first[row] !== address[0]) continue;
      confirmations.add(this.#locationOf(row, registered), value[row] === country);
    }
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

  /** Returns the narrowest of the rows that count and name the country with the most votes, or -1. */
  #winner(rows: Int32Array): number {
    const { value } = this.#candidates;
    let winner = -1;
    let most = 0;
    for (let i = 0; i < rows.length; i++) {
      if (!this.counted[i]) continue;
      const votes = this.#votesFor(value[rows[i]!]!, rows);
      if (winner < 0 || votes > most || (votes === most && this.#isNarrower(rows, i, winner))) {
        winner = i;
        most = votes;
      }
    }
    return winner < 0 ? -1 : rows[winner]!;
  }

  /** Returns the number of lineages whose vote is for a country. */
  #votesFor(country: number, rows: Int32Array): number {
    const { value } = this.#candidates;
    let votes = 0;
    for (const voter of this.#lineageVotes) if (voter >= 0 && value[rows[voter]!] === country) votes++;
    return votes;
  }
}

/**
 * Finds the locations that the registry's lineage seldom confirms, among those of the other lineages. IPv6 is left out: sources have few
 * rows there, and fewer known places are right with rule 5 (truth/README.md).
 *
 * @param voters see {@link voteRanges}
 * @param order see {@link sortCandidates}
 * @returns undefined if rule 5 does not apply: for IPv6, and if not both the registry's lineage and another have locations
 */
function findDoubtful(
  candidates: CandidateRanges,
  voters: readonly Voter[],
  order = sortCandidates(candidates),
): DoubtfulLocations | undefined {
  const registries = new Set(voters.filter(({ kind }) => kind === 'registry').map(({ lineage }) => lineage));
  const withLocations = new Set(voters.filter(({ kind }) => kind === 'geolocation').map(({ lineage }) => lineage));
  const canConfirm = [...withLocations].some((lineage) => registries.has(lineage));
  const hasOthers = [...withLocations].some((lineage) => !registries.has(lineage));
  if (candidates.family === 6 || !canConfirm || !hasOthers) return undefined;
  const confirmations = new Confirmations();
  const counter = new VoteCounter(candidates, voters);
  sweep(candidates, order, layersOf(voters), (address, { rows }) =>
    counter.countLocations(address, rows, confirmations),
  );
  return confirmations.doubtful();
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
 * @returns the whole address space of the family as ranges; `layers` has the voters that agree with the result. And the
 *   locations to which rule 5 applied
 */
export function voteRanges(
  candidates: CandidateRanges,
  voters: readonly Voter[],
): MergedRanges & { doubtful: DoubtfulLocations | undefined } {
  const { family, count, value, layer } = candidates;
  const order = sortCandidates(candidates);
  const doubtful = findDoubtful(candidates, voters, order);
  const counter = new VoteCounter(candidates, voters, doubtful);
  const ranges = new MergedBuilder(addressWords(family), 2 * count + 1);
  sweep(candidates, order, layersOf(voters), (position, covering) => {
    const winner = counter.decide(covering);
    if (winner < 0 || layer[winner] === UNDELEGATED_LAYER) ranges.add(position, 0, 0);
    else if (!counter.isByVote) ranges.add(position, value[winner]!, (1 << layer[winner]!) >>> 0);
    else {
      const confidence = Math.floor((100 * counter.agreeing) / counter.lineages);
      ranges.add(position, value[winner]!, counter.agreeingLayers(covering.rows, value[winner]!), confidence);
    }
  });
  return { ...ranges.finish(family), ...countDuplicates(candidates, order), doubtful };
}
