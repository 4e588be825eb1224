/** Rows of sources that are checked before a release is published: their ranges as the file has them, and as they were read. */
import { createHash } from 'node:crypto';
import type { Family } from '../../src/address/parse.js';
import { CHECKED_ROWS, MAX_CHECKED_FEED_ROWS } from '../../src/limits.js';
import type { CsvFile } from '../source-formats/csv-file.js';
import type { RangeNotation } from '../source-formats/formats.js';
import type { LocatedRange } from '../source-formats/read-source.js';
import type { FetchedFile } from '../stage.js';
import { numberOf, type PlainRange } from './plain-rules.js';

/** A row, and the range that was read from it. */
export interface SampledRow extends PlainRange {
  file: string;
  /** Where the row can be looked up; undefined in a file without lines. */
  csv: CsvFile | undefined;
  /** Number of the row, or line of the file if there is no `csv`. */
  row: number;
  notation: RangeNotation;
  /** The cells of the range, in the order of `notationColumns`. */
  texts: readonly string[];
  family: Family;
}

/** Returns a row to check; undefined if it has no address text. */
export function sampledRow({ file, written, family, first, last }: LocatedRange): SampledRow | undefined {
  if (written === undefined || 'decimal' in written.notation) return undefined;
  const { csv, row, notation, texts } = written;
  const words = family === 4 ? 1 : 4;
  const ends = { first: numberOf(first, 0, words), last: numberOf(last, 0, words) };
  return { file: file.name, csv, row, notation, texts: texts(), family, ...ends };
}

/** Takes a sample of the rows of one source: as many of each file, each with the same probability. */
export class RowSample {
  /** Rows that are taken of each file, unless it is a geofeed. */
  static rowsOfFile = CHECKED_ROWS;
  readonly rows: SampledRow[] = [];
  /** Names of files that have no address text. */
  readonly withoutText = new Set<string>();
  readonly #seed: string;
  readonly #size: number;
  #file: FetchedFile | undefined;
  #start = 0;
  #seen = 0;
  #state = 0;

  /**
   * @param seed the same seed takes the same rows of the same files
   * @param isFeed whether the source is a geofeed, of which all rows are taken
   */
  constructor(seed: string, isFeed: boolean) {
    this.#seed = seed;
    this.#size = isFeed ? MAX_CHECKED_FEED_ROWS : RowSample.rowsOfFile;
  }

  add(range: LocatedRange): void {
    if (range.file !== this.#file) {
      this.#file = range.file;
      this.#start = this.rows.length;
      this.#seen = 0;
      // Not 0, at which xorshift stays.
      this.#state = createHash('sha256').update(`${this.#seed} ${range.file.sha256}`).digest().readUInt32LE() || 1;
    }
    const place = this.#seen < this.#size ? this.#seen : this.#random(this.#seen + 1);
    this.#seen++;
    if (place >= this.#size) return;
    const row = sampledRow(range);
    if (row === undefined) this.withoutText.add(range.file.name);
    else this.rows[this.#start + place] = row;
  }

  /** Returns the next number of a fixed sequence below a limit (xorshift32, Marsaglia 2003). */
  #random(limit: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % limit;
  }
}
