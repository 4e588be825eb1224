/** Formats results for each format: the texts to insert. Those that depend on the address are left open, for the kernel to fill. */
import type { CountryResult } from '../../database/engine.js';
import { type Addable, otherPartitionOf, type SchemaName, schemaPath } from '../members.js';
import { DELIMITERS, type KernelInput } from '../options.js';

/** What a result says of the country. */
export type CountryAnswer = CountryResult & {
  /** Code of the continent, such as `EU`; null without a country. */
  continent?: string | null;
  /** Whether the country is in the European Economic Area; only if it is asked for. */
  is_eea?: boolean;
};

/** The placeholder of a text that is not known yet: a character that is not in any name, and is written as it is in every format. */
const OPEN_TEXT = '\uffff';

/**
 * Placeholders for the members that do not depend on the country and that the kernel fills in. They are unlike the text around
 * them: an AS number with all digits, and for names and labels a character that no name has.
 */
const OPEN_NAME = '\ufffe';
const OPEN_NUMBER = 1_234_567_890;
const OPEN_MEMBERS: { readonly [Name in Addable]?: string | number } = {
  asn: OPEN_NUMBER,
  as_name: OPEN_NAME,
  network: OPEN_TEXT,
  address: OPEN_TEXT,
  release_date: OPEN_TEXT,
};

/** Whether the values of a member that is open are true or false. */
function isFlag(name: Addable): boolean {
  return otherPartitionOf(name)?.flags?.includes(name) === true;
}

/** Returns the members that are not of the record of the country. @param labels those of the release that are opened */
export function openMembers(add: readonly Addable[], labels: readonly string[]): Addable[] {
  return add.filter((name) => name in OPEN_MEMBERS || otherPartitionOf(name, labels) !== undefined);
}

/** How results are written in a format. */
export interface ResultFormat {
  /** What precedes the members of a result, what is between two of them, and what follows them. */
  open: string;
  separator: string;
  close: string;
  /** The text for no result. */
  none: string;
  /** Formats a member of a result. */
  member(name: Addable, value: unknown): string;
}

/** Returns how members of a result are written under the names of a schema, into an object that has other members. */
export function schemaFormat(schema: SchemaName): ResultFormat {
  const member = (name: Addable, value: unknown): string => {
    return `${JSON.stringify(schemaPath(schema, name).at(-1))}:${JSON.stringify(value ?? null)}`;
  };
  return { open: ',', separator: ',', close: '', none: '', member };
}

/** Cells or fields in a row, which are there for no result, too. */
function inRow(add: readonly Addable[], member: ResultFormat['member']): ResultFormat {
  return { open: '', separator: '', close: '', none: add.map((name) => member(name, null)).join(''), member };
}

/** A cell without a value in W3C Extended Log Format (section "Entries") and, by default, in the logs of Zeek. */
export const UNSET = '-';

/** The types of results in logs of Zeek; the others are strings. */
const ZEEK_TYPES: { [Name in Addable]?: string } = {
  is_eu: 'bool',
  is_eea: 'bool',
  asn: 'count',
  address: 'addr',
  network: 'subnet',
};

/** Returns the type of a column of results in a log of Zeek. */
export function zeekType(name: Addable): string {
  return ZEEK_TYPES[name] ?? (isFlag(name) ? 'bool' : 'string');
}

