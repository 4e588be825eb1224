/**
 * JSON documents, whose items are the records: the elements of an array that is the document, or inside it. stream-json reads what
 * is around the items, finds the array, and says where an error is. The kernel splits the array into lines and enriches them
 * (kernel/assembly/items.ts). Every byte that is not added, replaced or dropped is passed on unchanged.
 */
import { jsonParser, type Token } from 'stream-json/core/parser.js';
import { jsonVerifier, type VerifierError } from 'stream-json/core/utils/verifier.js';
import { AtlasError, messageOf } from '../../errors.js';
import { MAX_JSON_DEPTH } from '../../limits.js';
import { EACH, type PathStep, pathText } from '../field-path.js';
import type { Chunk, Found, Origin, Passage, Skipped, Splitter } from '../input/chunk-buffer.js';
import { ITEM_END } from '../kernel/abi.js';
import type { Kernel, Slot } from '../kernel/kernel.js';
import type { InvalidPolicy } from '../options.js';

const NO_BYTES = new Uint8Array(0);
const NEWLINE = Buffer.from('\n');
const COMMA = 44;
const QUOTE = 34;
const BACKSLASH = 92;
const OPENING_BRACKET = 91;
/** The bit in which braces differ from brackets. */
const CASE_BIT = 32;
/** White space, which changes nothing. stream-json reports some syntax errors only after this much more text. */
const PADDING = Buffer.from(' '.repeat(32));
/** An item in place of those that the kernel reads. */
const ANY_ITEM = Buffer.from('{}');
const VECTOR_BYTES = 64;

function isBlank(byte: number | undefined): boolean {
  return byte === 32 || byte === 9 || byte === 10 || byte === 13;
}

/** Returns whether brackets and braces outside of strings are nested more deeply than the kernel follows. */
function isTooDeep(text: Uint8Array): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]!;
    if (byte === QUOTE) isInString = !isInString;
    else if (byte === BACKSLASH) at++;
    else if (isInString) continue;
    else if ((byte | CASE_BIT) === 0x7b) depth++;
    else if ((byte | CASE_BIT) === 0x7d) depth--;
    if (depth > MAX_JSON_DEPTH) return true;
  }
  return false;
}

/** What became of an item that is not an object. */
interface InvalidItem {
  rejects: Uint8Array;
  /** The error to throw; undefined to go on. */
  error: AtlasError | undefined;
}

export class JsonDocument implements Splitter {
  readonly #kernel: Kernel;
  readonly #itemsPath: readonly PathStep[];
  readonly #onInvalid: InvalidPolicy;

  // Reading: the name of the input, and what of it was given away.
  #name = 'the input';
  #origin: Origin = { bytes: 0, newlines: 0 };
  #parse = jsonParser({ streamValues: false });
  #verify = jsonVerifier();
  #decoder = new TextDecoder();
  /** Bytes that the verifier has received. */
  #verified = 0;
  /** Outside the items: for each open bracket, the current key; null in an array. */
  #keys: (string | null)[] = [];
  #lastToken: Token['name'] | undefined;
  /** For each step of the path: whether an array of items was below a key of the object that is open there. */
  readonly #foundBelow: boolean[];
  /** The error if the document is the array, but begins with something else. */
  #notArray: AtlasError | undefined;
  #isInItems = false;
  /** An error after what the last search has found. */
  #failure: Error | undefined;
  #hasArray = false;
  /** Whether the array has an item; before that, where the array begins in the slot. */
  #hasItems = false;
  #arrayStart = 0;

  // Results: the name of their input, the items in them so far, and whether a comma must precede the next item in the output.
  #resultName = 'the input';
  #items = 0;
  #needsComma = false;

  /** @param itemsPath the keys, and arrays, that lead to the items; none if the document is the array */
  constructor(kernel: Kernel, itemsPath: readonly PathStep[], onInvalid: InvalidPolicy) {
    this.#kernel = kernel;
    this.#itemsPath = itemsPath;
    this.#foundBelow = itemsPath.map(() => false);
    this.#onInvalid = onInvalid;
  }

