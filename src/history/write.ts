/**
 * Writes the archive. The caller holds the lock of the data directory. If the process is killed at any step, each function
 * leaves an archive that answers as before or as afterwards.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { currentReleaseId } from '../database/release.js';
import { DAY_MS, dayOf, startOfDay, today } from '../day.js';
import { AtlasError, hasCode, misuse, orElse } from '../errors.js';
import { rename, replaceFile } from '../files.js';
import type { RangeColumns } from '../range/columns.js';
import { type FileRecord, type RangeRecord, recordIdentity } from '../rangefile/layout.js';
import { archivedPartitions, type PartitionContent } from '../rangefile/partitions.js';
import { contentOf, type PartitionFile } from '../rangefile/reader.js';
import { type Archive, type Entry, isOfFuture, openArchive, PENDING_FILE } from './archive.js';
import { differenceOf, type Values } from './changes.js';
import {
  type Answers,
  type Archived,
  type EntryAbout,
  type EntryContent,
  EntryFile,
  type EntryName,
  encodeEntry,
  entryFileName,
} from './entry.js';
import { PACK_LIST_FILE, readPack } from './pack.js';

/**
 * A base is written as soon as the changes since the last one have this many times its size: two years of real nights then
 * have three bases and 2.8 MB (truth/history.js), and opening a day reads at most 1.75 times the bytes of a base.
 */
export const CHANGES_PER_BASE = 0.75;

/** Returns a partition of a release, or what was merged, as answers. */
export function answersOf<Rec extends FileRecord>(from: PartitionFile<Rec> | PartitionContent<Rec>): Answers<Rec> {
  const { records, v4, v6 } = 'v4' in from ? from : contentOf(from);
  const layer = ({ family, count, first, value }: RangeColumns): Values => {
    return { family, count, first, value: new Uint32Array(value).map((record) => record + 1) };
  };
  return { records, v4: layer(v4), v6: layer(v6) };
}

/** Renumbers answers by the records of earlier ones; records that those lack follow after them. */
function renumber<Rec extends FileRecord>({ records, v4, v6 }: Answers<Rec>, earlier: readonly Rec[]): Answers<Rec> {
  const numbers = new Map(earlier.map((record, index) => [recordIdentity(record), index]));
  const all = [...earlier];
  const target = records.map((record) => {
    const known = numbers.get(recordIdentity(record));
    return known ?? all.push(record) - 1;
  });
  const renumbered = (layer: Values): Values => ({
    ...layer,
    value: layer.value.map((value) => target[value - 1]! + 1),
  });
  return { records: all, v4: renumbered(v4), v6: renumbered(v6) };
}

/** Whether the changes up to an entry have become so many, or so old, that the next one is a base. */
function needsBase<Rec extends FileRecord>(archive: Archive<Rec>, last: Entry, time: number, days: number): boolean {
  const chain = archive.chain(last);
  if (chain === undefined) return true;
  const [base, ...changes] = chain;
  const bytes = changes.reduce((sum, each) => sum + each.bytes, 0);
  return bytes > CHANGES_PER_BASE * base.bytes || time - base.time > days * DAY_MS;
}

/** Returns the content of an entry after `last`: changes if they can be told and are few, else a base. */
function contentAfter<Rec extends FileRecord>(
  archive: Archive<Rec>,
  last: Entry | undefined,
  { time, days, about, answers }: { time: number; days: number; about: EntryAbout; answers: Answers<Rec> },
): EntryContent<Rec> & { kind: 'base' | 'changes' } {
  const base = { kind: 'base', about, ...answers } as const;
  if (last === undefined || last.kind === 'gap' || needsBase(archive, last, time, days)) return base;
  // What came from the repository may be replaced.
  if (last.origin === 'repository') return base;
  const before = orElse(() => archive.answers(last), hasCode('E_DAMAGED'), undefined);
  // A base needs nothing of what is damaged; the days before stay lost, and `verify` says so.
  if (before === undefined) return base;
  const after = renumber(answers, before.records);
  return {
    kind: 'changes',
    about,
    records: after.records.slice(before.records.length),
    v4: differenceOf(before.v4, after.v4),
    v6: differenceOf(before.v6, after.v6),
  };
}

