/** The logs and the fields that ipatlas knows by name: data/logs.json and data/address-names.json. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../package-root.js';
import type { AddressNames } from './address-names.js';
import type { Logs } from './logs.js';

let known: Logs | undefined;
let names: AddressNames | undefined;

/** Returns the logs that ipatlas knows. */
export function knownLogs(): Logs {
  known ??= (JSON.parse(readFileSync(packageFile('data/logs.json'), 'utf8')) as { logs: Logs }).logs;
  return known;
}

/** Returns the names of fields that hold addresses. */
export function addressNames(): AddressNames {
  names ??= JSON.parse(readFileSync(packageFile('data/address-names.json'), 'utf8')) as AddressNames;
  return names;
}
