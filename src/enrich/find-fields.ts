/** Finds the format of any text, and where its addresses are, by its first lines. */
import { findAddress } from '../address/lenient.js';
import { parseAddress } from '../address/parse.js';
import { findAddresses } from '../address/text.js';
import { MAX_CSV_RECORD_BYTES } from '../limits.js';
import { type AddressNames, RANKS, rankOf } from './address-names.js';
import type { FormatName } from './choices.js';
import type { PathStep } from './field-path.js';
import type { Recognized } from './logs.js';

/** What was found: options of an enrichment, and the other fields that have addresses. */
export interface Finding {
  format: FormatName;
  items?: string | undefined;
  delimiter?: string | undefined;
  header?: false | undefined;
  field?: readonly string[] | undefined;
  lenient?: true | undefined;
  /** Whether the field is text in which the address is anywhere. */
  strings?: true | undefined;
  others: string[];
  /** Whether a client can forge the field. */
  isUntrusted: boolean;
}

/** What an input was recognized as: a log by name, or what was found in its first lines. */
export type Guessed = Recognized | Finding;

/** What flags say: it is kept. */
export interface Given {
  format?: FormatName | undefined;
  field?: readonly string[] | undefined;
  delimiter?: string | undefined;
  lenient?: boolean | undefined;
}

/** Least share of the values of a field that are addresses, and of the lines that are records of a format. */
const LEAST_SHARE = 0.9;
/** A client that has less than this part of the addresses of the most frequent client is rare. */
const LEAST_PART = 0.5;
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

  /** Returns the fields that hold addresses, the best first. */
  best(names: AddressNames): Omit<Finding, 'format'> | undefined {
    const found = [...this.#values].filter(([, { all, addresses }]) => addresses >= LEAST_SHARE * all);
    const ranked = found.map(([path, { addresses, lenient }]) => ({
      path,
      addresses,
      lenient,
      rank: rankOf(path, names),
    }));
    // Events of several kinds share a file: the name that most of them use goes before a better one that few use. A list has
    // several addresses in an event.
    const clients = ranked.filter(({ path, rank }) => rank < RANKS.unnamed && !path.includes('[]'));
    const most = Math.max(...clients.map(({ addresses }) => addresses));
    const order = ({ rank, addresses }: { rank: number; addresses: number }): number =>
      rank < RANKS.unnamed && addresses < LEAST_PART * most ? rank + RARE : rank;
    const [first, ...others] = ranked.filter(({ rank }) => rank < RANKS.never).sort((a, b) => order(a) - order(b));
    if (first === undefined) return undefined;
    return {
      field: [first.path],
      lenient: first.lenient > 0 ? true : undefined,
      others: others.map(({ path }) => path),
      isUntrusted: first.rank === RANKS.untrusted,
    };
  }
}

const RARE = 5_000;

