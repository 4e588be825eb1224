/** The options of an enrichment in any format: the fields, what to add, and the policy for invalid lines. */
import { isDate } from '../country/country.js';
import { countryNames } from '../country/names.js';
import { isTaken, LABEL_NAME } from '../database/fields.js';
import { misuse } from '../errors.js';
import {
  MAX_CSV_RECORD_BYTES,
  MAX_FIELDS,
  MAX_INLINE_BYTES,
  MAX_JSON_ITEM_BYTES,
  MAX_KEY_BYTES,
  MAX_LINE_BYTES,
  MAX_PATH_KEYS,
} from '../limits.js';
import type { TextRoles } from './address-names.js';
import { type AddressPick, FORMAT_NAMES, type FormatName, type InputFormat, PICKS } from './choices.js';
import { EACH, hasElements, type PathStep, parsePath, pathText, splitAlternatives, splitSpec } from './field-path.js';
import { bracketTemplate, type Inline, parseTemplate } from './inline.js';
import { addressNames, knownLogs } from './known-logs.js';
import { type Log, type Logs, logOf } from './logs.js';
import {
  type Addable,
  addable,
  addError,
  checkSchema,
  DEFAULT_ROOT,
  isLabel,
  otherPartitionOf,
  SCHEMA_NAMES,
  type SchemaName,
} from './members.js';
import type { RecordQuery } from './query.js';
import { parseRedaction, type Redaction, type RedactionRequest } from './redaction.js';

export { type AddressPick, FORMAT_NAMES, type FormatName, PICKS } from './choices.js';

/** The formats whose fields are columns. */
const TABLE_FORMATS: readonly InputFormat[] = ['csv', 'tsv', 'w3c', 'zeek', 'columns'];

/** The formats whose fields can be text. */
const TEXT_FIELDS: readonly InputFormat[] = ['jsonl', 'json', 'json-seq', 'csv', 'tsv'];

/** The formats of tables whose header is a directive, and the field that is the client's address. */
const DIRECTIVE_FIELDS: { [Format in InputFormat]?: string } = { w3c: 'c-ip', zeek: 'id.orig_h' };

/** The characters that can be between the cells of a table whose header is a directive. */
export const DELIMITERS: readonly string[] = [' ', '\t', ',', ';', '|'];

/** A table: its delimiter, one ASCII character, and whether its first record is a header. */
export interface TableInput {
  kind: 'table';
  delimiter: string;
  hasHeader: boolean;
  /**
   * If the header is in lines that begin with `#`: how they are written. They also say what the delimiter is. With `columns`, these
   * are known, and the first line may be a header.
   */
  directives?: 'w3c' | 'zeek' | 'columns' | undefined;
  columns?: string[] | undefined;
}

/** A JSON document: the keys, and arrays, that lead to the arrays of items; none if the document is the array. */
export interface DocumentInput {
  kind: 'json';
  itemsPath: readonly PathStep[];
}

/** What the input is. */
export type KernelInput =
  | TableInput
  | DocumentInput
  | { kind: 'jsonl' | 'json-seq' | 'list' | 'combined' | 'text' | 'logfmt' };

/** Returns what an input of a format is. @param columns for `columns`: their names, with spaces between them */
function kernelInput(
  format: InputFormat,
  { delimiter, header: hasHeader = true }: RequestedOptions,
  itemsPath: readonly PathStep[],
  columns = '',
): KernelInput {
  switch (format) {
    case 'json':
      return { kind: 'json', itemsPath };
    case 'csv':
      return { kind: 'table', delimiter: delimiter ?? ',', hasHeader };
    case 'tsv':
      return { kind: 'table', delimiter: delimiter ?? '\t', hasHeader };
    case 'w3c':
    case 'zeek':
      return { kind: 'table', delimiter: '\t', hasHeader, directives: format };
    case 'columns':
      return { kind: 'table', delimiter: ' ', hasHeader, directives: format, columns: columns.split(' ') };
    default:
      return { kind: format };
  }
}

/** Returns the longest line, record of a table or item of a document, in bytes. */
export function maxRecordBytes({ input, inline }: EnrichOptions): number {
  // A result for each address may make a line a hundred times as long.
  if (inline !== undefined) return MAX_INLINE_BYTES;
  if (input?.kind === 'table') return MAX_CSV_RECORD_BYTES;
  return input?.kind === 'json' || input?.kind === 'json-seq' ? MAX_JSON_ITEM_BYTES : MAX_LINE_BYTES;
}

