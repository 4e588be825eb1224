/**
 * One JSON document whose items are enriched: a huge array, or an array inside a document. Everything but what is added,
 * replaced or dropped comes out byte for byte as it went in, numbers of any size and spelling included.
 */
import type { Token } from 'stream-json/core/parser.js';
import { AtlasError } from '../../errors.js';
import { MAX_JSON_ITEM_BYTES } from '../../limits.js';
import {
  asByteText,
  BYTE_ORDER_MARK,
  bytesToText,
  type Format,
  type FormatContext,
  fromByteText,
  textToBytes,
} from './format.js';
import { JsonItem } from './json-item.js';
import { JsonText, type TokenHandler } from './json-text.js';
import { type Answerer, jsonAnswerer } from './results.js';

/** Whether text holds bytes that are not ASCII. */
const NOT_ASCII = /[^\0-\x7f]/;

/** Enriches one document, piece by piece. */
class Document {
  readonly #input: string;
  readonly #itemsPath: readonly string[];
  readonly #context: FormatContext;
  readonly #answer: Answerer;
  readonly #text: JsonText;
  #out = '';
  /** Position up to which the text has come out, or was dropped. */
  #written: number;
  /** Outside the items: for each open bracket the key at hand; null in an array. */
  readonly #keys: (string | null)[] = [];
  #isInItems = false;
  #hasItems = false;
  #item: JsonItem | undefined;
  /** Whether the item at hand is too long to be held, so that it passes (or is dropped) piece by piece. */
  #isTooLong = false;
  /** Items that the array at hand had so far, and those that came out. */
  #items = 0;
  #itemsOut = 0;

  constructor(input: string, itemsPath: readonly string[], at: number, context: FormatContext, answer: Answerer) {
    this.#input = input;
    this.#itemsPath = itemsPath;
    this.#context = context;
    this.#answer = answer;
    this.#text = new JsonText(input, at);
    this.#written = at;
  }

