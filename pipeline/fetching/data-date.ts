/** Finds out how old the data of a source is. The time of a download says nothing about that. */

import { open } from 'node:fs/promises';
import { isDate } from '../../src/country/country.js';
import { dayOf } from '../../src/day.js';
import type { DataDate, FetchedFile } from '../stage.js';

/** Bytes at the start of a file in which its date may be. */
const HEAD_BYTES = 4096;

/** Bytes at the end of a MaxMind DB that may be metadata (128 KiB, by its specification). */
const TAIL_BYTES = 131_072;

/** The date of a file in each form that publishers write, with the year, the month and the day as groups. */
const DATES_IN_FILES: readonly RegExp[] = [
  // RIR statistics exchange format: version|registry|serial|records|startdate|enddate|UTCoffset.
  /^[12](?:\.\d)?\|[a-z]+\|[^|\n]*\|\d+\|\d*\|(\d{4})(\d\d)(\d\d)\|/m,
  // AWS ip-ranges.json, Google cloud.json, Oracle public_ip_ranges.json.
  /"(?:createDate|creationTime|last_updated_timestamp)"\s*:\s*"(\d{4})-(\d\d)-(\d\d)/,
];

/** Key of the build time in the metadata of a MaxMind DB. */
const BUILD_EPOCH = Buffer.from('build_epoch');

async function readPart(path: string, bytes: number, part: 'head' | 'tail'): Promise<Buffer> {
  const handle = await open(path);
  try {
    const { size } = await handle.stat();
    const length = Math.min(bytes, size);
    const { buffer } = await handle.read(Buffer.alloc(length), 0, length, part === 'head' ? 0 : size - length);
    return buffer;
  } finally {
    await handle.close();
  }
}

/** Reads `build_epoch` of a MaxMind DB (file format specification, "Database Metadata"): seconds since 1970. */
function buildEpochDate(tail: Buffer): string | undefined {
  const at = tail.lastIndexOf(BUILD_EPOCH) + BUILD_EPOCH.length;
  if (at < BUILD_EPOCH.length || at + 2 > tail.length) return undefined;
  // The type number is 9, unsigned 64-bit: 0 in the top three bits means an extended type, 7 plus the next byte.
  const size = tail[at]! & 31;
  if (tail[at]! >>> 5 !== 0 || tail[at + 1] !== 2 || size > 6 || at + 2 + size > tail.length) return undefined;
  const seconds = size === 0 ? 0 : tail.readUIntBE(at + 2, size);
  return validDate(new Date(seconds * 1000));
}

/** Returns a time as a date; undefined if the time is not one. */
function validDate(time: Date): string | undefined {
  return Number.isNaN(time.getTime()) ? undefined : dayOf(time.getTime());
}

async function dateInFile({ path }: FetchedFile): Promise<string | undefined> {
  const text = (await readPart(path, HEAD_BYTES, 'head')).toString('latin1');
  for (const pattern of DATES_IN_FILES) {
    const [, year, month, day] = pattern.exec(text) ?? [];
    const date = `${year}-${month}-${day}`;
    if (isDate(date)) return date;
  }
  return buildEpochDate(await readPart(path, TAIL_BYTES, 'tail'));
}

/**
 * Returns the date in a release's name or version: `2.3.2026061719` was made on 2026-06-17.
 *
 * @param name the version of a package, or the name of a release
 */
export function dateInName(name: string): string | undefined {
  const [, year, month, day] = /(?<!\d)(20\d\d)[-._]?(\d\d)[-._]?(\d\d)(?:\d\d)?(?!\d)/.exec(name) ?? [];
  const date = `${year}-${month}-${day}`;
  return isDate(date) ? date : undefined;
}

/** What is known about the age of a source, the best evidence first. */
export interface DateHints {
  /** Date that was filled into the address of a download. */
  addressDate?: string | undefined;
  /** Name or version of the release. */
  version?: string | undefined;
  /** The header of the download (RFC 9110 §8.8.2). */
  lastModified?: string | undefined;
  /** When a local file was last changed. */
  modifiedAt?: Date | undefined;
}

/**
 * Finds the date of a source's data by the best evidence: a date in the files, the name of the release, `Last-Modified`, and for
 * local files the time of the last change. Of several files the oldest counts.
 *
 * @returns undefined if there is no evidence
 */
export async function findDataDate(files: readonly FetchedFile[], hints: DateHints): Promise<DataDate | undefined> {
  const inFiles: string[] = [];
  for (const file of files) {
    const date = await dateInFile(file);
    if (date !== undefined) inFiles.push(date);
  }
  const oldest = inFiles.sort()[0];
  if (oldest !== undefined) return { date: oldest, evidence: 'date in the file' };
  const release = hints.addressDate ?? dateInName(hints.version ?? '');
  if (release !== undefined) return { date: release, evidence: 'name of the release' };
  const times = [
    [hints.lastModified && new Date(hints.lastModified), 'Last-Modified'],
    [hints.modifiedAt, 'time of the last change of the file'],
  ] as const;
  for (const [time, evidence] of times) {
    const date = time ? validDate(time) : undefined;
    if (date !== undefined) return { date, evidence };
  }
  return undefined;
}

/**
 * Returns the date that counts as the age of a source: the one that was found, unless it is in the future or older than that of
 * the last release. Then nobody knows how old the data is, and the date of the last release stays.
 *
 * @param found see {@link findDataDate}
 * @param last date of the same source in the last release, `YYYY-MM-DD`; undefined if there is none
 * @param today `YYYY-MM-DD`
 * @returns the date, and what is wrong with the one that was found, as a phrase
 */
export function believedDate(
  found: DataDate | undefined,
  last: string | undefined,
  today: string,
): { date: DataDate | undefined; problem: string | undefined } {
  if (found === undefined) return { date: undefined, problem: undefined };
  const isFuture = found.date > today;
  if (!isFuture && (last === undefined || found.date >= last)) return { date: found, problem: undefined };
  const why = isFuture ? 'in the future' : `older than that of the last release, ${last}`;
  const problem = `its date ${found.date} (${found.evidence}) is ${why}`;
  return {
    date: last === undefined ? undefined : { date: last, evidence: `last release, because ${problem}` },
    problem,
  };
}
