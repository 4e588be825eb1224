/** Reads the archive: the answers of each day. FORMAT.md is the specification. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Family } from '../address/parse.js';
import { currentReleaseId } from '../database/release.js';
import { DAY_MS, dayOf, shiftedDay } from '../day.js';
import { AtlasError, hasCode, orElse, orThrow, RESTORE, RESTORE_DAYS } from '../errors.js';
import type { FileRecord, RangeRecord } from '../rangefile/layout.js';
import { COUNTRIES } from '../rangefile/partitions.js';
import { joinLayers, overlay, type Values } from './changes.js';
import { type Answers, type Archived, EntryFile, type EntryName, entryFileName, parseEntryName } from './entry.js';
import { isPackName, PACK_LIST_FILE, type PackedEntry, parsePackList, readPack } from './pack.js';

/** The entry of a publication that has not finished: it counts as soon as its release is the current one. */
export const PENDING_FILE = 'pending.ipc';

/** An entry of the archive as its name tells it. */
export interface Entry extends Omit<EntryName, 'origin'> {
  /** `repository`: it is in a pack of the repository that this data directory pulls from. */
  origin: EntryName['origin'] | 'repository';
  /** Its name. */
  file: string;
  /** The file that has it. */
  path: string;
  bytes: number;
  /** Reads it. Throws AtlasError E_DAMAGED if that is not possible. */
  content: () => Uint8Array;
}

function readFile(path: string): Buffer {
  return orThrow(() => readFileSync(path), 'E_DAMAGED', `${path} cannot be read`, RESTORE);
}

function entryAt(name: EntryName, path: string, bytes: number): Entry {
  return { ...name, file: entryFileName(name), path, bytes, content: () => readFile(path) };
}

/** Returns the entries of this data directory that have their names. */
function listEntries(folder: string, files: readonly string[]): Entry[] {
  const byTime = new Map<number, Entry>();
  for (const file of files) {
    const name = parseEntryName(file);
    const stats = name && statSync(join(folder, file), { throwIfNoEntry: false });
    if (name === undefined || stats === undefined) continue;
    // Of two entries of one time, the base counts: a process was killed while it replaced the other by it.
    if (byTime.get(name.time)?.kind === 'base') continue;
    byTime.set(name.time, entryAt(name, join(folder, file), stats.size));
  }
  return [...byTime.values()].sort((a, b) => a.time - b.time);
}

/** Days in a row for which the answers of one entry hold, or of which nothing is known, and why. */
export type Span = { from: string; to: string } & ({ entry: Entry } | Missing);

/** Why nothing is known; `isGap` if nothing was published, and so nothing is lost. */
type Missing = { missing: string; isGap?: true };

/** How it is said that nothing is known of a time that nobody wanted to keep; nothing is lost. */
export const WITHOUT_HISTORY = 'published without history';

/** Returns whether an entry is of the future: the clock was wrong when it was made, or is wrong now. Clocks may differ by a day. */
export function isOfFuture({ time }: Pick<Entry, 'time'>): boolean {
  return time > Date.now() + DAY_MS;
}

export class Archive<Rec extends FileRecord = RangeRecord> {
  readonly partition: Archived<Rec>;
  readonly dataDir: string;
  /** In the order of their times. */
  readonly entries: readonly Entry[];
  /** What is wrong with packs, a sentence for each. */
  readonly problems: readonly string[];
  /** For each pack that is lost or damaged, the first day on which one of its entries may have counted. */
  readonly #lostFrom: readonly string[];

