/** The names of logs, and the options that each sets. The page has them, too. */
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
  line?: string;
  head?: string;
}

/** Logs by name. The forms of a log have its name, a hyphen and a name of their own: `apache` and `apache-vhost`. */
export type Logs = Readonly<Record<string, Log>>;

/** A log that was recognized: its names, which mean the same, and one of them. */
export interface DetectedLog {
  names: string[];
  log: Log;
}

/** Least share of the lines that must match, and the longest part of a line that is looked at, in characters. */
const LEAST_MATCHES = 0.9;
const MAX_LINE_LENGTH = 8192;

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

/** Returns what a log is read with: two logs for which it is equal are the same to us. */
function reading({ title, page, version, client, time, line, head, ...options }: Log): string {
  return JSON.stringify(options);
}

/** Returns whether text, the beginning of an input, looks like a log. */
function looksLike({ line, head }: Log, text: string, lines: readonly string[]): boolean {
  if (head !== undefined) return new RegExp(head, 'u').test(text);
  if (line === undefined || lines.length === 0) return false;
  const pattern = new RegExp(line, 'u');
  if (!pattern.test(lines[0]!)) return false;
  return lines.filter((one) => pattern.test(one)).length >= LEAST_MATCHES * lines.length;
}

/**
 * Recognizes a log by the beginning of an input.
 *
 * @param text without a byte order mark
 * @param isWhole whether the last line of the text is complete
 * @returns undefined if it looks like none of the logs
 * @throws AtlasError E_USAGE if it looks like several that are read in different ways
 */
export function recognizeLog(name: string, text: string, isWhole: boolean, logs: Logs): DetectedLog | undefined {
  const all = text.split(/\r?\n/).flatMap((line) => (/\S/.test(line) ? [line.slice(0, MAX_LINE_LENGTH)] : []));
  const lines = isWhole || all.length < 2 ? all : all.slice(0, -1);
  const found = Object.entries(logs).filter(([, log]) => looksLike(log, text, lines));
  if (found.length === 0) return undefined;
  const names = found.map(([one]) => one);
  const log = found[0]![1];
  if (found.every(([, other]) => reading(other) === reading(log))) return { names, log };
  throw misuse(
    `${name} looks like ${names.join(' and like ')}, which are read in different ways; choose one with --log`,
  );
}
