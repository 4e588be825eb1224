/** A user's own file of names of logs. It needs libraries that take long to load, so it is loaded for `--logs` only. */
import { configError } from '../errors.js';
import { readJsonFile } from '../json-file.js';
import { compileSchema, describeSchemaErrors } from '../schema-errors.js';
import { knownLogs } from './known-logs.js';
import type { Logs } from './logs.js';

function isPattern(text: string): boolean {
  try {
    // The result is used: bundlers remove a call whose only effect is that it throws.
    return new RegExp(text, 'u').unicode;
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
  const validate = compileSchema<{ logs: Logs }>(['logs'], { formats: { regex: isPattern } });
  const file = await readJsonFile(path, `the names of logs ${path}`);
  if (validate(file)) return { ...knownLogs(), ...file.logs };
  throw configError(describeSchemaErrors(validate.errors!).map((problem) => `${path}: ${problem}`));
}
