/** Finds the format of any text, and where its addresses are, by its first lines. */
import { findAddress } from '../address/lenient.js';
import { parseAddress } from '../address/parse.js';
import type { FormatName } from './choices.js';

/** The names of fields that hold addresses: data/address-names.json. */
export type AddressNames = Record<'client' | 'server' | 'forwarded' | 'never', readonly string[]>;

/** What was found: options of an enrichment, and the other fields that have addresses. */
export interface Finding {
  format: FormatName;
  items?: string | undefined;
  delimiter?: string | undefined;
  header?: false | undefined;
  field?: readonly string[] | undefined;
  lenient?: true | undefined;
  others: string[];
  /** Whether a client can forge the field. */
  isUntrusted: boolean;
}

/** What flags say: it is kept. */
export interface Given {
  format?: FormatName | undefined;
  field?: readonly string[] | undefined;
  delimiter?: string | undefined;
  lenient?: boolean | undefined;
}

/** Least share of the values of a field that are addresses, and of the lines that are records of a format. */
const LEAST_SHARE = 0.9;
const MAX_DEPTH = 6;
const MAX_PATHS = 2000;
const words = new Uint32Array(4);

/** The values of a field: how many there are, how many are addresses, and how many of these only `--lenient` finds. */
interface Values {
  all: number;
  addresses: number;
  lenient: number;
}

/** What says that there is no address, and what clouds write for their own services. */
const NO_ADDRESS =
  /^(?:|-|\?|null|none|nil|n\/a|unknown|local|localhost|private|gce-internal-ip|AWS Internal|[\w.-]+\.amazonaws\.com)$/i;

/** The fields of records in the order of their first values. */
class Fields {
  readonly #values = new Map<string, Values>();

  /** Adds a value. One that says that there is none does not count. */
  add(path: string, value: string): void {
    if (NO_ADDRESS.test(value.trim())) return;
    const one = this.#values.get(path) ?? { all: 0, addresses: 0, lenient: 0 };
    if (one.all === 0 && this.#values.size >= MAX_PATHS) return;
    this.#values.set(path, one);
    one.all++;
    if (parseAddress(value, words) !== 0) one.addresses++;
    else if (findAddress(value) !== undefined) {
      one.addresses++;
      one.lenient++;
    }
  }

  /** Returns the fields that hold addresses, the best first. @param nameOf returns the name of a field in the table of names */
  best(names: AddressNames, nameOf: (path: string) => string = (path) => path): Omit<Finding, 'format'> | undefined {
    const found = [...this.#values].filter(([, { all, addresses }]) => addresses >= LEAST_SHARE * all);
    const ranked = found.map(([path, { lenient }]) => ({ path, lenient, rank: rankOf(nameOf(path), names) }));
    const [first, ...others] = ranked.filter(({ rank }) => rank < NEVER).sort((a, b) => a.rank - b.rank);
    if (first === undefined) return undefined;
    return {
      field: [first.path],
      lenient: first.lenient > 0 ? true : undefined,
      others: others.map(({ path }) => path),
      isUntrusted: first.rank === FORWARDED,
    };
  }
}

const UNNAMED = 10_000;
const SERVER = 20_000;
const FORWARDED = 30_000;
/** Versions and masks look like addresses. */
const NEVER = 40_000;

function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z])(?=[A-Z])/g, '$1 ')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u);
}

/** Returns the place of a field in the order of names; lower is better. Its path counts as a whole, and without its first keys. */
function rankOf(path: string, { client, server, forwarded, never }: AddressNames): number {
  const keys = path
    .replace(/\\(.)/g, '$1')
    .replace(/\[\d*\]/g, '')
    .split(/[.:/]/);
  const tails = keys.map((_, at) =>
    keys
      .slice(at)
      .join('')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]/gu, ''),
  );
  if (tails.some((tail) => forwarded.includes(tail))) return FORWARDED;
  const [whole] = tails;
  if (client.includes(whole!)) return client.indexOf(whole!);
  const parts = wordsOf(path);
  if (wordsOf(keys.at(-1)!).some((part) => never.includes(part))) return NEVER;
  if ([...parts, ...tails].some((part) => server.includes(part))) return SERVER;
  const ranks = [...tails, ...parts].map((tail) => client.indexOf(tail)).filter((rank) => rank >= 0);
  return ranks.length === 0 ? UNNAMED : client.length + Math.min(...ranks);
}

