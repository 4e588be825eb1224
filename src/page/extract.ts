/**
 * Finds the addresses in text of any kind: lists, CSV, logs. The rules are those of `ipatlas enrich --format text`; see text.ts of the
 * kernel. The text comes in pieces, so that a browser stays responsive.
 */
import { parseAddress } from '../address/parse.js';
import { MAX_LINE_BYTES } from '../limits.js';
import { InputError } from './input.js';

/** Longest part of a line that is examined at a time, in characters: bounds the time and the memory for one call. */
const MAX_PART = 65_536;

/** Longest JSON document, in characters: browsers have a limit for texts of about twice as many. */
const MAX_DOCUMENT = 250_000_000;

/** Characters that are kept of a text that is not an address, and of a word at the end of a part. */
const MAX_KEPT_TEXT = 100;

/** What a line has: an address, or, if the line is a single word, a text that is not one. */
export interface Entry {
  /** Number of the line, from 1. */
  line: number;
  text: string;
  valid: boolean;
}

/** Reads the records of a log. */
export interface LogReader {
  /** Returns the addresses at the fields of a line; of the document, if the log is one. */
  read: (line: string) => string[];
  isDocument: boolean;
}

/** Anything but white space and the usual separators of lists. */
const SINGLE_WORD = /^[^\s,;]+$/;
/** What words are made of, by character code. */
const IN_WORD = new Uint8Array(65_536);
for (const character of '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.:-')
  IN_WORD[character.charCodeAt(0)] = 1;
const DOT = 46;
const COLON = 58;
const SHORTEST_IPV4 = 7;
/** Dots of an IPv4 address; colons of an IPv6 address that has neither dots nor two in a row. */
const IPV4_DOTS = 3;
const IPV6_COLONS = 7;

