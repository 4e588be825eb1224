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
 */
import {
  addressWords,
  compareAddresses,
  compareSizes,
  copyAddress,
  isAsWideAs,
  nextAddress,
} from '../address/words.js';
import { WIDE_PREFIX } from '../limits.js';
import type { CandidateRanges, MergedRanges } from './columns.js';
import { ActiveRanges, countDuplicates, MergedBuilder, sortCandidates } from './merge.js';

/** What a source's rows are made of. */
export const SOURCE_KINDS = ['operator', 'geofeed', 'geolocation', 'routing', 'registry'] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/** A source that takes part in the vote. */
export interface Voter {
  /** Layer of its rows among the candidates; no other voter has it. */
  layer: number;
  /** Name of its origin; sources with the same name have one vote together. */
  lineage: string;
  kind: SourceKind;
}

/** Counts the votes at one address after another. */
export class VoteCounter {
  /** Whether each voter's row counted in the last vote: as the vote of its lineage, or as the operator's decision. */
  readonly counted: boolean[];
  /** Whether each voter's row lost the vote of its lineage in the last vote, because it is too wide. */
  readonly tooWide: boolean[];
  /** Lineages with a row in the last vote. */
  lineages = 0;
  /** Those of them whose narrowest row names the winning country. */
  agreeing = 0;
  readonly #candidates: CandidateRanges;
  readonly #words: number;
  /** Number of each voter's lineage. */
  readonly #lineageOf: Uint8Array;
  /** Whether each voter's rows decide. */
  readonly #decides: boolean[];
  readonly #kinds: SourceKind[];
  /** Length of a prefix that is too wide to contradict the registry. */
  readonly #wideLength: number;
  /** Voter whose row is the vote of each lineage, or -1. */
  readonly #speakers: Int8Array;

  /** @param voters in the order in which they are listed */
  constructor(candidates: CandidateRanges, voters: readonly Voter[]) {
    this.#candidates = candidates;
    this.#words = addressWords(candidates.family);
    const names = [...new Set(voters.map(({ lineage }) => lineage))];
    this.#lineageOf = Uint8Array.from(voters, ({ lineage }) => names.indexOf(lineage));
    this.#decides = voters.map(({ kind }) => kind === 'operator' || kind === 'geofeed');
    this.#kinds = voters.map(({ kind }) => kind);
    this.#wideLength = WIDE_PREFIX[candidates.family];
    this.#speakers = new Int8Array(names.length);
    this.counted = voters.map(() => false);
    this.tooWide = voters.map(() => false);
  }