  start(name: string): void {
    this.#name = name;
    this.#origin = { bytes: 0, newlines: 0 };
    this.#parse = jsonParser({ streamValues: false });
    this.#verify = jsonVerifier();
    this.#decoder = new TextDecoder();
    this.#verified = 0;
    this.#keys = [];
    this.#foundBelow.fill(false);
    this.#lastToken = undefined;
    this.#notArray = undefined;
    this.#failure = undefined;
    this.#isInItems = false;
    this.#hasArray = false;
    this.#hasItems = false;
  }

  search(slot: Slot, start: number, from: number, to: number): Found {
    if (this.#failure !== undefined) throw this.#failure;
    const passages: Passage[] = [];
    let end = start;
    let scanned = from;
    try {
      while (scanned < to) {
        const found = this.#isInItems ? this.#splitItems(slot, end, scanned, to) : this.#readOutside(slot, scanned, to);
        passages.push(...(found.passages ?? []));
        ({ end, scanned } = found);
      }
    } catch (error) {
      // What was found before it comes first.
      if (end === start) throw error;
      this.#failure = error as Error;
    }
    return { end, scanned, passages };
  }

  skip(slot: Slot, start: number, scanned: number, filled: number): Skipped {
    const found = scanned < filled ? this.search(slot, start, scanned, filled) : { end: start, scanned };
    const end = slot.input.subarray(start, filled).indexOf(ITEM_END) + start + 1;
    // After the last item is the end of the array.
    const last = found.passages?.[0]?.from ?? filled;
    const to = end === start ? last : Math.min(end, last);
    return { ...found, to, isWhole: end > start || last < filled, end: Math.max(found.end, to) };
  }

  tooLong(maxBytes: number): string {
    return `is longer than ${maxBytes} bytes`;
  }

  end(slot: Slot, _start: number, filled: number): undefined {
    if (this.#isInItems) throw this.#errorAt(slot, filled, 'the document ends in the middle');
    // Reports a syntax error in the last few bytes.
    this.#readText(slot, filled, PADDING);
    if (this.#lastToken === undefined) throw this.#errorAt(slot, filled, 'there is no JSON document');
    if (this.#keys.length > 0) throw this.#errorAt(slot, filled, 'the document ends in the middle');
    if (this.#hasArray) return;
    throw new AtlasError(
      'E_BAD_INPUT',
      `${this.#name} has no array at ${JSON.stringify(pathText(this.#itemsPath))}; name one with --items`,
    );
  }

  emit({ place }: Slot, bytes: number): Origin {
    const origin = this.#origin;
    const newlines = origin.newlines + this.#kernel.countNewlines(place, bytes);
    this.#origin = { bytes: origin.bytes + bytes, newlines };
    if (this.#isInItems && bytes > this.#arrayStart) this.#hasItems = true;
    this.#arrayStart = Math.max(this.#arrayStart - bytes, 0);
    return origin;
  }

  #splitItems(slot: Slot, start: number, from: number, to: number): Found {
    const { input } = slot;
    const { end, closing, stray } = this.#kernel.splitItems(slot.place, from, to);
    if (end > 0) this.#hasItems = true;
    if (stray >= 0) {
      if (end <= 0) throw this.#errorAt(slot, stray, 'not valid JSON: a control character');
      // The items before it come first. Nothing of the vector with it was split.
      return { end, scanned: stray - ((stray - from) % VECTOR_BYTES) };
    }
    if (closing < 0) return { end: Math.max(end, start), scanned: to };
    this.#isInItems = false;
    // White space after the last item is not a part of it.
    let itemEnd = closing;
    while (itemEnd > this.#arrayStart && isBlank(input[itemEnd - 1])) itemEnd--;
    // An empty array has no items.
    if (this.#hasItems || itemEnd > this.#arrayStart) this.#readText(slot, itemEnd, ANY_ITEM);
    this.#readText(slot, itemEnd, input.subarray(itemEnd, closing + 1));
    return { end: closing + 1, scanned: closing + 1, passages: [{ from: itemEnd, to: closing + 1, kind: 'text' }] };
  }

  /** Reads what is around the items, up to the beginning of an array of them. */
  #readOutside(slot: Slot, from: number, to: number): Found {
    let end = from;
    while (end < to && !this.#isInItems) {
      const bracket = slot.input.subarray(end, to).indexOf(OPENING_BRACKET);
      const next = bracket < 0 ? to : end + bracket + 1;
      this.#readText(slot, end, slot.input.subarray(end, next));
      end = next;
      this.#isInItems = this.#isAtItems;
    }
    if (this.#isInItems) {
      this.#hasItems = false;
      this.#arrayStart = end;
      this.#kernel.startItems();
    }
    return { end, scanned: end, passages: [{ from, to: end, kind: 'text' }] };
  }

  /** Whether the text so far ends with the opening bracket of the array. */
  #isAtItems = false;

  /** Reads text that has at most one opening bracket, as its last byte. `at` is its offset in the slot. */
  #readText(slot: Slot, at: number, bytes: Buffer): void {
    try {
      this.#verify(bytes.toString('latin1'));
    } catch (error) {
      const { offset } = error as VerifierError;
      throw this.#errorAt(slot, at + offset - this.#verified, `not valid JSON: ${reasonOf(error)}`, error);
    }
    this.#verified += bytes.length;
    if (this.#lastToken === undefined) this.#readStart(slot, at, bytes);
    this.#isAtItems = false;
    const tokens = this.#parse(this.#decoder.decode(bytes, { stream: true }));
    if (typeof tokens !== 'object') return;
    for (const token of tokens.values as Token[]) this.#readToken(slot, at, token);
  }

  /** Looks at the first byte of a document that must be an array. */
  #readStart(slot: Slot, at: number, bytes: Buffer): void {
    const start = bytes.findIndex((byte) => !isBlank(byte));
    if (this.#itemsPath.length > 0 || start < 0 || bytes[start] === OPENING_BRACKET) return;
    this.#notArray ??= this.#errorAt(
      slot,
      at + start,
      'this is not a JSON array; name the array inside a document with --items PATH, and for one object per line use ' +
        '--format jsonl',
    );
  }

  #readToken(slot: Slot, at: number, token: Token): void {
    const keys = this.#keys;
    const path = this.#itemsPath;
    if (this.#lastToken === undefined && this.#notArray !== undefined) throw this.#notArray;
    this.#lastToken = token.name;
    if (token.name === 'keyValue') {
      keys[keys.length - 1] = token.value;
      // JSON.parse takes the last of equal keys, but the items are enriched already.
      if (this.#foundBelow[keys.length - 1] === true && this.#isOnPath()) {
        throw this.#errorAt(
          slot,
          at,
          `the key ${JSON.stringify(pathText(path.slice(0, keys.length)))} occurs again after the array`,
        );
      }
    } else if (token.name === 'startArray' || token.name === 'startObject') {
      this.#isAtItems = token.name === 'startArray' && keys.length === path.length && this.#isOnPath();
      if (this.#isAtItems) {
        this.#hasArray = true;
        this.#foundBelow.fill(true);
      }
      keys.push(null);
      // Another object has other keys.
      if (keys.length <= path.length) this.#foundBelow[keys.length - 1] = false;
      if (keys.length > MAX_JSON_DEPTH) {
        throw this.#errorAt(slot, at, `there are more than ${MAX_JSON_DEPTH} levels of nesting`);
      }
    } else if (token.name === 'endArray' || token.name === 'endObject') {
      keys.pop();
    }
  }

  /** Returns whether the open brackets are on the way to the items. */
  #isOnPath(): boolean {
    return this.#keys.every((key, depth) => key === (this.#itemsPath[depth] === EACH ? null : this.#itemsPath[depth]));
  }

  /** Starts the results of another array. */
  startItems(): void {
    this.#needsComma = false;
  }

  /** Starts the results of another input. */
  startResults(name: string): void {
    this.#resultName = name;
    this.#items = 0;
    this.#needsComma = false;
  }

  /** Returns the output of the last run over a chunk, with the comma between its items and those before them, but none at its end. */
  outputOf({ slot }: Chunk): Uint8Array {
    this.#items += slot.lines;
    const { output } = slot;
    if (output.length === 0) return output;
    const items = this.#needsComma ? slot.outputAfter(COMMA) : output;
    this.#needsComma = items.at(-1) === COMMA;
    return this.#needsComma ? items.subarray(0, -1) : items;
  }

  /**
   * Applies the policy to the item of a chunk at which the kernel has stopped, and lets it go on after it.
   *
   * @throws AtlasError E_BAD_INPUT if the item is not valid JSON
   */
  passInvalid(chunk: Chunk, knownProblem?: string): InvalidItem {
    const { slot } = chunk;
    const from = slot.processed;
    const to = Math.min(slot.input.indexOf(ITEM_END, from), slot.recordsEnd);
    const item = slot.input.subarray(from, to);
    const problem =
      knownProblem ?? (isTooDeep(item) ? `has more than ${MAX_JSON_DEPTH} levels of nesting` : 'is not an object');
    if (problem === 'is not an object') this.#checkSyntax(chunk, from, item);
    const error = this.#onInvalid === 'fail' ? this.#itemError(chunk, from, problem) : undefined;
    slot.skipTo(Math.min(to + 1, slot.recordsEnd), this.#onInvalid === 'keep');
    const text = Buffer.from(this.#kernel.withoutAddresses(slot, from, to))
      .toString('latin1')
      .trim();
    return { rejects: Buffer.concat([Buffer.from(text, 'latin1'), NEWLINE]), error };
  }

  /** Returns the error for an item that is too long. */
  tooLongError(chunk: Chunk, { from, problem }: Passage): AtlasError {
    return this.#itemError(chunk, from, problem!);
  }

  /** Applies the policy to a piece of an item that is too long. @param text that of the piece */
  pieceResult(
    { slot }: Chunk,
    { to, kind, isWhole }: Passage,
    text: Uint8Array,
  ): { output: Uint8Array; rejects: Uint8Array } {
    if (kind === 'first') this.#items++;
    const bytes = slot.input[to - 1] === ITEM_END && text.length > 0 ? text.subarray(0, -1) : text;
    const rejects = isWhole ? Buffer.concat([bytes, NEWLINE]) : bytes;
    if (this.#onInvalid !== 'keep') return { output: NO_BYTES, rejects };
    const output = kind === 'first' && this.#needsComma ? Buffer.concat([Buffer.from(','), bytes]) : bytes;
    this.#needsComma = isWhole === true;
    return { output, rejects };
  }

  /** @throws AtlasError E_BAD_INPUT for an item that is not valid JSON, which names the position of the error */
  #checkSyntax(chunk: Chunk, from: number, item: Buffer): void {
    const text = item.toString('latin1');
    try {
      JSON.parse(text);
    } catch (cause) {
      // The verifier tells where the error is. An item that is missing is one after the comma.
      const before = this.#items === 1 ? '[' : '[0,';
      const verify = jsonVerifier();
      try {
        verify(`${before}${text},${PADDING}`);
      } catch (error) {
        const at = from + Math.max((error as VerifierError).offset - before.length, 0);
        throw this.#resultError(chunk, at, `not valid JSON: ${reasonOf(error)}`, error);
      }
      throw this.#resultError(chunk, from, `not valid JSON: ${messageOf(cause)}`, cause);
    }
  }

  /** Returns the error for the item that begins, after white space, at an offset. */
  #itemError(chunk: Chunk, from: number, problem: string): AtlasError {
    let start = from;
    while (isBlank(chunk.slot.input[start])) start++;
    return this.#resultError(chunk, start, `item ${this.#items} ${problem}`);
  }

  /** Returns an E_BAD_INPUT that names the input, and the line and byte of an offset in a chunk of the results. */
  #resultError({ slot, origin }: Chunk, offset: number, problem: string, cause?: unknown): AtlasError {
    return this.#error(this.#resultName, origin!, slot, offset, problem, cause);
  }

  /** The same for an offset in the slot that is being read. */
  #errorAt(slot: Slot, offset: number, problem: string, cause?: unknown): AtlasError {
    return this.#error(this.#name, this.#origin, slot, offset, problem, cause);
  }

  #error(
    name: string,
    { bytes, newlines }: Origin,
    { place }: Slot,
    offset: number,
    problem: string,
    cause: unknown,
  ): AtlasError {
    const line = newlines + this.#kernel.countNewlines(place, Math.max(offset, 0)) + 1;
    return new AtlasError(
      'E_BAD_INPUT',
      `${name}, line ${line}, byte ${bytes + offset + 1}: ${problem}; repair it there`,
      { cause },
    );
  }
}

/** Returns what an error of the verifier says, without its position. */
function reasonOf(error: unknown): string {
  return messageOf(error).replace(/^ERROR at \d+ \(\d+, \d+\): Verifier (cannot parse input: |has )?/, '');
}
