/** Finds the addresses of a batch line by line. The text comes in pieces, so that a browser stays responsive. */
import { parseAddress } from '../address/parse.js';
import { findAddresses } from '../address/text.js';
import { PageError } from './problems.js';

/** Longest line or JSON document, in characters: browsers have a limit for texts of about twice as many. */
const MAX_LENGTH = 250_000_000;

/** Characters that are kept of a text that is not an address. */
const MAX_KEPT_TEXT = 100;

/** What a line has: an address, or, if the line is a single word, a text that is not one. */
export interface Entry {
  /** Number of the line, from 1. */
  line: number;
  text: string;
  valid: boolean;
}

/** Reads the records of an input whose fields are known. */
export interface RecordReader {
  /** Returns the addresses at the fields of a line; of the document, if the input is one. */
  read: (line: string) => string[];
  isDocument: boolean;
}

/** Anything but white space and the usual separators of lists, unless it is very long. */
const SINGLE_WORD = /^[^\s,;]{1,65536}$/;

const words = new Uint32Array(4);

export class AddressReader {
  readonly #limit: number;
  readonly #records: RecordReader | undefined;
  /** Text after the last newline. */
  #rest = '';
  #found = 0;
  /** Lines that were read so far. */
  lines = 0;
  /** Lines without an address that have more than one word, such as the header of a table. */
  linesWithoutAddress = 0;

  /**
   * @param limit entries to find at most; the rest of the text is ignored
   * @param records undefined if all addresses count
   */
  constructor(limit: number, records?: RecordReader) {
    this.#limit = limit;
    this.#records = records;
  }

  /** Whether the limit is reached. */
  get isFull(): boolean {
    return this.#found >= this.#limit;
  }

  /**
   * Reads the next piece of the text.
   *
   * @param piece up to some ten thousand characters
   * @returns what was found in the lines that are complete
   * @throws PageError for a line that is too long
   */
  read(piece: string): Entry[] {
    const entries: Entry[] = [];
    const lines = this.#records?.isDocument === true ? [piece] : piece.split('\n');
    const rest = lines.pop()!;
    for (const line of lines) {
      this.#endLine(this.#rest + line, entries);
      this.#rest = '';
    }
    this.#rest += rest;
    if (this.#rest.length > MAX_LENGTH) throw new PageError('A line of this text is too long.');
    return entries;
  }

  /** Reads the end of the text; returns what was found in the last line. */
  end(): Entry[] {
    const entries: Entry[] = [];
    if (this.#rest !== '') this.#endLine(this.#rest, entries);
    return entries;
  }

  #endLine(text: string, entries: Entry[]): void {
    this.lines++;
    const addresses = this.#records?.read(text.replace(/\r$/, '')) ?? findAddresses(text).map(({ address }) => address);
    for (const address of addresses) this.#add(entries, address, true);
    const word = addresses.length > 0 ? '' : text.trim();
    if (word === '') return;
    if (this.#records !== undefined || !SINGLE_WORD.test(word)) this.linesWithoutAddress++;
    else this.#add(entries, word.slice(0, MAX_KEPT_TEXT), parseAddress(word, words) !== 0);
  }

  #add(entries: Entry[], text: string, valid: boolean): void {
    if (this.isFull) return;
    this.#found++;
    entries.push({ line: this.lines, text, valid });
  }
}