  constructor(
    partition: Archived<Rec>,
    dataDir: string,
    entries: readonly Entry[],
    { problems, lostFrom }: Pick<Packs, 'problems' | 'lostFrom'>,
  ) {
    this.partition = partition;
    this.dataDir = dataDir;
    this.entries = entries;
    this.problems = problems;
    this.#lostFrom = lostFrom;
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
   * end. An entry that was lost is noticed by the one after it, which names the time of the one before; a pack that was lost,
   * by the list of packs.
   */
  spans(): Span[] {
    return this.#spansOfEntries().flatMap((span): Span[] => {
      const lost = this.#lostFrom.find((day) => day >= span.from && day <= span.to);
      if (lost === undefined || 'missing' in span) return [span];
      const missing = `the pack of ${lost.slice(0, 7)} is lost or damaged; the next pull fetches it`;
      const known = { ...span, to: shiftedDay(lost, -1) };
      return [...(lost > span.from ? [known] : []), { from: lost, to: span.to, missing }];
    });
  }

  #spansOfEntries(): Span[] {
    return this.entries.flatMap((entry, index) => {
      const next = this.entries[index + 1];
      const from = dayOf(entry.time);
      const to = next === undefined ? this.span!.to : shiftedDay(dayOf(next.time), -1);
      if (to < from) return []; // another entry of the same day follows
      if (entry.kind === 'gap') {
        return { from, to, missing: `the release of ${from} was ${WITHOUT_HISTORY}`, isGap: true };
      }
      if (next === undefined && this.#isFollowedByLost(entry)) {
        const current = currentReleaseId(this.dataDir);
        const missing = `the entry of the current release ${current} is lost, and perhaps others since ${from}`;
        return { from, to, missing };
      }
      if (next?.since === undefined || next.since <= entry.time) return { from, to, entry };
      // If more than one is lost, nothing tells when the first of them began.
      const lost = this.#isNextButOne(entry, next) ? dayOf(next.since) : from;
      const missing = `the entry of ${dayOf(next.since)} is lost; "ipatlas verify" lists what is damaged`;
      const known = { from, to: shiftedDay(lost, -1), entry };
      return [...(lost > from ? [known] : []), ...(lost <= to ? [{ from: lost, to, missing }] : [])];
    });
  }

  /**
   * Returns the entry whose answers are those of a UTC day, or why none is known.
   *
   * @param day `YYYY-MM-DD`
   */
  at(day: string): { entry: Entry } | Missing {
    const { span } = this;
    if (span === undefined) return { missing: 'the data directory has no history yet', isGap: true };
    if (day < span.from) return { missing: `history begins on ${span.from}`, isGap: true };
    return this.spans().find(({ to }) => day <= to) ?? { missing: 'it is in the future' };
  }

  /** Returns whether a single publication was between two entries. */
  #isNextButOne(entry: Entry, later: Entry): boolean {
    const [before, after] = [entry, later].map((each) => this.#numberOf(each));
    return before !== undefined && after === before + 2;
  }

  #numberOf(entry: Entry): number | undefined {
    return orElse(() => this.read(entry).about.number, hasCode('E_DAMAGED'), undefined);
  }

  /** Returns whether entries after the last one are lost. Nothing after them tells, but the current release does. */
  #isFollowedByLost(last: Entry): boolean {
    if (last.origin === 'imported') return false;
    const isCurrent = () => this.read(last).about.release === currentReleaseId(this.dataDir);
    // If it is damaged, a question for its answers gets this error.
    return !orElse(isCurrent, hasCode('E_DAMAGED'), true);
  }

  /**
   * Opens an entry.
   *
   * @throws AtlasError E_DAMAGED if it is damaged or gone
   */
  read(entry: Entry): EntryFile<Rec> {
    return new EntryFile(this.partition, entry.content(), entry.path, entry.file);
  }

  /**
   * Returns the answers of an entry.
   *
   * @throws AtlasError E_DAMAGED if it or an entry back to its base is damaged or lost
   */
  answers(entry: Entry): Answers<Rec> {
    const { records, layer } = this.families(entry);
    return { records, v4: layer(4), v6: layer(6) };
  }

  /** Returns the same, each family when it is asked for; all checksums are checked at once. Throws as {@link answers} does. */
  families(entry: Entry): { records: readonly Rec[]; layer: (family: Family) => Values } {
    const chain = this.chain(entry);
    if (chain === undefined) {
      const what = `the answers of ${dayOf(entry.time)} are lost: an entry of ${this.dataDir} before it is missing`;
      throw new AtlasError('E_DAMAGED', `${what}; ${RESTORE_DAYS}`);
    }
    const records: Rec[] = [];
    const files = chain.map((each) => {
      const file = this.read(each);
      file.check();
      records.push(...file.records());
      return { file, recordCount: records.length };
    });
    const layer = (family: Family): Values => {
      const [first, ...later] = files.map(({ file, recordCount }) => file.layer(family, recordCount));
      return later.length === 0 ? first! : overlay(first!, joinLayers(later));
    };
    return { records, layer };
  }

  /** Returns the base of an entry and the entries with changes up to it; undefined if one of them is missing. */
  chain(entry: Entry): [base: Entry, ...changes: Entry[]] | undefined {
    const changes: Entry[] = [];
    for (let index = this.entries.indexOf(entry); index >= 0; index--) {
      const each = this.entries[index]!;
      if (each.kind === 'base') return [each, ...changes];
      if (each.kind === 'gap' || this.entries[index - 1]?.time !== each.since) break;
      changes.unshift(each);
    }
    return undefined;
  }

  /**
   * Reads all entries in their order.
   *
   * @param read gets each that can be known, with the records of its base and of the changes up to it; `added` are its own. If it throws
   *   E_DAMAGED, the entry and the changes after it are not known
   */
  *walk<Result>(read: (file: EntryFile<Rec>, records: readonly Rec[], added: readonly Rec[]) => Result) {
    let records: Rec[] = [];
    let problem: string | undefined;
    let before: Entry | undefined;
    for (const entry of this.entries) {
      const isNext = before !== undefined && before.kind !== 'gap' && before.time === entry.since;
      before = entry;
      if (entry.kind === 'gap') {
        yield { entry, unknown: 'gap', problem: WITHOUT_HISTORY } as const;
        continue;
      }
      if (entry.kind === 'base') {
        records = [];
        problem = undefined;
      } else if (!isNext) problem ??= `${entry.path}: the entry before it is lost`;
      if (problem !== undefined) {
        yield { entry, unknown: 'before', problem } as const;
        continue;
      }
      try {
        const file = this.read(entry);
        const added = file.records();
        records.push(...added);
        yield { entry, result: read(file, records, added), about: file.about };
      } catch (error) {
        if (!(error instanceof AtlasError) || error.code !== 'E_DAMAGED') throw error;
        problem = error.message;
        yield { entry, unknown: 'damaged', problem } as const;
      }
    }
  }
}

