/** The logs that ipatlas knows by name: data/logs.json. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../package-root.js';
import type { Logs } from './logs.js';

let known: Logs | undefined;

/** Returns the logs that ipatlas knows. */
export function knownLogs(): Logs {
  known ??= (JSON.parse(readFileSync(packageFile('data/logs.json'), 'utf8')) as { logs: Logs }).logs;
  return known;
}
