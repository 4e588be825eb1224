/** schemas/wire.schema.json: what the API takes and answers, for validation and for the OpenAPI document. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../package-root.js';

export const WIRE_SCHEMA_ID = 'wire';

/** The schemas by name. */
export interface WireSchema {
  $id: string;
  $defs: Record<string, object>;
}

/** The file, less its `$schema`: Fastify's validator knows the keywords used, but not that dialect by its name. */
export function wireSchema(): WireSchema {
  const { $schema: _, ...schema } = JSON.parse(
    readFileSync(packageFile('schemas/wire.schema.json'), 'utf8'),
  ) as WireSchema & { $schema: string };
  return schema;
}

/** A reference to one of its schemas. */
export function definition(name: string): { $ref: string } {
  return { $ref: `${WIRE_SCHEMA_ID}#/$defs/${name}` };
}
