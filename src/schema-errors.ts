/** Checks values by the schemas of the package; its messages name the value and what is expected. */
import { readFileSync } from 'node:fs';
import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js';
import { joinPath } from './json-file.js';
import { packageFile } from './package-root.js';

/**
 * Compiles a schema, which takes longer than most checks.
 *
 * @param names of its file in schemas/, without the ending, after those that it refers to
 */
export function compileSchema<Value>(names: readonly string[], options: Options = {}): ValidateFunction<Value> {
  // Strict except for two rules of style: alternatives may differ only in required keys, and a value may have two types.
  const strictness = { strictRequired: false, allowUnionTypes: true };
  const ajv = new Ajv2020({ ...strictness, allErrors: true, verbose: true, ...options });
  const schemas = names.map((name) => JSON.parse(readFileSync(packageFile(`schemas/${name}.schema.json`), 'utf8')));
  for (const schema of schemas.slice(0, -1)) ajv.addSchema(schema);
  return ajv.compile<Value>(schemas.at(-1));
}

/** Returns one line for each thing that the schema does not accept. */
export function describeSchemaErrors(errors: readonly ErrorObject[]): string[] {
  return [...new Set(errors.filter((error) => !isPartOfChoice(error)).map(describeError))];
}

/**
 * Returns whether the error is about one alternative of a choice. The alternatives of our schemas differ only in a
 * required key and describe no properties. The choice as a whole has an error of its own, which says more. An error of
 * the keyword `if` only repeats that the chosen branch has errors.
 */
function isPartOfChoice(error: ErrorObject): boolean {
  return error.keyword === 'if' || (error.keyword === 'required' && error.parentSchema?.properties === undefined);
}

function describeError(error: ErrorObject): string {
  const { keyword, params, parentSchema = {} } = error;
  const at = pathText(error.instancePath);
  if (keyword === 'required' || keyword === 'dependentRequired') {
    const key = String(params.missingProperty);
    return `${joinPath(at, key)} is missing; expected ${keyDescription(parentSchema, key)}`;
  }
  if (keyword === 'additionalProperties') {
    const known = Object.keys((parentSchema.properties as object | undefined) ?? {}).join(', ');
    return `${joinPath(at, String(params.additionalProperty))} is not a known key; expected one of ${known}`;
  }
  return `${at || 'the file'} is ${shortened(error.data)}; expected ${expectation(error)}`;
}

function expectation(error: ErrorObject): string {
  const description = error.parentSchema?.description;
  const rule = (error.message ?? 'another value').replace(/^must NOT have /, 'no ').replace(/^must (be )?/, '');
  if (error.keyword === 'enum') return `one of ${(error.params.allowedValues as unknown[]).join(', ')}`;
  if (typeof description !== 'string') return rule;
  return ['pattern', 'oneOf', 'anyOf'].includes(error.keyword) ? description : `${rule} (${description})`;
}

/** Returns what the schema says about a key. */
function keyDescription(schema: Record<string, unknown>, key: string): string {
  const property = (schema.properties as Record<string, { description?: string }> | undefined)?.[key];
  return property?.description ?? 'a value for it';
}

/** Converts a JSON pointer (RFC 6901) into a path as in code: `/sources/0/id` is `sources[0].id`. */
function pathText(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((text, part) => (/^\d+$/.test(part) ? `${text}[${part}]` : joinPath(text, part)), '');
}

/** Returns a value as short JSON, without the user and password of an address. */
function shortened(value: unknown): string {
  const text = JSON.stringify(value).replace(/:\/\/[^/?#"]*@/g, '://***@');
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