/** What happens to a line that is not a record of its format. */
export const INVALID_POLICIES = ['keep', 'drop', 'fail'] as const;
export type InvalidPolicy = (typeof INVALID_POLICIES)[number];

/** Where an address is, and where its result goes. */
export interface FieldRequest {
  /** The steps from the top of the object to the address; one for a top-level key. */
  path: PathStep[];
  /** Other places: a record is looked up by the first one, of `path` and these, that has an address. */
  others: PathStep[][];
  /** The keys from the top of the object to the result; one for a top-level key. All but the last are the first of each path. */
  resultPath: string[];
  /** The result path as text, for formats without objects. */
  name: string;
}

/**
 * What a line gets whose date is missing, no date, or not kept: no result, or the answers of the first or of the last day that is
 * kept.
 */
export const MISSING_DATES = ['null', 'first', 'now'] as const;
export type MissingDate = (typeof MISSING_DATES)[number];

/** Where the date of a line is, if each line has the answers of its own date. */
export interface DateField {
  /** The keys from the top of the object to the date; in a table the name of its column. */
  path: string[];
  missing: MissingDate;
}

export interface EnrichOptions {
  /** The format of the input; default JSON lines. */
  input?: KernelInput | undefined;
  /** At least one; their names differ. */
  fields: FieldRequest[];
  add: Addable[];
  /** The convention whose names the members get; a field's result path is that of the object that they are in. */
  schema?: SchemaName | undefined;
  /** The language of the countries' names, a tag such as `de`; default English. */
  lang?: string | undefined;
  onInvalid: InvalidPolicy;
  /** Whether addresses in other text are found, too; see kernel/assembly/lenient.ts. Default: false. */
  lenient?: boolean | undefined;
  /** Default: public. */
  pick?: AddressPick | undefined;
  /** Whether strings of JSON are free text, in which the address is anywhere. Default: false. */
  searchesStrings?: boolean | undefined;
  /** For text: by what roles one of several addresses is chosen. Default: they have none. */
  roles?: TextRoles | undefined;
  /** How addresses are hidden, if they are. */
  redaction?: Redaction | undefined;
  /** For text: what takes the place of each address, if the results go there. */
  inline?: Inline | undefined;
  /** Whether the addresses are put out, one a line, in place of the records: all of a record, or those of the fields; with the line. */
  extracts?: { isOfAll: boolean; withLine: boolean } | undefined;
  /** Whether the places of addresses are put out in place of the records, see locate.ts. */
  locates?: boolean | undefined;
  /** What to do instead of adding results to the records, if anything. */
  query?: RecordQuery | undefined;
  /** The UTC day whose answers all lines have, `YYYY-MM-DD`; default: those of the release. */
  at?: string | undefined;
  /** If each line has the answers of its own date. */
  atField?: DateField | undefined;
}

/** Options that say what the input is. */
export interface InputOptions extends EnrichOptions {
  input: KernelInput;
}

/** Returns all places where the address of a field may be, the best one first. */
export function pathsOf({ path, others }: Pick<FieldRequest, 'path' | 'others'>): PathStep[][] {
  return [path, ...others];
}

/** Returns the paths whose values the kernel looks for: the first one of each field, that of the date, the others of each field. */
export function wantedPaths({ fields, atField }: Pick<EnrichOptions, 'fields' | 'atField'>): PathStep[][] {
  const first = fields.map(({ path }) => path);
  return [...first, ...(atField === undefined ? [] : [atField.path]), ...fields.flatMap(({ others }) => others)];
}

/** Name of the result of a single field without a name. */
const DEFAULT_NAME = 'geo';
const DEFAULT_FIELD = 'ip';
const DEFAULT_ADD: readonly Addable[] = ['country', 'country_code', 'is_eu'];

/** Returns the default name of the result of one of several fields. */
function defaultName(path: readonly PathStep[]): string {
  return `${path
    .filter((step) => step !== EACH)
    .join('_')
    .replaceAll('.', '_')}_geo`;
}

/** Returns whether keys are the first steps of a path. */
function isStartOf(keys: readonly string[], path: readonly PathStep[]): boolean {
  return keys.length <= path.length && keys.every((key, depth) => key === path[depth]);
}

