/** Holds the vote of merging by evidence at one address, from the rows that cover it. */
import { addressWords, compareAddresses, compareSizes, rangeSize } from '../../src/address/words.js';
import { type DropReason, VoteCounter } from '../../src/range/vote.js';
import type { SpecialRange } from '../config/reference.js';
import { CandidateBuilder } from '../merging/candidate-builder.js';
import { type SourceEvidence, votersOf } from '../merging/evidence.js';
import type { SourceConfirmations } from '../merging/range-merger.js';
import type { CoveringRow, Target } from './covering-rows.js';

/** The outcome of a vote. */
export interface Vote {
  /** The narrowest row that counted and names the winning country. */
  winner: CoveringRow;
  /** Rows that counted: of each lineage its vote, or the operator's row alone. */
  counted: ReadonlySet<CoveringRow>;
  /** Geolocation rows that contradict the registry and have no vote, with the reason. */
  dropped: ReadonlyMap<CoveringRow, DropReason>;
  /** Each source's only row that could count. */
  candidates: readonly CoveringRow[];
  /** Lineages with a row. */
  lineages: number;
  /** Those whose vote is for the winning country. */
  agreeing: number;
  /** Lineage of each source by its id. */
  lineageOf: ReadonlyMap<string, string>;
}

/** Why a row has no vote, by the reason. */
const DROPPED: Record<DropReason, string> = {
  'too wide': 'its range is too wide for a location that contradicts the registry',
  doubtful: "it contradicts the registry, and the registry's lineage seldom confirms such locations",
};

/**
 * Holds the vote at an address as a build does.
 *
 * @param rows that cover the address, in the order of a build
 * @param embedded the prefixes whose addresses carry an IPv4 address; they are cut out of wider rows
 * @param sources in the order of the configuration
 * @param confirmations of the whole build
 * @returns undefined if no source has a row with a country
 */
export function voteAt(
  rows: readonly CoveringRow[],
  { family, words }: Target,
  embedded: readonly SpecialRange[],
  sources: readonly (SourceEvidence & { id: string })[],
  { confirmations, countryValue }: SourceConfirmations,
): Vote | undefined {
  const builder = new CandidateBuilder(family, rows.length, embedded);
  for (const [index, { first, last, layer }] of rows.entries()) builder.addAround(first, last, 0, index, layer);
  const { value: rowOf, ...candidates } = builder.finish();
  const { count, first, last, layer } = candidates;
  const value = rowOf.map((row) => countryValue(rows[row]!.label));

  const voters = votersOf(sources);
  const size = addressWords(family);
  const tops = Int32Array.from(voters, (voter) => {
    let top = -1;
    for (let i = 0; i < count; i++) {
      const covers = compareAddresses(first, i, words, 0, size) <= 0 && compareAddresses(words, 0, last, i, size) <= 0;
      if (layer[i] !== voter.layer || !covers) continue;
      if (top < 0 || compareSizes(first, last, i, top, size) <= 0) top = i;
    }
    return top;
  });
  const counter = new VoteCounter({ ...candidates, value }, voters, confirmations);
  const elected = counter.elect(tops);
  if (elected < 0) return undefined;
  const rowsOf = (wanted: (voter: number) => boolean): CoveringRow[] =>
    [...tops].flatMap((top, voter) => (top >= 0 && wanted(voter) ? [rows[rowOf[top]!]!] : []));
  return {
    winner: rows[rowOf[elected]!]!,
    counted: new Set(rowsOf((voter) => counter.counted[voter]!)),
    dropped: new Map(
      counter.dropped.flatMap((reason, voter) => (reason ? [[rows[rowOf[tops[voter]!]!]!, reason] as const] : [])),
    ),
    candidates: rowsOf(() => true),
    lineages: counter.lineages,
    agreeing: counter.agreeing,
    lineageOf: new Map(sources.map(({ id, lineage }) => [id, lineage])),
  };
}

/** Returns whether a row counted and names the winning country. */
export function agrees({ winner, counted }: Vote, row: CoveringRow): boolean {
  return counted.has(row) && row.label === winner.label;
}

/** Returns why a source's row lost the vote. */
export function whyOutvoted(vote: Vote, row: CoveringRow): string {
  const { winner, counted, dropped, candidates, agreeing, lineageOf } = vote;
  const width = ({ first, last }: CoveringRow): bigint => rangeSize(first, last);
  if (!candidates.includes(row)) return 'its source has a narrower range, or a later row for the same range';
  const reason = dropped.get(row);
  if (reason !== undefined) return DROPPED[reason];
  if (!counted.has(row)) {
    const speaker = [...counted, ...dropped.keys()].find(
      ({ source }) => lineageOf.get(source) === lineageOf.get(row.source),
    );
    if (speaker === undefined) return `the data of the operator, ${winner.source}, overrides it`;
    return `${speaker.source} has the vote of their lineage`;
  }
  const votes = [...counted].filter(({ label }) => label === row.label).length;
  if (votes < agreeing) return `outvoted by ${agreeing} lineages to ${votes}`;
  const isWider = width(row) > width(winner);
  return `tied, ${isWider ? 'and its range is wider' : `and ${winner.source} comes before it in sources.json`}`;
}