/** Returns a key as it is written in a path. */
function escaped(key: string): string {
  return key.replace(/[.=\\[\]]/g, '\\$&');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function addValues(fields: Fields, value: unknown, path: string, depth = 0): void {
  if (typeof value === 'string' && path !== '') fields.add(path, value);
  else if (depth > MAX_DEPTH) return;
  else if (Array.isArray(value)) for (const one of value) addValues(fields, one, `${path}[]`, depth + 1);
  else if (isObject(value)) {
    for (const [key, one] of Object.entries(value)) {
      if (key !== '') addValues(fields, one, path === '' ? escaped(key) : `${path}.${escaped(key)}`, depth + 1);
    }
  }
}

/** Returns a JSON text; the beginning of one up to its last complete object. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const open: string[] = [];
    let complete = '';
    for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
      if (token === '[' || token === '{') open.push(token === '[' ? ']' : '}');
      else if (token === ']' || token === '}') {
        if (open.pop() !== token) return undefined;
        if (open.length > 0 && open.at(-1) === ']') complete = text.slice(0, index + 1) + [...open].reverse().join('');
      }
    }
    try {
      return JSON.parse(complete);
    } catch {
      return undefined;
    }
  }
}

/** An array of objects in a document, and the keys that lead to it. */
interface Items {
  path: string[];
  items: unknown[];
}

function itemsOf(value: unknown, path: string[] = []): Items[] {
  if (Array.isArray(value)) return value.some(isObject) ? [{ path, items: value }] : [];
  if (!isObject(value) || path.length >= MAX_DEPTH) return [];
  return Object.entries(value).flatMap(([key, one]) => (/^[^.]+$/.test(key) ? itemsOf(one, [...path, key]) : []));
}

function findInJson(items: readonly unknown[], names: AddressNames): Omit<Finding, 'format'> | undefined {
  const fields = new Fields();
  for (const item of items) addValues(fields, item, '');
  return fields.best(names);
}

function findInDocument(text: string, names: AddressNames, given: Given): Finding | undefined {
  const arrays = itemsOf(parseJson(text)).sort((a, b) => b.items.length - a.items.length);
  for (const { path, items } of arrays) {
    if (path.length === 0 && given.format !== undefined && items.some((one) => hasDefault(one, given)))
      return undefined;
    const found = findInJson(items, names);
    if (found !== undefined) return { format: 'json', items: path.length === 0 ? undefined : path.join('.'), ...found };
  }
  return undefined;
}

/** Returns the objects of lines of JSON, if most lines are some. */
function objectsOf(lines: readonly string[]): unknown[] | undefined {
  const objects = lines.flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return isObject(value) ? [value] : [];
    } catch {
      return [];
    }
  });
  return objects.length > 0 && objects.length * 2 >= lines.length ? objects : undefined;
}

/** Splits a record of a table. Returns undefined if a quotation has no end, or text after it. */
function cellsOf(line: string, delimiter: string): string[] | undefined {
  const cells: string[] = [];
  for (let at = 0; at <= line.length; at++) {
    const quoted = line[at] === '"' ? /"((?:[^"]|"")*)"/y : undefined;
    if (quoted !== undefined) quoted.lastIndex = at;
    const match = quoted?.exec(line);
    if (match === null) return undefined;
    const start = at;
    at = match === undefined ? line.indexOf(delimiter, at) : at + match[0].length;
    if (at < 0) at = line.length;
    if (at < line.length && line[at] !== delimiter) return undefined;
    cells.push(match === undefined ? line.slice(start, at) : match[1]!.replaceAll('""', '"'));
  }
  return cells;
}