/** Returns the entry of a publication that has not been given its name, if its release is the current one. */
function pendingEntry<Rec extends FileRecord>(
  partition: Archived<Rec>,
  dataDir: string,
  path: string,
  lastTime: number,
): Entry | undefined {
  if (!existsSync(path)) return undefined;
  const bytes = readFile(path);
  const entry = new EntryFile(partition, bytes, path);
  entry.check();
  const { name, about } = entry;
  const counts = about.release === currentReleaseId(dataDir) && name.time > lastTime;
  return counts ? entryAt(name, path, bytes.length) : undefined;
}

/**
 * Opens the archive of a partition, by default that of the countries. Only the names of its entries are read.
 *
 * Entries of the repository count for the time between the last import and the first publication of this data directory.
 *
 * @throws AtlasError E_DAMAGED if a publication has not finished and its entry is damaged
 */
export function openArchive<Rec extends FileRecord = RangeRecord>(
  dataDir: string,
  partition = COUNTRIES as unknown as Archived<Rec>,
): Archive<Rec> {
  const folder = join(dataDir, partition.history!);
  const files = existsSync(folder) ? readdirSync(folder).sort() : [];
  const local = listEntries(folder, files);
  const pending = pendingEntry(partition, dataDir, join(folder, PENDING_FILE), local.at(-1)?.time ?? 0);
  if (pending !== undefined) local.push(pending);
  const firstOwn = local.findIndex(({ origin }) => origin === 'own');
  const imports = local.slice(0, firstOwn < 0 ? local.length : firstOwn);
  const own = local.slice(imports.length);
  const [after, before] = [imports.at(-1)?.time ?? Number.NEGATIVE_INFINITY, own[0]?.time ?? Number.POSITIVE_INFINITY];
  const packs = readPacks(folder, files, after);
  const repository = packs.entries.filter(({ time }) => time > after && time < before);
  return new Archive(partition, dataDir, [...imports, ...repository, ...own], packs);
}

interface Packs {
  entries: Entry[];
  problems: string[];
  lostFrom: string[];
}

/** Reads the packs that belong to a data directory; `after` is the time of the last import. */
function readPacks(folder: string, files: readonly string[], after: number): Packs {
  const packs: Packs = { entries: [], problems: [], lostFrom: [] };
  const path = join(folder, PACK_LIST_FILE);
  const attempt = (read: () => void): boolean => {
    try {
      read();
      return true;
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error;
      packs.problems.push(error.message);
      return false;
    }
  };
  let names: string[] = [];
  if (files.some((file) => file === PACK_LIST_FILE || isPackName(file))) {
    // Without the list nothing tells which packs are lost, so that none counts.
    attempt(() => {
      names = parsePackList(readFile(path).toString('utf8'), path);
    });
  }
  for (const name of names.sort()) {
    const file = join(folder, name);
    const isRead = attempt(() => {
      packs.entries.push(...readPack(readFile(file), name, file).map((entry) => entryInPack(entry, file)));
    });
    const month = `${name.slice(0, 7)}-01`;
    const next = shiftedDay(month, 31).slice(0, 7);
    const lastImport = Number.isFinite(after) ? dayOf(after) : '';
    if (!isRead && lastImport.slice(0, 7) < next) packs.lostFrom.push(lastImport > month ? lastImport : month);
  }
  return packs;
}

function entryInPack({ name, ...packed }: PackedEntry, path: string): Entry {
  return { ...name, ...packed, origin: 'repository', path };
}
