/**
 * Merging by evidence: where several sources cover an address, they vote on its country.
 *
 * The rules, for one address:
 *
 * 1. Of each source, the narrowest row that covers the address counts; of equally wide ones, the latest.
 * 2. A row that is wider than the registry's delegation around the address is not evidence: it says something about the
 *    neighbors of the delegation as well, so it cannot tell the delegation apart from them.
 * 3. If the operator of the network or its geofeed (RFC 8805) has a row, that row decides. The caller must pass such rows
 *    only inside space of their owner.
 * 4. Otherwise, each lineage has one vote, that of its narrowest row. Sources of one lineage share their origin, so they
 *    repeat each other instead of confirming each other. The country with the most votes wins; of countries with as
 *    many votes, the one with the narrowest row; then the one whose source is listed first.
 */
import { addressWords, compareAddresses, compareSizes, nextAddress } from '../address/words.js';
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

/** What became of a source's row at an address. */
export const Ballot = {
  /** The source has no row there. */
  none: 0,
  /** The row is the vote of its lineage, or decides as the operator's word. */
  counted: 1,
  /** The row is wider than the registry's delegation. */
  tooWide: 2,
  /** Another source of the lineage has a narrower row, or the operator's word decides. */
  unused: 3,
} as const;
export type Ballot = (typeof Ballot)[keyof typeof Ballot];

/** Counts the votes at one address after another. */
export class VoteCounter {
  /** What became of each voter's row in the last count. */
  readonly ballots: Uint8Array;
  /** Lineages with a vote in the last count. */
  lineages = 0;
  /** Those of them that named the winning country. */
  agreeing = 0;
  readonly #candidates: CandidateRanges;
  readonly #words: number;
  readonly #voters: readonly Voter[];
  /** Number of each voter's lineage. */
  readonly #lineageOf: Uint8Array;
  /** Voter that speaks for each lineage, or -1. */
  readonly #speaker: Int8Array;

  /** @param voters at most 31, in the order in which they are listed */
  constructor(candidates: CandidateRanges, voters: readonly Voter[]) {
    this.#candidates = candidates;
    this.#words = addressWords(candidates.family);
    this.#voters = voters;
    const names = [...new Set(voters.map(({ lineage }) => lineage))];
    this.#lineageOf = Uint8Array.from(voters, ({ lineage }) => names.indexOf(lineage));
    this.#speaker = new Int8Array(names.length);
    this.ballots = new Uint8Array(voters.length);
  }

  /**
   * Counts the votes at an address.
   *
   * @param rows of each voter the candidate that covers the address, or -1
   * @returns the candidate with the winning country that won the ties, or -1 if there is no evidence
   */
  count(rows: Int32Array): number {
    const decisive = this.#collectVotes(rows);
    const winner = decisive >= 0 ? rows[decisive]! : this.#winner(rows);
    if (winner < 0) return -1;
    this.agreeing = this.#votesFor(this.#candidates.value[winner]!, rows);
    return winner;
  }

  /** Finds the speaker of each lineage, and returns the voter whose word decides, or -1. */
  #collectVotes(rows: Int32Array): number {
    const delegation = this.#delegation(rows);
    const speaker = this.#speaker;
    speaker.fill(-1);
    let decisive = -1;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      const { kind } = this.#voters[i]!;
      this.ballots[i] = row < 0 ? Ballot.none : Ballot.unused;
      if (row < 0) continue;
      if (kind !== 'registry' && delegation >= 0 && this.#compareSizes(row, delegation) > 0) {
        this.ballots[i] = Ballot.tooWide;
        continue;
      }
      const lineage = this.#lineageOf[i]!;
      if (speaker[lineage]! < 0 || this.#compareSizes(row, rows[speaker[lineage]!]!) < 0) speaker[lineage] = i;
      if (kind !== 'operator' && kind !== 'geofeed') continue;
      if (decisive < 0 || this.#compareSizes(row, rows[decisive]!) < 0) decisive = i;
    }
    this.lineages = 0;
    for (const voter of speaker) {
      if (voter < 0) continue;
      this.lineages++;
      if (decisive < 0) this.ballots[voter] = Ballot.counted;
    }
    if (decisive >= 0) this.ballots[decisive] = Ballot.counted;
    return decisive;
  }

