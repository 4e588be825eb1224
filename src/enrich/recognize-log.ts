/** Recognizes a log by the first lines of an input. */
import { isPublicAddress } from '../address/parse.js';
import { misuse } from '../errors.js';
import type { Log, Logs } from './logs.js';
import { addressesIn, publicPick } from './sample-reader.js';

/** A log that was recognized: its names, which mean the same, and one of them. */
export interface DetectedLog {
  names: string[];
  log: Log;
  /** The flags with which public addresses of the same lines are looked up, if there are some. */
  publicElsewhere?: string | undefined;
}

/** Least share of the lines that must match, and the longest part of a line that is looked at, in characters. */
const LEAST_MATCHES = 0.9;
const MAX_LINE_LENGTH = 8192;

/** Returns what a log is read with: two logs for which it is equal are the same to us. */
function reading({ title, page, version, client, time, line, head, ...options }: Log): string {
  return JSON.stringify(options);
}

/** Returns the flags for public addresses that are not in the field of the client, as those of a proxy's log are. */
function publicFlags({ format }: Log, name: string, lines: readonly string[]): string | undefined {
  if (format === 'combined' && lines.some((line) => isPublicAddress(line.split(' ', 1)[0]!))) return undefined;
  if (format === 'text' && !lines.some((line) => /forwarded/i.test(line))) return undefined;
  const pick = publicPick(addressesIn(lines));
  if (pick === undefined) return undefined;
  if (format === 'text') return `--log ${name} ${pick}`;
  const header = format === 'w3c' ? lines.findLast((line) => line.startsWith('#Fields:')) : undefined;
  const field = header?.split(/[ \t]+/).find((column) => /forwarded/i.test(column));
  return field === undefined ? '--format text' : `--log ${name} --field '${field}'`;
}

/** Returns whether text, the beginning of an input, looks like a log. */
function looksLike({ line, head }: Log, text: string, lines: readonly string[]): boolean {
  if (head !== undefined && new RegExp(head, 'u').test(text)) return true;
  if (line === undefined || lines.length === 0) return false;
  // Patterns one after the other, each without a search within a search, take as long as the line.
  const patterns = [line].flat().map((pattern) => new RegExp(pattern, 'gu'));
  const matches = (one: string): boolean => {
    let from = 0;
    return patterns.every((pattern) => {
      pattern.lastIndex = from;
      const isFound = pattern.test(one);
      from = pattern.lastIndex;
      return isFound;
    });
  };
  return matches(lines[0]!) && lines.filter(matches).length >= LEAST_MATCHES * lines.length;
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
  if (found.every(([, other]) => reading(other) === reading(log)))
    return { names, log, publicElsewhere: publicFlags(log, names[0]!, lines) };
  throw misuse(
    `${name} looks like ${names.join(' and like ')}, which are read in different ways; choose one with --log`,
  );
}
