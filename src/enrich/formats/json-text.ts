/** Reads JSON text by stream-json and says where in the text each token stands. */
import { jsonParser, type Token } from 'stream-json/core/parser.js';
import { jsonVerifier, type VerifierError } from 'stream-json/core/utils/verifier.js';
import { AtlasError, messageOf } from '../../errors.js';
import { MAX_JSON_ITEM_BYTES } from '../../limits.js';

/** A token; `start` and `end` are byte positions in the whole text, quotes and brackets included. */
export type TokenHandler = (token: Token, start: number, end: number) => void;

const QUOTE = '"';
const BACKSLASH = 92;
/** Blanks that change nothing; stream-json notices some mistakes only when this much more text has come. */
const PADDING = ' '.repeat(32);

/** Index of the first character that begins a token: blanks, commas and colons stand between tokens. */
function skipBetween(text: string, from: number): number {
  for (let at = from; ; at++) {
    const char = text[at];
    if (char !== ' ' && char !== ',' && char !== ':' && char !== '\n' && char !== '\r' && char !== '\t') return at;
  }
}

/** Index behind a string's closing quote: the first that has an even number of backslashes in front. */
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
  /** Text behind which the reader has come, and which its user still needs. */
  #kept = '';
  /** Text of which no token has come yet; it follows the kept text. */
  #ahead = '';
  /** Position of the first character that is kept. */
  #keptAt: number;
  /** Line on which that character stands. */
  #line = 1;
  /** Open brackets, from the outside in. */
  readonly #open: ('[' | '{')[] = [];
  #last: Token['name'] | undefined;

  /**
   * @param input how messages call the input
   * @param at position of the first character that will be read
   */
  constructor(input: string, at: number) {
    this.#input = input;
    this.#keptAt = at;
  }

  /** Position behind the last token. */
  get position(): number {
    return this.#keptAt + this.#kept.length;
  }

  /** Whether the document's outermost bracket has been closed. */
  get isComplete(): boolean {
    return this.#open.length === 0 && this.#last !== undefined;
  }

  /**
   * @param chunk the next piece of text, one character a byte
   * @throws AtlasError E_BAD_INPUT for what is no JSON, with its line and position
   */
  read(chunk: string, onToken: TokenHandler): void {
    let tokens: ReturnType<ReturnType<typeof jsonParser>>;
    try {
      tokens = this.#parse(chunk);
    } catch (error) {
      throw this.#syntaxError(this.#ahead + chunk, error);
    }
    this.#ahead += chunk;
    if (typeof tokens === 'object') this.#place(tokens.values, onToken);
    if (this.#ahead.length > MAX_JSON_ITEM_BYTES) {
      throw this.errorAt(this.position, `a single value of more than ${MAX_JSON_ITEM_BYTES} bytes cannot be read`);
    }
  }

  /** Finds each token in the text. */
  #place(tokens: readonly Token[], onToken: TokenHandler): void {
    const base = this.position;
    const text = this.#ahead;
    let cursor = 0;
    for (const token of tokens) {
      const start = skipBetween(text, cursor);
      cursor = tokenEnd(text, start, token);
      this.#note(token);
      onToken(token, base + start, base + cursor);
    }
    this.#kept += text.slice(0, cursor);
    this.#ahead = text.slice(cursor);
  }

  #note({ name }: Token): void {
    if (name === 'startArray') this.#open.push('[');
    else if (name === 'startObject') this.#open.push('{');
    else if (name === 'endArray' || name === 'endObject') this.#open.pop();
    this.#last = name;
  }

  /** The text between two positions, the first of them not yet let go of, the last not behind the token at hand. */
  slice(start: number, end: number): string {
    const aheadAt = this.position;
    if (end <= aheadAt) return this.#kept.slice(start - this.#keptAt, end - this.#keptAt);
    const kept = start < aheadAt ? this.#kept.slice(start - this.#keptAt) : '';
    return kept + this.#ahead.slice(Math.max(start - aheadAt, 0), end - aheadAt);
  }

  /** Forgets the text in front of a position; not to be called while tokens are handed on. */
  letGo(position: number): void {
    const length = position - this.#keptAt;
    // To look into text that came in many pieces makes one piece of it, which takes long for a long item.
    if (length === 0) return;
    this.#line += newlines(this.#kept, length);
    this.#kept = this.#kept.slice(length);
    this.#keptAt = position;
  }

  /** The text behind the last token: blanks, where the document is complete. */
  rest(): string {
    return this.#ahead;
  }

  /**
   * Tells that the text ends here.
   *
   * @param onToken may get one more token: a document that is a number ends only here
   * @throws AtlasError E_BAD_INPUT where the text ended too early
   */
  end(onToken: TokenHandler): void {
    if (this.isComplete) return;
    const end = this.position + this.#ahead.length;
    // A mistake in the last few bytes shows now.
    this.read(PADDING, onToken);
    if (this.isComplete) return;
    throw this.errorAt(end, this.#last === undefined ? 'there is no JSON document' : 'the document ends in the middle');
  }

  /** @returns an E_BAD_INPUT that names the input, and the line and byte where the position is */
  errorAt(position: number, problem: string, cause?: unknown): AtlasError {
    const text = this.#kept + this.#ahead;
    const line = this.#line + newlines(text, position - this.#keptAt);
    const where = `${this.#input}, line ${line}, byte ${position + 1}`;
    return new AtlasError('E_BAD_INPUT', `${where}: ${problem}`, { cause });
  }

  /**
   * The parser does not say where it stopped; stream-json's verifier does. It is given the open brackets again, as short
   * as can be, and then the text since the last token.
   */
  #syntaxError(text: string, cause: unknown): AtlasError {
    const prefix = this.#openAgain();
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
    return this.errorAt(position, `this is no JSON: ${reason}`, cause);
  }

  /** Text that leads to where the last token stood. */
  #openAgain(): string {
    if (this.#open.length === 0) return this.#last === undefined ? '' : '[]';
    const outer = this.#open.slice(0, -1).map((bracket) => (bracket === '[' ? '[' : '{"":'));
    const inner = this.#open.at(-1)!;
    return outer.join('') + inner + this.#sinceOpened(inner);
  }

  #sinceOpened(bracket: '[' | '{'): string {
    if (this.#last === 'startArray' || this.#last === 'startObject') return '';
    if (this.#last === 'keyValue') return '""';
    return bracket === '[' ? '[]' : '"":[]';
  }
}

/** Newlines among the first characters of a text. */
function newlines(text: string, length: number): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0 && at < length; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
