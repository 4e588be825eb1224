/**
 * The expected enrichment of JSON lines, computed in another way: JSON.parse decides what is valid and what the values
 * are; a recursive descent over the bytes finds where the members are. Slow, and shares nothing with the kernel.
 */
import type { Database } from '../../src/database/database.js';
import { type EnrichCounts, emptyCounts } from '../../src/enrich/counts.js';
import type { EnrichOptions } from '../../src/enrich/options.js';

/** A member of an object: its key, and its text with the blanks around it, without the commas. */
interface Member {
  key: string;
  from: number;
  to: number;
}

const decode = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

/** Finds the members of the object in a valid line. Each character of the line is one byte. */
class MemberFinder {
  readonly #line: string;
  #at = 0;

  constructor(line: string) {
    this.#line = line;
  }

  find(): { members: Member[]; open: number; close: number } {
    this.#skip(/[ \t\r]/);
    const open = this.#at++;
    const members: Member[] = [];
    while (this.#line[this.#at - 1] !== '}') {
      const from = this.#at;
      this.#skip(/[ \t\r]/);
      if (this.#line[this.#at] === '}') {
        this.#at++;
        break;
      }
      const keyFrom = this.#at;
      this.#skipString();
      const key = JSON.parse(decode(this.#line.slice(keyFrom, this.#at))) as string;
      this.#skipValue();
      members.push({ key, from, to: this.#at });
      this.#at++;
    }
    return { members, open, close: this.#at - 1 };
  }

  #skip(characters: RegExp): void {
    while (characters.test(this.#line[this.#at] ?? '')) this.#at++;
  }

  #skipString(): void {
    this.#at++;
    while (this.#line[this.#at] !== '"') this.#at += this.#line[this.#at] === '\\' ? 2 : 1;
    this.#at++;
  }

  /** Skips up to the comma or closing brace after a value. */
  #skipValue(): void {
    for (let depth = 0; ; ) {
      const character = this.#line[this.#at]!;
      if (depth === 0 && (character === ',' || character === '}')) return;
      if (character === '"') {
        this.#skipString();
        continue;
      }
      if ('{['.includes(character)) depth++;
      if ('}]'.includes(character)) depth--;
      this.#at++;
    }
  }
}

/** Returns the object in a line, or undefined if the line is not a JSON object. */
function parseObject(line: string): object | undefined {
  try {
    const value: unknown = JSON.parse(decode(line));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export interface Expected {
  output: Buffer;
  rejects: Buffer;
  counts: EnrichCounts;
  /** Under the policy `fail`: the number of the line that it fails at. */
  failsAt: number | undefined;
}

/** Returns the result of a path as JSON, and counts it. */
function resultText(database: Database, object: object, path: string[], options: EnrichOptions, counts: EnrichCounts) {
  let value: unknown = object;
  for (const key of path) {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    value = isObject && Object.hasOwn(value as object, key) ? (value as Record<string, unknown>)[key] : undefined;
  }
  if (value === undefined) {
    counts.missing_field++;
    return 'null';
  }
  const result = typeof value === 'string' ? database.lookupWithReason(value) : undefined;
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
  const object = parseObject(line);
  if (object === undefined) return undefined;
  const { members, open, close } = new MemberFinder(line).find();
  const others = members.filter(({ key }) => !options.fields.some(({ name }) => name === key));
  const texts = others.map(({ from, to }) => line.slice(from, to));
  // If nothing is replaced, even the blanks of an empty object stay.
  const kept = others.length === members.length ? line.slice(open + 1, close) : texts.join(',');
  const added = options.fields.map(({ path, name }) => {
    const text = `${JSON.stringify(name)}:${resultText(database, object, path, options, counts)}`;
    return Buffer.from(text).toString('latin1');
  });
  const comma = others.length > 0 ? ',' : '';
  return `${line.slice(0, open + 1)}${kept}${comma}${added.join(',')}${line.slice(close)}`;
}

/** Returns the expected output of an input. */
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
    if (line === '' && newline === '') continue; // only a byte order mark
    const enriched = isLong ? undefined : /^[ \t\r]*$/.test(line) ? line : enrichLine(database, line, options, counts);
    if (enriched !== undefined) {
      counts.lines++;
      output.push(enriched, newline);
      continue;
    }
    counts.lines++;
    counts.invalid_line++;
    if (options.onInvalid === 'fail') {
      // A line that is too long is never in memory as a whole.
      if (!isLong) rejects.push(line, newline);
      return result(index + 1);
    }
    if (options.onInvalid === 'keep') output.push(line, newline);
    rejects.push(line, newline);
  }
  return result(undefined);
}
