/**
 * The stage `normalize`: what the sources claim becomes one list of ranges a family.
 *
 * Everything is a claim in a layer; the layers, from the lowest:
 *
 * 0. `no country`: a source covers the range but names no country; only so that the answer can be `unknown` instead of
 *    `unallocated`.
 * 1. `embedded`: the prefixes whose addresses carry an IPv4 address that answers.
 * 2. the sources, the last listed first.
 * 3. IANA's special-purpose registries.
 * 4. the user's overrides.
 */

import type { Family } from '../../src/address/parse.js';
import { compareAddresses, nextAddress, previousAddress } from '../../src/address/words.js';
import type { Assignment } from '../../src/country/assignment.js';
import { type Country, resolveCountry } from '../../src/country/country.js';
import { type MergedRanges, RangeBuilder } from '../../src/range/columns.js';
import { mergeRanges } from '../../src/range/merge.js';
import { type RangeRecord, recordKey } from '../../src/rangefile/layout.js';
import type { Override } from '../config/overrides.js';
import type { Reference, SpecialRange } from '../config/reference.js';
import type { IngestedSource, Stage } from '../stage.js';

/** The layers that are not sources. Sources take the numbers between, {@link sourceLayer}. */
export const LAYERS = { noCountry: 0, embedded: 1, special: 30, overrides: 31 } as const;

/** The layer of a source, by its place in the list of priority: the first answers first. */
export function sourceLayer(place: number, sources: number): number {
  return LAYERS.embedded + sources - place;
}

export interface NormalizeInput {
  /** In order of priority, the first answering first. */
  sources: IngestedSource[];
  reference: Reference;
  /** As of the build's date, by code. */
  countries: ReadonlyMap<string, Country>;
  overrides: readonly Override[];
}

export interface Normalized {
  v4: MergedRanges;
  v6: MergedRanges;
  /** By the partitions' values. */
  records: RangeRecord[];
}

/** Numbers records; a partition's value is such a number. Value 0 is what holds where nothing is claimed. */
class RecordRegistry {
  readonly records: RangeRecord[] = [];
  readonly #countries: ReadonlyMap<string, Country>;
  readonly #numbers = new Map<string, number>();

  constructor(countries: ReadonlyMap<string, Country>) {
    this.#countries = countries;
    this.number({ kind: 'none', reason: 'unallocated' });
  }

  number(answer: Assignment): number {
    const record: RangeRecord =
      answer.kind === 'country' ? { kind: 'country', ...this.#countries.get(answer.code)! } : answer;
    const key = recordKey(record);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.records.length);
    return this.records.push(record) - 1;
  }
}

function before(address: Uint32Array): Uint32Array {
  const result = new Uint32Array(address.length);
  previousAddress(address, 0, address.length, result);
  return result;
}

function after(address: Uint32Array): Uint32Array {
  const result = new Uint32Array(address.length);
  nextAddress(address, 0, address.length, result);
  return result;
}

/** Collects one family's candidate ranges. */
export class CandidateBuilder extends RangeBuilder {
  readonly #embedded: SpecialRange[];

  /** @param embedded the embedded prefixes, which {@link addAround} cuts out of wider candidates */
  constructor(family: Family, capacity: number, embedded: SpecialRange[]) {
    super(family, capacity);
    this.#embedded = embedded.filter((range) => range.family === family);
  }

  /**
   * Adds a candidate, but cuts out of it each embedded prefix that it merely covers: a range inside such a prefix says
   * something of those addresses, a wide one that happens to span it does not.
   */
  addAround(first: Uint32Array, last: Uint32Array, index: number, value: number, layer: number): void {
    const { words } = this;
    for (const prefix of this.#embedded) {
      const endsBefore = compareAddresses(last, index, prefix.first, 0, words) < 0;
      const beginsBehind = compareAddresses(first, index, prefix.last, 0, words) > 0;
      if (endsBefore || beginsBehind) continue;
      const beginsBefore = compareAddresses(first, index, prefix.first, 0, words) < 0;
      const endsBehind = compareAddresses(last, index, prefix.last, 0, words) > 0;
      if (!beginsBefore && !endsBehind) continue; // inside
      const at = index * words;
      if (beginsBefore) {
        this.addAround(first.slice(at, at + words), before(prefix.first), 0, value, layer);
      }
      if (endsBehind) this.addAround(after(prefix.last), last.slice(at, at + words), 0, value, layer);
      return;
    }
    this.add(first, last, index, value, layer);
  }
}

