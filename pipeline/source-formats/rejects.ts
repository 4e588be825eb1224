/** Rejected rows: counted, and the first ones kept with their text and the reason. */
import { MAX_REJECTS_WRITTEN } from '../../src/limits.js';

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
  }

  /**
   * Adds a row, or a range of a file without lines.
   *
   * @param breaks line breaks in a row: with an unclosed quote it contains the rows after it, and counts once for each line
   */
  add(line: number, text: string, reason: string, breaks = 0): void {
    this.#total += 1 + breaks;
    if (this.rejects.length >= MAX_REJECTS_WRITTEN) return;
    // A copy, because a part of a text keeps all of it in memory.
    const kept = Buffer.from(text.slice(0, MAX_REJECT_TEXT)).toString();
    this.rejects.push({ source: this.source, file: this.#file, line, text: kept, reason });
  }
}

/** Returns untrusted text in a form that is safe for a terminal: quoted, short, and printable. */
export function printable(text: string, length = 80): string {
  const short = text.length > length ? `${text.slice(0, length)}…` : text;
  return JSON.stringify(short).replace(/[\p{C}\u2028\u2029]/gu, '?');
}