/** Parses a result path. The object that it is in must be on the way to each address: then it exists if the address does. */
function parseResultPath(text: string, paths: readonly (readonly PathStep[])[], spec: string): string[] {
  const resultPath = parsePath(text, spec);
  const parent = resultPath.slice(0, -1) as string[];
  const isInObject = paths.every((path) => isStartOf(parent, path) && typeof path[parent.length] === 'string');
  if (!hasElements(resultPath) && isInObject) return resultPath as string[];
  throw misuse(
    `the target ${JSON.stringify(text)} of the field ${JSON.stringify(spec)} is neither a top-level key nor in an object of ` +
      'its path; for client.ip it can be geo or client.geo',
  );
}

/** The formats in which names have no quotes, and what a name in them must not have. */
const NAME_BREAKS: { [Format in InputFormat]?: RegExp } = {
  w3c: /[\s\p{Cc}]/u,
  columns: /[\s\p{Cc}]/u,
  zeek: /[\t\r\n\p{Cc}]/u,
  logfmt: /[\s\p{Cc}="]/u,
};

/** Refuses a target that would be two columns, or break a line. */
function checkTarget(target: string, format: InputFormat, spec: string): void {
  if (NAME_BREAKS[format]?.test(target) !== true) return;
  throw misuse(
    `the target ${JSON.stringify(target)} of the field ${JSON.stringify(spec)} has a character that ${format} cannot have in a name; ` +
      'use letters, digits, "-" and "_"',
  );
}

/** Refuses two fields that write to one place, or one whose result is inside the result of another. */
function checkResultPaths(fields: readonly FieldRequest[]): void {
  for (const [index, { resultPath, name }] of fields.entries()) {
    const other = fields.findIndex((one, at) => at !== index && isStartOf(one.resultPath, resultPath));
    if (other < 0) continue;
    const problem =
      fields[other]!.resultPath.length === resultPath.length
        ? `two fields would write to ${JSON.stringify(name)}`
        : `${JSON.stringify(name)} would be inside ${JSON.stringify(fields[other]!.name)}, which another field writes`;
    throw misuse(`${problem}; name each as PATH=TARGET`);
  }
}

/** Refuses paths with more steps, or longer keys, than the kernel takes. */
function checkPath(field: FieldRequest): void {
  const paths = pathsOf(field);
  const long = paths.find((path) => path.length > MAX_PATH_KEYS);
  if (long !== undefined) throw misuse(`the path ${pathText(long)} has more than ${MAX_PATH_KEYS} keys; name fewer`);
  for (const key of [...paths.flat(), ...field.resultPath]) {
    if (typeof key === 'string' && Buffer.byteLength(key) > MAX_KEY_BYTES) {
      throw misuse(`the key ${key.slice(0, 40)}… is longer than ${MAX_KEY_BYTES} bytes; shorten it`);
    }
  }
}

/**
 * Parses fields, each `PATH` or `PATH=TARGET`, see field-path.ts. `PATH|PATH` names several places, of which the first one with an
 * address counts.
 *
 * @param specs the fields as text; if there are none, `ip`, or the client's address in a format that names it
 * @param format in a table and in logfmt, the target is the beginning of the names of results: its dots and brackets mean nothing
 * @param schema with one, the default target is the object of the source of an event
 * @returns the fields. The default target is `geo` or, with several fields, the first path with `_` for `.` and `_geo` appended; in
 *   logfmt, it is the key
 * @throws AtlasError E_USAGE for too many fields, a path or target that is not valid or too long, or if two fields have the
 *   same target
 */
export function parseFields(
  specs: readonly string[],
  format: InputFormat = 'jsonl',
  schema?: SchemaName | undefined,
): FieldRequest[] {
  const given = specs.length === 0 ? [DIRECTIVE_FIELDS[format] ?? DEFAULT_FIELD] : specs;
  const isTable = TABLE_FORMATS.includes(format) || format === 'logfmt';
  const fields = given.map((spec) => {
    const parts = splitSpec(spec);
    const [path, ...others] = splitAlternatives(parts.path).map((one) => parsePath(one, spec)) as [
      PathStep[],
      ...PathStep[][],
    ];
    const defaultTarget = format === 'logfmt' ? pathText(path) : given.length === 1 ? DEFAULT_NAME : defaultName(path);
    const text = parts.target ?? (schema === undefined ? defaultTarget : DEFAULT_ROOT);
    if (parts.target !== undefined) checkTarget(parts.target, format, spec);
    const isKey = parts.target === undefined || (text !== '' && isTable);
    const resultPath = isKey ? [text] : parseResultPath(text, [path, ...others], spec);
    return { path, others, resultPath, name: resultPath.join('.') };
  });
  const count = fields.flatMap(pathsOf).length;
  if (count > MAX_FIELDS) throw misuse(`${count} fields are too many; at most ${MAX_FIELDS} go in one run`);
  // The name of a column may be of any length.
  if (!isTable) fields.forEach(checkPath);
  checkResultPaths(fields);
  return fields;
}

/**
 * Checks the members to add. Whether the release has the labels among them is checked when it is opened.
 *
 * @param names if undefined, the default
 * @returns the members in the order given
 * @throws AtlasError E_USAGE for an unknown name, a duplicate, or an empty list
 */
export function checkAdd(names: readonly string[] | undefined): Addable[] {
  if (names === undefined) return [...DEFAULT_ADD];
  const isKnown = (name: string): boolean =>
    addable().includes(name as Addable) || (LABEL_NAME.test(name) && isTaken(name) === false);
  if (names.length > 0 && names.every((name, index) => isKnown(name) && names.indexOf(name) === index)) {
    return names as Addable[];
  }
  throw addError(names, []);
}

/** What a caller asks for. The library's options have these names; the command line has them as flags. */
export interface RequestedOptions extends RedactionRequest {
  /** For `text`: adds the result directly after each address, in brackets. Default: false. */
  inline?: boolean | undefined;
  /** For `text`: what takes the place of each address, such as `{address} ({country_code})`. */
  inlineTemplate?: string | undefined;
  /** The format of the input; default `jsonl`. */
  format?: FormatName | undefined;
  /** The name of a log, which sets the format, fields, leniency and pick; see docs/logs.md. */
  log?: string | undefined;
  /**
   * For `json`: the keys, with dots, that lead to the array inside the document; default: the document is the array. In `groups[].rows`,
   * each element of an array has such an array.
   */
  items?: string | undefined;
  /** For `csv` and `tsv`: the character between two cells. */
  delimiter?: string | undefined;
  /** For `csv` and `tsv`: whether the first record is a header; if not, a field is the number of a column. Default: true. */
  header?: boolean | undefined;
  /**
   * Where the address is: `ip`, `client.ip`, `hops[0]`, `hops[]` (the first element with a country), `src_ip|client.ip` (the first one
   * that has an address), or `client.ip=geo` or `client.ip=client.geo` to say where the result goes. Default `ip`.
   */
  field?: string | readonly string[] | undefined;
  /** The members of the result, in this order; default `country`, `country_code`, `is_eu`. */
  add?: readonly (Addable | (string & {}))[] | undefined;
  /**
   * For `jsonl`, `json` and `json-seq`: writes the members under the names of the Elastic Common Schema (`ecs`) or of OpenTelemetry's semantic
   * conventions (`otel`), into the object that a field names (`client.ip=client`); default `source`. Its other members stay.
   */
  schema?: SchemaName | undefined;
  /** The language of the countries' names, a tag such as `de` (BCP 47); default English. */
  lang?: string | undefined;
  /** Also finds addresses with a port, brackets, a prefix length or a zone, and the first one in a list. Default: false. */
  lenient?: boolean | undefined;
  /** For `jsonl`, `json`, `json-seq`, `csv` and `tsv`: whether the fields are text in which the address is anywhere. Default: false. */
  inText?: boolean | undefined;
  /**
   * Which address counts where there are several, in free text and with `[]` in a path: `public`, the default, is the first one
   * that has a country, or else the first; `first`; `last`.
   */
  pick?: AddressPick | undefined;
  /** What happens to a record that is not valid; default `keep`: it is passed on byte for byte. */
  onInvalid?: InvalidPolicy | undefined;
  /** A UTC day, `YYYY-MM-DD`, whose answers all records have. */
  at?: string | undefined;
  /**
   * Where the date of a record is, whose answers it has: a key, or keys with dots; the name of a column; for `combined` it is `time`. It
   * is as RFC 3339 says, as in access logs, or a number of seconds, milliseconds, microseconds or nanoseconds since 1970.
   */
  atField?: string | undefined;
  /**
   * What a record gets whose date is missing, no date, or not kept: no result (`null`, the default), or the answers of the first
   * day that is kept (`first`) or of the last one (`now`).
   */
  atMissing?: MissingDate | undefined;
}

/** Returns how messages call an option. */
export type OptionNaming = (option: keyof RequestedOptions) => string;

/** The formats that have no fields, and why. */
const NO_FIELD: { [Format in InputFormat]?: string } = {
  list: 'a line is only an address',
  combined: 'the address is the first field of a line',
  text: 'the address can be anywhere in a line',
};

/** Returns whether an input has fields: the others have one address a line. */
export function hasFields({ kind }: KernelInput): boolean {
  return !(kind in NO_FIELD);
}

function isStringArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((element) => typeof element === 'string');
}

