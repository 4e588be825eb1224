/** Rejected rows: counted, and the first ones kept with their text and the reason. */
import { type FileHandle, open } from 'node:fs/promises';
import { MAX_CSV_ROW_BYTES, MAX_REJECTS_WRITTEN } from '../../src/limits.js';
import type { RowPosition } from './csv-rows.js';

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
  /** Rejected rows of the current file whose text is not read yet. */
  #withoutText: { reject: Reject; position: RowPosition }[] = [];

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

  /** Adds a row. A row with an unclosed quote contains the rows after it, so it counts once for each of its lines. */
  add(position: Readonly<RowPosition>, reason: string): void {
    this.#total += 1 + position.breaks;
    if (this.rejects.length >= MAX_REJECTS_WRITTEN) return;
    const reject: Reject = { source: this.source, file: this.#file, line: position.line, text: '', reason };
    this.rejects.push(reject);
    this.#withoutText.push({ reject, position: { ...position } });
  }

  /** Adds a range of a file without lines. */
  addRange(line: number, text: string, reason: string): void {
    this.#total++;
    if (this.rejects.length >= MAX_REJECTS_WRITTEN) return;
    this.rejects.push({ source: this.source, file: this.#file, line, text: text.slice(0, MAX_REJECT_TEXT), reason });
  }

  /** Reads the text of the file's rejected rows. Keeping the text while parsing would slow down every good row. */
  async endFile(path: string): Promise<void> {
    const pending = this.#withoutText;
    this.#withoutText = [];
    if (pending.length === 0) return;
    const handle = await open(path);
    try {
      for (const { reject, position } of pending) reject.text = await readRowText(handle, position);
    } finally {
      await handle.close();
    }
  }
}

/**
 * Reads the text of a row, up to MAX_REJECT_TEXT characters.
 *
 * @param handle the file
 * @param position of the row, as `readRows` reported it
 */
export async function readRowText(handle: FileHandle, position: Readonly<RowPosition>): Promise<string> {
  const length = Math.min(position.to - position.from, MAX_CSV_ROW_BYTES);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position.to - length);
  return lastLines(buffer.toString('utf8', 0, bytesRead), position.breaks + 1).slice(0, MAX_REJECT_TEXT);
}

/** Returns the last lines of a text; the lines before them are blank lines and comments. */
function lastLines(text: string, count: number): string {
  const lines = text.replace(/\r?\n$/, '').split('\n');
  return lines.slice(-count).join('\n');
}

/** Returns untrusted text in a form that is safe for a terminal: quoted, short, and printable. */
export function printable(text: string, length = 80): string {
  const short = text.length > length ? `${text.slice(0, length)}…` : text;
  return JSON.stringify(short).replace(/[\p{C}\u2028\u2029]/gu, '?');
}
