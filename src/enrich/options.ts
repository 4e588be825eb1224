/** The options of an enrichment in any format: the fields, what to add, and the policy for invalid lines. */
import { AtlasError } from '../errors.js';
import { MAX_FIELDS, MAX_KEY_BYTES, MAX_PATH_KEYS } from '../limits.js';
import { EACH, hasElements, type PathStep, parsePath, pathText, splitSpec } from './field-path.js';
import type { RecordQuery } from './query.js';

/** The members that a result can have. */
const ADDABLE = ['country', 'country_code', 'is_eu', 'reason', 'confidence'] as const;
export type Addable = (typeof ADDABLE)[number];

/**
 * The formats of inputs: JSON lines, a JSON document, tables with commas or tabs, lists of addresses, access logs in the
 * combined format of Apache and nginx, and any text.
 */
export const FORMAT_NAMES = ['jsonl', 'json', 'csv', 'tsv', 'list', 'combined', 'text'] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];

/** The formats whose fields are columns. */
export const TABLE_FORMATS: readonly FormatName[] = ['csv', 'tsv'];

/** A table: its delimiter, one ASCII character, and whether its first record is a header. */
export interface TableInput {
  kind: 'table';
  delimiter: string;
  hasHeader: boolean;
}

/** The formats that the kernel reads. `items` are those of an array in a JSON document. */
export type KernelInput = TableInput | { kind: 'jsonl' | 'list' | 'combined' | 'text' | 'items' };

/**
 * Returns how the kernel reads a format; undefined for JSON documents.
 *
 * @param delimiter that of a table, if it is not the format's; @param hasHeader whether a table has a header
 */
export function kernelInput(format: FormatName, delimiter?: string, hasHeader = true): KernelInput | undefined {
  switch (format) {
    case 'json':
      return undefined;
    case 'csv':
      return { kind: 'table', delimiter: delimiter ?? ',', hasHeader };
    case 'tsv':
      return { kind: 'table', delimiter: delimiter ?? '\t', hasHeader };
    default:
      return { kind: format };
  }
}

/** Whether a text can separate the cells of a table: one ASCII character that means nothing else in it. */
export function isDelimiter(text: unknown): text is string {
  return typeof text === 'string' && /^[\0-\x7f]$/.test(text) && !/["\r\n\0]/.test(text);
}

/** What happens to a line that is not a record of its format. */
export const INVALID_POLICIES = ['keep', 'drop', 'fail'] as const;
export type InvalidPolicy = (typeof INVALID_POLICIES)[number];

/** Where an address is, and where its result goes. */
export interface FieldRequest {
  /** The steps from the top of the object to the address; one for a top-level key. */
  path: PathStep[];
  /** The keys from the top of the object to the result; one for a top-level key. All but the last are the first of `path`. */
  target: string[];
  /** The target as text, for formats without objects. */
  name: string;
}

export interface EnrichOptions {
  /** The format of the input; default JSON lines. */
  input?: KernelInput | undefined;
  /** At least one; their names differ. */
  fields: FieldRequest[];
  add: Addable[];
  onInvalid: InvalidPolicy;
  /** Whether addresses in other text are found, too; see src/address/lenient.ts. Default: false. */
  lenient?: boolean | undefined;
  /** What to do instead of adding results to the records, if anything. */
  query?: RecordQuery | undefined;
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

/** Parses a target. The object that it is in must be on the way to the address: then it exists if the address does. */
function parseTarget(text: string, path: readonly PathStep[], spec: string): string[] {
  const target = parsePath(text, spec);
  const parent = target.slice(0, -1) as string[];
  const isInObject = isStartOf(parent, path) && typeof path[parent.length] === 'string';
  if (!hasElements(target) && isInObject) return target as string[];
  throw new AtlasError(
    'E_USAGE',
    `the target ${JSON.stringify(text)} of the field ${JSON.stringify(spec)} is neither a top-level key nor in an object of ` +
      'its path; for client.ip it can be geo or client.geo',
  );
}

/** Refuses two fields that write to one place, or one whose target is inside the target of another. */
function checkTargets(fields: readonly FieldRequest[]): void {
  for (const [index, { target, name }] of fields.entries()) {
    const other = fields.findIndex((one, at) => at !== index && isStartOf(one.target, target));
    if (other < 0) continue;
    const problem =
      fields[other]!.target.length === target.length
        ? `two fields would write to ${JSON.stringify(name)}`
        : `${JSON.stringify(name)} would be inside ${JSON.stringify(fields[other]!.name)}, which another field writes`;
    throw new AtlasError('E_USAGE', `${problem}; name each as PATH=TARGET`);
  }
}

/** Refuses paths with more steps, or longer keys, than the kernel takes. */
function checkPath({ path, target }: FieldRequest): void {
  if (path.length > MAX_PATH_KEYS) {
    throw new AtlasError('E_USAGE', `the path ${pathText(path)} has more than ${MAX_PATH_KEYS} keys`);
  }
  for (const key of [...path, ...target]) {
    if (typeof key === 'string' && Buffer.byteLength(key) > MAX_KEY_BYTES) {
      throw new AtlasError('E_USAGE', `the key ${key.slice(0, 40)}… is longer than ${MAX_KEY_BYTES} bytes`);
    }
  }
}

/**
 * Parses fields, each `PATH` or `PATH=TARGET`, see field-path.ts.
 *
 * @param specs the fields as text; if there are none, `ip`
 * @param format in a table, the target is the beginning of the names of columns: its dots and brackets mean nothing
 * @returns the fields. The default target is `geo` or, with several fields, the path with `_` for `.` and `_geo` appended
 * @throws AtlasError E_USAGE for too many fields, a path or target that is not valid or too long, or if two fields have the
 *   same target
 */
export function parseFields(specs: readonly string[], format: FormatName = 'jsonl'): FieldRequest[] {
  const given = specs.length === 0 ? [DEFAULT_FIELD] : specs;
  if (given.length > MAX_FIELDS) {
    throw new AtlasError('E_USAGE', `${given.length} fields are too many; at most ${MAX_FIELDS} go in one run`);
  }
  const isTable = TABLE_FORMATS.includes(format);
  const fields = given.map((spec) => {
    const parts = splitSpec(spec);
    const path = parsePath(parts.path, spec);
    const text = parts.target ?? (given.length === 1 ? DEFAULT_NAME : defaultName(path));
    const isKey = parts.target === undefined || (text !== '' && isTable);
    const target = isKey ? [text] : parseTarget(text, path, spec);
    return { path, target, name: target.join('.') };
  });
  // The name of a column may be of any length.
  if (!isTable) fields.forEach(checkPath);
  checkTargets(fields);
  return fields;
}

/**
 * Checks the members to add.
 *
 * @param names if undefined, the default
 * @returns the members in the order given
 * @throws AtlasError E_USAGE for an unknown name, a duplicate, or an empty list
 */
export function checkAdd(names: readonly string[] | undefined): Addable[] {
  if (names === undefined) return [...DEFAULT_ADD];
  const isValid = names.every((name, index) => ADDABLE.includes(name as Addable) && names.indexOf(name) === index);
  if (isValid && names.length > 0) return names as Addable[];
  const given = JSON.stringify(names.join(','));
  throw new AtlasError('E_USAGE', `cannot add ${given}; choose from ${ADDABLE.join(', ')}, each once`);
}

/** Parses the value of `--add`, names separated by commas. As {@link checkAdd}. */
export function parseAdd(list: string | undefined): Addable[] {
  return checkAdd(list?.split(','));
}