function write<Rec extends FileRecord>(
  { partition, dataDir }: Archive<Rec>,
  file: string,
  name: EntryName,
  content: EntryContent<Rec>,
): void {
  const folder = join(dataDir, partition.history!);
  mkdirSync(folder, { recursive: true });
  replaceFile(join(folder, file), [encodeEntry(partition, name, content)]);
}

/** Returns the number of a publication after `last`, which is larger than that of every one before. */
function nextNumber<Rec extends FileRecord>(archive: Archive<Rec>, last: Entry | undefined, time: number): number {
  if (last === undefined) return 0;
  return orElse(() => (archive.read(last).about.number ?? time) + 1, hasCode('E_DAMAGED'), time);
}

/** A release that is about to become the current one. */
export interface Publication<Rec extends FileRecord = RangeRecord> {
  about: EntryAbout;
  /** Undefined if no history is wanted: the archive then says from when on it knows nothing. */
  answers: Answers<Rec> | undefined;
  /** Days of own publications to keep. */
  days: number;
  /** Milliseconds since 1970. */
  now: number;
}

/**
 * Writes the entry of a release that is about to become the current one. It counts from then on; see {@link settlePublication}.
 *
 * @throws a system error if it cannot be written
 */
export function prepareEntry<Rec extends FileRecord>(
  dataDir: string,
  partition: Archived<Rec>,
  publication: Publication<Rec>,
): void {
  const { answers, days, now } = publication;
  const archive = openArchive(dataDir, partition);
  const last = archive.entries.at(-1);
  if (answers === undefined && (last === undefined || last.kind === 'gap')) return;
  // Entries keep their order although a clock was set back.
  const time = Math.max(now, (last?.time ?? 0) + 1);
  const about = { ...publication.about, number: nextNumber(archive, last, time) };
  const content =
    answers === undefined
      ? ({ kind: 'gap', about, records: [], v4: undefined, v6: undefined } as const)
      : contentAfter(archive, last, { time, days, about, answers });
  const name: EntryName = { time, since: last?.time, origin: 'own', kind: content.kind };
  write(archive, PENDING_FILE, name, content);
}

/** Gives the entries of the last publication their names if its release became the current one, and removes them if not. */
export function settlePublication(dataDir: string): void {
  for (const partition of archivedPartitions()) settleEntry(dataDir, partition);
}

function settleEntry<Rec extends FileRecord>(dataDir: string, partition: Archived<Rec>): void {
  const folder = join(dataDir, partition.history!);
  const pending = join(folder, PENDING_FILE);
  if (!existsSync(pending)) return;
  let entry: EntryFile<Rec>;
  try {
    entry = new EntryFile(partition, readFileSync(pending), pending);
    entry.check();
  } catch (error) {
    if (!(error instanceof AtlasError)) throw error;
    rmSync(pending); // a damaged file that nothing refers to yet: the next entry is a base
    return;
  }
  if (entry.about.release === currentReleaseId(dataDir)) rename(pending, join(folder, entryFileName(entry.name)));
  else rmSync(pending);
}

/** Replaces an entry by a base with the same answers, so that it does not need the entries before it. */
function makeBase<Rec extends FileRecord>(archive: Archive<Rec>, entry: Entry, since: number | undefined): void {
  const { about, name: before } = archive.read(entry);
  const name: EntryName = { ...before, since, kind: entry.kind === 'gap' ? 'gap' : 'base' };
  const content = entry.kind === 'gap' ? { records: [], v4: undefined, v6: undefined } : archive.answers(entry);
  const file = entryFileName(name);
  write(archive, file, name, { about, ...content });
  if (join(archive.dataDir, archive.partition.history!, file) !== entry.path) rmSync(entry.path);
}

/**
 * Removes what was published here more than some days ago. Entries go by the group: a base and all changes to it. Imported
 * entries and those of the repository stay.
 *
 * @returns the number of removed entries
 */
export function pruneHistory<Rec extends FileRecord>(archive: Archive<Rec>, days: number, now: number): number {
  const { entries } = archive;
  const firstKept = entries.findLastIndex(
    ({ kind, origin, time }) => kind !== 'changes' && origin === 'own' && time <= now - days * DAY_MS,
  );
  const firstOwn = entries.findIndex(({ origin }) => origin === 'own');
  if (firstKept <= firstOwn) return 0;
  const old = entries.slice(firstOwn, firstKept);
  for (const { path } of old.slice(1).reverse()) rmSync(path);
  const [first] = old;
  if (firstOwn > 0 && first!.kind !== 'gap') {
    // Else the entry before would seem to hold until the first one that is kept.
    const { about, name: before } = archive.read(first!);
    const name: EntryName = { ...before, kind: 'gap' };
    write(archive, entryFileName(name), name, { about, records: [], v4: undefined, v6: undefined });
  }
  if (firstOwn === 0 || first!.kind !== 'gap') rmSync(first!.path);
  return old.length;
}

