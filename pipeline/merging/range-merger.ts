/** Merges sources, special-purpose ranges and overrides into one list of ranges for each family. */
import type { Family } from '../../src/address/parse.js';
import type { Assignment } from '../../src/country/assignment.js';
import { type Country, resolveCountry } from '../../src/country/country.js';
import type { CandidateRanges, MergedRanges } from '../../src/range/columns.js';
import type { Confirmations } from '../../src/range/confirmation.js';
import { mergeRanges } from '../../src/range/merge.js';
import { countConfirmations, type Voter, voteRanges } from '../../src/range/vote.js';
import { type RangeRecord, recordKey } from '../../src/rangefile/layout.js';
import type { Override } from '../config/overrides.js';
import type { Reference, SpecialRange } from '../config/reference.js';
import type { IngestedSource } from '../stage.js';
import { CandidateBuilder } from './candidate-builder.js';
import { type OwnedRange, OwnerSpace, type SourceEvidence, votersOf } from './evidence.js';
import { LAYERS, sourceLayer } from './layers.js';

export interface MergeInput {
  /** The source with the highest priority first. */
  sources: readonly IngestedSource[];
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
export interface Normalized {
  v4: MergedRanges;
  v6: MergedRanges;
  records: RangeRecord[];
}

/** What merging gives, with its statistics. */
export interface MergeResult extends Normalized {
  /** Number of candidate ranges, both families together. */
  candidates: number;
  /** Ids of the sources whose rows are not used, because no source says which space belongs to the owner. */
  withoutSpace: readonly string[];
  /** Ids of the other sources with rows outside the space of their owner, each with the number of those rows. */
  outsideSpace: ReadonlyMap<string, number>;
  /** Country codes that are in no table, each with the number of its rows. */
  unknownCodes: ReadonlyMap<string, number>;
}

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

class RangeMerger {
  readonly #withoutSpace: string[] = [];
  readonly #outsideSpace = new Map<string, number>();
  readonly #unknownCodes = new Map<string, number>();
  readonly #reference: Reference;
  readonly #records: RecordTable;
  readonly #builders: Record<Family, CandidateBuilder>;

  constructor({ sources, reference, countries }: MergeInput) {
    this.#reference = reference;
    this.#records = new RecordTable(countries);
    const embedded = reference.special.filter(({ result }) => result.kind === 'embedded');
    const capacity = (family: 'v4' | 'v6'): number =>
      sources.reduce((sum, source) => sum + source[family].count, EXTRA_CAPACITY);
    this.#builders = {
      4: new CandidateBuilder(4, capacity('v4'), embedded),
      6: new CandidateBuilder(6, capacity('v6'), embedded),
    };
  }

  addSource(source: IngestedSource, layer: number, space: OwnerSpace): void {
    const resolved = source.codes.map((code) => resolveCountry(this.#reference, code));
    /** The record of each of the source's codes; undefined if the code names no country. */
    const recordOf = resolved.map((country) =>
      typeof country === 'object' ? this.#records.indexOf({ kind: 'country', code: country.code }) : undefined,
    );
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
        else builder.addAround(ranges.first, ranges.last, i, record, layer);
      }
    }
    if (space.isEmpty) this.#withoutSpace.push(source.id);
    else if (outside > 0) this.#outsideSpace.set(source.id, outside);
    source.codes.forEach((code, index) => {
      if (resolved[index] !== 'unknown') return;
      this.#unknownCodes.set(code, (this.#unknownCodes.get(code) ?? 0) + rowsOf[index]!);
    });
  }

  addSpecial({ family, first, last, result, layer }: SpecialRange): void {
    const record = this.#records.indexOf(result);
    const builder = this.#builders[family];
    if (layer === 'under') builder.add(first, last, 0, record, LAYERS.embedded);
    else builder.addAround(first, last, 0, record, LAYERS.special);
  }

  addOverride({ family, first, last, result }: Override): void {
    this.#builders[family].add(first, last, 0, this.#records.indexOf(result), LAYERS.overrides);
  }

  /** See {@link countSourceConfirmations}. */
  countConfirmations(voters: readonly Voter[]): SourceConfirmations {
    return {
      confirmations: countConfirmations(this.#builders[4].finish(), voters),
      countryValue: (code) => this.#records.indexOf({ kind: 'country', code }),
    };
  }

  /** @param voters in the order of the sources; undefined to merge by priority */
  merge(voters: readonly Voter[] | undefined): MergeResult {
    const merge = (candidates: CandidateRanges): MergedRanges =>
      voters === undefined ? mergeRanges(candidates) : voteRanges(candidates, voters);
    const v4 = this.#builders[4].finish();
    const v6 = this.#builders[6].finish();
    return {
      v4: merge(v4),
      v6: merge(v6),
      records: this.#records.records,
      candidates: v4.count + v6.count,
      withoutSpace: this.#withoutSpace,
      outsideSpace: this.#outsideSpace,
      unknownCodes: this.#unknownCodes,
    };
  }
}

/** Returns the merger with the rows of the sources. */
function withSources(input: MergeInput): RangeMerger {
  const { sources, evidence, owned = [] } = input;
  const merger = new RangeMerger(input);
  for (const [position, source] of sources.entries()) {
    const space = OwnerSpace.of(evidence?.[position] ?? { space: [], asns: [] }, owned);
    merger.addSource(source, sourceLayer(position, sources.length), space);
  }
  return merger;
}

/** Merges the sources by priority or by evidence, with the special-purpose ranges and overrides above them. */
export function mergeSources(input: MergeInput): MergeResult {
  const merger = withSources(input);
  for (const range of input.reference.special) merger.addSpecial(range);
  for (const override of input.overrides) merger.addOverride(override);
  return merger.merge(input.evidence && votersOf(input.evidence));
}

/** How often the IPv4 locations of a build are confirmed. */
export interface SourceConfirmations {
  /** Undefined if the rule about them does not apply to the sources. */
  confirmations: Confirmations | undefined;
  /** Returns the value of a country code in `confirmations`. */
  countryValue: (code: string) => number;
}

/** Counts how often the IPv4 locations of the sources are confirmed, as merging them by evidence does. */
export function countSourceConfirmations(
  input: MergeInput & { evidence: readonly SourceEvidence[] },
): SourceConfirmations {
  return withSources(input).countConfirmations(votersOf(input.evidence));
}
