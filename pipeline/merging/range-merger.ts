/** Merges sources, special-purpose ranges and overrides into one list of ranges for each family. */
import type { Family } from '../../src/address/parse.js';
import { rangeContains } from '../../src/address/words.js';
import type { Assignment } from '../../src/country/assignment.js';
import { type Country, type CountryReference, resolveCountry } from '../../src/country/country.js';
import { type BoundedRanges, type CandidateRanges, type MergedRanges, RangeBuilder } from '../../src/range/columns.js';
import { CoveringCandidates, mergeRanges } from '../../src/range/merge.js';
import { layersOf, VoteCounter, type Voter, voteRanges } from '../../src/range/vote.js';
import { type RangeRecord, recordKey } from '../../src/rangefile/layout.js';
import type { Override } from '../config/overrides.js';
import type { Reference, SpecialRange } from '../config/reference.js';
import type { IngestedSource } from '../stage.js';
import { CandidateBuilder, LAYERS, sourceLayer } from './candidates.js';
import { type OwnedRange, OwnerSpace, type SourceEvidence, undelegatedSpace, votersOf } from './evidence.js';

export interface MergeInput {
  /** The source with the highest priority first. The list is emptied, so that their columns are not in memory for longer than needed. */
  sources: IngestedSource[];
  reference: Reference;
  /** By code, as of the build's date. */
  countries: ReadonlyMap<string, Country>;
  overrides: readonly Override[];
  /** For each source, if they are merged by evidence; undefined if by priority. */
  evidence?: readonly SourceEvidence[] | undefined;
  /** The ranges that belong to networks, as far as the sources tell. */
  owned?: readonly OwnedRange[];
}

/** The merged ranges of both families; each range's value is an index into `records`. */
export interface Merged {
  v4: MergedRanges;
  v6: MergedRanges;
  records: RangeRecord[];
}

/** What merging gives, with its statistics. */
export interface MergeResult extends Merged {
  /** Number of candidate ranges, both families together. */
  candidates: number;
  /** Ids of the sources whose rows are not used, because no source says which space belongs to the owner. */
  withoutSpace: readonly string[];
  /** Ids of the other sources with rows outside the space of their owner, each with the number of those rows. */
  outsideSpace: ReadonlyMap<string, number>;
  /** Country codes that are in no table, each with the number of its rows. */
  unknownCodes: ReadonlyMap<string, number>;
}

/** The decision at one address. Candidates are numbered in the order in which they were added. */
export interface Decision {
  /** The candidate that wins, or -1. */
  winner: number;
  result: RangeRecord;
  /** The candidates that cover the address. */
  covering: number[];
  /** If sources voted: for each voter its candidate, or -1, and the counter. */
  vote: { candidates: Int32Array; counter: VoteCounter } | undefined;
}

/** Number of the record of addresses that no candidate covers. */
const UNALLOCATED = 0;

/** Numbers the records. Record 0 is the result for addresses that no candidate covers. */
class RecordTable {
  readonly records: RangeRecord[] = [];
  readonly #countries: ReadonlyMap<string, Country>;
  readonly #indexes = new Map<string, number>();

  constructor(countries: ReadonlyMap<string, Country>) {
    this.#countries = countries;
    this.indexOf({ kind: 'none', reason: 'unallocated' });
  }

  indexOf(result: Assignment): number {
    const record: RangeRecord =
      result.kind === 'country' ? { kind: 'country', ...this.#countries.get(result.code)! } : result;
    const key = recordKey(record);
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    this.#indexes.set(key, this.records.length);
    return this.records.push(record) - 1;
  }
}

/** Room for candidates that are not rows of a source: special-purpose ranges and a few overrides. */
const EXTRA_CAPACITY = 64;

/** Collects the candidates of a build, and merges them or decides at single addresses. */
export class RangeMerger {
  /** Country codes that are in no table, each with the number of its rows. */
  readonly unknownCodes = new Map<string, number>();
  readonly #reference: CountryReference;
  readonly #records: RecordTable;
  readonly #builders: Record<Family, CandidateBuilder>;

  /** @param sources to make room for */
  constructor(reference: Reference, countries: ReadonlyMap<string, Country>, sources: readonly IngestedSource[] = []) {
    this.#reference = reference;
    this.#records = new RecordTable(countries);
    const builder = (family: Family): CandidateBuilder => {
      const capacity = sources.reduce((sum, source) => sum + source[`v${family}`].count, EXTRA_CAPACITY);
      return new CandidateBuilder(family, capacity, reference.special);
    };
    this.#builders = { 4: builder(4), 6: builder(6) };
  }

  get records(): RangeRecord[] {
    return this.#records.records;
  }

  /** Number of candidates of a family so far. */
  count(family: Family): number {
    return this.#builders[family].count;
  }

  /** Returns the value of a country in the candidates. */
  valueOf(code: string): number {
    return this.#records.indexOf({ kind: 'country', code });
  }

