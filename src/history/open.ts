/** Opens a database as the library does: a release, or the answers of a past day. */
import { isDate } from '../country/country.js';
import { BinaryEngine } from '../database/binary-engine.js';
import { type Database, type OpenOptions, openDatabase as openRelease } from '../database/database.js';
import { checkFields, type FieldLookup, type FieldSources, fieldLookup, type ResultField } from '../database/fields.js';
import { Lookups } from '../database/lookups.js';
import { dataPlace } from '../database/origin.js';
import { misuse } from '../errors.js';
import { withNames } from '../rangefile/names.js';
import type { RangeFile } from '../rangefile/reader.js';
import { partitionAt, rangesAt } from './day.js';

export interface OpenPastOptions {
  /** A UTC day, `YYYY-MM-DD`. */
  at: string;
  /** The language of the countries' names, as in `openDatabase`. */
  lang?: string | undefined;
}

/** The answers of a day. */
export class PastDatabase extends Lookups implements Disposable {
  /** The day that was asked for, `YYYY-MM-DD`. */
  readonly day: string;
  /** The day of the publication or import whose answers they are. */
  readonly releaseDate: string;
  readonly #dataDir: string;
  readonly #file: RangeFile;

  constructor(dataDir: string, day: string, lang?: string) {
    if (!isDate(day)) throw misuse(`at ${JSON.stringify(day)} is not a date; write it as 2026-01-31`);
    const { file: english, date } = rangesAt(dataDir, day);
    const file = withNames(english, lang);
    super(new BinaryEngine(file));
    this.day = day;
    this.releaseDate = date;
    this.#dataDir = dataDir;
    this.#file = file;
  }

  /**
   * Prepares lookups of chosen fields, as `Database.fields` does.
   *
   * @throws AtlasError E_USAGE for names that are not those of fields, and for the confidence, which history does not have;
   *   E_DAMAGED if the networks of the day are damaged or lost
   */
  fields(fields: readonly ResultField[]): FieldLookup {
    const sources: FieldSources = {
      file: this.#file,
      open: (partition) => partitionAt(this.#dataDir, this.day, partition),
    };
    return fieldLookup(checkFields(fields, [], 'fields'), sources);
  }

  /** Does nothing: the answers are in memory. */
  close(): void {}

  [Symbol.dispose](): void {}
}

/**
 * Opens the answers of a past day, see docs/history.md.
 *
 * @param dir a data directory
 * @throws AtlasError E_USAGE for a day that is not kept; it names the days that are. E_DAMAGED if an entry is damaged
 */
export function openDatabase(dir: string | undefined, options: OpenPastOptions): PastDatabase;
/** As `openDatabase` of ../database/database.ts. */
export function openDatabase(dir?: string, options?: OpenOptions): Database;
export function openDatabase(dir?: string, options: OpenOptions | OpenPastOptions = {}): Database | PastDatabase {
  return 'at' in options
    ? new PastDatabase(dataPlace(dir).dataDir, options.at, options.lang)
    : openRelease(dir, options as OpenOptions);
}