/** Returns a key as it is written in a path. */
function escaped(key: string): string {
  return key.replace(/[.=|\\[\]]/g, '\\$&');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function addValues(fields: Pick<Fields, 'add'>, value: unknown, path: string, depth = 0): void {
  if (typeof value === 'string' && path !== '') fields.add(path, value);
  else if (depth > MAX_DEPTH) return;
  else if (Array.isArray(value)) for (const one of value) addValues(fields, one, `${path}[]`, depth + 1);
  else if (isObject(value)) {
    for (const [key, one] of Object.entries(value)) {
      if (key !== '') addValues(fields, one, path === '' ? escaped(key) : `${path}.${escaped(key)}`, depth + 1);
    }
  }
}

/** Returns the value of a JSON text; undefined if it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the value of a JSON text, or of the beginning of one up to its last complete object. */
function beginningOf(text: string): unknown {
  const whole = jsonOf(text);
  if (whole !== undefined) return whole;
  const open: string[] = [];
  let complete = '';
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (token === '[' || token === '{') open.push(token === '[' ? ']' : '}');
    else if (token === ']' || token === '}') {
      if (open.pop() !== token) return undefined;
      if (open.length > 0 && open.at(-1) === ']') complete = text.slice(0, index + 1) + [...open].reverse().join('');
    }
  }
  return jsonOf(complete);
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

/** Fields that hold the text of a message. */
const MESSAGE = /(?:^|\.)(?:message|msg|log|text|line)$/i;

/** The log that is read as lines of JSON in which a field is text. */
export const TEXT_LOG = 'syslog-json';

/** Finds the text that has addresses most often in lines of JSON. */
function findInMessages(items: readonly unknown[]): Finding | undefined {
  const counts = new Map<string, number>();
  const add = (path: string, value: string): void => {
    if (MESSAGE.test(path) && hasAddress(value)) counts.set(path, (counts.get(path) ?? 0) + 1);
  };
  for (const item of items) addValues({ add }, item, '');
  const [first, ...others] = [...counts].sort(([, a], [, b]) => b - a).map(([path]) => path);
  return first === undefined
    ? undefined
    : { format: 'jsonl', field: [first], strings: true, others, isUntrusted: false };
}

function findInDocument(text: string, names: AddressNames, given: Given): Finding | undefined {
  const arrays = itemsOf(beginningOf(text)).sort((a, b) => b.items.length - a.items.length);
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
  const objects = lines.map(jsonOf).filter(isObject);
  return objects.length > 0 && objects.length * 2 >= lines.length ? objects : undefined;
}

/** Splits a record of a table into its cells. Returns undefined if a quotation has no end, or text after it. */
export function cellsOf(line: string, delimiter: string): string[] | undefined {
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

/** Returns a function that takes the lines of a table, and returns the record that a line ends: some have a newline in quotes. */
export function joinedRecords(): (line: string) => string[] {
  let open: string | undefined;
  return (line) => {
    const record = open === undefined ? line : `${open}\n${line}`;
    const isOpen = (open !== undefined) !== (line.split('"').length % 2 === 0);
    open = isOpen && record.length < MAX_CSV_RECORD_BYTES ? record : undefined;
    return open === undefined ? [record] : [];
  };
}

const isComment = (line: string): boolean => line.startsWith('#');

/** Returns what was found in a table; null if only versions and masks look like addresses, undefined if it is no table. */
function findInTable(all: readonly string[], delimiter: string, names: AddressNames): Finding | null | undefined {
  const from = all.findIndex((line) => !isComment(line));
  const [marked, first = []] = all.slice(Math.max(0, from - 1)).map((line) => cellsOf(line, delimiter));
  // The last comment may be the header.
  const isMarked = from > 0 && marked?.length === first.length && first.some(isAddress);
  const lines = all.filter((line, at) => !isComment(line) || (isMarked && at === from - 1));
  const rows = lines.flatMap(joinedRecords()).map((record) => cellsOf(record, delimiter));
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
  if (found === undefined) return fields.best({ ...names, never: [] }) && null;
  // Without a header, the comment would be the first record.
  if (!hasHeader && from > 0) return undefined;
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
  const isClient = found !== undefined && rankOf(found.field![0]!, names) < RANKS.unnamed;
  return isClient && matches >= LEAST_SHARE * lines.length ? { format: 'logfmt', ...found } : undefined;
}

const hasAddress = (line: string): boolean => findAddresses(line).length > 0;

/** Returns whether an object has an address where it is read without flags; with a format that a flag names, whether it has `ip`. */
function hasDefault(value: unknown, { format, lenient }: Given = {}): boolean {
  if (!isObject(value) || typeof value.ip !== 'string') return false;
  return format !== undefined || parseAddress(value.ip, words) !== 0 || (lenient === true && isAddress(value.ip));
}

/** Returns whether the first line of an input is a JSON object with an address where one is read without a guess. */
export function isDecided(line: string, paths: readonly (readonly PathStep[])[]): boolean {
  const [object] = objectsOf([line]) ?? [];
  return paths.some((path) => {
    const at = (value: unknown, step: PathStep): unknown =>
      isObject(value) && typeof step === 'string' ? value[step] : undefined;
    const value = path.reduce(at, object);
    return typeof value === 'string' && parseAddress(value, words) !== 0;
  });
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
    if (found !== undefined) return { format: 'jsonl', ...found };
    return format === undefined ? findInMessages(objects) : undefined;
  }
  const delimiters = delimiter === undefined ? [',', '\t', ';', '|'] : [delimiter];
  const entries = lines.filter((line) => !isComment(line));
  const first = entries[0] ?? '';
  // A table that is called one, with the default column, is read without a guess.
  if (format !== undefined && delimiters.some((one) => cellsOf(first, one)?.includes('ip'))) return undefined;
  const tables = delimiters
    .filter((one) => (takes(one === '\t' ? 'tsv' : 'csv') || delimiter !== undefined) && first.includes(one))
    .map((one) => findInTable(lines, one, names));
  const table = tables.find((one) => one != null);
  if (table !== undefined || tables.includes(null)) return table ?? undefined;
  if (format !== undefined && format !== 'csv' && format !== 'tsv' && format !== 'logfmt') return undefined;
  const single = entries.filter((line) => isAddress(line.trim().replace(/^"(.*)"$/, '$1')));
  const isColumn = entries.length > 1 && !isAddress(first) && /^"?[\p{L}_][\p{L}\p{N}_ .-]*"?$/u.test(first);
  if (takes('csv') && isColumn && single.length === entries.length - 1)
    return findInTable(lines, ',', names) ?? undefined;
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

/** Most lines that are inspected. */
const MAX_LINES = 100;

/**
 * Returns the lines at the beginning of an input by which it is recognized; of a document, which is one record, all.
 *
 * @param isAll whether there is nothing after the text
 * @returns the sample, whether its last line is complete, and whether more lines could be part of it
 */
export function sampleOf(text: string, isAll: boolean): { sample: string; isWhole: boolean; isShort: boolean } {
  const isDocument = /^\s*(?:\{|\[\s*(?:\{|$))(?!.*\}\s*$)/.test(text.split('\n', 1)[0]!);
  const lines = isDocument ? [] : text.split(/\r?\n/, MAX_LINES + 1);
  const isShort = lines.length <= MAX_LINES;
  return { sample: isShort ? text : lines.slice(0, MAX_LINES).join('\n'), isWhole: !isShort || isAll, isShort };
}

/** Returns what JSON lines are that are read without a guess; undefined if none of them has an address at `ip`. */
export function findDefault(text: string): Finding | undefined {
  const isDefault = text.split('\n').some((line) => isDecided(line, [['ip']]));
  return isDefault ? { format: 'jsonl', field: ['ip'], others: [], isUntrusted: false } : undefined;
}

/** Returns the flags that say what was found. */
export function flagsOf(guessed: Guessed): string {
  if ('log' in guessed) return `--log ${guessed.names[0]}`;
  const { format, delimiter, header, items, field, lenient, strings } = guessed;
  const quoted = (text: string): string => (/^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const flags: [string, string | undefined][] = [
    strings ? ['log', TEXT_LOG] : ['format', format],
    ['delimiter', delimiter],
    ['items', items],
    ['field', field?.[0]],
  ];
  const texts = flags.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${quoted(value)}`]));
  return [...texts, ...(header === false ? ['--no-header'] : []), ...(lenient ? ['--lenient'] : [])].join(' ');
}

const TITLES: { [Format in FormatName]?: string } = { jsonl: 'JSON lines', json: 'JSON', csv: 'CSV', tsv: 'TSV' };

/** Says what an input was recognized as. */
export function describe(guessed: Guessed): string {
  if ('log' in guessed) return `${guessed.names.join('/')} ${guessed.log.title}; ${guessed.log.client}`;
  const { format, field, header, strings, others, isUntrusted } = guessed;
  const kind = format === 'csv' || format === 'tsv' ? 'column' : 'field';
  const title = `${TITLES[format] ?? format}${header === false ? ' without a header' : ''}`;
  const where = field === undefined ? '' : `, ${strings ? 'text of ' : ''}${kind} ${field.join(', ')}`;
  const forged = isUntrusted ? ', untrusted: a client can forge it' : '';
  const also =
    others.length === 0 ? '' : ` (also ${others.join(', ')} ${others.length === 1 ? 'has' : 'have'} addresses)`;
  return `${title}${where}${forged}${also}; the same with: ${flagsOf(guessed)}`;
}