  /**
   * Adds the rows of a source.
   *
   * @param space in which its rows count
   * @returns the number of rows outside, which are not added
   */
  addSource(source: IngestedSource, layer: number, space: OwnerSpace): number {
    const resolved = source.codes.map((code) => resolveCountry(this.#reference, code));
    /** The record of each of the source's codes; undefined if the code names no country. */
    const recordOf = resolved.map((country) => (typeof country === 'object' ? this.valueOf(country.code) : undefined));
    const unknown = this.#records.indexOf({ kind: 'none', reason: 'unknown' });
    const rowsOf = new Uint32Array(source.codes.length);
    let outside = 0;
    for (const ranges of [source.v4, source.v6]) {
      const builder = this.#builders[ranges.family];
      for (let i = 0; i < ranges.count; i++) {
        if (!space.contains(ranges.family, ranges.first, ranges.last, i)) {
          outside++;
          continue;
        }
        const code = ranges.value[i]!;
        rowsOf[code] = rowsOf[code]! + 1;
        const record = recordOf[code];
        if (record === undefined) builder.add(ranges.first, ranges.last, i, unknown, LAYERS.noCountry);
        else builder.addExceptEmbedded(ranges.first, ranges.last, i, record, layer);
      }
    }
    source.codes.forEach((code, index) => {
      if (resolved[index] !== 'unknown') return;
      this.unknownCodes.set(code, (this.unknownCodes.get(code) ?? 0) + rowsOf[index]!);
    });
    return outside;
  }

  /** Adds the space that no registry has delegated. */
  addUndelegated({ family, count, first, last }: BoundedRanges): void {
    const builder = this.#builders[family];
    for (let i = 0; i < count; i++) builder.addExceptEmbedded(first, last, i, UNALLOCATED, LAYERS.undelegated);
  }

  /** Adds anycast space. */
  addAnycast({ family, count, first, last }: Pick<BoundedRanges, 'family' | 'count' | 'first' | 'last'>): void {
    for (let i = 0; i < count; i++) this.#builders[family].add(first, last, i, UNALLOCATED, LAYERS.anycast);
  }

  addSpecial({ family, first, last, result, layer }: SpecialRange): void {
    const record = this.#records.indexOf(result);
    const builder = this.#builders[family];
    if (layer === 'under') builder.add(first, last, 0, record, LAYERS.embedded);
    else builder.addExceptEmbedded(first, last, 0, record, LAYERS.special);
  }

  addOverride({ family, first, last, result }: Override): void {
    this.#builders[family].add(first, last, 0, this.#records.indexOf(result), LAYERS.overrides);
  }

  /** Returns the candidates of a family. */
  candidates(family: Family): CandidateRanges {
    return this.#builders[family].finish();
  }

  /**
   * Decides at one address, as merging does.
   *
   * @param words the address
   * @param voters in the order of the sources; none to merge by priority
   */
  decideAt(family: Family, words: Uint32Array, voters: readonly Voter[]): Decision {
    const candidates = this.candidates(family);
    const { first, last, value, layer, count } = candidates;
    const size = words.length;
    const covering: number[] = [];
    const active = new CoveringCandidates(candidates, layersOf(voters));
    for (let i = 0; i < count; i++) {
      const [from, to] = [first, last].map((column) => column.subarray(i * size, (i + 1) * size));
      if (!rangeContains(from!, to!, words)) continue;
      covering.push(i);
      active.add(i);
    }
    active.moveTo(words);
    const counter = new VoteCounter(candidates, voters);
    const winner = counter.decide(active);
    const isAssigned = winner >= 0 && layer[winner] !== LAYERS.undelegated;
    return {
      winner,
      result: this.records[isAssigned ? value[winner]! : UNALLOCATED]!,
      covering,
      vote: counter.isByVote ? { candidates: active.rows, counter } : undefined,
    };
  }
}

/** Returns what a source says to be anycast space. */
export function anycastOf({ listed }: IngestedSource): BoundedRanges[] {
  return [listed?.v4, listed?.v6].flatMap((ranges) => {
    if (ranges === undefined) return [];
    const builder = new RangeBuilder(ranges.family, 0);
    for (let i = 0; i < ranges.count; i++) if (ranges.value[i] === 1) builder.add(ranges.first, ranges.last, i, 1);
    return [builder.finish()];
  });
}

/** Returns the space that no registry among the sources has delegated. */
function undelegatedIn(sources: readonly IngestedSource[], evidence: MergeInput['evidence'], family: Family) {
  const registries = sources.filter((_source, position) => evidence?.[position]?.kind === 'registry');
  return undelegatedSpace(
    registries.map((source) => source[`v${family}`]),
    family,
  );
}

/** Merges the sources by priority or by evidence, with the special-purpose ranges and overrides above them. */
export function mergeSources(input: MergeInput): MergeResult {
  const { sources, reference, countries, overrides, evidence, owned = [] } = input;
  const merger = new RangeMerger(reference, countries, sources);
  const withoutSpace: string[] = [];
  const outsideSpace = new Map<string, number>();
  for (const family of [4, 6] as const) merger.addUndelegated(undelegatedIn(sources, evidence, family));
  if (evidence !== undefined) {
    for (const block of reference.anycast) merger.addAnycast({ ...block, count: 1 });
    for (const source of sources) for (const ranges of anycastOf(source)) merger.addAnycast(ranges);
  }
  const count = sources.length;
  for (let position = 0; position < count; position++) {
    const source = sources.shift()!;
    const space = OwnerSpace.of(evidence?.[position] ?? { space: [], asns: [] }, owned);
    const outside = merger.addSource(source, sourceLayer(position, count), space);
    if (space.isEmpty) withoutSpace.push(source.id);
    else if (outside > 0) outsideSpace.set(source.id, outside);
  }
  for (const range of reference.special) merger.addSpecial(range);
  for (const override of overrides) merger.addOverride(override);
  const merge = (candidates: CandidateRanges): MergedRanges =>
    evidence === undefined ? mergeRanges(candidates) : voteRanges(candidates, votersOf(evidence));
  return {
    v4: merge(merger.candidates(4)),
    v6: merge(merger.candidates(6)),
    records: merger.records,
    candidates: merger.count(4) + merger.count(6),
    withoutSpace,
    outsideSpace,
    unknownCodes: merger.unknownCodes,
  };
}
