/**
 * Validates a value against a JSON Schema, in the few keywords that schemas/manifest.schema.json uses.
 *
 * The library ajv needs 150 to 400 ms to load and compile that schema, and opening a release for a single lookup takes
 * less than 10 ms. Its standalone code needs no compilation, but it has 61 kB in 1,700 generated lines for the schemas of the
 * manifest and the report, and takes 4.9 ms of processor time where this file, the schema included, takes 3.7 ms. A test
 * compares this validator with ajv.
 */

export interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  pattern?: string;
  minimum?: number;
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: false | Schema;
  items?: Schema;
  minItems?: number;
  $defs?: Record<string, Schema>;
}

const KEYWORDS = new Set([
  ...['$ref', 'type', 'const', 'pattern', 'minimum', 'required', 'properties', 'additionalProperties', 'items'],
  ...['minItems', '$defs', '$schema', '$id', 'title', 'description'],
]);

/** Returns the types of JSON Schema that a value has; an integer is also a number. */
function typesOf(value: unknown): string[] {
  if (value === null) return ['null'];
  if (Array.isArray(value)) return ['array'];
  return Number.isInteger(value) ? ['integer', 'number'] : [typeof value];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typesOf(value)[0] === 'object';
}

/**
 * Returns the first violation of a schema, or undefined if the value is valid.
 *
 * @param schema a schema with the keywords of {@link Schema}
 * @param value a parsed JSON value
 * @param root the schema that `$ref` points into
 * @param path of the value in the document, for the message
 * @throws Error for a keyword that is not supported
 */
export function schemaViolation(schema: Schema, value: unknown, root = schema, path = ''): string | undefined {
  const unsupported = Object.keys(schema).find((keyword) => !KEYWORDS.has(keyword));
  if (unsupported !== undefined) throw new Error(`JSON Schema keyword ${unsupported} is not supported`);
  const at = path === '' ? 'the document' : path;
  if (schema.$ref !== undefined) {
    const target = root.$defs?.[schema.$ref.replace('#/$defs/', '')];
    if (target === undefined) throw new Error(`JSON Schema reference ${schema.$ref} has no target`);
    return schemaViolation(target, value, root, path);
  }
  const types = [schema.type ?? typesOf(value)].flat();
  if (!types.some((type) => typesOf(value).includes(type))) return `${at} is not of type ${types.join(' or ')}`;
  if ('const' in schema && value !== schema.const) return `${at} is not ${JSON.stringify(schema.const)}`;
  if (typeof value === 'string' && schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value)) {
    return `${at} does not have the form ${schema.pattern}`;
  }
  if (typeof value === 'number' && value < (schema.minimum ?? -Infinity)) return `${at} is less than ${schema.minimum}`;
  if (Array.isArray(value)) {
    if (value.length < (schema.minItems ?? 0)) return `${at} has fewer than ${schema.minItems} elements`;
    const { items } = schema;
    if (items !== undefined)
      return first(value, (item, index) => schemaViolation(items, item, root, `${path}[${index}]`));
  }
  if (isObject(value)) {
    const missing = schema.required?.find((key) => !Object.hasOwn(value, key));
    if (missing !== undefined) return `${at} has no member "${missing}"`;
    return first(Object.entries(value), ([key, member]) => {
      const inner = path === '' ? key : `${path}.${key}`;
      const properties = schema.properties ?? {};
      const other = schema.additionalProperties ?? {};
      const expected = Object.hasOwn(properties, key) ? properties[key]! : other;
      if (expected === false) return `${at} has the unknown member ${JSON.stringify(key)}`;
      return schemaViolation(expected, member, root, inner);
    });
  }
  return undefined;
}

/** Returns the first result that is not undefined. */
function first<T>(values: readonly T[], check: (value: T, index: number) => string | undefined): string | undefined {
  for (const [index, value] of values.entries()) {
    const violation = check(value, index);
    if (violation !== undefined) return violation;
  }
  return undefined;
}