/** A table to import. */
export interface Import<Rec extends FileRecord = RangeRecord> {
  /** The day from which on it holds, `YYYY-MM-DD`. */
  day: string;
  /** Name of the file, for people. */
  name: string;
  answers: Answers<Rec>;
}

/** Returns why a day cannot be imported; undefined if it can. */
export function importProblem({ entries }: Pick<Archive, 'entries'>, day: string): string | undefined {
  if (day > today()) return `${day} is in the future; give the day from which on the table held`;
  const time = startOfDay(day);
  const own = entries.find(({ origin }) => origin !== 'imported');
  if (own !== undefined && time + DAY_MS > own.time) {
    return `${day} cannot be imported: releases have been published since ${dayOf(own.time)}; leave out that day`;
  }
  if (!entries.some((entry) => entry.time === time)) return undefined;
  return `${day} is imported already; "ipatlas history remove" removes it`;
}

/**
 * Adds an imported table to the archive.
 *
 * @throws AtlasError E_USAGE if its day has an import already or is not before the first publication
 */
export function importEntry<Rec extends FileRecord>(
  archive: Archive<Rec>,
  { day, name: release, answers }: Import<Rec>,
): void {
  const time = startOfDay(day);
  const problem = importProblem(archive, day);
  if (problem !== undefined) throw misuse(problem);
  const next = archive.entries.findIndex((entry) => entry.time > time);
  const last = next < 0 ? archive.entries.at(-1) : archive.entries[next - 1];
  const successor = archive.entries[next];
  if (successor?.kind === 'changes' && successor.origin !== 'repository') makeBase(archive, successor, successor.since);
  const about: EntryAbout = { release, event: 'import' };
  const days = Number.POSITIVE_INFINITY;
  const content = contentAfter(archive, last, { time, days, about, answers });
  const name: EntryName = { time, since: last?.time, origin: 'imported', kind: content.kind };
  write(archive, entryFileName(name), name, content);
}

/**
 * Removes imported entries.
 *
 * @param from the first day, `YYYY-MM-DD`
 * @param to the last day
 * @returns the days that were removed, the earliest first
 */
export function removeImports<Rec extends FileRecord>(archive: Archive<Rec>, from: string, to: string): string[] {
  const isRemoved = (entry: Entry): boolean =>
    entry.origin === 'imported' && dayOf(entry.time) >= from && dayOf(entry.time) <= to;
  const removed = archive.entries.filter(isRemoved);
  if (removed.length === 0) return [];
  const index = archive.entries.indexOf(removed[0]!);
  const successor = archive.entries[index + removed.length];
  if (successor !== undefined && successor.origin !== 'repository') {
    makeBase(archive, successor, archive.entries[index - 1]?.time);
  }
  for (const { path } of [...removed].reverse()) rmSync(path);
  return removed.map(({ time }) => dayOf(time));
}

/** Removes the entries of the future, except those of the repository. Returns them, the earliest first. */
export function removeOfFuture<Rec extends FileRecord>({ entries }: Archive<Rec>): Entry[] {
  const removed = entries.filter((entry) => isOfFuture(entry) && entry.origin !== 'repository');
  for (const { path } of removed.toReversed()) rmSync(path);
  return removed;
}

/**
 * Says which packs belong to a data directory. Days of one that is not there are refused; a pack without its name here does not
 * count.
 *
 * @param folder of the entries
 */
export function listPacks(folder: string, names: readonly string[]): void {
  replaceFile(join(folder, PACK_LIST_FILE), [Buffer.from(`${JSON.stringify([...names].sort())}\n`)]);
}

/**
 * Adds a pack of the repository, or replaces it.
 *
 * @param folder of the entries
 * @param name of the pack
 * @throws AtlasError E_DAMAGED if it is not a pack of its month
 */
export function addPack(folder: string, name: string, bytes: Uint8Array): void {
  const path = join(folder, name);
  readPack(bytes, name, path);
  replaceFile(path, [bytes]);
}
