/** Compares the number of records in a registry's file with the number in its version line, to find a truncated file. */
import { AtlasError } from '../../src/errors.js';
import { printable } from './rejects.js';

/** Version numbers in the first line of a file in the RIR statistics exchange format. */
export const RIR_VERSIONS = ['1', '2', '2.1', '2.2', '2.3'];

/**
 * Counts the records of one file in the RIR statistics exchange format. Its first line, apart from comments, is
 * version|registry|serial|records|startdate|enddate|UTCoffset. The number of records includes those of AS numbers and of
 * space that is not delegated, but not this line and the summary lines. Whole files of AFRINIC, APNIC and LACNIC from 2016
 * to 2026 have exactly that number; in files of ARIN and the RIPE NCC, it is the sum of the summary lines.
 */
export class RecordCount {
  #announced: number | undefined;
  #versionLine = '';
  #records = 0;

  /** @param row of the file, without comments and blank lines */
  add(row: readonly string[]): void {
    if (RIR_VERSIONS.includes(row[0]!)) {
      // A file that joins those of several registries has several version lines.
      if (/^\d{1,9}$/.test(row[3] ?? '')) this.#announced = (this.#announced ?? 0) + Number(row[3]);
      this.#versionLine = row.join('|');
    } else if (row[5] !== 'summary') this.#records++;
  }

  /**
   * Checks the number after the last row.
   *
   * @throws AtlasError E_BAD_INPUT if there are fewer records than the version line says. More are accepted: someone may
   *   have added records of their own
   */
  check(file: string): void {
    if (this.#announced === undefined || this.#records >= this.#announced) return;
    throw new AtlasError(
      'E_BAD_INPUT',
      `${file}: the version line ${printable(this.#versionLine)} says that there are ${this.#announced} records, ` +
        `but there are ${this.#records}: the file is truncated`,
    );
  }
}
