/** A user's own file of names of logs. It needs libraries that take long to load, so it is loaded for `--logs` only. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { AtlasError } from '../errors.js';
import { readJsonFile } from '../json-file.js';
import { packageFile } from '../package-root.js';
import { describeSchemaErrors } from '../schema-errors.js';
import { knownLogs } from './known-logs.js';
import type { Logs } from './logs.js';

function isPattern(text: string): boolean {
  try {
    new RegExp(text, 'u');
    return true;
  } catch {
    return false;
  }
}

/**
 * Reads a file of names, which are added to those that are known.
 *
 * @throws AtlasError E_CONFIG with all problems, one a line
 */
export async function readLogs(path: string): Promise<Logs> {
  const schema = JSON.parse(readFileSync(packageFile('schemas/logs.schema.json'), 'utf8')) as object;
  const ajv = new Ajv2020({ allErrors: true, verbose: true, strictRequired: false, formats: { regex: isPattern } });
  const validate = ajv.compile<{ logs: Logs }>(schema);
  const file = await readJsonFile(path, `the names of logs ${path}`);
  if (validate(file)) return { ...knownLogs(), ...file.logs };
  const problems = describeSchemaErrors(validate.errors!).map((problem) => `${path}: ${problem}`);
  throw new AtlasError('E_CONFIG', problems.join('\n'));
}
