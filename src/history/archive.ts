/** Reads the archive: the answers of each day. FORMAT.md is the specification. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Family } from '../address/parse.js';
import { currentReleaseId } from '../database/release.js';
import { AtlasError, messageOf, systemErrorCode } from '../errors.js';
import type { RangeRecord } from '../rangefile/layout.js';
import { joinLayers, type Layer, overlay } from './changes.js';
import { type Answers, EntryFile, type EntryName, parseEntryName } from './entry.js';

/** Folder of the archive in a data directory. */
export const HISTORY_DIR = 'history';
/** The entry of a publication that has not finished: it counts as soon as its release is the current one. */
export const PENDING_FILE = 'pending.ipc';

export const DAY_MS = 86_400_000;

/** An entry of the archive as its name tells it. */
export interface Entry extends EntryName {
  path: string;
  bytes: number;
}

/** Returns the UTC day of a time, `YYYY-MM-DD`. */
export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Returns the UTC day that is a number of days after a day, or before it. */
export function shiftedDay(day: string, days: number): string {
  return dayOf(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS);
}

function readEntryFile(path: string, expected?: EntryName): EntryFile {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw new AtlasError('E_DAMAGED', `${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  return new EntryFile(bytes, path, expected);
}

function listEntries(folder: string): Entry[] {
  let files: string[];
  try {
    files = readdirSync(folder);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  }
  const byTime = new Map<number, Entry>();
  for (const file of files.sort()) {
    const name = parseEntryName(file);
    const stats = name && statSync(join(folder, file), { throwIfNoEntry: false });
    if (name === undefined || stats === undefined) continue;
    // Of two entries of one time, the base counts: a process was killed while it replaced the other by it.
    if (byTime.get(name.time)?.kind === 'base') continue;
    byTime.set(name.time, { ...name, path: join(folder, file), bytes: stats.size });
  }
  return [...byTime.values()].sort((a, b) => a.time - b.time);
}

/** Days in a row for which the answers of one entry hold, or of which nothing is known, and why. */
export type Span = { from: string; to: string } & ({ entry: Entry } | { missing: string });

export class Archive {
  readonly dataDir: string;
  /** In the order of their times. */
  readonly entries: readonly Entry[];

  constructor(dataDir: string, entries: readonly Entry[]) {
    this.dataDir = dataDir;
    this.entries = entries;
  }

  /** Returns the first and the last day that are kept; undefined if none is. */
  get span(): { from: string; to: string } | undefined {
    const [first, last] = [this.entries[0], this.entries.at(-1)];
    return first && last && { from: dayOf(first.time), to: dayOf(Math.max(last.time, Date.now())) };
  }

  /** Bytes of all entries. */
  get bytes(): number {
    return this.entries.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /**
   * Returns what holds for the days from the first entry to today, in order. A day's entry is the one that was current at its
   * end. An entry that was lost is noticed by the one after it, which names the time of the one before.
   */
  spans(): Span[] {
    return this.entries.flatMap((entry, index) => {
      const next = this.entries[index + 1];
      const from = dayOf(entry.time);
      const to = next === undefined ? this.span!.to : shiftedDay(dayOf(next.time), -1);
      if (to < from) return []; // another entry of the same day follows
      if (entry.kind === 'gap') return { from, to, missing: `the release of ${from} was published without history` };
      if (next === undefined && this.#isFollowedByLost(entry)) {
        const current = currentReleaseId(this.dataDir);
        const missing = `the entry of the current release ${current} is lost, and perhaps others since ${from}`;
        return { from, to, missing };
      }
      if (next?.since === undefined || next.since <= entry.time) return { from, to, entry };
      const lost = dayOf(next.since);
      const missing = `the entry of ${lost} is lost; "ipatlas verify" lists what is damaged`;
      const known = { from, to: shiftedDay(lost, -1), entry };
      return [...(lost > from ? [known] : []), ...(lost <= to ? [{ from: lost, to, missing }] : [])];
    });
  }

  /**
   * Returns the entry whose answers are those of a UTC day, or why none is known.
   *
   * @param day `YYYY-MM-DD`
   */
  at(day: string): { entry: Entry } | { missing: string } {
    const { span } = this;
    if (span === undefined) return { missing: 'the data directory has no history yet' };
    if (day < span.from) return { missing: `history begins on ${span.from}` };
    return this.spans().find(({ to }) => day <= to) ?? { missing: 'it is in the future' };
  }

  /** Returns whether entries after the last one are lost. Nothing after them tells, but the current release does. */
  #isFollowedByLost(last: Entry): boolean {
    if (last.origin === 'imported') return false;
    try {
      return this.read(last).about.release !== currentReleaseId(this.dataDir);
    } catch (error) {
      // Whoever asks for its answers is told that it is damaged.
      if (error instanceof AtlasError && error.code === 'E_DAMAGED') return false;
      throw error;
    }
  }

  /**
   * Opens an entry.
   *
   * @throws AtlasError E_DAMAGED if it is damaged or gone
   */
  read(entry: Entry): EntryFile {
    return readEntryFile(entry.path, entry);
  }

  /**
   * Returns the answers of an entry.
   *
   * @throws AtlasError E_DAMAGED if it or an entry back to its base is damaged or lost
   */
  answers(entry: Entry): Answers {
    const { base, changes } = this.#chain(entry);
    const records: RangeRecord[] = [];
    const layers: Record<Family, Layer[]> = { 4: [], 6: [] };
    for (const each of [base, ...changes]) {
      const file = this.read(each);
      records.push(...file.records());
      for (const family of [4, 6] as const) layers[family].push(file.layer(family, records.length));
    }
    const laidOver = ([first, ...later]: Layer[]): Layer =>
      later.length === 0 ? first! : overlay(first!, joinLayers(later));
    return { records, v4: laidOver(layers[4]), v6: laidOver(layers[6]) };
  }

  /** Returns the base of an entry, and the entries with changes up to it. */
  #chain(entry: Entry): { base: Entry; changes: Entry[] } {
    const changes: Entry[] = [];
    for (let index = this.entries.indexOf(entry); index >= 0; index--) {
      const each = this.entries[index]!;
      if (each.kind === 'base') return { base: each, changes };
      if (each.kind === 'gap' || this.entries[index - 1]?.time !== each.since) break;
      changes.unshift(each);
    }
    const day = dayOf(entry.time);
    throw new AtlasError(
      'E_DAMAGED',
      `the answers of ${day} are lost: an entry of ${this.dataDir} before it is missing`,
    );
  }
}

/**
 * Opens the archive of a data directory. Only the names of its entries are read.
 *
 * @throws AtlasError E_DAMAGED if a publication has not finished and its entry is damaged
 */
export function openArchive(dataDir: string): Archive {
  const folder = join(dataDir, HISTORY_DIR);
  const entries = listEntries(folder);
  const path = join(folder, PENDING_FILE);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats !== undefined) {
    const { name, about } = readEntryFile(path);
    const isCurrent = about.release === currentReleaseId(dataDir);
    if (isCurrent && name.time > (entries.at(-1)?.time ?? 0)) entries.push({ ...name, path, bytes: stats.size });
  }
  return new Archive(dataDir, entries);
}
