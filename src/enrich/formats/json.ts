/**
 * JSON documents: enriches the items of an array that is the document, or inside it. Every byte that is not added, replaced
 * or dropped is passed on unchanged, including numbers of any size and notation.
 */
import type { Token } from 'stream-json/core/parser.js';
import { AtlasError } from '../../errors.js';
import { MAX_JSON_ITEM_BYTES } from '../../limits.js';
import { startsWithMark } from '../input/line-buffer.js';
import {
  asByteText,
  BYTE_ORDER_MARK,
  bytesToText,
  type FormatContext,
  type FormatEnricher,
  fromByteText,
  textToBytes,
} from './format.js';
import { JsonItem } from './json-item.js';
import type { ItemReader } from './json-items.js';
import { JsonText, type TokenHandler } from './json-text.js';
import { bestValue, jsonResults, type ResultFormatter, recordQuery } from './results.js';

const OPENING_BRACKET = 91;
const COMMA = Buffer.from(',');
const NO_BYTES = new Uint8Array(0);

/** Matches text with bytes that are not ASCII. */
const NOT_ASCII = /[^\0-\x7f]/;

/** Enriches one document, chunk by chunk. */
class Document {
  readonly #input: string;
  readonly #itemsPath: readonly string[];
  readonly #context: FormatContext;
  readonly #resultText: ResultFormatter;
  readonly #text: JsonText;
  /** The fast path, if it is available; whether it reads the items. */
  readonly #itemReader: ItemReader | undefined;
  #isFast = false;
  #out = '';
  /** Output before that text. */
  #outputs: Uint8Array[] = [];
  /** Position up to which the text is in the output or was dropped. */
  #written: number;
  /** Outside the items: for each open bracket, the current key; null in an array. */
  readonly #keys: (string | null)[] = [];
  #isInItems = false;
  #hasItems = false;
  #item: JsonItem | undefined;
  /** Whether the current item is too long to be held, so it is passed on or dropped in parts. */
  #isTooLong = false;
  /** Items of the current array so far, and those of them in the output. */
  #items = 0;
  #itemsOut = 0;

  constructor(
    input: string,
    itemsPath: readonly string[],
    at: number,
    context: FormatContext,
    resultText: ResultFormatter,
    itemReader: ItemReader | undefined,
  ) {
    this.#itemReader = itemReader;
    this.#input = input;
    this.#itemsPath = itemsPath;
    this.#context = context;
    this.#resultText = resultText;
    this.#text = new JsonText(input, at);
    this.#written = at;
  }

  read(chunk: Uint8Array): void {
    for (let rest = chunk; rest.length > 0; ) {
      if (this.#isFast) {
        rest = this.#readItems(rest);
        continue;
      }
      // The fast path begins right after the opening bracket, so text that may have it is parsed up to each bracket.
      const bracket = this.#itemReader === undefined || this.#isInItems ? -1 : rest.indexOf(OPENING_BRACKET);
      const end = bracket < 0 ? rest.length : bracket + 1;
      this.#readText(bytesToText(rest.subarray(0, end)));
      rest = rest.subarray(end);
      if (bracket >= 0 && this.#isInItems && this.#item === undefined && this.#text.isAtArrayStart) {
        this.#isFast = true;
        this.#itemReader!.start();
      }
    }
  }

  /** Takes text by the fast path; returns what is left to the parser. */
  #readItems(bytes: Uint8Array): Uint8Array {
    const { output, length, newlines, items, rest } = this.#itemReader!.add(bytes);
    if (output.length > 0) {
      this.#takeText();
      if (this.#itemsOut > 0) this.#outputs.push(COMMA);
      this.#outputs.push(output);
      this.#itemsOut++;
    }
    this.#text.skipItems(length, newlines);
    this.#written += length;
    this.#items += items;
    this.#isFast = rest === undefined;
    return rest ?? NO_BYTES;
  }

