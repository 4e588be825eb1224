/** The countries of a release in the compact form. See FORMAT.md. */
import type { Family } from '../address/parse.js';
import { MAX_RECORDS, type RangeRecord } from '../rangefile/layout.js';
import { COUNTRIES } from '../rangefile/partitions.js';
import { Container } from './container.js';
import type { DecodedPartition } from './partition.js';
import { decodeRanges, decodeRecords, decodeText } from './records.js';

/** What a compact form says about the release that it was made of: the section `about`. */
export interface About {
  /** Id of the release. */
  release: string;
  /** Date of the EU membership, `YYYY-MM-DD`. */
  as_of: string;
  /** Date of the oldest source with a substantial share of the addresses, `YYYY-MM-DD`; missing if nothing tells it. */
  data_date?: string;
  /** The licenses of the sources, and whom they want credited, each once. */
  licenses: string[];
  attribution: string[];
}

/**
 * Decodes the section `about`.
 *
 * @throws AtlasError E_DAMAGED if it is not JSON
 */
export function decodeAbout(container: Container): unknown {
  try {
    return JSON.parse(decodeText(container, 'about'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw container.damaged('section about is not JSON');
  }
}

/** Returns the section `about`, with its name. */
export function aboutSection(about: About): [name: string, bytes: Uint8Array] {
  return ['about', new TextEncoder().encode(JSON.stringify(about))];
}

const DATE = /^\d{4}-\d\d-\d\d$/;

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((element) => typeof element === 'string');
}

function isAbout(value: unknown): value is About {
  if (typeof value !== 'object' || value === null) return false;
  const { release, as_of, data_date, licenses, attribution } = value as Record<keyof About, unknown>;
  return (
    typeof release === 'string' &&
    [as_of, data_date ?? as_of].every((date) => typeof date === 'string' && DATE.test(date)) &&
    isTextList(licenses) &&
    isTextList(attribution)
  );
}

/**
 * Returns the section `about`.
 *
 * @throws AtlasError E_DAMAGED if it does not describe a release
 */
export function readAbout(container: Container): About {
  const about = decodeAbout(container);
  if (!isAbout(about)) throw container.damaged('section about does not describe a release');
  return about;
}

/** The countries of an opened compact form. */
export class CompactCountries {
  readonly container: Container;
  readonly about: About;
  /** By record number, in the order of the range file. */
  readonly records: readonly RangeRecord[];
  readonly #name: string;

  /**
   * Opens a compact form.
   *
   * @param bytes the whole file, not compressed
   * @param name of the file, for messages
   * @throws AtlasError E_DAMAGED if it is not as FORMAT.md says. Ranges are checked when they are read
   */
  constructor(bytes: Uint8Array, name: string) {
    this.#name = name;
    this.container = new Container(bytes, name);
    this.about = readAbout(this.container);
    this.records = decodeRecords(this.container, COUNTRIES);
    const { length } = this.records;
    if (length === 0 || length > MAX_RECORDS) throw this.container.damaged(`${length} records`);
  }

  /** Decodes the ranges of one family. @param isForSearch as for {@link decodePartition} */
  ranges(family: Family, isForSearch = false): DecodedPartition<Uint16Array> {
    const ranges = decodeRanges(this.container, COUNTRIES, family, this.records.length, this.#name, isForSearch);
    return ranges as DecodedPartition<Uint16Array>;
  }
}
