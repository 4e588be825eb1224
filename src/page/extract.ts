/** Finds the addresses in text of any kind: lists, CSV, logs. The text comes in pieces, so that a browser stays responsive. */
import { parseAddress } from '../address/parse.js';

/** Longest part of a line that is examined at a time, in characters: bounds the time and the memory for one call. */
const MAX_PART = 65_536;

/** Characters that are kept of a text that is not an address. */
const MAX_KEPT_TEXT = 100;

/** What a line has: an address, or, if the line is a single word, a text that is not one. */
export interface Entry {
  /** Number of the line, from 1. */
  line: number;
  text: string;
  valid: boolean;
}

/** Anything but white space and the usual separators of lists. */
const SINGLE_WORD = /^[^\s,;]+$/;
const TOKENS = /[\w.:%]+/g;
const IPV4_WITH_PORT = /^(\d+\.\d+\.\d+\.\d+):\d+$/;

const words = new Uint32Array(4);

/** Returns the address in a token: punctuation at its end and a port after an IPv4 address do not belong to it. */
function addressIn(token: string): string | undefined {
  if (token.length > MAX_KEPT_TEXT || !/[.:]/.test(token)) return undefined;
  if (parseAddress(token, words) !== 0) return token;
  const trimmed = token.replace(/[.:]+$/, '');
  const bare = IPV4_WITH_PORT.exec(trimmed)?.[1] ?? trimmed;
  return bare !== token && parseAddress(bare, words) !== 0 ? bare : undefined;
}

export class AddressReader {
  readonly #limit: number;
  /** Text after the last newline that is not examined yet. */
  #rest = '';
  /** Parts of the current line were examined already. */
  #lineIsLong = false;
  #lineHasAddress = false;
  #line = 1;
  #found = 0;
  #withoutAddress = 0;

  /** @param limit entries to find at most; the rest of the text is ignored */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether the limit is reached. */
  get isFull(): boolean {
    return this.#found >= this.#limit;
  }

  /** Lines that were read so far. */
  get lines(): number {
    return this.#line - 1;
  }

  /** Lines without an address that have more than one word, such as the header of a table. */
  get linesWithoutAddress(): number {
    return this.#withoutAddress;
  }

  /**
   * Reads the next piece of the text.
   *
   * @param piece up to some ten thousand characters
   * @returns what was found in the lines that are complete
   */
  read(piece: string): Entry[] {
    const entries: Entry[] = [];
    let start = 0;
    for (let end = piece.indexOf('\n'); end >= 0; end = piece.indexOf('\n', start)) {
      this.#endLine(this.#rest + piece.slice(start, end), entries);
      this.#rest = '';
      start = end + 1;
    }
    this.#rest += piece.slice(start);
    if (this.#rest.length > MAX_PART) this.#examineStart(entries);
    return entries;
  }

  /** Reads the end of the text; returns what was found in the last line. */
  end(): Entry[] {
    const entries: Entry[] = [];
    if (this.#rest !== '') this.#endLine(this.#rest, entries);
    this.#rest = '';
    return entries;
  }

  /** Examines a long line up to its last separator. A token that is longer than all that is kept is not an address. */
  #examineStart(entries: Entry[]): void {
    const cut = /[\w.:%]*$/.exec(this.#rest.slice(-MAX_KEPT_TEXT))![0].length;
    const end = this.#rest.length - cut;
    this.#examine(this.#rest.slice(0, end), entries);
    this.#rest = this.#rest.slice(end);
    this.#lineIsLong = true;
  }

  #endLine(text: string, entries: Entry[]): void {
    this.#examine(text, entries);
    if (!this.#lineHasAddress) {
      const word = text.trim();
      if (this.#lineIsLong || (word !== '' && !SINGLE_WORD.test(word))) this.#withoutAddress++;
      else if (word !== '') this.#add(entries, word.slice(0, MAX_KEPT_TEXT), false);
    }
    this.#line++;
    this.#lineIsLong = false;
    this.#lineHasAddress = false;
  }

  #examine(text: string, entries: Entry[]): void {
    for (const [token] of text.matchAll(TOKENS)) {
      const address = addressIn(token);
      if (address === undefined) continue;
      this.#lineHasAddress = true;
      this.#add(entries, address, true);
    }
  }

  #add(entries: Entry[], text: string, valid: boolean): void {
    if (this.isFull) return;
    this.#found++;
    entries.push({ line: this.#line, text, valid });
  }
}