/** Punctuation at the end of a word. */
const PUNCTUATION = /(?<=[^:]):$/;
/** A port after a colon; or after a dot, where one digit could be the end of a version. */
const PORT = /(?::\d{1,5}|\.\d{2,5})$/;
/** A name before an address, with its colon: it has a letter that no address has, or is empty. */
const NAME = /(?=[^:]*[^:.\da-f])[^:]+:|:(?!:)/iy;
/** Text before a version. */
const BEFORE_VERSION = /~$|version[ :="]{1,3}$/i;
/** Text after an address that has a port: a colon and a digit, or a slash and a number that ends the text in slashes. */
const BEFORE_PORT = /^(?::\d|\/\d{1,5}(?![\w.:/-]))/;
/** Characters around an address that may be part of {@link BEFORE_VERSION} or {@link BEFORE_PORT}. */
const CONTEXT = 10;

const words = new Uint32Array(4);

/** Returns the address that a text is, alone or with a port. */
function withoutPort(text: string): string | undefined {
  return [text, text.replace(PORT, '')].find((one) => parseAddress(one, words) !== 0 && /\d/.test(one));
}

/** Returns where the address in a word begins without names, if it may be one. */
function afterNames(word: string): number {
  NAME.lastIndex = 0;
  let at = 0;
  while (NAME.test(word)) at = NAME.lastIndex;
  return at;
}

/** Returns whether an IPv4 address in a line counts. @param word the beginning of its word */
function isTaken(line: string, word: number, from: number, to: number): boolean {
  if (BEFORE_VERSION.test(line.slice(Math.max(0, from - CONTEXT), from))) return false;
  const [before, slash] = [line[word - 2], line[word - 1]];
  if (before === undefined || slash !== '/' || IN_WORD[before.charCodeAt(0)] !== 1) return true;
  return BEFORE_PORT.test(line.slice(to, to + CONTEXT)) || (/\d/.test(before) && line[to] !== '/');
}

/** Returns the address in a word of a line. */
function addressInWord(line: string, start: number, end: number): string | undefined {
  let to = end;
  while (to > start && (line[to - 1] === '.' || line[to - 1] === '-')) to--;
  const word = line.slice(start, to).replace(PUNCTUATION, '');
  let from = 0;
  let address = withoutPort(word);
  if (address === undefined) {
    from = afterNames(word);
    if (from > 0) address = withoutPort(word.slice(from));
  }
  // Between two colons.
  for (let next = 0; address === undefined && next < word.length; next++) {
    from = next;
    next = word.indexOf(':', from);
    if (next < 0) next = word.length;
    if (next - from >= SHORTEST_IPV4) address = withoutPort(word.slice(from, next));
  }
  if (address === undefined) return undefined;
  const isIPv4 = parseAddress(address, words) === 4;
  const at = start + from;
  return isIPv4 && !isTaken(line, start, at, at + address.length) ? undefined : address;
}

/** Finds the addresses in a part of a line. */
export function findAddresses(
  text: string,
  from: number,
  end: number,
  onAddress: (address: string, at: number) => void,
): void {
  for (let at = from; at < end; at++) {
    const start = at;
    let dots = 0;
    let colons = 0;
    let hasPair = false;
    for (; at < end; at++) {
      const code = text.charCodeAt(at);
      if (IN_WORD[code] !== 1) break;
      if (code === DOT) dots++;
      else if (code === COLON) {
        colons++;
        hasPair ||= at > start && text.charCodeAt(at - 1) === COLON;
      }
    }
    if (dots < IPV4_DOTS && colons < IPV6_COLONS && !hasPair) continue;
    const address = addressInWord(text, start, at);
    if (address !== undefined) onAddress(address, start);
  }
}

export class AddressReader {
  readonly #limit: number;
  readonly #log: LogReader | undefined;
  /** Text after the last newline, and how much of it is examined already: it is kept for what comes after it. */
  #rest = '';
  #examined = 0;
  /** Parts of the current line were examined already. */
  #lineIsLong = false;
  #lineHasAddress = false;
  #line = 1;
  #found = 0;
  #withoutAddress = 0;

  /**
   * @param limit entries to find at most; the rest of the text is ignored
   * @param log undefined if all addresses count
   */
  constructor(limit: number, log?: LogReader) {
    this.#limit = limit;
    this.#log = log;
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
    for (let end = piece.indexOf('\n'); end >= 0 && this.#log?.isDocument !== true; end = piece.indexOf('\n', start)) {
      this.#endLine(this.#rest + piece.slice(start, end), entries);
      this.#rest = '';
      start = end + 1;
    }
    this.#rest += piece.slice(start);
    if (this.#log === undefined) {
      if (this.#rest.length > MAX_PART) this.#examineStart(entries);
    } else if (this.#rest.length > (this.#log.isDocument ? MAX_DOCUMENT : MAX_LINE_BYTES)) {
      throw new InputError('This is not the log that was chosen, or a line of it is too long.');
    }
    return entries;
  }

  /** Reads the end of the text; returns what was found in the last line. */
  end(): Entry[] {
    const entries: Entry[] = [];
    if (this.#rest !== '') this.#endLine(this.#rest, entries);
    this.#rest = '';
    return entries;
  }

  /** Examines a long line up to a separator. A word that is longer than all that is kept is not an address. */
  #examineStart(entries: Entry[]): void {
    const known = this.#rest.length - CONTEXT;
    const cut = /[\w.:-]*$/.exec(this.#rest.slice(known - MAX_KEPT_TEXT, known))![0].length;
    this.#examine(this.#rest, known - cut, entries);
    this.#examined = CONTEXT;
    this.#rest = this.#rest.slice(known - cut - CONTEXT);
    this.#lineIsLong = true;
  }

  #endLine(text: string, entries: Entry[]): void {
    if (this.#log === undefined) this.#examine(text, text.length, entries);
    const inLog = this.#log?.read(text.replace(/\r$/, '')) ?? [];
    for (const address of inLog) this.#add(entries, address, true);
    if (!this.#lineHasAddress && inLog.length === 0) {
      const word = text.trim();
      if (this.#log !== undefined) this.#withoutAddress += word === '' ? 0 : 1;
      else if (this.#lineIsLong || (word !== '' && !SINGLE_WORD.test(word))) this.#withoutAddress++;
      else if (word !== '') this.#add(entries, word.slice(0, MAX_KEPT_TEXT), parseAddress(word, words) !== 0);
    }
    this.#line++;
    this.#examined = 0;
    this.#lineIsLong = false;
    this.#lineHasAddress = false;
  }

  #examine(text: string, end: number, entries: Entry[]): void {
    findAddresses(text, this.#examined, end, (address) => {
      this.#lineHasAddress = true;
      this.#add(entries, address, true);
    });
  }

  #add(entries: Entry[], text: string, valid: boolean): void {
    if (this.isFull) return;
    this.#found++;
    entries.push({ line: this.#line, text, valid });
  }
}
