/**
 * The expected enrichment of JSON lines, computed in another way: JSON.parse decides what is valid and what the values
 * are; a recursive descent over the bytes finds where the members are. Slow, and shares nothing with the kernel.
 */

import type { Database } from '../../src/database/database.js';
import { type EnrichCounts, emptyCounts } from '../../src/enrich/counts.js';
import { EACH, type PathStep } from '../../src/enrich/field-path.js';
import type { EnrichOptions } from '../../src/enrich/options.js';
import { findAddress } from './lenient-twin.js';

/** A member of an object: its key, and its text with the blanks around it, without the commas. */
interface Member {
  key: string;
  from: number;
  to: number;
}

const decode = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

/** Finds the members of the object that begins at a place of a valid line. Each character of the line is one byte. */
class MemberFinder {
  readonly #line: string;
  #at: number;

  constructor(line: string, at = 0) {
    this.#line = line;
    this.#at = at;
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

/** Returns all values that a path leads to, in order. */
function valuesAt(value: unknown, path: readonly PathStep[]): unknown[] {
  const [step, ...rest] = path;
  if (step === undefined) return [value];
  if (Array.isArray(value)) {
    if (step === EACH) return value.flatMap((element) => valuesAt(element, rest));
    return typeof step === 'number' && step < value.length ? valuesAt(value[step], rest) : [];
  }
  if (typeof value !== 'object' || value === null || typeof step !== 'string' || !Object.hasOwn(value, step)) return [];
  return valuesAt((value as Record<string, unknown>)[step], rest);
}

/** Returns the result of a path as JSON, and counts it. */
function resultText(
  database: Database,
  object: object,
  path: readonly PathStep[],
  options: EnrichOptions,
  counts: EnrichCounts,
) {
  const values = valuesAt(object, path);
  const results = values.flatMap((value) => {
    const address = typeof value !== 'string' ? undefined : options.lenient === true ? findAddress(value) : value;
    const found = address === undefined ? undefined : database.lookupWithReason(address);
    return found === undefined ? [] : [{ ...found, address }];
  });
  const { pick = 'public' } = options;
  const best = pick === 'last' ? results.at(-1) : results.find(({ country }) => country !== null || pick === 'first');
  const result = best ?? results[0];
  if (values.length === 0) counts.missing_field++;
  else if (result === undefined) counts.invalid_address++;
  else if (result.country === null) counts.no_country++;
  else counts.found++;
  return result === undefined
    ? 'null'
    : JSON.stringify(Object.fromEntries(options.add.map((name) => [name, (result as Record<string, unknown>)[name]])));
}

/** A member to put into the line: the keys that lead to it, and the text of its value. */
interface Added {
  resultPath: readonly string[];
  value: string;
}

/** Returns the text of the object at a place of the line, from its opening to its closing brace, with members added. */
function withMembers(line: string, at: number, added: readonly Added[]): string {
  const { members, open, close } = new MemberFinder(line, at).find();
  const own = added.filter(({ resultPath }) => resultPath.length === 1);
  const others = members.filter(({ key }) => !own.some(({ resultPath }) => resultPath[0] === key));
  const texts = others.map((member) => {
    const { key, from, to } = member;
    const text = line.slice(from, to);
    const inner = added.filter(({ resultPath }) => resultPath.length > 1 && resultPath[0] === key);
    // The text of the key may have colons, but the value begins at the first brace after it, if it is an object.
    const start = /^[ \t\r]*"(?:[^"\\]|\\.)*"[ \t\r]*:[ \t\r]*\{/s.exec(text)?.[0].length;
    const isLast = members.findLast((one) => one.key === key) === member;
    if (inner.length === 0 || start === undefined || !isLast) return text;
    const below = inner.map(({ resultPath, value }) => ({ resultPath: resultPath.slice(1), value }));
    const object = withMembers(line, from + start - 1, below);
    const end = new MemberFinder(line, from + start - 1).find().close + 1;
    return text.slice(0, start - 1) + object + line.slice(end, to);
  });
  // If nothing is replaced, even the blanks of an empty object stay.
  const kept = others.length === 0 && members.length === 0 ? line.slice(open + 1, close) : texts.join(',');
  const ownTexts = own.map(({ resultPath, value }) =>
    Buffer.from(`${JSON.stringify(resultPath[0])}:${value}`).toString('latin1'),
  );
  const comma = others.length > 0 && own.length > 0 ? ',' : '';
  return `{${kept}${comma}${ownTexts.join(',')}}`;
}

function enrichLine(
  database: Database,
  line: string,
  options: EnrichOptions,
  counts: EnrichCounts,
): string | undefined {
  const object = parseObject(line);
  if (object === undefined) return undefined;
  const { open, close } = new MemberFinder(line).find();
  const added = options.fields.map(({ path, resultPath }) => ({
    resultPath,
    value: resultText(database, object, path, options, counts),
  }));
  return line.slice(0, open) + withMembers(line, open, added) + line.slice(close + 1);
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
    const skip = index === 0 ? mark : 0;
    const isLong = whole.length - skip > maxLineBytes;
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
