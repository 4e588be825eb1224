import type { RangeColumns } from '../src/range/columns.js';

export interface CountryTable {
  inEu: readonly boolean[];
}

export function valueAt(ranges: RangeColumns, words: Uint32Array): number;
export function parsed(text: string): { family: 0 | 4 | 6; words: Uint32Array };
export interface FamilyRanges {
  v4: RangeColumns;
  v6: RangeColumns;
}
export interface Place {
  family: 0 | 4 | 6;
  words: Uint32Array;
  class: string;
  value: number;
}
export type PlaceCounts = Record<string, { right: number; euWrong: number; total: number }>;
export function comparePlaces(ranges: FamilyRanges, places: readonly Place[], countries: CountryTable): PlaceCounts;
export function boundPlaces(
  sources: readonly FamilyRanges[],
  places: readonly Place[],
  countries: CountryTable,
): PlaceCounts;
export function compareRanges(
  ranges: RangeColumns,
  other: RangeColumns,
  delegations: RangeColumns,
  countries: CountryTable,
): { addresses: number; delegations: number; eu: number; everywhere: number };