  read(chunk: string): void {
    this.#text.read(chunk, this.#take);
    if (this.#item !== undefined) this.#checkLength(this.#item);
    else if (!this.#isInItems) this.#passTo(this.#text.position);
    this.#text.letGo(this.#written);
  }

  /** Ends the document; throws where it is not whole or the items were not found. */
  end(): void {
    this.#text.end(this.#take);
    if (!this.#hasItems) {
      throw new AtlasError(
        'E_BAD_INPUT',
        `${this.#input} has no array at ${JSON.stringify(this.#itemsPath.join('.'))}; name one with --items`,
      );
    }
    this.#out += this.#text.rest();
  }

  /** @returns the output since the last call */
  takeOut(): Uint8Array {
    const out = textToBytes(this.#out);
    this.#out = '';
    return out;
  }

  #passTo(position: number): void {
    this.#out += this.#text.slice(this.#written, position);
    this.#written = position;
  }

  readonly #take: TokenHandler = (token, start, end) => {
    const key = token.name === 'keyValue' ? this.#keyText(token.value, start, end) : undefined;
    if (this.#isInItems) this.#takeInItems(token, start, end, key);
    else this.#takeOutside(token, start, key);
  };

  /** What a key says. The text holds bytes; they need decoding only where they are not ASCII. */
  #keyText(value: string, start: number, end: number): string {
    return NOT_ASCII.test(value) ? (JSON.parse(fromByteText(this.#text.slice(start, end))) as string) : value;
  }

  #takeOutside(token: Token, start: number, key: string | undefined): void {
    const keys = this.#keys;
    if (token.name === 'keyValue') {
      keys[keys.length - 1] = key!;
    } else if (token.name === 'startArray' && this.#isAtItems()) {
      this.#isInItems = true;
      this.#hasItems = true;
      this.#items = 0;
      this.#itemsOut = 0;
      this.#passTo(start + 1);
    } else if (this.#itemsPath.length === 0) {
      if (!this.#hasItems) {
        throw this.#text.errorAt(
          start,
          'this is no JSON array; name the array inside a document with --items PATH, and for one object a line use ' +
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

  #takeInItems(token: Token, start: number, end: number, key: string | undefined): void {
    if (this.#item === undefined) {
      if (token.name === 'endArray') {
        this.#isInItems = false;
        return;
      }
      this.#items++;
      this.#context.counts.lines++;
      this.#item = new JsonItem(start, token, this.#context.options.fields);
    }
    if (this.#item.take(token, start, end, key)) this.#finish(this.#item, end);
  }

  #finish(item: JsonItem, end: number): void {
    this.#item = undefined;
    if (this.#isTooLong) this.#handOnPiece(end);
    else if (!item.isObject) this.#finishInvalid(item, end);
    else this.#finishObject(item, end);
    this.#isTooLong = false;
  }

  #finishObject(item: JsonItem, end: number): void {
    const { fields } = this.#context.options;
    const added = new Map(
      fields.map(({ name }, index) => [
        name,
        `${asByteText(JSON.stringify(name))}:${this.#answer(item.values[index]!)}`,
      ]),
    );
    this.#passSeparator(item.start);
    this.#out += item.withMembers((from, to) => this.#text.slice(from, to), end, added);
    this.#written = end;
  }

  /** Passes what stands in front of an item: without its comma, where no item is left in front of it. */
  #passSeparator(itemStart: number): void {
    const separator = this.#text.slice(this.#written, itemStart);
    this.#out += this.#itemsOut === 0 ? separator.replace(',', '') : separator;
    this.#itemsOut++;
    this.#written = itemStart;
  }

  #finishInvalid(item: JsonItem, end: number): void {
    this.#beginInvalid(item, end, 'is no object');
    this.#handOnPiece(end);
  }

  /** @param end position behind the item, or behind what there is of it so far */
  #beginInvalid(item: JsonItem, end: number, problem: string): void {
    const { counts, options, reject } = this.#context;
    counts.invalid_line++;
    if (options.onInvalid === 'keep') this.#passSeparator(item.start);
    else this.#written = item.start;
    if (options.onInvalid === 'fail') {
      reject(textToBytes(`${this.#text.slice(item.start, end)}\n`));
      throw this.#text.errorAt(item.start, `item ${this.#items} ${problem}`);
    }
  }

  /** Passes an invalid item, or a piece of one, or drops it. */
  #handOnPiece(end: number): void {
    const piece = this.#text.slice(this.#written, end);
    this.#context.reject(textToBytes(this.#item === undefined ? `${piece}\n` : piece));
    if (this.#context.options.onInvalid === 'keep') this.#out += piece;
    this.#written = end;
  }

  #checkLength(item: JsonItem): void {
    if (!this.#isTooLong) {
      const end = this.#text.position;
      if (end - item.start <= MAX_JSON_ITEM_BYTES) return;
      this.#beginInvalid(item, end, `is longer than ${MAX_JSON_ITEM_BYTES} bytes`);
      this.#isTooLong = true;
    }
    this.#handOnPiece(this.#text.position);
  }
}

/**
 * @param itemsPath the keys that lead to the array; none where the document is the array
 * @returns the format. An item that is no object is an invalid line
 */
export function jsonFormat(context: FormatContext, itemsPath: readonly string[]): Format {
  const answer = jsonAnswerer(context);

  async function* enrich(input: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const texts = withoutByteOrderMark(chunks);
    const { value: mark } = await texts.next();
    yield textToBytes(mark ?? '');
    const document = new Document(input, itemsPath, mark?.length ?? 0, context, answer);
    try {
      for await (const text of texts) {
        document.read(text);
        yield document.takeOut();
      }
      document.end();
    } finally {
      // Where an item made it fail, the ones in front of it come out.
      yield document.takeOut();
    }
  }

  return { newline: '\n', enrich };
}

/** Yields the byte order mark, or an empty text where there is none, and then the text behind it. */
async function* withoutByteOrderMark(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, undefined> {
  let start: string | undefined = '';
  for await (const chunk of chunks) {
    const text = bytesToText(chunk);
    if (start === undefined) {
      yield text;
      continue;
    }
    start += text;
    if (start.length < BYTE_ORDER_MARK.length) continue;
    const mark = start.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
    yield mark;
    yield start.slice(mark.length);
    start = undefined;
  }
  if (start !== undefined) {
    yield '';
    yield start;
  }
}
