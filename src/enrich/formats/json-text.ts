/** Reads JSON text with stream-json and finds the position of each token. */
import { jsonParser, type Token } from 'stream-json/core/parser.js';
import { jsonVerifier, type VerifierError } from 'stream-json/core/utils/verifier.js';
import { AtlasError, messageOf } from '../../errors.js';
import { MAX_JSON_ITEM_BYTES } from '../../limits.js';

/** A token; `start` and `end` are byte positions in the whole text, quotes and brackets included. */
export type TokenHandler = (token: Token, start: number, end: number) => void;

const QUOTE = '"';
const BACKSLASH = 92;
/** Blanks, which change nothing. stream-json reports some syntax errors only after this much more text. */
const PADDING = ' '.repeat(32);

/** Returns the index of the next token: skips blanks, commas and colons. */
function skipBetween(text: string, from: number): number {
  for (let at = from; ; at++) {
    const char = text[at];
    if (char !== ' ' && char !== ',' && char !== ':' && char !== '\n' && char !== '\r' && char !== '\t') return at;
  }
}

/** Returns the index after a string's closing quote: the first quote after an even number of backslashes. */
function stringEnd(text: string, start: number): number {
  let at = text.indexOf(QUOTE, start + 1);
  for (;;) {
    let before = at - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((at - 1 - before) % 2 === 0) return at + 1;
    at = text.indexOf(QUOTE, at + 1);
  }
}

function tokenEnd(text: string, start: number, token: Token): number {
  switch (token.name) {
    case 'keyValue':
    case 'stringValue':
      return stringEnd(text, start);
    case 'numberValue':
      return start + token.value.length;
    case 'trueValue':
    case 'nullValue':
      return start + 4;
    case 'falseValue':
      return start + 5;
    default:
      return start + 1;
  }
}

export class JsonText {
  readonly #input: string;
  readonly #parse = jsonParser({ streamValues: false });
  /** Consumed text that the caller still needs. */
  #kept = '';
  /** Text after the last token; it follows the kept text. */
  #ahead = '';
  /** Position of the first kept character. */
  #keptAt: number;
  /** Line number of that character. */
  #line = 1;
  /** Open brackets, from the outside in. */
  readonly #open: ('[' | '{')[] = [];
  #last: Token['name'] | undefined;

  /**
   * @param input name of the input in messages
   * @param at position of the first character that will be read
   */
  constructor(input: string, at: number) {
    this.#input = input;
    this.#keptAt = at;
  }

  /** Position after the last token. */
  get position(): number {
    return this.#keptAt + this.#kept.length;
  }

  /** Whether the document's outermost bracket is closed. */
  get isComplete(): boolean {
    return this.#open.length === 0 && this.#last !== undefined;
  }

  /**
   * Parses the next part of the text.
   *
   * @param chunk byte text
   * @throws AtlasError E_BAD_INPUT for a syntax error, with its line and position
   */
  read(chunk: string, onToken: TokenHandler): void {
    let tokens: ReturnType<ReturnType<typeof jsonParser>>;
    try {
      tokens = this.#parse(chunk);
    } catch (error) {
      throw this.#syntaxError(this.#ahead + chunk, error);
    }
    this.#ahead += chunk;
    if (typeof tokens === 'object') this.#locate(tokens.values, onToken);
    if (this.#ahead.length > MAX_JSON_ITEM_BYTES) {
      throw this.errorAt(this.position, `a single value of more than ${MAX_JSON_ITEM_BYTES} bytes cannot be read`);
    }
  }