  #readText(chunk: string): void {
    this.#text.read(chunk, this.#onToken);
    if (this.#item !== undefined) this.#checkLength(this.#item);
    else if (!this.#isInItems) this.#copyTo(this.#text.position);
    this.#text.discardBefore(this.#written);
  }

  /** Ends the document. Throws if it is incomplete or has no items. */
  end(): void {
    if (this.#isFast) {
      this.#isFast = false;
      this.read(this.#itemReader!.end());
    }
    this.#text.end(this.#onToken);
    if (!this.#hasItems) {
      throw new AtlasError(
        'E_BAD_INPUT',
        `${this.#input} has no array at ${JSON.stringify(this.#itemsPath.join('.'))}; name one with --items`,
      );
    }
    this.#out += this.#text.rest();
  }

  /** Returns the output since the last call. */
  takeOut(): Uint8Array {
    this.#takeText();
    const outputs = this.#outputs;
    this.#outputs = [];
    return outputs.length === 1 ? outputs[0]! : Buffer.concat(outputs);
  }

  #takeText(): void {
    if (this.#out !== '') this.#outputs.push(textToBytes(this.#out));
    this.#out = '';
  }

  #copyTo(position: number): void {
    this.#out += this.#text.slice(this.#written, position);
    this.#written = position;
  }

  readonly #onToken: TokenHandler = (token, start, end) => {
    const key = token.name === 'keyValue' ? this.#keyText(token.value, start, end) : undefined;
    if (this.#isInItems) this.#onTokenInItems(token, start, end, key);
    else this.#onTokenOutside(token, start, key);
  };

  /** Returns the text of a key. Byte text needs decoding only if it is not ASCII. */
  #keyText(value: string, start: number, end: number): string {
    return NOT_ASCII.test(value) ? (JSON.parse(fromByteText(this.#text.slice(start, end))) as string) : value;
  }

  #onTokenOutside(token: Token, start: number, key: string | undefined): void {
    const keys = this.#keys;
    if (token.name === 'keyValue') {
      keys[keys.length - 1] = key!;
    } else if (token.name === 'startArray' && this.#isAtItems()) {
      this.#isInItems = true;
      this.#hasItems = true;
      this.#items = 0;
      this.#itemsOut = 0;
      this.#copyTo(start + 1);
    } else if (this.#itemsPath.length === 0) {
      if (!this.#hasItems) {
        throw this.#text.errorAt(
          start,
          'this is not a JSON array; name the array inside a document with --items PATH, and for one object per line use ' +
            '--format jsonl',
        );
      }
    } else if (token.name === 'startArray' || token.name === 'startObject') {
      keys.push(null);
    } else if (token.name === 'endArray' || token.name === 'endObject') {
      keys.pop();
    }
  }

  #isAtItems(): boolean {
    const path = this.#itemsPath;
    return this.#keys.length === path.length && path.every((key, depth) => key === this.#keys[depth]);
  }

  #onTokenInItems(token: Token, start: number, end: number, key: string | undefined): void {
    if (this.#item === undefined) {
      if (token.name === 'endArray') {
        this.#isInItems = false;
        return;
      }
      this.#items++;
      this.#context.counts.lines++;
      this.#item = new JsonItem(start, token, this.#context.options.fields);
    }
    if (this.#item.add(token, start, end, key)) this.#finish(this.#item, end);
  }

  #finish(item: JsonItem, end: number): void {
    this.#item = undefined;
    if (this.#isTooLong) this.#finishPart(end);
    else if (!item.isObject) this.#finishInvalid(item, end);
    else this.#finishObject(item, end);
    this.#isTooLong = false;
  }

  #finishObject(item: JsonItem, end: number): void {
    const { fields, query } = this.#context.options;
    const values = item.values.map((candidates) => bestValue(this.#context, candidates));
    if (query !== undefined) {
      if (recordQuery(this.#context, query)(values)) {
        this.#copySeparator(item.start);
        this.#copyTo(end);
      } else {
        this.#written = end;
      }
      return;
    }
    const added = fields.map(({ target }, index) => ({
      target,
      text: `${asByteText(JSON.stringify(target.at(-1)))}:${this.#resultText(values[index]!)}`,
    }));
    this.#copySeparator(item.start);
    this.#out += item.withMembers((from, to) => this.#text.slice(from, to), added);
    this.#written = end;
  }

  /** Copies the text before an item, without its comma if no item precedes it in the output. */
  #copySeparator(itemStart: number): void {
    const separator = this.#text.slice(this.#written, itemStart);
    this.#out += this.#itemsOut === 0 ? separator.replace(',', '') : separator;
    this.#itemsOut++;
    this.#written = itemStart;
  }

  #finishInvalid(item: JsonItem, end: number): void {
    this.#beginInvalid(item, end, 'is not an object');
    this.#finishPart(end);
  }