  /** Returns the narrowest row of a registry, or -1. */
  #delegation(rows: Int32Array): number {
    let delegation = -1;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (row < 0 || this.#voters[i]!.kind !== 'registry') continue;
      if (delegation < 0 || this.#compareSizes(row, delegation) < 0) delegation = row;
    }
    return delegation;
  }

  /** Returns the narrowest row among those of the country with the most votes, or -1. */
  #winner(rows: Int32Array): number {
    const { value } = this.#candidates;
    let winner = -1;
    let most = 0;
    for (let i = 0; i < rows.length; i++) {
      if (this.ballots[i] !== Ballot.counted) continue;
      const row = rows[i]!;
      const votes = this.#votesFor(value[row]!, rows);
      if (votes < most) continue;
      if (votes > most || this.#compareSizes(row, winner) < 0) winner = row;
      most = votes;
    }
    return winner;
  }

  /** Returns the number of lineages whose speaker names a country. */
  #votesFor(country: number, rows: Int32Array): number {
    const { value } = this.#candidates;
    let votes = 0;
    for (const voter of this.#speaker) if (voter >= 0 && value[rows[voter]!] === country) votes++;
    return votes;
  }

  #compareSizes(a: number, b: number): number {
    const { first, last } = this.#candidates;
    return compareSizes(first, last, a, b, this.#words);
  }
}

/**
 * Merges candidates, of which those in the layers of voters vote. A candidate in another layer that is above all voters
 * wins without a vote; one that is below them wins where no voter has evidence.
 *
 * @param candidates any number of candidates, in any order, overlapping at will
 * @param voters at most 31, in the order in which they are listed; the layers between the lowest and the highest of theirs
 *   are voters' layers, too
 * @returns the whole address space of the family as ranges; `layers` has the voters that agree with the result
 */
export function voteRanges(candidates: CandidateRanges, voters: readonly Voter[]): MergedRanges {
  const { family, count, first, last, value, layer } = candidates;
  const words = addressWords(family);
  const order = sortCandidates(candidates);
  const counter = new VoteCounter(candidates, voters);
  const highestVoter = Math.max(...voters.map((voter) => voter.layer));

  /** The candidates at the position: those of each voter, and at the end those of no voter. */
  const open = [...voters, undefined].map(() => new ActiveRanges(candidates, words));
  const others = open[voters.length]!;
  const openIn = Array.from({ length: 32 }, (_, number) => {
    const voter = voters.findIndex((each) => each.layer === number);
    return voter < 0 ? others : open[voter]!;
  });
  const rows = new Int32Array(voters.length);
  const ranges = new MergedBuilder(words, 2 * count + 1);
  const position = new Uint32Array(words);
  let next = 0;
  for (let atEnd = false; !atEnd; ) {
    for (; next < count && compareAddresses(first, order[next]!, position, 0, words) <= 0; next++) {
      openIn[layer[order[next]!]!]!.push(order[next]!);
    }
    /** The candidate among the winners of each heap that ends first. */
    let ending = -1;
    for (let i = 0; i < open.length; i++) {
      open[i]!.popEnded(position);
      const { top } = open[i]!;
      if (i < rows.length) rows[i] = top;
      if (top >= 0 && (ending < 0 || compareAddresses(last, top, last, ending, words) < 0)) ending = top;
    }

    const other = others.top;
    const elected = other >= 0 && layer[other]! > highestVoter ? -1 : counter.count(rows);
    if (elected >= 0) {
      const bits = agreeingLayers(candidates, voters, rows, counter.ballots, value[elected]!);
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
      for (let k = 0; k < words; k++) position[k] = first[nextFirst * words + k]!;
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
  ballots: Uint8Array,
  country: number,
): number {
  let bits = 0;
  for (let i = 0; i < rows.length; i++) {
    if (ballots[i] === Ballot.counted && value[rows[i]!] === country) bits |= 1 << voters[i]!.layer;
  }
  return bits >>> 0;
}
