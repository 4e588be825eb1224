/** The names of logs, and the options that each sets. */
import { misuse } from '../errors.js';
import type { Grammar } from './address-names.js';
import type { AddressPick, InputFormat } from './choices.js';

/** The options that a name sets; see schemas/logs.schema.json. */
export interface Log extends Grammar {
  title: string;
  page: string;
  version: string;
  client: string;
  format: InputFormat;
  columns?: string;
  items?: string;
  fields?: string[];
  lenient?: boolean;
  pick?: AddressPick;
  strings?: boolean;
  time?: string;
  line?: string | readonly string[];
  head?: string;
}

/** Logs by name. The forms of a log have its name, a hyphen and a name of their own: `apache` and `apache-vhost`. */
export type Logs = Readonly<Record<string, Log>>;

/** @throws AtlasError E_USAGE if there is no log of a name */
export function logOf(name: string, logs: Logs): Log {
  const log = Object.hasOwn(logs, name) ? logs[name] : undefined;
  if (log !== undefined) return log;
  throw misuse(`there is no log ${JSON.stringify(name)}; the names are ${Object.keys(logs).join(', ')}`);
}

/** Returns a log and its other forms. */
export function formsOf(name: string, logs: Logs): Logs {
  return Object.fromEntries(Object.entries(logs).filter(([other]) => other === name || other.startsWith(`${name}-`)));
}

/** Returns the logs that are recognized without a name: no line of JSON names its log. */
export function withoutJson(logs: Logs): Logs {
  return Object.fromEntries(Object.entries(logs).filter(([, { format }]) => format !== 'jsonl' && format !== 'json'));
}