  /**
   * Holds the vote at an address.
   *
   * @param rows for each voter the candidate that covers the address, or -1
   * @returns the narrowest candidate with the winning country, or -1 if no voter has a row
   */
  elect(rows: Int32Array): number {
    const decisive = this.#findSpeakers(rows);
    this.counted.fill(false);
    this.tooWide.fill(false);
    if (decisive >= 0) {
      this.counted[decisive] = true;
    } else {
      this.#dropTooWide(rows);
      for (const voter of this.#speakers) if (voter >= 0) this.counted[voter] = true;
    }
    const winner = this.#winner(rows);
    this.agreeing = winner < 0 ? 0 : this.#votesFor(this.#candidates.value[winner]!, rows);
    return winner;
  }

  /** Finds the vote of each lineage. Returns the voter whose row decides, or -1. */
  #findSpeakers(rows: Int32Array): number {
    const speakers = this.#speakers;
    speakers.fill(-1);
    this.lineages = 0;
    let decisive = -1;
    for (let i = 0; i < rows.length; i++) {
      if (rows[i]! < 0) continue;
      const lineage = this.#lineageOf[i]!;
      if (speakers[lineage]! < 0) this.lineages++;
      if (this.#isNarrower(rows, i, speakers[lineage]!)) speakers[lineage] = i;
      if (this.#decides[i] && this.#isNarrower(rows, i, decisive)) decisive = i;
    }
    return decisive;
  }

  /** Drops the votes of geolocation rows that are too wide to contradict the vote of the registry's lineage. */
  #dropTooWide(rows: Int32Array): void {
    const { first, last, value } = this.#candidates;
    const speakers = this.#speakers;
    let registry = -1;
    for (let i = 0; i < rows.length; i++) {
      if (rows[i]! >= 0 && this.#kinds[i] === 'registry' && this.#isNarrower(rows, i, registry)) registry = i;
    }
    if (registry < 0) return;
    const country = value[rows[speakers[this.#lineageOf[registry]!]!]!];
    for (let lineage = 0; lineage < speakers.length; lineage++) {
      const voter = speakers[lineage]!;
      if (voter < 0 || this.#kinds[voter] !== 'geolocation') continue;
      const row = rows[voter]!;
      if (value[row] === country || !isAsWideAs(first, last, row, this.#words, this.#wideLength)) continue;
      this.tooWide[voter] = true;
      speakers[lineage] = -1;
    }
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
    for (const voter of this.#speakers) if (voter >= 0 && value[rows[voter]!] === country) votes++;
    return votes;
  }
}

/**
 * Merges candidates, of which those in the layers of voters vote. A candidate in another layer that is above all voters
 * wins without a vote; one that is below them wins where no voter has evidence.
 *
 * @param candidates any number of candidates, in any order, overlapping at will
 * @param voters at least one, in the order in which they are listed; no other layer is between the lowest and the
 *   highest of theirs
 * @returns the whole address space of the family as ranges; `layers` has the voters that agree with the result
 */
export function voteRanges(candidates: CandidateRanges, voters: readonly Voter[]): MergedRanges {
  const { family, count, first, last, value, layer } = candidates;
  const words = addressWords(family);
  const order = sortCandidates(candidates);
  const counter = new VoteCounter(candidates, voters);
  const highestVoter = Math.max(...voters.map((voter) => voter.layer));

  /** The candidates at the position: those of each voter, and at the end those of no voter. */
  const active = [...voters, undefined].map(() => new ActiveRanges(candidates, words));
  const others = active[voters.length]!;
  const activeIn = Array.from({ length: 32 }, (_, number) => {
    const voter = voters.findIndex((each) => each.layer === number);
    return voter < 0 ? others : active[voter]!;
  });
  const rows = new Int32Array(voters.length);
  const ranges = new MergedBuilder(words, 2 * count + 1);
  const position = new Uint32Array(words);
  let next = 0;
  for (let atEnd = false; !atEnd; ) {
    for (; next < count && compareAddresses(first, order[next]!, position, 0, words) <= 0; next++) {
      activeIn[layer[order[next]!]!]!.push(order[next]!);
    }
    /** The candidate among the winners of each heap that ends first. */
    let ending = -1;
    for (let i = 0; i < active.length; i++) {
      active[i]!.popEnded(position);
      const { top } = active[i]!;
      if (i < rows.length) rows[i] = top;
      if (top >= 0 && (ending < 0 || compareAddresses(last, top, last, ending, words) < 0)) ending = top;
    }

    const other = others.top;
    const elected = other >= 0 && layer[other]! > highestVoter ? -1 : counter.elect(rows);
    if (elected >= 0) {
      const bits = agreeingLayers(candidates, voters, rows, counter.counted, value[elected]!);
      ranges.add(position, value[elected]!, bits, Math.floor((100 * counter.agreeing) / counter.lineages));
    } else if (other >= 0) {
      ranges.add(position, value[other]!, (1 << layer[other]!) >>> 0);
    } else {
      ranges.add(position, 0, 0);
    }

    const nextFirst = next < count ? order[next]! : -1;
    if (ending >= 0 && (nextFirst < 0 || compareAddresses(last, ending, first, nextFirst, words) < 0)) {
      atEnd = !nextAddress(last, ending, words, position);
    } else if (nextFirst >= 0) {
      copyAddress(first, nextFirst, words, position);
    } else {
      atEnd = true;
    }
  }
  return { ...ranges.finish(family), ...countDuplicates(candidates, order) };
}

/** Returns one bit per layer of the voters whose row counted and names a country. */
function agreeingLayers(
  { value }: CandidateRanges,
  voters: readonly Voter[],
  rows: Int32Array,
  counted: readonly boolean[],
  country: number,
): number {
  let bits = 0;
  for (let i = 0; i < rows.length; i++) {
    if (counted[i] && value[rows[i]!] === country) bits |= 1 << voters[i]!.layer;
  }
  return bits >>> 0;
}