/** Refuses a value that is not one of some choices. */
function checkChoice(name: string, value: unknown, choices: readonly string[]): void {
  if (choices.includes(value as string)) return;
  throw misuse(`${name} is ${JSON.stringify(value)}; it can be ${choices.join(', ')}`);
}

function checkBoolean(name: string, value: unknown): void {
  if (typeof value !== 'boolean') throw misuse(`${name} must be true or false`);
}

/** Parses the keys, with dots, that lead to the items; `[]` after a key is each element of an array. The last one may be left out. */
function parseItems(items: unknown, format: InputFormat, nameOf: OptionNaming): PathStep[] {
  if (items === undefined) return [];
  if (typeof items !== 'string') throw misuse(`${nameOf('items')} must be a string`);
  if (format !== 'json') throw misuse(`${nameOf('items')} requires ${nameOf('format')} json`);
  const steps = items.split('.').flatMap((part, at) => {
    const [, key = '', arrays = ''] = /^(.*?)((?:\[\])*)$/s.exec(part)!;
    const keys = key === '' && at === 0 && arrays !== '' ? [] : [key];
    return [...keys, ...Array<PathStep>(arrays.length / 2).fill(EACH)];
  });
  if (steps.includes(''))
    throw misuse(
      `${nameOf('items')} ${JSON.stringify(items)} has an empty key; write it as data, data.rows or data[].rows`,
    );
  return steps.at(-1) === EACH ? steps.slice(0, -1) : steps;
}

