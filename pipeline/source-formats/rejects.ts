/** Rows that could not be read: counted, and kept with their text and the reason. */
import { type FileHandle, open } from 'node:fs/promises';
import { MAX_CSV_ROW_BYTES, MAX_REJECT_TEXT, MAX_REJECTS_WRITTEN } from '../../src/limits.js';
import type { RowPlace } from './csv-rows.js';

/** A line of `rejects.ndjson`. */
export interface Reject {
  source: string;
  file: string;
  /** The line the row ends in, from 1; in a file without lines, how many ranges come before it, and 1. */
  line: number;
  /** The row as it stands in the file, up to MAX_REJECT_TEXT characters; in a file without lines, its range and content. */
  text: string;
  reason: string;
}

/** The unreadable rows of one source. */
export class RejectLog {
  readonly source: string;
  /** The first MAX_REJECTS_WRITTEN of them. */
  readonly rejects: Reject[] = [];
  #total = 0;
  #file = '';
  /** Rows of the current file whose text is still to be fetched. */
  #places: { reject: Reject; place: RowPlace }[] = [];

  constructor(source: string) {
    this.source = source;
  }

  /** Rows that could not be read, all of them. */
  get total(): number {
    return this.#total;
  }

  /** Names the file that the next rows come from. */
  beginFile(name: string): void {
    this.#file = name;
  }

  /** Notes a row. One that swallowed others, behind a quote that was not closed, counts as many as its lines. */
  add(place: Readonly<RowPlace>, reason: string): void {
    this.#total += 1 + place.breaks;
    if (this.rejects.length >= MAX_REJECTS_WRITTEN) return;
    const reject: Reject = { source: this.source, file: this.#file, line: place.line, text: '', reason };
    this.rejects.push(reject);
    this.#places.push({ reject, place: { ...place } });
  }

  /** Notes a range of a file without lines. */
  addRange(line: number, text: string, reason: string): void {
    this.#total++;
    if (this.rejects.length >= MAX_REJECTS_WRITTEN) return;
    this.rejects.push({ source: this.source, file: this.#file, line, text: text.slice(0, MAX_REJECT_TEXT), reason });
  }

  /** Fetches the text of the file's rows. It is not kept while reading, which would slow down every good row. */
  async endFile(path: string): Promise<void> {
    const places = this.#places;
    this.#places = [];
    if (places.length === 0) return;
    const handle = await open(path);
    try {
      for (const { reject, place } of places) reject.text = await readRowText(handle, place);
    } finally {
      await handle.close();
    }
  }
}

/**
 * The text of a row as it stands in its file, up to MAX_REJECT_TEXT characters.
 *
 * @param handle the file
 * @param place of the row, as it was read
 */
export async function readRowText(handle: FileHandle, place: Readonly<RowPlace>): Promise<string> {
  const length = Math.min(place.to - place.from, MAX_CSV_ROW_BYTES);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, place.to - length);
  return lastLines(buffer.toString('utf8', 0, bytesRead), place.breaks + 1).slice(0, MAX_REJECT_TEXT);
}

/** The last lines of a text: those before are blank lines and comments in front of the row. */
function lastLines(text: string, count: number): string {
  const lines = text.replace(/\r?\n$/, '').split('\n');
  return lines.slice(-count).join('\n');
}

/** Text from outside, fit for a message on a terminal: quoted, short, nothing unprintable. */
export function printable(text: string, length = 80): string {
  const short = text.length > length ? `${text.slice(0, length)}…` : text;
  return JSON.stringify(short).replace(/[\p{C}\u2028\u2029]/gu, '?');
}
