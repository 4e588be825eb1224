/** Finds what the beginning of any text is, and where its addresses are: first its structure, then its fields by their roles. */
import { isPublicAddress, parseAddress } from '../address/parse.js';
import { AtlasError } from '../errors.js';
import { type AddressNames, isClientKey, isShipper, keysOf, plainName, RANKS, rankOf } from './address-names.js';
import type { FormatName } from './choices.js';
import type { DetectedFields } from './detection.js';
import { EACH, type PathStep, parsePath, splitAlternatives } from './field-path.js';
import { cutJson, isObject, jsonOf, topValues } from './json-text.js';
import { addressesIn, addressesOf, findIn, publicPick } from './sample-reader.js';
import { cellsOf, MAX_TITLES, rowsOf } from './table-text.js';

/** What flags say: it is kept. */
export interface ExplicitFlags {
  format?: FormatName | undefined;
  field?: readonly string[] | undefined;
  delimiter?: string | undefined;
  lenient?: boolean | undefined;
}

/** What is found; null for JSON that is read as flags say, or without any. */
export type Detected = DetectedFields | null | undefined;

/** Least share of the values of a field that are addresses, and of the lines that are records of a format. */
const LEAST_SHARE = 0.9;
/** The same for a field with the name of a client: others may be names of hosts; and for the rows of a table with a header. */
const LEAST_CLIENT_SHARE = 0.05;
const LEAST_ROW_SHARE = 0.5;
/** The same for the rows of a table whose header names the client: other tables may follow. */
const LEAST_TABLE_SHARE = 0.2;
/** Most numbers of cells that rows of a table may have. */
const MAX_WIDTHS = 3;
/** A client that has less than this part of the addresses of the most frequent client is rare. */
const LEAST_PART = 0.5;
const MAX_DEPTH = 10;
const MAX_PATHS = 20_000;
/** Most fields of one role that are alternatives. */
const MAX_ALTERNATIVES = 8;
const words = new Uint32Array(4);

/** The values of a field: how many there are, how many are addresses, with --lenient only, with colors, and how many have one in their text, that of a client. */
interface Values {
  all: number;
  addresses: number;
  lenient: number;
  colored: number;
  texts: number;
  clients: number;
  publics: number;
}

/** What says that there is no address. */
const NO_ADDRESS = /^(?:|-|\?|null|none|nil|n\/a|unknown|local|localhost|private|gce-internal-ip|AWS Internal)$/i;
/** The name of a field of what carries a message, if that of the message has an underscore as well. */
const MARKED = /(?:^|\.)_[^.]*$/;
/** What clouds write for their own services. */
const SERVICE = '.amazonaws.com';