  /** @param end position after the item, or after the part of it that was read */
  #beginInvalid(item: JsonItem, end: number, problem: string): void {
    const { counts, options, reject } = this.#context;
    counts.invalid_line++;
    if (options.onInvalid === 'keep') this.#copySeparator(item.start);
    else this.#written = item.start;
    if (options.onInvalid === 'fail') {
      reject(textToBytes(`${this.#text.slice(item.start, end)}\n`));
      throw this.#text.errorAt(item.start, `item ${this.#items} ${problem}`);
    }
  }

  /** Copies or drops an invalid item or a part of it. */
  #finishPart(end: number): void {
    const part = this.#text.slice(this.#written, end);
    this.#context.reject(textToBytes(this.#item === undefined ? `${part}\n` : part));
    if (this.#context.options.onInvalid === 'keep') this.#out += part;
    this.#written = end;
  }

  #checkLength(item: JsonItem): void {
    if (!this.#isTooLong) {
      const end = this.#text.position;
      if (end - item.start <= MAX_JSON_ITEM_BYTES) return;
      this.#beginInvalid(item, end, `is longer than ${MAX_JSON_ITEM_BYTES} bytes`);
      this.#isTooLong = true;
    }
    this.#finishPart(this.#text.position);
  }
}

/**
 * Creates the enricher of JSON documents. An item that is not an object is an invalid line.
 *
 * @param itemsPath the keys that lead to the array; none if the document is the array
 * @param itemReader the fast path
 */
export function jsonFormat(
  context: FormatContext,
  itemsPath: readonly string[],
  itemReader?: ItemReader,
): FormatEnricher {
  const resultText = jsonResults(context);

  async function* enrich(input: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const texts = withoutByteOrderMark(chunks);
    const { value: mark } = await texts.next();
    yield mark ?? NO_BYTES;
    const document = new Document(input, itemsPath, mark?.length ?? 0, context, resultText, itemReader);
    try {
      for await (const text of texts) {
        document.read(text);
        yield document.takeOut();
      }
      document.end();
    } finally {
      itemReader?.finish();
      // If an item caused an error, the items before it are still written.
      yield document.takeOut();
    }
  }

  return { newline: '\n', enrich };
}

/**
 * Returns a function that enriches one whole document, given its name in messages and its bytes.
 *
 * @param itemsPath as for {@link jsonFormat}
 */
export function documentEnricher(
  context: FormatContext,
  itemsPath: readonly string[],
): (input: string, bytes: Uint8Array) => Uint8Array {
  const resultText = jsonResults(context);
  return (input, bytes) => {
    const markLength = startsWithMark(bytes) ?? 0;
    const document = new Document(input, itemsPath, markLength, context, resultText, undefined);
    document.read(bytes.subarray(markLength));
    document.end();
    return Buffer.concat([bytes.subarray(0, markLength), document.takeOut()]);
  };
}

/** Yields the byte order mark, or no bytes if there is none, and then the text after it. */
async function* withoutByteOrderMark(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  let start: Uint8Array | undefined = NO_BYTES;
  for await (const chunk of chunks) {
    if (start === undefined) {
      yield chunk;
      continue;
    }
    start = Buffer.concat([start, chunk]);
    if (start.length < BYTE_ORDER_MARK.length) continue;
    const length: number = startsWithMark(start) ?? 0;
    yield start.subarray(0, length);
    yield start.subarray(length);
    start = undefined;
  }
  if (start !== undefined) {
    yield NO_BYTES;
    yield start;
  }
}
