/**
 * What the line engine should do, said in another way: a line is taken apart by recursive descent, byte by byte, and keys and
 * values are read with JSON.parse. Slow, and shares nothing with the kernel.
 */
import type { Database } from '../../src/database/database.js';
import { type EnrichCounts, emptyCounts } from '../../src/enrich/counts.js';
import type { EnrichOptions } from '../../src/enrich/options.js';

type Value =
  | { kind: 'object'; members: Member[] }
  | { kind: 'string'; text: string | undefined }
  | { kind: 'array' }
  | { kind: 'scalar' };

/** A member, and where all of it stands: from behind the comma or brace before it to the one behind it. */
interface Member {
  key: string | undefined;
  value: Value;
  from: number;
  to: number;
}

/** What cannot stand in a number or literal. How those are spelled is not checked further. */
const NO_SCALAR = ' \t\r\n{}[]:,"\\\f\x1a';

class Broken extends Error {}

/** A line taken apart; each of its characters is one byte. */
class Descent {
  readonly #line: string;
  #at = 0;

  constructor(line: string) {
    this.#line = line;
  }

  /** The object that is all of the line, with the place of its closing brace. */
  root(): { members: Member[]; open: number; close: number } {
    this.#blanks();
    const open = this.#at;
    if (this.#line[open] !== '{') throw new Broken();
    const { members } = this.#object();
    const close = this.#at - 1;
    this.#blanks();
    if (this.#at !== this.#line.length) throw new Broken();
    return { members, open, close };
  }

  #blanks(): void {
    while (/[ \t\r]/.test(this.#line[this.#at] ?? '')) this.#at++;
  }

  #eat(character: string): boolean {
    if (this.#line[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #object(): { kind: 'object'; members: Member[] } {
    this.#at++;
    const members: Member[] = [];
    let from = this.#at;
    this.#blanks();
    if (this.#eat('}')) return { kind: 'object', members };
    for (;;) {
      this.#blanks();
      const key = this.#string();
      this.#blanks();
      if (!this.#eat(':')) throw new Broken();
      const value = this.#value();
      this.#blanks();
      members.push({ key, value, from, to: this.#at });
      if (this.#eat('}')) return { kind: 'object', members };
      if (!this.#eat(',')) throw new Broken();
      from = this.#at;
    }
  }

  #array(): { kind: 'array' } {
    this.#at++;
    this.#blanks();
    if (this.#eat(']')) return { kind: 'array' };
    for (;;) {
      this.#value();
      this.#blanks();
      if (this.#eat(']')) return { kind: 'array' };
      if (!this.#eat(',')) throw new Broken();
    }
  }

  #value(): Value {
    this.#blanks();
    const first = this.#line[this.#at];
    if (first === '{') return this.#object();
    if (first === '[') return this.#array();
    if (first === '"') return { kind: 'string', text: this.#string() };
    const from = this.#at;
    while (!NO_SCALAR.includes(this.#line[this.#at] ?? ' ')) this.#at++;
    if (this.#at === from) throw new Broken();
    return { kind: 'scalar' };
  }

  /** What a string says; undefined where an escape in it is none of JSON's. */
  #string(): string | undefined {
    const from = this.#at;
    if (!this.#eat('"')) throw new Broken();
    while (!this.#eat('"')) {
      if (this.#at >= this.#line.length) throw new Broken();
      this.#at += this.#line[this.#at] === '\\' ? 2 : 1;
    }
    const text = Buffer.from(this.#line.slice(from, this.#at), 'latin1').toString();
    try {
      // Control characters are let pass inside strings, which JSON.parse does not do.
      return JSON.parse(
        text.replace(/\p{Cc}/gu, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`),
      );
    } catch {
      return undefined;
    }
  }
}

function lastOf(members: Member[], key: string): Value | undefined {
  return members.findLast((member) => member.key === key)?.value;
}

export interface Expected {
  output: Buffer;
  rejects: Buffer;
  counts: EnrichCounts;
  /** Under the policy `fail`: the number of the line that it fails at. */
  failsAt: number | undefined;
}

/** The answer to a path, as JSON. */
function answerText(
  database: Database,
  members: Member[],
  path: string[],
  options: EnrichOptions,
  counts: EnrichCounts,
) {
  let value: Value | undefined = { kind: 'object', members };
  for (const key of path) value = value?.kind === 'object' ? lastOf(value.members, key) : undefined;
  if (value === undefined) {
    counts.missing_field++;
    return 'null';
  }
  const result =
    value.kind === 'string' && value.text !== undefined ? database.lookupWithReason(value.text) : undefined;
  if (result === undefined) {
    counts.invalid_address++;
    return 'null';
  }
  if (result.country === null) counts.no_country++;
  else counts.found++;
  return JSON.stringify(Object.fromEntries(options.add.map((name) => [name, result[name]])));
}

function enrichLine(
  database: Database,
  line: string,
  options: EnrichOptions,
  counts: EnrichCounts,
): string | undefined {
  let root: ReturnType<Descent['root']>;
  try {
    root = new Descent(line).root();
  } catch (error) {
    if (error instanceof Broken) return undefined;
    throw error;
  }
  const { members, open, close } = root;
  const others = members.filter(({ key }) => !options.fields.some(({ name }) => name === key));
  const texts = others.map(({ from, to }) => line.slice(from, to));
  // Where nothing is replaced, not even the blanks of an empty object are touched.
  const kept = others.length === members.length ? line.slice(open + 1, close) : texts.join(',');
  const added = options.fields.map(({ path, name }) => {
    const text = `${JSON.stringify(name)}:${answerText(database, members, path, options, counts)}`;
    return Buffer.from(text).toString('latin1');
  });
  const comma = others.length > 0 ? ',' : '';
  return `${line.slice(0, open + 1)}${kept}${comma}${added.join(',')}${line.slice(close)}`;
}

/** What becomes of an input. */
export function expectLines(
  database: Database,
  input: Uint8Array,
  options: EnrichOptions,
  maxLineBytes = Number.POSITIVE_INFINITY,
): Expected {
  const counts = emptyCounts();
  counts.bytes = input.length;
  const text = Buffer.from(input).toString('latin1');
  const output: string[] = [];
  const rejects: string[] = [];
  const result = (failsAt: number | undefined): Expected => ({
    output: Buffer.from(output.join(''), 'latin1'),
    rejects: Buffer.from(rejects.join(''), 'latin1'),
    counts,
    failsAt,
  });
  const mark = text.startsWith('\xef\xbb\xbf') ? 3 : 0;
  for (const [index, lineWithEnd] of (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).entries()) {
    const newline = lineWithEnd.endsWith('\n') ? '\n' : '';
    const whole = newline === '' ? lineWithEnd : lineWithEnd.slice(0, -1);
    const isLong = whole.length > maxLineBytes;
    const skip = index === 0 && !isLong ? mark : 0;
    output.push(whole.slice(0, skip));
    const line = whole.slice(skip);
    if (line === '' && newline === '') continue; // nothing but a byte order mark
    const enriched = isLong ? undefined : /^[ \t\r]*$/.test(line) ? line : enrichLine(database, line, options, counts);
    if (enriched !== undefined) {
      counts.lines++;
      output.push(enriched, newline);
      continue;
    }
    counts.lines++;
    counts.invalid_line++;
    if (options.onInvalid === 'fail') {
      // A line that is too long is in nobody's memory as a whole.
      if (!isLong) rejects.push(line, newline);
      return result(index + 1);
    }
    if (options.onInvalid === 'keep') output.push(line, newline);
    rejects.push(line, newline);
  }
  return result(undefined);
}