const isAddress = (text: string): boolean => findAddress(text) !== undefined;

/** Joins the lines of records that have a newline in quotes. */
function recordsOf(lines: readonly string[]): string[] {
  const records: string[] = [];
  let isOpen = false;
  for (const line of lines) {
    if (isOpen) records.push(`${records.pop()}\n${line}`);
    else records.push(line);
    isOpen = isOpen !== (line.split('"').length % 2 === 0);
  }
  return records;
}

function findInTable(lines: readonly string[], delimiter: string, names: AddressNames): Finding | undefined {
  const rows = recordsOf(lines).map((record) => cellsOf(record, delimiter));
  const width = rows[0]?.length ?? 0;
  const records = rows.filter((row) => row?.length === width) as string[][];
  if (width === 0 || records.length < LEAST_SHARE * rows.length) return undefined;
  const header = records[0]!;
  const hasHeader = !header.some(isAddress);
  const isNamed = header.every((name, at) => name.trim() === '' || header.indexOf(name) === at);
  if (hasHeader && (records.length < 2 || !isNamed)) return undefined;
  const fields = new Fields();
  for (const row of hasHeader ? records.slice(1) : records) {
    for (const [at, cell] of row.entries()) {
      const name = hasHeader ? escaped(header[at]!) : `${at + 1}`;
      if (name !== '') fields.add(name, cell);
    }
  }
  const found = fields.best(names);
  if (found === undefined) return undefined;
  const format = delimiter === '\t' ? 'tsv' : 'csv';
  return {
    format,
    ...(delimiter !== '\t' && delimiter !== ',' && { delimiter }),
    ...(!hasHeader && { header: false }),
    ...found,
  };
}

const PAIR = /(?:^|[\s,;|[({])([A-Za-z_][\w.-]*)=(?:"((?:[^"\\]|\\.)*)"|([^\s,;|"]*))/g;

/** Finds a key of the table of names in lines with `key=value`. */
function findInPairs(lines: readonly string[], names: AddressNames): Finding | undefined {
  const fields = new Fields();
  let matches = 0;
  for (const line of lines) {
    const pairs = [...line.matchAll(PAIR)];
    if (pairs.length >= 2) matches++;
    for (const [, key, quoted, value] of pairs) fields.add(escaped(key!), quoted ?? value!);
  }
  const found = fields.best(names);
  const isClient = found !== undefined && rankOf(found.field![0]!, names) < UNNAMED;
  return isClient && matches >= LEAST_SHARE * lines.length ? { format: 'logfmt', ...found } : undefined;
}

function hasAddress(line: string): boolean {
  return [
    ...line.matchAll(/(?<![\w.-])(?:\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\w)|[\da-f]{0,4}:[\da-f:]*:[\da-f:.]*)/gi),
  ].some(([text]) => /\d/.test(text) && parseAddress(text.replace(/(?<=[^:])[.:]$/, ''), words) !== 0);
}

/** Returns whether an object has an address where it is read without flags; with a format that a flag names, whether it has `ip`. */
function hasDefault(value: unknown, { format, lenient }: Given = {}): boolean {
  if (!isObject(value) || typeof value.ip !== 'string') return false;
  return format !== undefined || parseAddress(value.ip, words) !== 0 || (lenient === true && isAddress(value.ip));
}

/** Returns whether the first line of an input is a JSON object that is read without a guess. */
export function isDecided(line: string): boolean {
  return objectsOf([line])?.some((one) => hasDefault(one)) === true;
}

