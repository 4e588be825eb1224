/** Rejected rows: counted, and the first ones kept with their text and the reason. */
import { MAX_REJECTS_WRITTEN } from '../../src/limits.js';
import type { CsvFile } from './csv-file.js';

/** Characters that `rejects.ndjson` keeps of an unreadable row. A good row has about 100. */
export const MAX_REJECT_TEXT = 500;

/** A line of `rejects.ndjson`. */
export interface Reject {
  source: string;
  file: string;
  /** The line that the row ends on, from 1; in a file without lines, the number of the range, from 1. */
  line: number;
  /** The row as written, up to MAX_REJECT_TEXT characters; in a file without lines, its range and content. */
  text: string;
  reason: string;
}

/** The rejected rows of one source. */
export class RejectLog {
  readonly source: string;
  /** The first MAX_REJECTS_WRITTEN rejected rows. */
  readonly rejects: Reject[] = [];
  #total = 0;
  #file = '';
  /** Number of the rejects before those of the file. */
  #before = 0;

  constructor(source: string) {
    this.source = source;
  }

  /** Number of all rejected rows. */
  get total(): number {
    return this.#total;
  }

  /** Sets the file that the next rows come from. */
  beginFile(name: string): void {
    this.#file = name;
    this.#before = this.rejects.length;
  }

  /**
   * Adds a row, or a range of a file without lines.
   *
   * @param line in a CSV file, the number of the row, until {@link locateRows} puts its line and text in place
   * @param breaks line breaks in a row: with an unclosed quote it contains the rows after it, and counts once for each line
   */
  add(line: number, text: string, reason: string, breaks = 0): void {
    this.#total += 1 + breaks;
    if (this.rejects.length >= MAX_REJECTS_WRITTEN) return;
    this.rejects.push({ source: this.source, file: this.#file, line, text: text.slice(0, MAX_REJECT_TEXT), reason });
  }

  /** Looks up the lines and texts of the rejected rows of the file. */
  async locateRows(csv: CsvFile): Promise<void> {
    const rejects = this.rejects.slice(this.#before);
    if (rejects.length === 0) return;
    const locations = await csv.locate(rejects.map(({ line }) => line));
    for (const reject of rejects) {
      const { line, text } = locations.get(reject.line) ?? { line: reject.line, text: '' };
      // A copy, because a part of a text keeps all of it in memory.
      Object.assign(reject, { line, text: Buffer.from(text.slice(0, MAX_REJECT_TEXT)).toString() });
    }
  }
}

/** Returns untrusted text in a form that is safe for a terminal: quoted, short, and printable. */
export function printable(text: string, length = 80): string {
  const short = text.length > length ? `${text.slice(0, length)}…` : text;
  return JSON.stringify(short).replace(/[\p{C}\u2028\u2029]/gu, '?');
}
