/** Finds the addresses of a batch as `ipatlas enrich` does: the kernel reads the records. */
import { parseAddress } from '../address/parse.js';
import type { JsonDocument } from '../enrich/formats/document.js';
import { AddressLocator, type LocatedRecord } from '../enrich/locate.js';
import { type InputOptions, parseEnrichOptions } from '../enrich/options.js';
import { publicRanges } from '../enrich/public-ranges.js';
import { AtlasError } from '../errors.js';
import { PageError } from './problems.js';

/** Longest record, in bytes. */
const MAX_LENGTH = 16_777_216;

/** Characters that are kept of a text that is not an address. */
const MAX_KEPT_TEXT = 100;

/** Anything but white space and the usual separators of lists, unless it is very long. */
const SINGLE_WORD = /^[^\s,;]{1,65536}$/;

const NEWLINE = 10;
const words = new Uint32Array(4);
const decoder = new TextDecoder();

/** What a record has: an address, or, if the record is a single word, a text that is not one. */
export interface Entry {
  /** Number of the line, from 1. */
  line: number;
  text: string;
  valid: boolean;
}

export class AddressFinder {
  readonly #locator: AddressLocator;
  readonly #limit: number;
  readonly #isJson: boolean;
  readonly #add: (entry: Entry) => void;
  /** Whether all addresses of a record count, not only those that are looked up. */
  readonly #takesAll: boolean;
  #found = 0;
  /** Records without an address that have more than one word. */
  linesWithoutAddress = 0;

  /**
   * @param documents what reads JSON documents, if the text is one
   * @param options what the text was recognized as; undefined for text of which all addresses count
   * @param limit entries to find at most; the rest of the text is ignored
   * @param add receives what is found, in order
   */
  constructor(
    documents: typeof JsonDocument | undefined,
    options: InputOptions | undefined,
    limit: number,
    add: (entry: Entry) => void,
  ) {
    this.#takesAll = options === undefined;
    this.#limit = limit;
    this.#add = add;
    const reading = options ?? parseEnrichOptions({ format: 'text', pick: 'first' }, (name) => name);
    this.#isJson = reading.input.kind.startsWith('json');
    const take = (records: LocatedRecord[], bytes: Uint8Array, offset: number): void => {
      for (const record of records) this.#take(record, bytes, offset);
    };
    const settings = { documents, maxLineBytes: MAX_LENGTH };
    this.#locator = new AddressLocator(publicRanges(), reading, take, settings);
  }

  /** Whether the limit is reached. */
  get isFull(): boolean {
    return this.#found >= this.#limit;
  }

  /** Lines that were read so far. */
  get lines(): number {
    return this.#locator.lines;
  }

  /** Reads the next bytes of the text, in UTF-8. @throws PageError for a line that is too long, and for damaged JSON */
  read(bytes: Uint8Array): void {
    this.#try(() => this.#locator.write(bytes));
  }

  /** Reads the end of the text. Throws as `read` does. */
  end(): void {
    this.#try(() => this.#locator.end());
  }

  #try(read: () => void): void {
    try {
      read();
    } catch (error) {
      if (error instanceof AtlasError) throw new PageError(`${error.message}.`);
      throw error;
    }
  }

  #take({ line, from, isInvalid, addresses }: LocatedRecord, bytes: Uint8Array, offset: number): void {
    if (isInvalid && this.#takesAll) throw new PageError('A line of this text is too long.');
    let count = 0;
    for (const address of addresses) {
      if (!this.#takesAll && !address.counts) continue;
      const text = decoder.decode(bytes.subarray(address.from - offset, address.to - offset));
      this.#put(line, this.#isJson && text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text, true);
      count++;
    }
    if (count > 0) return;
    const start = from - offset;
    const end = bytes.indexOf(NEWLINE, start);
    const word = this.#takesAll ? decoder.decode(bytes.subarray(start, end < 0 ? bytes.length : end)).trim() : '';
    if (SINGLE_WORD.test(word)) this.#put(line, word.slice(0, MAX_KEPT_TEXT), parseAddress(word, words) !== 0);
    else this.linesWithoutAddress++;
  }

  #put(line: number, text: string, valid: boolean): void {
    if (this.isFull) return;
    this.#found++;
    this.#add({ line, text, valid });
  }
}