/** Checks a delimiter: one ASCII character that means nothing else in a table. In UTF-8, another character is several bytes. */
function checkDelimiter(delimiter: unknown, nameOf: OptionNaming): void {
  if (delimiter === undefined) return;
  if (typeof delimiter === 'string' && /^[\0-\x7f]$/.test(delimiter) && !/["\r\n\0]/.test(delimiter)) return;
  throw misuse(
    `${nameOf('delimiter')} is ${JSON.stringify(delimiter)}; it can be one ASCII character, such as ; or \\t for a tab`,
  );
}

/** Checks the fields of a table without a header: numbers of columns. */
function checkColumnNumbers(specs: readonly string[] | undefined, nameOf: OptionNaming): void {
  if (specs === undefined)
    throw misuse(`${nameOf('header')} requires ${nameOf('field')} N, the number of the column, from 1`);
  const wrong = specs.find((spec) => !/^[1-9]\d{0,8}(\|[1-9]\d{0,8})*$/.test(spec));
  if (wrong === undefined) return;
  throw misuse(
    `${nameOf('field')} is ${JSON.stringify(wrong)}; with ${nameOf('header')} it is the number of a column, from 1`,
  );
}

/** Returns the fields as text; undefined for the default. */
function fieldSpecs(field: unknown, format: InputFormat, nameOf: OptionNaming): readonly string[] | undefined {
  if (field === undefined) return undefined;
  const specs = typeof field === 'string' ? [field] : field;
  if (!isStringArray(specs)) throw misuse(`${nameOf('field')} must be a string or an array of strings`);
  if (specs.length === 0) throw misuse(`${nameOf('field')} is an empty array; leave it out for the default`);
  const reason = NO_FIELD[format];
  if (reason !== undefined)
    throw misuse(`${nameOf('field')} cannot be used with ${nameOf('format')} ${format}: ${reason}; leave it out`);
  return specs;
}

/** The field of an access log, or of any log with a name, with its time. */
const LOG_TIME = 'time';

function parseDateField(field: unknown, missing: unknown, format: InputFormat, nameOf: OptionNaming): DateField {
  const name = nameOf('atField');
  if (typeof field !== 'string' || field === '') throw misuse(`${name} must be a field`);
  if (format === 'list' || format === 'text')
    throw misuse(`${name} cannot be used with ${nameOf('format')} ${format}; leave it out`);
  if (format === 'combined' && field !== LOG_TIME) {
    throw misuse(`${name} is ${JSON.stringify(field)}; with ${nameOf('format')} combined it is ${LOG_TIME}`);
  }
  checkChoice(nameOf('atMissing'), missing, MISSING_DATES);
  if (TABLE_FORMATS.includes(format) || format === 'logfmt') return { path: [field], missing: missing as MissingDate };
  const path = parsePath(field, field);
  if (hasElements(path))
    throw misuse(`${name} is ${JSON.stringify(field)}; the date cannot be in an array; name a field outside`);
  return { path: path as string[], missing: missing as MissingDate };
}

/** Parses the options that say of which day the answers are. */
function parseDates(
  { at, atField, atMissing }: RequestedOptions,
  format: InputFormat,
  nameOf: OptionNaming,
): Pick<EnrichOptions, 'at' | 'atField'> {
  if (atMissing !== undefined && atField === undefined)
    throw misuse(`${nameOf('atMissing')} requires ${nameOf('atField')}`);
  if (at !== undefined && atField !== undefined)
    throw misuse(`${nameOf('at')} and ${nameOf('atField')} exclude each other; give one of them`);
  if (atField !== undefined) return { atField: parseDateField(atField, atMissing ?? 'null', format, nameOf) };
  if (at === undefined) return {};
  if (typeof at === 'string' && isDate(at)) return { at };
  throw misuse(`${nameOf('at')} ${JSON.stringify(at)} is not a date; write it as 2026-01-31`);
}

/** Refuses members that the answers of past days do not have, and those that only these have. */
function checkPastParts(
  add: readonly Addable[],
  { at, atField }: Pick<EnrichOptions, 'at' | 'atField'>,
  nameOf: OptionNaming,
): void {
  const isPast = (at ?? atField) !== undefined;
  if (isPast && add.includes('confidence')) {
    throw misuse(`history has no confidence; leave it out of ${nameOf('add')}`);
  }
  const label = isPast ? add.find(isLabel) : undefined;
  if (label !== undefined) throw misuse(`history has no labels; leave ${label} out of ${nameOf('add')}`);
  const unknown = add.find((name) => name === 'network' || otherPartitionOf(name) !== undefined);
  if (atField !== undefined && unknown !== undefined) {
    throw misuse(`${unknown} is not known for each day; leave it out of ${nameOf('add')}, or use ${nameOf('at')}`);
  }
  if (!isPast && add.includes('release_date')) {
    throw misuse(`${nameOf('add')} release_date requires ${nameOf('at')} or ${nameOf('atField')}`);
  }
}

/**
 * Checks everything that a caller, who may not use TypeScript, asks of an enrichment.
 *
 * @param nameOf returns how messages call an option, such as `--no-header` for `header`
 * @param logs the names of logs
 * @throws AtlasError E_USAGE for a value that is not allowed, and for options that do not go together
 */
export function parseEnrichOptions(requested: RequestedOptions, nameOf: OptionNaming, logs?: Logs): InputOptions {
  if (requested.log === undefined) return parseOptions(requested, nameOf);
  if (typeof requested.log !== 'string') throw misuse(`${nameOf('log')} must be a string`);
  return parseLogOptions(requested, logOf(requested.log, logs ?? knownLogs()), nameOf);
}

/** The same for a log, whose fields, leniency and pick the request may replace. Throws as {@link parseEnrichOptions} does. */
export function parseLogOptions(requested: RequestedOptions, log: Log, nameOf: OptionNaming): InputOptions {
  const { field, lenient, pick } = requested;
  const fixed = ['format', 'items', 'delimiter', 'header'] as const;
  const wrong = fixed.find((name) => requested[name] !== undefined && requested[name] !== true);
  if (wrong !== undefined)
    throw misuse(`${nameOf(wrong)} cannot be used with ${nameOf('log')}, which says it; leave it out`);
  const atField = requested.atField === LOG_TIME ? (log.time ?? LOG_TIME) : requested.atField;
  const own = {
    atField,
    items: log.items,
    field: field ?? log.fields,
    lenient: lenient || log.lenient,
    pick: pick ?? log.pick,
  };
  return { ...parseOptions({ ...requested, ...own }, nameOf, log), roles: rolesOf(requested, log) };
}

/** Parses the options that put the results into the text. */
function parseInline(requested: RequestedOptions, format: InputFormat, nameOf: OptionNaming): Inline | undefined {
  const { inline = false, inlineTemplate, add, redact } = requested;
  checkBoolean(nameOf('inline'), inline);
  if (!inline && inlineTemplate === undefined) return undefined;
  const name = nameOf(inlineTemplate === undefined ? 'inline' : 'inlineTemplate');
  if (format !== 'text') throw misuse(`${name} requires ${nameOf('format')} text`);
  if (inlineTemplate !== undefined && add !== undefined)
    throw misuse(`${name} and ${nameOf('add')} exclude each other: the template says what is added`);
  if (redact !== undefined)
    throw misuse(`${name} and ${nameOf('redact')} exclude each other; a template without {address} hides it`);
  if (inlineTemplate !== undefined && typeof inlineTemplate !== 'string') throw misuse(`${name} must be a string`);
  return parseTemplate(inlineTemplate ?? bracketTemplate(add ?? ['country_code']), name);
}

/** Returns the roles of addresses in text. Who asks for the first or the last address gets it. */
function rolesOf({ pick, format, inText }: RequestedOptions, log?: Log): TextRoles | undefined {
  const hasTexts = (log?.format ?? format) === 'text' || log?.strings === true || inText === true;
  if (!hasTexts || pick === 'first' || pick === 'last') return undefined;
  const all =
    log !== undefined && log.format === 'text'
      ? [{ ...log, programs: [] }]
      : Object.values(knownLogs()).filter(({ programs }) => programs !== undefined);
  return { names: addressNames(), grammars: all };
}

function parseOptions(requested: RequestedOptions, nameOf: OptionNaming, log?: Log): InputOptions {
  const { delimiter, header = true, add, lenient = false, onInvalid = 'keep' } = requested;
  const { pick = 'public', schema, lang, inText = false } = requested;
  const format = log?.format ?? requested.format ?? 'jsonl';
  if (log === undefined) checkChoice(nameOf('format'), format, FORMAT_NAMES);
  const itemsPath = parseItems(requested.items, format, nameOf);
  checkBoolean(nameOf('header'), header);
  if (format !== 'csv' && format !== 'tsv') {
    const option = delimiter !== undefined ? 'delimiter' : header ? undefined : 'header';
    if (option !== undefined) throw misuse(`${nameOf(option)} requires ${nameOf('format')} csv or tsv`);
  }
  checkDelimiter(delimiter, nameOf);
  const specs = fieldSpecs(requested.field, format, nameOf);
  if (!header) checkColumnNumbers(specs, nameOf);
  if (add !== undefined && !isStringArray(add)) throw misuse(`${nameOf('add')} must be an array of strings`);
  checkBoolean(nameOf('lenient'), lenient);
  checkBoolean(nameOf('inText'), inText);
  if (inText && !TEXT_FIELDS.includes(format))
    throw misuse(`${nameOf('inText')} requires ${nameOf('format')} ${TEXT_FIELDS.join(', ')}`);
  if (schema !== undefined) {
    checkChoice(nameOf('schema'), schema, SCHEMA_NAMES);
    if (!format.startsWith('json'))
      throw misuse(`${nameOf('schema')} requires ${nameOf('format')} jsonl, json or json-seq`);
  }
  checkChoice(nameOf('pick'), pick, PICKS);
  if (lang !== undefined) countryNames(lang, nameOf('lang'));
  checkChoice(nameOf('onInvalid'), onInvalid, INVALID_POLICIES);
  const input = kernelInput(format, requested, itemsPath, log?.columns);
  const dates = parseDates(requested, format, nameOf);
  const inline = parseInline(requested, format, nameOf);
  const members = checkAdd(inline?.add ?? add);
  checkPastParts(members, dates, nameOf);
  return {
    input,
    fields: parseFields(specs ?? [], format, schema),
    add: schema === undefined ? members : checkSchema(schema, members, add === undefined),
    schema,
    lang,
    onInvalid,
    // A text is read to its end.
    lenient: lenient || inText,
    pick,
    searchesStrings: log?.strings || inText,
    roles: rolesOf(requested),
    inline,
    redaction: parseRedaction(requested, delimiter, add ?? [], nameOf),
    ...dates,
  };
}