/** Returns a value as a log of Zeek has it: `T` or `F`, and the delimiter as `\x2c`. */
function zeekText(value: unknown, delimiter: string): string {
  const text = typeof value === 'boolean' ? (value ? 'T' : 'F') : String(value ?? UNSET);
  return text.replaceAll(delimiter, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

/** What can be between two pairs of a key and a value; LEEF has tabs. */
const PAIR_DELIMITERS: readonly string[] = [' ', '\t'];

/** Returns a value after a key, quoted as in logfmt if necessary. */
function pairText(text: string, delimiter: string): string {
  return text.includes(delimiter) || /["=\\]/.test(text) ? `"${text.replaceAll(/["\\]/g, '\\$&')}"` : text;
}

/** Returns whether a dash is a missing value in an input. */
export function hasUnset(input: KernelInput): boolean {
  return input.kind === 'logfmt' || (input.kind === 'table' && input.directives !== undefined);
}

/** Returns a value as a quoted field, as web servers write it. */
function quotedText(value: unknown): string {
  return `"${String(value ?? UNSET).replaceAll(/["\\]/g, '\\$&')}"`;
}

/** Returns the styles that the results of an input can have: the delimiters before them. */
export function stylesOf(input: KernelInput): readonly string[] {
  if (input.kind === 'logfmt') return PAIR_DELIMITERS;
  if (input.kind !== 'table') return ['\t'];
  return input.directives === undefined || input.directives === 'columns' ? [input.delimiter] : DELIMITERS;
}

/**
 * Returns how results are written into records of a format.
 *
 * @param add the members wanted, in order
 * @param key the key of the result in an object
 * @param style the delimiter before a cell
 */
export function resultFormat(input: KernelInput, add: readonly Addable[], key: string, style: string): ResultFormat {
  switch (input.kind) {
    case 'jsonl':
    case 'json':
    case 'json-seq': {
      const name = JSON.stringify(key);
      const member = (part: Addable, value: unknown): string => `"${part}":${JSON.stringify(value ?? null)}`;
      return { open: `,${name}:{`, separator: ',', close: '}', none: `,${name}:null`, member };
    }
    case 'combined':
      return inRow(add, (_, value) => ` ${quotedText(value)}`);
    case 'table':
      if (input.directives === 'columns') return inRow(add, (_, value) => style + quotedText(value));
      if (input.directives === 'zeek') return inRow(add, (_, value) => style + zeekText(value, style));
      return inRow(add, (_, value) => style + cellText(String(value ?? (hasUnset(input) ? UNSET : '')), style));
    case 'logfmt': {
      const member = (part: Addable, value: unknown): string =>
        `${style}${key}_${part}=${pairText(String(value ?? ''), style)}`;
      // A line without an address has no results.
      return { ...inRow(add, member), none: '' };
    }
    default:
      return inRow(add, (_, value) => style + cellText(String(value ?? ''), style));
  }
}

/** Returns the text before and after the value of a member that is filled in, and the whole text if there is nothing to fill in. */
export function openTexts({ member }: ResultFormat, name: Addable): [before: string, after: string, none: string] {
  // JSON has no quotes around true and false, as around a number.
  const value = OPEN_MEMBERS[name] ?? (isFlag(name) ? OPEN_NUMBER : OPEN_NAME);
  const [before = '', after = ''] = member(name, value).split(String(value));
  return [before, after, member(name, null)];
}

/**
 * Returns the texts of a result with a record: one before each member that is filled in, and one after the last.
 *
 * @param open the members that are filled in
 */
export function resultTexts(
  format: ResultFormat,
  add: readonly Addable[],
  open: readonly Addable[],
  result: CountryAnswer,
): string[] {
  const texts = [format.open];
  add.forEach((name, index) => {
    if (index > 0) texts.push(texts.pop()! + format.separator);
    if (open.includes(name)) texts.push('');
    else texts.push(texts.pop()! + format.member(name, result[name as keyof CountryAnswer]));
  });
  texts.push(texts.pop()! + format.close);
  return texts;
}

/** Returns a cell, quoted only if necessary (RFC 4180 §2). */
export function cellText(text: string, delimiter: string): string {
  const hasDelimiter = text === OPEN_TEXT ? /[\d.:a-f/]/i.test(delimiter) : text.includes(delimiter);
  const mustQuote = hasDelimiter || /["\r\n]/.test(text);
  return mustQuote ? `"${text.replaceAll('"', '""')}"` : text;
}