function findAny(text: string, isWhole: boolean, given: Given, names: AddressNames): Finding | undefined {
  const { format, delimiter } = given;
  const takes = (one: FormatName): boolean => format === undefined || format === one;
  const all = text.split(/\r?\n/).filter((line) => /\S/.test(line));
  const lines = isWhole || all.length < 2 || text.endsWith('\n') ? all : all.slice(0, -1);
  if (lines.length === 0) return undefined;
  const objects = takes('jsonl') ? objectsOf(lines) : undefined;
  const isOne = objects === undefined || (lines.length === 1 && isWhole);
  if (takes('json') && isOne && /^\s*[[{]/.test(text)) {
    const found = findInDocument(text, names, given);
    if (found !== undefined) return found;
  }
  if (objects !== undefined) {
    // Such lines have a result without a guess; that others have none is no reason for another field.
    if (objects.some((one) => hasDefault(one, given))) return undefined;
    const found = findInJson(objects, names);
    return found && { format: 'jsonl', ...found };
  }
  const delimiters = delimiter === undefined ? [',', '\t', ';', '|'] : [delimiter];
  // A table that is called one, with the default column, is read without a guess.
  if (format !== undefined && delimiters.some((one) => cellsOf(lines[0]!, one)?.includes('ip'))) return undefined;
  const tables = delimiters
    .filter((one) => (takes(one === '\t' ? 'tsv' : 'csv') || delimiter !== undefined) && lines[0]!.includes(one))
    .flatMap((one) => findInTable(lines, one, names) ?? []);
  if (tables.length > 0) return tables[0];
  if (format !== undefined && format !== 'csv' && format !== 'tsv' && format !== 'logfmt') return undefined;
  const entries = lines.filter((line) => !line.startsWith('#'));
  const single = entries.filter((line) => isAddress(line.trim().replace(/^"(.*)"$/, '$1')));
  const isColumn = lines.length > 1 && !isAddress(lines[0]!) && /^"?[\p{L}_][\p{L}\p{N}_ .-]*"?$/u.test(lines[0]!);
  if (takes('csv') && isColumn && single.length === lines.length - 1) return findInTable(lines, ',', names);
  const rest = { others: [], isUntrusted: false };
  if (takes('list') && entries.length > 0 && single.length >= LEAST_SHARE * entries.length) {
    const lenient = single.some((line) => parseAddress(line, words) === 0) ? true : undefined;
    return { format: 'list', lenient, ...rest };
  }
  if (takes('logfmt')) {
    const found = findInPairs(lines, names);
    if (found !== undefined) return found;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: binary data has them
  const isText = !/[\0-\x08\x0e-\x1a]/.test(text) && lines.some(hasAddress);
  return takes('text') && isText ? { format: 'text', ...rest } : undefined;
}

/**
 * Finds what flags do not say by the beginning of an input.
 *
 * @param text without a byte order mark
 * @param isWhole whether the last line of the text is complete
 * @returns undefined if nothing is found, or nothing is to be found: JSON lines with an address at `ip`
 */
export function findFields(text: string, isWhole: boolean, given: Given, names: AddressNames): Finding | undefined {
  const found = findAny(text, isWhole, given, names);
  if (found === undefined) return undefined;
  if (given.field !== undefined) {
    const hasField = found.field !== undefined && found.format !== 'jsonl' && found.header !== false;
    return hasField ? { ...found, field: given.field, lenient: undefined, others: [], isUntrusted: false } : undefined;
  }
  const isAsToday = given.format === found.format && found.items === undefined && found.header !== false;
  return isAsToday && [...(found.field ?? []), ...found.others].includes('ip') ? undefined : found;
}

/** Returns the flags that say what was found. */
export function flagsOf({ format, delimiter, header, items, field, lenient }: Finding): string {
  const quoted = (text: string): string => (/^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const flags: [string, string | undefined][] = [
    ['format', format],
    ['delimiter', delimiter],
    ['items', items],
    ['field', field?.[0]],
  ];
  const texts = flags.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${quoted(value)}`]));
  return [...texts, ...(header === false ? ['--no-header'] : []), ...(lenient ? ['--lenient'] : [])].join(' ');
}