  /** Finds the position of each token. */
  #locate(tokens: readonly Token[], onToken: TokenHandler): void {
    const base = this.position;
    const text = this.#ahead;
    let cursor = 0;
    for (const token of tokens) {
      const start = skipBetween(text, cursor);
      cursor = tokenEnd(text, start, token);
      this.#track(token);
      onToken(token, base + start, base + cursor);
    }
    this.#kept += text.slice(0, cursor);
    this.#ahead = text.slice(cursor);
  }

  #track({ name }: Token): void {
    if (name === 'startArray') this.#open.push('[');
    else if (name === 'startObject') this.#open.push('{');
    else if (name === 'endArray' || name === 'endObject') this.#open.pop();
    this.#last = name;
  }

  /** Returns the text between two positions. The first must not be discarded; the last must not be after the current token. */
  slice(start: number, end: number): string {
    const aheadAt = this.position;
    if (end <= aheadAt) return this.#kept.slice(start - this.#keptAt, end - this.#keptAt);
    const kept = start < aheadAt ? this.#kept.slice(start - this.#keptAt) : '';
    return kept + this.#ahead.slice(Math.max(start - aheadAt, 0), end - aheadAt);
  }

  /** Discards the text before a position. Must not be called by a token handler. */
  discardBefore(position: number): void {
    const length = position - this.#keptAt;
    // Slicing a string that was concatenated from many chunks flattens it, which takes long for a long item.
    if (length === 0) return;
    this.#line += newlines(this.#kept, length);
    this.#kept = this.#kept.slice(length);
    this.#keptAt = position;
  }

  /** Whether the text so far ends with the opening bracket of an array. */
  get isAtArrayStart(): boolean {
    return this.#last === 'startArray' && this.#ahead === '';
  }

  /**
   * Skips whole items of an array, from its beginning or after the items skipped before. All text so far must be discarded.
   *
   * @param length their bytes, with the commas between them; @param newlineCount the newlines among them
   */
  skipItems(length: number, newlineCount: number): void {
    if (length === 0) return;
    // The parser, which has not seen the items, now expects a comma or the end of the array.
    if (this.#last === 'startArray') this.#parse('{}');
    this.#last = 'endObject';
    this.#keptAt += length;
    this.#line += newlineCount;
  }

  /** Returns the text after the last token; only blanks if the document is complete. */
  rest(): string {
    return this.#ahead;
  }

  /**
   * Ends the text.
   *
   * @param onToken may receive one more token, because a document that is a number ends only here
   * @throws AtlasError E_BAD_INPUT if the text ended too early
   */
  end(onToken: TokenHandler): void {
    if (this.isComplete) return;
    const end = this.position + this.#ahead.length;
    // Reports a syntax error in the last few bytes.
    this.read(PADDING, onToken);
    if (this.isComplete) return;
    throw this.errorAt(end, this.#last === undefined ? 'there is no JSON document' : 'the document ends in the middle');
  }

  /** Returns an E_BAD_INPUT that names the input, and the line and byte of the position. */
  errorAt(position: number, problem: string, cause?: unknown): AtlasError {
    const text = this.#kept + this.#ahead;
    const line = this.#line + newlines(text, position - this.#keptAt);
    const place = `${this.#input}, line ${line}, byte ${position + 1}`;
    return new AtlasError('E_BAD_INPUT', `${place}: ${problem}`, { cause });
  }

  /**
   * Finds the position of a syntax error. The parser does not report it, but stream-json's verifier does. The verifier
   * receives a short text with the same open brackets, and then the text since the last token.
   */
  #syntaxError(text: string, cause: unknown): AtlasError {
    const prefix = this.#prefixText();
    const verify = jsonVerifier();
    let position = this.position;
    try {
      verify(prefix + text);
      verify(PADDING);
    } catch (error) {
      position += (error as VerifierError).offset - prefix.length;
    }
    this.#ahead = text;
    const reason = messageOf(cause).replace(/^Parser (cannot parse input: )?/, '');
    return this.errorAt(position, `not valid JSON: ${reason}`, cause);
  }

  /** Returns a short text that brings a parser to the state after the last token. */
  #prefixText(): string {
    if (this.#open.length === 0) return this.#last === undefined ? '' : '[]';
    const outer = this.#open.slice(0, -1).map((bracket) => (bracket === '[' ? '[' : '{"":'));
    const inner = this.#open.at(-1)!;
    return outer.join('') + inner + this.#afterBracket(inner);
  }

  #afterBracket(bracket: '[' | '{'): string {
    if (this.#last === 'startArray' || this.#last === 'startObject') return '';
    if (this.#last === 'keyValue') return '""';
    return bracket === '[' ? '[]' : '"":[]';
  }
}

/** Counts the newlines among the first characters of a text. */
function newlines(text: string, length: number): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0 && at < length; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