/** Lays the overlay's input together for both families. */
class Layering {
  /** Country codes that no table knows, each with its rows. */
  readonly unknownCodes = new Map<string, number>();
  readonly #reference: Reference;
  readonly #registry: RecordRegistry;
  readonly #builders: Record<Family, CandidateBuilder>;

  constructor({ sources, reference, countries }: NormalizeInput) {
    this.#reference = reference;
    this.#registry = new RecordRegistry(countries);
    const embedded = reference.special.filter(({ answer }) => answer.kind === 'embedded');
    const rows = (family: 'v4' | 'v6'): number => sources.reduce((sum, source) => sum + source[family].count, 0);
    this.#builders = {
      4: new CandidateBuilder(4, rows('v4') + 64, embedded),
      6: new CandidateBuilder(6, rows('v6') + 64, embedded),
    };
  }

  addSource(source: IngestedSource, layer: number): void {
    const resolved = source.codes.map((code) => resolveCountry(this.#reference, code));
    /** The value of each of the source's codes, or undefined where it names no country. */
    const values = resolved.map((country) =>
      typeof country === 'object' ? this.#registry.number({ kind: 'country', code: country.code }) : undefined,
    );
    const unknown = this.#registry.number({ kind: 'none', reason: 'unknown' });
    const rowsOf = new Uint32Array(source.codes.length);
    for (const rows of [source.v4, source.v6]) {
      const builder = this.#builders[rows.family];
      for (let i = 0; i < rows.count; i++) {
        const code = rows.value[i]!;
        rowsOf[code] = rowsOf[code]! + 1;
        const value = values[code];
        if (value === undefined) builder.add(rows.first, rows.last, i, unknown, LAYERS.noCountry);
        else builder.addAround(rows.first, rows.last, i, value, layer);
      }
    }
    source.codes.forEach((code, index) => {
      if (resolved[index] !== 'unknown') return;
      this.unknownCodes.set(code, (this.unknownCodes.get(code) ?? 0) + rowsOf[index]!);
    });
  }

  addSpecial({ family, first, last, answer, layer }: SpecialRange): void {
    const value = this.#registry.number(answer);
    const builder = this.#builders[family];
    if (layer === 'under') builder.add(first, last, 0, value, LAYERS.embedded);
    else builder.addAround(first, last, 0, value, LAYERS.special);
  }

  addOverride({ family, first, last, answer }: Override): void {
    this.#builders[family].add(first, last, 0, this.#registry.number(answer), LAYERS.overrides);
  }

  merge(): Normalized & { v4Claims: number; v6Claims: number } {
    const v4 = this.#builders[4].finish();
    const v6 = this.#builders[6].finish();
    return {
      v4: mergeRanges(v4),
      v6: mergeRanges(v6),
      records: this.#registry.records,
      v4Claims: v4.count,
      v6Claims: v6.count,
    };
  }
}

/**
 * Normalizes ingested sources.
 *
 * @returns the partition of each family, and how the claims fared
 */
export function normalize(input: NormalizeInput) {
  const layering = new Layering(input);
  input.sources.forEach((source, place) => {
    layering.addSource(source, sourceLayer(place, input.sources.length));
  });
  for (const range of input.reference.special) layering.addSpecial(range);
  for (const override of input.overrides) layering.addOverride(override);
  return { ...layering.merge(), unknownCodes: layering.unknownCodes };
}

export const normalizeStage: Stage<NormalizeInput, Normalized> = {
  name: 'normalize',
  run: async (input, { note }) => {
    const { v4, v6, records, v4Claims, v6Claims, unknownCodes } = normalize(input);
    for (const [code, rows] of unknownCodes) {
      note(`the code ${JSON.stringify(code)} (${rows} rows) names no country known here; counted as no answer`);
    }
    return {
      output: { v4, v6, records },
      counts: {
        claims: v4Claims + v6Claims,
        ipv4_ranges: v4.count,
        ipv6_ranges: v6.count,
        duplicates: v4.duplicates + v6.duplicates,
        conflicts: v4.conflicts + v6.conflicts,
        unknown_codes: unknownCodes.size,
      },
    };
  },
};
