/** The options of an enrichment in any format: the fields, what to add, and the policy for invalid lines. */
import { AtlasError } from '../errors.js';
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

/** A table: its delimiter, one ASCII character, and whether its first record is a header. */
export interface TableInput {
  kind: 'table';
  delimiter: string;
  hasHeader: boolean;
}

/** The formats that the kernel reads. `items` are those of an array in a JSON document. */
export type KernelInput = TableInput | { kind: 'jsonl' | 'list' | 'combined' | 'text' | 'items' };

/** What happens to a line that is not a record of its format. */
export const INVALID_POLICIES = ['keep', 'drop', 'fail'] as const;
export type InvalidPolicy = (typeof INVALID_POLICIES)[number];

/** Where an address is, and the name under which its result is added. */
export interface FieldRequest {
  /** The keys from the top of the object to the address; one for a top-level key. */
  path: string[];
  /** The top-level key of the result. */
  name: string;
}

export interface EnrichOptions {
  /** The format of the input; default JSON lines. */
  input?: KernelInput | undefined;
  /** At least one; their names differ. */
  fields: FieldRequest[];
  add: Addable[];
  onInvalid: InvalidPolicy;
  /** What to do instead of adding results to the records, if anything. */
  query?: RecordQuery | undefined;
}

/** Name of the result of a single field without a name. */
const DEFAULT_NAME = 'geo';
const DEFAULT_FIELD = 'ip';
const DEFAULT_ADD: readonly Addable[] = ['country', 'country_code', 'is_eu'];

/** An escaped dot, equals sign or backslash, or any other character. */
const SPEC_CHARACTER = /\\([.=\\])|./gsu;

/** Splits `PATH` or `PATH=NAME` into the keys of the path and the name, and removes the escapes of the path. */
function splitSpec(spec: string): { path: string[]; name: string | undefined } {
  const path = [''];
  for (const { 0: text, 1: escaped, index } of spec.matchAll(SPEC_CHARACTER)) {
    if (text === '=') return { path, name: spec.slice(index + 1) };
    if (text === '.') path.push('');
    else path[path.length - 1] += escaped ?? text;
  }
  return { path, name: undefined };
}

/**
 * Parses fields, each `PATH` or `PATH=NAME`. A path is one or more keys with dots between them; in a key, a dot, an equals
 * sign or a backslash can be escaped with a backslash.
 *
 * @param specs the fields as text; if there are none, `ip`
 * @returns the fields. The default name is `geo` or, with several fields, the path with `_` for `.` and `_geo` appended
 * @throws AtlasError E_USAGE for an empty key, or if two fields have the same name
 */
export function parseFields(specs: readonly string[]): FieldRequest[] {
  const given = specs.length === 0 ? [DEFAULT_FIELD] : specs;
  const fields = given.map((spec) => {
    const { path, name: givenName } = splitSpec(spec);
    const defaultName = given.length === 1 ? DEFAULT_NAME : `${path.join('_').replaceAll('.', '_')}_geo`;
    const name = givenName ?? defaultName;
    if (name === '' || path.includes('')) {
      throw new AtlasError(
        'E_USAGE',
        `the field ${JSON.stringify(spec)} has an empty key; write it as ip, client.ip or client.ip=geo`,
      );
    }
    return { path, name };
  });
  const names = fields.map(({ name }) => name);
  const duplicate = names.find((name, index) => names.indexOf(name) !== index);
  if (duplicate !== undefined) {
    throw new AtlasError('E_USAGE', `two fields would write to ${JSON.stringify(duplicate)}; name each as PATH=NAME`);
  }
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
