/** What an enrichment is asked to do, whatever the format: which fields, what to add, what to do with bad lines. */
import { AtlasError } from '../errors.js';

/** What an answer can hold, in the order in which it is written. */
const ADDABLE = ['country', 'country_code', 'is_eu', 'reason'] as const;
export type Addable = (typeof ADDABLE)[number];

/** What happens to a line that is no record of its format. */
export const INVALID_POLICIES = ['keep', 'drop', 'fail'] as const;
export type InvalidPolicy = (typeof INVALID_POLICIES)[number];

/** Where an address stands, and under which name the answer goes. */
export interface FieldRequest {
  /** The keys from the top of the object down to the address; one for a top-level key. */
  path: string[];
  /** The top-level key that the answer goes to. */
  name: string;
}

export interface EnrichOptions {
  /** At least one; names all different. */
  fields: FieldRequest[];
  add: Addable[];
  onInvalid: InvalidPolicy;
}

/** The name of the answer where one field is given without a name. */
const DEFAULT_NAME = 'geo';
const DEFAULT_FIELD = 'ip';
const DEFAULT_ADD: readonly Addable[] = ['country', 'country_code', 'is_eu'];

/**
 * Understands `--field PATH[=NAME]`.
 *
 * @param specs the flag's values; none stands for `ip`
 * @returns the fields; a name that is not given is `geo`, or, where there are several fields, the path with `_` for `.`
 *   and `_geo` behind it
 * @throws AtlasError E_USAGE for an empty key or a name that stands twice
 */
export function parseFields(specs: readonly string[]): FieldRequest[] {
  const given = specs.length === 0 ? [DEFAULT_FIELD] : specs;
  const fields = given.map((spec) => {
    const equals = spec.indexOf('=');
    const path = equals < 0 ? spec : spec.slice(0, equals);
    const fallback = given.length === 1 ? DEFAULT_NAME : `${path.replaceAll('.', '_')}_geo`;
    const name = equals < 0 ? fallback : spec.slice(equals + 1);
    const keys = path.split('.');
    if (name === '' || keys.includes('')) {
      throw new AtlasError(
        'E_USAGE',
        `--field ${JSON.stringify(spec)} has an empty key; write it as ip, client.ip or client.ip=geo`,
      );
    }
    return { path: keys, name };
  });
  const names = fields.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new AtlasError(
      'E_USAGE',
      `two fields would write to ${JSON.stringify(twice)}; give each a name with --field PATH=NAME`,
    );
  }
  return fields;
}

/**
 * Understands `--add LIST`, names with commas between.
 *
 * @returns the parts of the answer, in the order given
 * @throws AtlasError E_USAGE for a name that cannot be added or stands twice
 */
export function parseAdd(list: string | undefined): Addable[] {
  if (list === undefined) return [...DEFAULT_ADD];
  const add = list.split(',');
  add.forEach((name, index) => {
    if (!ADDABLE.includes(name as Addable) || add.indexOf(name) !== index) {
      throw new AtlasError('E_USAGE', `--add ${JSON.stringify(list)}: choose from ${ADDABLE.join(', ')}, each once`);
    }
  });
  return add as Addable[];
}