// biome-ignore lint/suspicious/noControlCharactersInRegex: ESC begins a color
const COLOR = /\x1b\[[\d;]*m/g;

type Found = Omit<DetectedFields, 'format'>;
type Ranked = Values & { path: string; rank: number };

/** The fields of records in the order of their first values. */
class Fields {
  readonly #values = new Map<string, Values>();

  readonly #added: [values: Values, value: string][] = [];

  /** Adds a value. One that says that there is none counts as none. */
  add(path: string, value: string): void {
    const one = this.#values.get(path) ?? {
      all: 0,
      addresses: 0,
      lenient: 0,
      colored: 0,
      texts: 0,
      clients: 0,
      publics: 0,
    };
    if (one.all === 0 && this.#values.size >= MAX_PATHS) return;
    this.#values.set(path, one);
    const trimmed = value.trim();
    if (NO_ADDRESS.test(trimmed) || trimmed.endsWith(SERVICE)) return;
    one.all++;
    const plain = value.includes('\x1b') ? value.replace(COLOR, '') : value;
    if (plain !== value) one.colored++;
    this.#added.push([one, plain]);
  }

  /** Looks for the addresses in the values that were added. */
  #count(): void {
    const addresses = addressesOf(this.#added.map(([, value]) => value));
    const texts = this.#added.filter((_, at) => addresses[at] === undefined);
    const inTexts = findIn(texts.map(([, value]) => value));
    this.#added.forEach(([one, value], at) => {
      const address = addresses[at];
      if (address === undefined) return;
      one.addresses++;
      if (address !== value) one.lenient++;
      if (isPublicAddress(address)) one.publics++;
    });
    texts.forEach(([one], at) => {
      const [first] = inTexts[at]!;
      if (first === undefined) return;
      one.texts++;
      if (inTexts[at]!.some(({ isClient }) => isClient)) one.clients++;
      if (isPublicAddress(first.text)) one.publics++;
    });
  }

  /**
   * Returns the fields of the best role that hold addresses, or of text with addresses.
   *
   * @param takesTexts whether text in fields of any name counts
   */
  best(names: AddressNames, takesTexts: boolean): Found | undefined {
    this.#count();
    const all = [...this.#values].map(([path, values]) => ({ path, ...values, rank: rankOf(path, names) }));
    const messages = all.filter(({ path, texts }) => texts > 0 && isMessage(path, names));
    const { client: _, ...labels } = names.labels;
    const texts = all.filter(
      (one) => one.texts > 0 && one.rank <= RANKS.untrusted && (takesTexts || !isLabelled(one.path, labels)),
    );
    const isFull = (one: Ranked): boolean => one.texts >= LEAST_SHARE * one.all && !isLabelled(one.path, labels);
    const ofClients = texts.filter((one) => one.clients >= LEAST_SHARE * one.all && isFull(one));
    const remarks = texts.filter(
      (one) => ofClients.includes(one) || (isFull(one) && names.remark.includes(lastNameOf(one.path))),
    );
    // A shipper's name is the machine's beside a message, or beside an object that has it.
    const isBeside = (path: string): boolean => {
      const parent = path.slice(0, path.lastIndexOf('.') + 1);
      const isSure = messages.some((one) => one.path.startsWith(parent));
      const isMarked = MARKED.test(path) && messages.some((one) => MARKED.test(one.path));
      return isMarked || ((messages.length > 0 || remarks.length > 0) && isShipper(path, names, isSure));
    };
    for (const one of all) if (one.rank < RANKS.machine && isBeside(one.path)) one.rank = RANKS.machine;
    const isText = (one: Ranked): boolean => messages.includes(one) && one.addresses < LEAST_SHARE * one.all;
    const holders = all.filter((one) => {
      const least = one.rank < RANKS.unnamed ? LEAST_CLIENT_SHARE : LEAST_SHARE;
      return one.addresses > 0 && one.addresses >= least * one.all && !isText(one);
    });
    const others = (chosen: readonly Ranked[]): string[] =>
      [...holders, ...messages].filter((one) => !chosen.includes(one)).map(({ path }) => path);
    const result = (
      chosen: readonly Ranked[],
      inText = chosen.some(({ colored, addresses, texts }) => colored > 0 || (addresses === 0 && texts > 0)),
    ): Found => ({
      field: [chosen.map(({ path }) => path).join('|')],
      ...(inText ? { inText: true } : { lenient: chosen.some(({ lenient }) => lenient > 0) ? true : undefined }),
      others: others(chosen),
      isUntrusted: chosen[0]!.rank === RANKS.untrusted,
      publicElsewhere: chosen.some(({ publics }) => publics > 0)
        ? undefined
        : all
            .filter((one) => one.publics > 0 && one.rank < RANKS.never)
            .map(({ path }) => `--field '${path}' --lenient`)[0],
    });
    const roles = [RANKS.unnamed - 1, RANKS.unnamed, RANKS.untrusted];
    for (const role of roles) {
      const group = holders.filter(({ rank }) => (role < RANKS.unnamed ? rank <= role : rank === role));
      if (role === RANKS.unnamed && ofClients.length > 0) break;
      if (group.length > 0) return result(inOrder(group, names));
      // The client's field may have the name of its host, too.
      const inTexts = texts.filter(({ path, rank }) => rank < role && isClientKey(path, names));
      const named = inTexts.filter(
        (one) => one.texts >= LEAST_SHARE * one.all && !isText(one) && !one.path.includes('[]'),
      );
      if (role < RANKS.unnamed && named.length > 0) return result(inOrder(named, names));
    }
    // Beside no message, the name of a host says what the record is about.
    const [shipper] = holders.filter(
      ({ path, rank }) => rank === RANKS.machine && names.shipper.includes(plainName(path)),
    );
    if (messages.length === 0 && remarks.length === 0 && shipper !== undefined) return result([shipper]);
    const found = [messages, ofClients, takesTexts ? texts : remarks].find((one) => one.length > 0);
    const longest = (list: readonly Ranked[]): Ranked[] => [...list].sort((a, b) => b.texts - a.texts);
    if (found !== undefined) {
      const [first] = longest(found);
      // It may be in an array in some records.
      const isSame = ({ path }: Ranked): boolean => `${path}[]` === first!.path || path === `${first!.path}[]`;
      return result([first!, ...all.filter((one) => one.texts > 0 && isSame(one))], true);
    }
    // A field that is named as the client has names of hosts or of services only: the other end is not the client.
    const client = all.filter(({ rank }) => rank < RANKS.unnamed).sort((a, b) => a.rank - b.rank)[0];
    const rest = holders.filter(({ rank }) => rank < RANKS.never).sort((a, b) => a.rank - b.rank);
    const [text] = longest(texts);
    if (rest.length === 0) return text && result([text], true);
    return result(client !== undefined && /client|source|src|remote/i.test(client.path) ? [client] : rest.slice(0, 1));
  }

  /** Returns whether a field has what looks like an address and is none. */
  get hasVersions(): boolean {
    return [...this.#values.values()].some(({ addresses }) => addresses > 0);
  }
}

/** Returns the last key of a path as it is in the lists. */
function lastNameOf(path: string): string {
  return plainName(keysOf(path).at(-1)!);
}

/** Returns whether a field holds the text of a message, by its last key. */
function isMessage(path: string, names: AddressNames): boolean {
  return names.message.includes(lastNameOf(path));
}

/** Returns whether the text of a field is what a client writes, or a place on a server. */
function isLabelled(path: string, { untrusted = [], server = [] }: AddressNames['labels']): boolean {
  const name = lastNameOf(path);
  return [...untrusted, ...server].some((one) => one === name || (one.length > 3 && name.includes(one)));
}

/**
 * Returns fields of one role in the order in which a record is looked up by them. Events of several kinds share a file: a name that most of
 * them use goes before a better one that few use. A list has several addresses in an event, so it is taken if nothing else is there, in all records or in one. Names
 * that have a role by one of their words only are not alternatives of others.
 */
function inOrder(group: readonly Ranked[], names: AddressNames): Ranked[] {
  const all = group.filter(({ path }) => !path.includes('[]'));
  const isClientList = ({ path, rank }: Ranked): boolean =>
    rank < RANKS.unnamed && path.endsWith('[]') && isClientKey(path.slice(0, -2), names);
  const lists = group.filter(isClientList);
  const named = all.filter(({ path }) => isClientKey(path, names));
  const single = named.length > 0 ? named : all;
  if (single.length === 0) {
    const [first] = [...group].sort((one, other) => one.rank - other.rank);
    return isClientList(first!)
      ? [first!, ...lists.filter((one) => one !== first)].slice(0, MAX_ALTERNATIVES)
      : [first!];
  }
  const most = Math.max(...single.map(({ addresses }) => addresses));
  const order = ({ rank, addresses }: Ranked): number => (addresses < LEAST_PART * most ? rank + RANKS.unnamed : rank);
  return [...single.sort((a, b) => order(a) - order(b)), ...lists].slice(0, MAX_ALTERNATIVES);
}

/** Returns a key as it is written in a path. */
function escaped(key: string): string {
  return key.replace(/[.=\\[\]|]/g, '\\$&');
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

function findInObjects(items: readonly unknown[], names: AddressNames): Found | undefined {
  const fields = new Fields();
  for (const item of items) addValues(fields, item, '');
  return fields.best(names, false);
}

/** An array of objects in a document, and the path that leads to it; `[]` is an array on the way, and at the end one in another. */
interface Items {
  path: string;
  items: unknown[];
}

/** Returns the arrays of objects in a value, the outer ones first. Those at one path are one. */
function itemsOf(value: unknown): Items[] {
  const found = new Map<string, unknown[]>();
  const visit = (one: unknown, path: string, depth: number): void => {
    if (depth > MAX_DEPTH) return;
    if (Array.isArray(one)) {
      const items = found.get(path) ?? [];
      for (const inner of one) if (isObject(inner)) items.push(inner);
      if (items.length > 0) found.set(path, items);
      for (const inner of one) visit(inner, `${path}[]`, depth + 1);
    } else if (isObject(one)) {
      for (const [key, inner] of Object.entries(one)) {
        const isName = typeof inner === 'object' && /^[^.[\]]+$/.test(key);
        if (isName) visit(inner, path === '' ? key : `${path}.${key}`, depth + 1);
      }
    }
  };
  visit(value, '', 0);
  return [...found].map(([path, items]) => ({ path, items }));
}

/** Returns whether the first field is outside of arrays. */
function isOutsideArrays({ field }: Found): boolean {
  return !field![0]!.split('|')[0]!.includes('[]');
}

/** Returns whether a field of the client, or without a role, is outside of arrays: its object is the record. */
function isOfRecord(found: Found, names: AddressNames): boolean {
  const { field, isUntrusted, inText } = found;
  const [first] = field![0]!.split('|');
  return isOutsideArrays(found) && !isUntrusted && !inText && rankOf(first!, names) <= RANKS.unnamed;
}

/** Finds the array whose objects are the records of a document: the largest with addresses, or an array in its objects that has them. */
function findInDocument(arrays: readonly Items[], name: string, given: ExplicitFlags, names: AddressNames): Detected {
  const outer = arrays
    .filter(({ path }) => /^[^[]*(?:\[\])*$/.test(path))
    .sort((a, b) => b.items.length - a.items.length);
  for (const { path, items } of outer) {
    if (path === '' && given.format !== undefined && items.some((one) => hasDefault(one, given))) return null;
    const found = findInObjects(items, names);
    if (found === undefined) continue;
    const inner = isOfRecord(found, names)
      ? []
      : arrays.flatMap((one) => {
          const best = one.path.startsWith(`${path}[].`) ? findInObjects(one.items, names) : undefined;
          return best === undefined ? [] : [{ path: one.path, found: best }];
        });
    // Of text in arrays of arrays, too, the object that has it is the record.
    const hasTextBelow = found.inText && !isOutsideArrays(found);
    const records =
      inner.find((one) => isOfRecord(one.found, names)) ??
      (hasTextBelow ? inner.find((one) => one.found.inText && isOutsideArrays(one.found)) : undefined);
    const { path: own, found: best } = records ?? { path, found };
    if (given.format === undefined && found.field![0]!.endsWith('[][]')) throw refuse(name, ARRAYS_OF_VALUES);
    const isNamed = given.format === undefined && !found.inText && rankOf(found.field![0]!, names) <= RANKS.unnamed;
    const besides = isNamed ? outer.filter((one) => !one.path.startsWith(path) && !path.startsWith(one.path)) : [];
    const twin = besides.find((one) => findInObjects(one.items, names)?.field?.[0] === found.field![0]);
    if (twin !== undefined) {
      throw refuse(
        name,
        `has records in several arrays, ${path} and ${twin.path}; name one, as in --format json --items ${path}, or make one of them with jq`,
      );
    }
    return { format: 'json', items: own === '' ? undefined : own.endsWith('[]') ? `${own}[]` : own, ...best };
  }
  return undefined;
}

function refuse(name: string, problem: string): AtlasError {
  return new AtlasError('E_BAD_INPUT', `${name} ${problem}`);
}

const ARRAYS_OF_VALUES =
  "is JSON with arrays of values in place of objects; make objects of them, as in: jq -c '{time: .[0], ip: .[1]}' FILE | ipatlas enrich";

const SEVERAL_ARRAYS =
  "has several arrays one after the other; make lines of their objects, as in: jq -c '.[]' FILE | ipatlas enrich";
const NO_FIELD =
  'is JSON, but no field of its objects has an address in the first 64 KiB; say where one is with --format json --items PATH --field PATH';

/** Returns the values at a path. */
function valuesAt(value: unknown, path: readonly PathStep[]): unknown[] {
  return path.reduce<unknown[]>(
    (values, step) =>
      step === EACH ? values.flat() : values.flatMap((one) => (isObject(one) ? [one[step as string]] : [])),
    [value],
  );
}

/** Refuses an object that has several records: its members, or addresses in arrays. @throws AtlasError E_BAD_INPUT */
function checkSingle(object: unknown, { field, inText }: Found, names: AddressNames, name: string): void {
  const [path] = splitAlternatives(field![0]!);
  if (inText !== true && path!.endsWith('[]') && valuesAt(object, parsePath(path!, path!)).length > 1)
    throw refuse(name, ARRAYS_OF_VALUES);
  const paths = splitAlternatives(field![0]!).map((one) => one.split(/(?<!\\)\./));
  const parentOf = (keys: readonly string[]): string => keys.slice(0, -2).join('.');
  const [first] = paths;
  const areMembers = paths.every(
    (keys) =>
      keys.length > 1 &&
      parentOf(keys) === parentOf(first!) &&
      keys.at(-1) === first!.at(-1) &&
      rankOf(keys.at(-2)!, names) >= RANKS.unnamed,
  );
  if (paths.length < 2 || !areMembers) return;
  throw refuse(
    name,
    `has records as members of one object; make lines of them, as in: jq -c '.${parentOf(first!)}[]' FILE | ipatlas enrich`,
  );
}

/** Finds the fields of JSON: lines, objects one after the other, or a document. @throws AtlasError E_BAD_INPUT if it is other JSON */
function findInJson(
  values: readonly unknown[],
  lines: readonly string[],
  name: string,
  given: ExplicitFlags,
  names: AddressNames,
) {
  const takes = (one: FormatName): boolean => given.format === undefined || given.format === one;
  const parsed = given.format === 'json' ? [] : lines.map(jsonOf);
  const objects = parsed.filter(isObject);
  // With a comma after each, or several on a line, they are one after the other, and no lines.
  const isJoined = (line: string, at: number): boolean =>
    line.trimEnd().endsWith('},') || (parsed[at] === undefined && topValues(line).length > 1);
  const isSeries = takes('json-seq') && lines.some(isJoined) && values.length > 1;
  const isLines = !isSeries && objects.length > 0 && objects.length * 2 >= lines.length;
  if (takes('jsonl') && isLines) {
    // Such lines have a result without a guess; that others have none is no reason for another field.
    if (objects.some((one) => hasDefault(one, given))) return null;
    // Several lines have their addresses where flags say.
    if (given.field !== undefined && objects.length > 1) return null;
    const found = findInObjects(objects, names);
    const isLine = objects.length > 1 || (found !== undefined && isOfRecord(found, names));
    const document = isLine || !takes('json') ? undefined : findInDocument(itemsOf(objects[0]), name, given, names);
    if (document !== undefined) return document;
    const isDocument =
      !isLine && given.format === undefined && itemsOf(objects[0]).some(({ items }) => items.length > 1);
    if (found === undefined && isDocument && addressesIn(lines).flat().length > 0) throw refuse(name, NO_FIELD);
    if (found !== undefined && objects.length === 1 && given.format === undefined)
      checkSingle(objects[0], found, names, name);
    return found && !(found.inText && given.format !== undefined) ? { format: 'jsonl' as const, ...found } : undefined;
  }
  if (!takes('json') && !takes('json-seq')) return undefined;
  const [first] = values;
  const arrays = itemsOf(first);
  if (Array.isArray(first) && values.length > 1 && given.format === undefined)
    throw refuse(name, arrays.length === 0 ? ARRAYS_OF_VALUES : SEVERAL_ARRAYS);
  if (Array.isArray(first) && arrays.length > 0) return findInDocument(arrays, name, given, names);
  if (isObject(first)) {
    const found = findInObjects(values, names);
    const isSequence = values.length > 1 || (found !== undefined && isOfRecord(found, names));
    const document = isSequence ? undefined : findInDocument(arrays, name, given, names);
    if (document !== undefined) return document;
    if (found !== undefined && values.length === 1 && given.format === undefined)
      checkSingle(first, found, names, name);
    if (found !== undefined) return { format: 'json-seq' as const, ...found };
  }
  if (given.format !== undefined || first === undefined) return undefined;
  throw refuse(name, Array.isArray(first) ? ARRAYS_OF_VALUES : NO_FIELD);
}

/** Returns whether one of some texts is an address. */
function hasAddress(texts: readonly string[]): boolean {
  return addressesOf(texts).some((address) => address !== undefined);
}

const isComment = (line: string): boolean => line.startsWith('#');

/** The line with which Excel is told the delimiter. */
const SEPARATOR = /^"?sep=([^"])"?$/i;
/** The name of a column, which may end in a unit. */
const COLUMN_NAME = /^[\p{L}\p{N}_#@*"' \r\n,.:/()%+&?$€=-]{1,100}(?:\[[^\]]{0,20}\])?$/u;
/** The beginning of an event in CEF or LEEF, in which bars are between the parts of a header. */
const EVENT = /\b(?:CEF:\d|LEEF:\d\.\d)\|/;
/** The header of syslog, after which a message may have a delimiter. */
const SYSLOG = /^(?:<\d{1,3}>|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )/;
/** A row of `"key=value"`. */
const QUOTED_PAIR = /^"\w+=/;
/** A line of dashes in a table that is drawn for readers; bars with spaces around them, after several words, or of a format of its own. */
const RULE = /^[\s|+:=-]*$/;
const TEXT_BARS = /\S \||\| +\S|^(?:[^\s|]+\s+){3}|(?:CEF|LEEF):\d/;

/** Returns whether cells may be the names of columns. */
function areNames(cells: readonly string[]): boolean {
  return cells.every((cell) => cell.trim() === '' || COLUMN_NAME.test(cell)) && !hasAddress(cells);
}

/** Returns whether two cells have the same text, or one is empty: names of columns differ. */
function hasSame(cells: readonly string[]): boolean {
  return new Set(cells).size < cells.length || cells.includes('');
}

/** A key of what JSON may have been: of JavaScript, Python or Ruby. */
const KEY = /(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')\s*(?::|=>)|[A-Za-z_$][\w$]*\s*:\s*(?:["'[{]|\d+\s*[,}])/.source;

/** The beginning of what JSON may have been, into which no tabs are written. */
const LOOKS_LIKE_JSON = new RegExp(
  `^\\s*(?:\\{\\s*(?:${KEY}|[\\r\\n])|\\[\\s*(?:[\\r\\n]|\\{\\s*(?:${KEY}|[\\r\\n])|(?:\\[\\s*)?["'][^"'\\n]*["']\\s*,))`,
);
/** A comment before JSON. */
const REMARK = /^\s*(?:(?:\/\/|#)[^\n]*\n|\/\*[\s\S]*?\*\/)/;
/** What a script has before JSON: a call, an assignment, or what keeps it from running. */
const SCRIPT =
  /^\s*(?:\)\]\}',?|(?:for ?\(;;\)|while ?\(1\));|[\w$.]*\(|(?:(?:export )?(?:var|let|const) [\w$]+ ?|[\w$.]+ )=|export default )(?=\s*[{[])/;

/** Returns the numbers of cells of rows that have several, the most frequent ones first. */
function widthsOf(rows: readonly (readonly string[])[]): number[] {
  const counts = new Map<number, number>();
  for (const { length } of rows) if (length > 1) counts.set(length, (counts.get(length) ?? 0) + 1);
  return [...counts].sort(([a, ofA], [b, ofB]) => ofB - ofA || b - a).map(([width]) => width);
}

/** Returns whether lines with bars are no table, or one that is drawn for readers. */
function isDrawn(lines: readonly string[], hasHeader: boolean): boolean {
  const isDrawnLine = (line: string): boolean => line.includes('---') && RULE.test(line);
  return lines.some(isDrawnLine) || (!hasHeader && lines.every((line) => TEXT_BARS.test(line)));
}

/** Returns what was found in a table; null if only versions and masks look like addresses, undefined if it is no table. */
function findInTable(
  all: readonly string[],
  delimiter: string,
  names: AddressNames,
): DetectedFields | null | undefined {
  const from = all.findIndex((line) => !isComment(line));
  const [marked, opening = []] = all
    .slice(Math.max(0, from - 1), from + 1)
    .map((line) => cellsOf(line, delimiter).cells);
  // The last comment may be the header.
  const isMarked = from > 0 && marked?.length === opening.length && opening.length > 1 && hasAddress(opening);
  const lines = all.filter((line, at) => !isComment(line) || (isMarked && at === from - 1));
  const rows = rowsOf(lines, delimiter);
  // Another table, or a title of several cells, may be before or after that of most rows.
  const widths = widthsOf(rows);
  for (const width of widths.length === 0 ? [1] : widths.slice(0, MAX_WIDTHS)) {
    const found = findInRows(rows, width, lines, delimiter, names);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Finds the same in the rows with a number of cells. */
function findInRows(
  rows: readonly (readonly string[])[],
  width: number,
  lines: readonly string[],
  delimiter: string,
  names: AddressNames,
): DetectedFields | null | undefined {
  // Titles may be before the header.
  const isTitle = (row: readonly string[]): boolean =>
    row.length === width && 2 * row.filter((cell) => cell !== '').length <= width;
  const first = rows.findIndex(({ length }) => length === width);
  const next = rows.findIndex((row, at) => at >= first && row.length === width && !isTitle(row));
  const start = width > 2 && next >= 0 && areNames(rows[next]!) ? next : first;
  const records = rows.slice(start).filter(({ length }) => length === width);
  const header = records[0] ?? [];
  const hasPairs = lines.every((line) => QUOTED_PAIR.test(line));
  const hasHeader = !hasPairs && !hasAddress(header);
  const share = records.length / (rows.length - start);
  if (hasHeader) {
    if (records.length < 2 || share < LEAST_TABLE_SHARE || start > MAX_TITLES) return undefined;
  } else {
    // A quote inside a cell belongs to a line of text that has the delimiter, too.
    const isTextual =
      records.some((row) => row.some((cell) => cell.split('"').length % 2 === 0)) ||
      records.every(([cell]) => SYSLOG.test(cell!));
    if (share < LEAST_SHARE || start > 0 || width < 2 || isTextual) return undefined;
  }
  if (delimiter === '|' && isDrawn(lines.slice(start, start + 10), hasHeader)) return undefined;
  const fields = new Fields();
  for (const row of hasHeader ? records.slice(1) : records) {
    for (const [at, cell] of row.entries()) {
      const name = hasHeader ? escaped(header[at]!) : `${at + 1}`;
      if (name !== '') fields.add(name, cell);
    }
  }
  const found = fields.best(names, hasHeader);
  if (found === undefined) return fields.hasVersions ? null : undefined;
  if (hasHeader) {
    const isSure = !found.inText && rankOf(found.field![0]!.split('|')[0]!, names) < RANKS.unnamed;
    const areOthers = share < LEAST_SHARE || found.inText || hasSame(header);
    if ((areOthers && !areNames(header)) || (share < LEAST_ROW_SHARE && !isSure)) return undefined;
  }
  if (found.inText) {
    // Lines that only end with the delimiter, or have an address where the header would be, are text.
    const filled = records.filter((row) => row.filter((cell) => cell !== '').length > 1);
    const isText = !hasPairs && addressesIn(header).flat().length > 0;
    if (2 * filled.length < records.length || share < LEAST_SHARE || isText) return undefined;
  }
  return {
    format: delimiter === '\t' ? 'tsv' : 'csv',
    ...(delimiter !== '\t' && delimiter !== ',' && { delimiter }),
    ...found,
    ...(!hasHeader && { header: false, field: found.field!.map((one) => one.split('|')[0]!) }),
  };
}

/** Finds a column that a directive of a W3C log or of a log of Zeek names. */
function findInDirectives(lines: readonly string[], names: AddressNames): DetectedFields | undefined {
  const header = lines.find((line) => /^#(?:Fields: |fields\t)/.test(line));
  if (header === undefined || header.includes(',')) return undefined;
  const format = header.startsWith('#F') ? 'w3c' : 'zeek';
  const between = format === 'w3c' ? /[ \t]+/ : '\t';
  const [, ...columns] = header.trim().split(between);
  const fields = new Fields();
  for (const line of lines) {
    const cells = isComment(line) ? [] : line.split(between);
    if (cells.length === columns.length)
      for (const [at, cell] of cells.entries()) fields.add(escaped(columns[at]!), cell);
  }
  const found = fields.best(names, false);
  return found?.inText === undefined ? found && { format, ...found } : undefined;
}

const PAIR = /(?:^|[\s,;|[({])([A-Za-z_][\w.-]*)=(?:"((?:[^"\\]|\\.)*)"|([^\s,;|"]*))/g;

/** A key of several words, which only text has. */
const PHRASE = /[,;]\s*[A-Za-z][\w-]*(?: [A-Za-z][\w-]*)+=/;

/** Finds a key of the table of names in lines with `key=value`. */
function findInPairs(lines: readonly string[], names: AddressNames): DetectedFields | undefined {
  const { server = [] } = names.grammar.texts ?? {};
  const fields = new Fields();
  let matches = 0;
  for (const line of lines) {
    const own = server.reduce((rest, label) => rest.replaceAll(label, ''), line);
    const pairs = [...own.matchAll(PAIR)];
    if (pairs.length >= 2 && !PHRASE.test(line)) matches++;
    for (const [, key, quoted, value] of pairs) fields.add(escaped(key!), quoted ?? value!);
  }
  const found = fields.best(names, false);
  const isClient =
    found !== undefined && !found.inText && rankOf(found.field![0]!.split('|')[0]!, names) < RANKS.unnamed;
  if (!isClient || matches < LEAST_SHARE * lines.length) return undefined;
  // Where other lines have their addresses elsewhere, each is read as text.
  const keys = splitAlternatives(found.field![0]!).map((one) => one.replace(/\\(.)/g, '$1'));
  const others = lines.filter((line) => ![...line.matchAll(PAIR)].some(([, key]) => keys.includes(key!)));
  const missed = addressesIn(others).filter((own) => own.some(isPublicAddress));
  return missed.length > (1 - LEAST_SHARE) * lines.length ? undefined : { format: 'logfmt', ...found };
}

/** Returns whether an object has an address where it is read without flags; with a format that a flag names, whether it has `ip`. */
function hasDefault(value: unknown, { format, lenient }: ExplicitFlags = {}): boolean {
  if (!isObject(value) || typeof value.ip !== 'string') return false;
  return format !== undefined || parseAddress(value.ip, words) !== 0 || (lenient === true && hasAddress([value.ip]));
}

/** Returns whether the first line of an input is a JSON object with an address where one is read without a guess. */
export function isDecided(line: string, paths: readonly (readonly PathStep[])[]): boolean {
  const object = jsonOf(line);
  return paths.some((path) => {
    const at = (value: unknown, step: PathStep): unknown =>
      isObject(value) && typeof step === 'string' ? value[step] : undefined;
    const value = path.reduce(at, object);
    return typeof value === 'string' && parseAddress(value, words) !== 0;
  });
}

/** Returns whether at least half of the lines are JSON objects. */
function areMostlyObjects(lines: readonly string[]): boolean {
  const possible = lines.filter((line) => /^\s*\{/.test(line));
  return 2 * possible.length >= lines.length && 2 * possible.map(jsonOf).filter(isObject).length >= lines.length;
}

function findAny(text: string, isWhole: boolean, given: ExplicitFlags, names: AddressNames, name: string): Detected {
  const { format, delimiter } = given;
  const takes = (one: FormatName): boolean => format === undefined || format === one;
  const all = text.split(/\r?\n/).filter((line) => /\S/.test(line));
  const lines = isWhole || all.length < 2 || text.endsWith('\n') ? all : all.slice(0, -1);
  if (lines.length === 0) return undefined;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the separator of RFC 7464
  const values = /^[\s\x1e]*(?:\{|\[\s*(?:[[{"\d-]|$))/.test(text) ? valuesOf(text) : [];
  if (values.length > 0 || areMostlyObjects(lines)) {
    if (!takes('json') && !takes('jsonl')) return undefined;
    return findInJson(values.length > 0 ? values : valuesOf(text), lines, name, given, names);
  }
  if (format === undefined) checkLikeJson(text, name);
  const directives = format === undefined ? findInDirectives(lines, names) : undefined;
  if (directives !== undefined) return directives;
  const separator = SEPARATOR.exec(lines[0]!)?.[1];
  const guessed = lines.some((line) => EVENT.test(line)) ? [',', '\t', ';'] : [',', '\t', ';', '|'];
  const delimiters = (delimiter ?? separator) ? [(delimiter ?? separator)!] : guessed;
  const entries = lines.filter((line) => !isComment(line));
  const first = entries[0] ?? '';
  // A table that is called one, with the default column, is read without a guess.
  if (format !== undefined && delimiters.some((one) => cellsOf(first, one).cells.includes('ip'))) return undefined;
  const body = separator === undefined ? lines : lines.slice(1);
  const tables = delimiters
    .filter(
      (one) =>
        (takes(one === '\t' ? 'tsv' : 'csv') || delimiter !== undefined) && body.some((line) => line.includes(one)),
    )
    .map((one) => findInTable(body, one, names));
  const table = tables.find((one) => one != null);
  if (table !== undefined || tables.includes(null)) return table ?? undefined;
  if (format !== undefined && format !== 'csv' && format !== 'tsv' && format !== 'logfmt') return undefined;
  const firstCells = entries.map(
    (line) =>
      line
        .trim()
        .replace(/^"(.*)"$/, '$1')
        .split(',', 1)[0]!,
  );
  const addresses = addressesOf(firstCells);
  const single = entries.filter((_, at) => addresses[at] !== undefined);
  const isColumn = entries.length > 1 && !hasAddress([first]) && /^"?[\p{L}_][\p{L}\p{N}_ .-]*"?$/u.test(first);
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
  // biome-ignore lint/suspicious/noControlCharactersInRegex: binary data has them; ESC begins a color, BEL ends a link
  const own = /[\0-\x06\x08\x0e-\x1a]/.test(text) ? [] : addressesIn(lines);
  if (takes('text') && own.flat().length > 0) {
    if (format === undefined && lines.every((line) => typeof jsonOf(line) === 'string'))
      throw refuse(
        name,
        'has JSON strings in place of objects; take their text out, as in: jq -r . FILE | ipatlas enrich',
      );
    if (format === undefined) checkLikeTable(lines, delimiters, name);
    return { format: 'text', ...rest, publicElsewhere: publicPick(own) };
  }
  checkHeader(lines, isWhole, delimiters, name, given);
  return undefined;
}

/** Returns the values of a text of JSON; if the first one has not come as a whole, what has; none of other text. */
function valuesOf(text: string): unknown[] {
  const values = topValues(text);
  const first = values[0] ?? jsonOf(cutJson(text));
  return values.length > 0 || first === undefined ? values : [first];
}

/** Refuses what looks like JSON and is not, and JSON in a script. @throws AtlasError E_BAD_INPUT */
function checkLikeJson(text: string, name: string): void {
  let json = text.replace(COLOR, '').trimStart();
  const { length } = json;
  for (let found = REMARK.exec(json); found !== null; found = REMARK.exec(json)) json = json.slice(found[0].length);
  // A log may have a word before JSON in each line.
  const [, second = ''] = json.trimStart().split('\n', 2);
  if (!SCRIPT.test(second)) json = json.replace(SCRIPT, '');
  json = json.trimStart();
  const [first] = json.split('\n', 1);
  if (!LOOKS_LIKE_JSON.test(json) || !/[{}[\],;)]\s*$/.test(first!)) return;
  if (json.length < length) {
    throw refuse(
      name,
      "has JSON in a script or after comments; take it out, as in: sed -E '1s/^[^[{]*//; $s/[);]*$//' FILE | ipatlas enrich; --format text reads it as text",
    );
  }
  if (jsonOf(first!) !== undefined) return;
  throw refuse(
    name,
    'looks like JSON and is not: colors, comments, NaN, single quotes or names without quotes may be in it; "jq . FILE" says where, --format text reads it as text',
  );
}

/** Refuses lines with addresses in cells of their own that are no table that can be read. @throws AtlasError E_BAD_INPUT */
function checkLikeTable(lines: readonly string[], delimiters: readonly string[], name: string): void {
  const isCell = (cell: string): boolean => !/^\s|\S\s+\S+\s+\S/.test(cell) && cell.split('"').length % 2 === 1;
  for (const delimiter of delimiters) {
    // Tabs add cells; a table that is drawn has bars at the beginning of its lines.
    if (delimiter === '\t' || lines.some((line) => line.startsWith('|'))) continue;
    const rows = lines.map((line) => cellsOf(line, delimiter).cells).filter(({ length }) => length > 2);
    const cells = rows.flatMap((row) => (row.every(isCell) ? [row] : []));
    const addressed = cells.filter(hasAddress);
    if (addressed.length < Math.min(lines.length, 2) || 2 * addressed.length < rows.length) continue;
    const at = addressed[0]!.findIndex((cell) => hasAddress([cell])) + 1;
    throw refuse(
      name,
      `looks like a table, but its rows have different numbers of cells, or too many; --format csv --no-header --delimiter '${delimiter}' --field ${at} reads those with as many as the first, --format text all as text`,
    );
  }
}

/** Refuses a table that has a header only. @throws AtlasError E_BAD_INPUT */
function checkHeader(
  lines: readonly string[],
  isWhole: boolean,
  delimiters: readonly string[],
  name: string,
  { format }: ExplicitFlags,
): void {
  if (format !== undefined || !isWhole || lines.length > 1) return;
  const cells = delimiters.map((one) => cellsOf(lines[0]!, one).cells).find(({ length }) => length > 1);
  if (cells?.every((cell) => /^[\p{L}_][\p{L}\p{N}_ .:/#()-]{0,63}$/u.test(cell.trim())) !== true) return;
  throw refuse(name, `has one line, the header of a table with the columns ${cells.join(', ')}, and no records`);
}

/**
 * Finds what flags do not say by the beginning of an input.
 *
 * @param text without a byte order mark
 * @param isWhole whether the last line of the text is complete
 * @param name of the input, for messages
 * @returns undefined if nothing is found
 * @throws AtlasError E_BAD_INPUT for JSON that no format reads, and for a table without records
 */
export function findFields(
  text: string,
  isWhole: boolean,
  given: ExplicitFlags,
  names: AddressNames,
  name = 'the input',
): Detected {
  const found = findAny(text, isWhole, given, names, name);
  if (found === null || found === undefined) return found;
  if (given.field !== undefined) {
    const hasField = found.field !== undefined && found.format !== 'jsonl' && found.header !== false;
    const own = {
      field: given.field,
      isGiven: true as const,
      lenient: undefined,
      inText: undefined,
      others: [],
      isUntrusted: false,
    };
    return hasField ? { ...found, ...own } : undefined;
  }
  const isAsToday = given.format === found.format && found.items === undefined && found.header !== false;
  return isAsToday && [...(found.field ?? []), ...found.others].includes('ip') ? null : found;
}

/** The first character of a line that is no comment. */
export const RECORD = /^[^#\s]/m;
/** Most lines that are inspected after comments. */
const MAX_LINES = 100;

/**
 * Returns the lines at the beginning of an input by which it is recognized; of JSON whose first line is no whole value, all.
 *
 * @param isAll whether there is nothing after the text
 * @param least the end of a row that is part of the sample
 * @returns the sample, whether its last line is complete, and whether more lines could be part of it
 */
export function sampleOf(
  text: string,
  isAll: boolean,
  least = 0,
): { sample: string; isWhole: boolean; isShort: boolean } {
  const isDocument =
    /^\s*(?:\{|\[\s*(?:[[{]|$))/.test(text.slice(0, 1000)) && !/\}\s*$/.test(text.split('\n', 1)[0]!.slice(-1000));
  const start = Math.max(0, text.search(RECORD));
  const lines = isDocument ? [] : text.slice(start).split(/\r?\n/, MAX_LINES + 1);
  const isShort = lines.length <= MAX_LINES;
  const sample = isShort ? text : text.slice(0, start) + lines.slice(0, MAX_LINES).join('\n');
  if (sample.length < least) return { sample: text.slice(0, least), isWhole: true, isShort };
  return { sample, isWhole: !isShort || isAll, isShort };
}

/** Returns what JSON lines are that are read without a guess; undefined if none of them has an address at `ip`. */
export function findDefault(text: string): DetectedFields | undefined {
  const isDefault = text.split('\n').some((line) => isDecided(line, [['ip']]));
  return isDefault ? { format: 'jsonl', field: ['ip'], others: [], isUntrusted: false } : undefined;
}
