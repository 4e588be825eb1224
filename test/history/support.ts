/** A data directory whose releases are only names, and a model of its history that keeps every answer. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { pullHistory } from '../../pipeline/distribution/history.js';
import { DAY_MS, dayOf, shiftedDay } from '../../src/day.js';
import { AtlasError } from '../../src/errors.js';
import { openArchive } from '../../src/history/archive.js';
import type { Values } from '../../src/history/changes.js';
import { openDay } from '../../src/history/day.js';
import type { Answers, EntryAbout } from '../../src/history/entry.js';
import { type AnswersOverTime, DAMAGED_STATE, NO_STATE } from '../../src/history/over-time.js';
import { encodePacks } from '../../src/history/pack.js';
import { importEntry, prepareEntry, pruneHistory, settlePublication } from '../../src/history/write.js';
import type { NetworkRecord, RangeRecord } from '../../src/rangefile/layout.js';
import { COUNTRIES, NETWORKS } from '../../src/rangefile/partitions.js';
import type { RangeFile } from '../../src/rangefile/reader.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import { killedAt } from '../support/killed-writer.js';
import { country, reason } from '../support/release.js';
import { PLACES, SIZE } from '../support/tiny-space.js';

export const START = Date.parse('2026-01-01T03:00:00Z');

/** Returns numbers from 0 up to, but not including, 1. */
export type Random = () => number;

/** Returns a whole number from 0 up to, but not including, a limit. */
export function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

/** The code or reason of each address of the tiny spaces. */
export interface Labels {
  v4: string[];
  v6: string[];
}

export const RECORDS: readonly RangeRecord[] = [
  reason('unallocated'),
  country('DE', 'Germany', true),
  country('FR', 'France', true),
  country('GB', 'United Kingdom'),
  country('US', 'United States'),
  country('IE', 'Ireland', true),
];

/** The record of each address of two tiny spaces; all other addresses have record 0. */
export interface World {
  v4: number[];
  v6: number[];
}

export const SPACES = { 4: PLACES['IPv4 top']!, 6: PLACES['IPv6 across words']! } as const;

/** Returns values by address as a partition. */
export function layerOf(family: 4 | 6, values: readonly number[]): Values {
  const { place } = SPACES[family];
  const first: number[] = [];
  const value: number[] = [];
  const add = (address: number[], each: number): void => {
    if (value.at(-1) === each) return;
    first.push(...address);
    value.push(each);
  };
  add(family === 4 ? [0] : [0, 0, 0, 0], 1);
  values.forEach((each, offset) => {
    add(place(offset), each + 1);
  });
  // After the tiny space of IPv6, addresses follow; that of IPv4 ends with the last address.
  if (family === 6) add([7, 2, 0, SIZE - 32], 1);
  return { family, count: value.length, first: Uint32Array.from(first), value: Uint32Array.from(value) };
}

export function answersOfWorld({ v4, v6 }: World): Answers {
  return { records: RECORDS, v4: layerOf(4, v4), v6: layerOf(6, v6) };
}

/** Changes a few addresses of a world. */
export function changed({ v4, v6 }: World, random: Random): World {
  const change = (values: number[]): number[] => {
    const copy = [...values];
    for (let count = below(random, 4); count > 0; count--) {
      const from = below(random, SIZE);
      copy.fill(below(random, RECORDS.length), from, from + 1 + below(random, 8));
    }
    return copy;
  };
  return { v4: change(v4), v6: change(v6) };
}

export const EMPTY_WORLD: World = { v4: new Array(SIZE).fill(0), v6: new Array(SIZE).fill(0) };

export interface TestPublication {
  release: string;
  world: World;
  /** Undefined for a release without networks. */
  networks?: Answers<NetworkRecord> | undefined;
  now: number;
  event?: EntryAbout['event'];
  forced?: boolean;
  days?: number;
  /** Removes what is older than `days`. */
  prunes?: boolean;
  /** Publishes without history. */
  withoutHistory?: boolean;
  /** The build fails before the switch. */
  fails?: boolean;
}

/** Publishes as the pipeline does: the entry, the switch of `current`, the entry's name. */
export function publish(dataDir: string, publication: TestPublication): void {
  const { release, world, now, event = 'build', forced = false, days = 730 } = publication;
  settlePublication(dataDir);
  const about = { release, event, ...(forced && { forced }) };
  const answers = publication.withoutHistory === true ? undefined : answersOfWorld(world);
  prepareEntry(dataDir, COUNTRIES, { about, answers, days, now });
  prepareEntry(dataDir, NETWORKS, { about, answers: publication.networks, days, now });
  if (publication.fails === true) return;
  mkdirSync(join(dataDir, 'releases', release), { recursive: true });
  const link = join(dataDir, 'current.new');
  rmSync(link, { force: true });
  symlinkSync(join('releases', release), link);
  renameSync(link, join(dataDir, 'current'));
  settlePublication(dataDir);
  if (publication.prunes === true) pruneHistory(openArchive(dataDir), days, now);
}

/** Returns the code or reason of each address of the tiny spaces, by linear order. */
export function answersIn(file: RangeFile): Labels {
  const label = (number: number): string => {
    const record = file.records[number]!;
    return record.kind === 'country' ? record.code : record.kind === 'none' ? record.reason : record.scheme;
  };
  const offsets = Array.from({ length: SIZE }, (_, offset) => offset);
  return {
    v4: offsets.map((offset) => label(file.record4[findIPv4(file, SPACES[4].place(offset)[0]! | 0)]!)),
    v6: offsets.map((offset) => label(file.record6[findIPv6(file, Uint32Array.from(SPACES[6].place(offset)))]!)),
  };
}

export function expected({ v4, v6 }: World): Labels {
  const labels = ['unallocated', 'DE', 'FR', 'GB', 'US', 'IE'];
  return { v4: v4.map((value) => labels[value]!), v6: v6.map((value) => labels[value]!) };
}

/** Returns the answers of a day; undefined if it is refused as a day that is not kept or is damaged. */
export function answersAt(dataDir: string, day: string): Labels | undefined {
  try {
    return answersIn(openDay(openArchive(dataDir), day).file);
  } catch (error) {
    if (error instanceof AtlasError && ['E_USAGE', 'E_DAMAGED'].includes(error.code)) return undefined;
    throw error;
  }
}

/** Returns the record that a timeline has in a state. */
export function recordIn({ timelines, steps, records }: AnswersOverTime, timeline: number, state: number): RangeRecord {
  const all = steps.subarray(timelines[timeline], timelines[timeline + 1]);
  return records[all.findLast((step) => step >>> 16 <= state)! & 0xffff]!;
}

/** Returns the answers of a day for the tiny spaces; undefined if they are not known. */
export function labelsAt(all: AnswersOverTime, day: string): Labels | undefined {
  const state = all.states[Date.parse(`${day}T00:00:00Z`) / DAY_MS - all.firstDay] ?? NO_STATE;
  if (state >= DAMAGED_STATE) return undefined;
  const label = (timeline: number): string => {
    const record = recordIn(all, timeline, state);
    return record.kind === 'country' ? record.code : record.kind === 'none' ? record.reason : record.scheme;
  };
  const offsets = Array.from({ length: SIZE }, (_, offset) => offset);
  return {
    v4: offsets.map((offset) => label(all.record4[findIPv4(all, SPACES[4].place(offset)[0]! | 0)]!)),
    v6: offsets.map((offset) => label(all.record6[findIPv6(all, Uint32Array.from(SPACES[6].place(offset)))]!)),
  };
}

/**
 * Publishes nights of every kind, and asks for every day.
 *
 * @param keep how long; if days are removed, they are refused
 * @returns for each day what the archive answers, and what a full copy of the release of its end answers; undefined for a day
 *   that is refused, or of which nothing may be known
 */
export function* nightsAgainstCopies(
  dataDir: string,
  nights: number,
  random: Random,
  keep: Pick<TestPublication, 'days' | 'prunes'> = {},
): Generator<[day: string, answers: Labels | undefined, copy: Labels | undefined]> {
  let world = EMPTY_WORLD;
  const kept = new Map<string, World>();
  const truth = new Map<string, World | undefined>();
  let current: World | undefined;
  for (let night = 0; night < nights; night++) {
    for (let count = below(random, 10) < 8 ? 1 : below(random, 4); count > 0; count--) {
      const now = START + night * DAY_MS + below(random, 60_000_000);
      const kind = below(random, 20);
      const next: TestPublication = { ...keep, release: `r${night}-${count}`, world: changed(world, random), now };
      if (kind === 0) {
        publish(dataDir, { ...next, fails: true });
        continue;
      }
      if (kind === 1) {
        publish(dataDir, { ...next, withoutHistory: true });
        current = undefined;
        continue;
      }
      const [back] = [...kept.keys()].slice(-1 - below(random, 3));
      if (kind === 2 && back !== undefined) {
        world = kept.get(back)!;
        publish(dataDir, { ...next, release: back, world, event: 'rollback' });
      } else {
        world = next.world;
        kept.set(next.release, world);
        publish(dataDir, { ...next, forced: kind === 3 });
      }
      current = world;
    }
    truth.set(dayOf(START + night * DAY_MS), current);
  }
  for (const [day, each] of truth) yield [day, answersAt(dataDir, day), each && expected(each)];
}

/** A repository that offers the history of a data directory, and fails at times. */
function repositoryOf(dataDir: string, random: Random, failures: number) {
  const packs = encodePacks(COUNTRIES.history!, openArchive(dataDir).entries);
  const bytesOf = (target: string): Uint8Array => packs.get(target)!;
  return {
    offered: [...packs.keys()],
    hashOf: async (target: string) => createHash('sha256').update(bytesOf(target)).digest('hex'),
    get: async (target: string, file: string) => {
      if (random() < failures) throw new AtlasError('E_FETCH', `${target} cannot be fetched`);
      writeFileSync(file, bytesOf(target));
    },
  };
}

/**
 * Publishes at an origin, and from some night on at a node, which takes the origin's history: with failed transfers, kills, lost
 * packs, and tables that are imported at the origin at any time. Meanwhile each answer of the node must be right or refused.
 *
 * @returns for days on which answers may change what the node answers at the end, and what full copies answer
 */
export async function* pulledNightsAgainstCopies(
  origin: string,
  node: string,
  nights: number,
  random: Random,
): AsyncGenerator<[day: string, answers: Labels | undefined, copy: Labels | undefined]> {
  const truth = new Map<string, World | undefined>();
  const imports = new Map<string, World>();
  let [world, published, own]: (World | undefined)[] = [EMPTY_WORLD];
  let isArchived = false;
  const step = Math.ceil(140 / nights); // so that some months pass
  const firstPull = Math.ceil(nights / 3) + below(random, nights / 3);
  const importDays = [700, 500, 31, 5, 1].map((days) => dayOf(START - days * DAY_MS));
  /** Returns the answers of a day, as far as anybody knows them. */
  const copyOf = (day: string): Labels | undefined => {
    const known = truth.has(day)
      ? truth.get(day)
      : imports.get([...imports.keys()].sort().findLast((each) => each <= day)!);
    return known && expected(known);
  };
  for (let night = 0; night < nights; night++) {
    const now = START + night * step * DAY_MS;
    if (night === 0 || random() < 0.8) {
      world = changed(world!, random);
      const withoutHistory = random() < 0.1;
      publish(origin, {
        release: `r${night}`,
        world,
        now,
        withoutHistory,
        event: random() < 0.2 ? 'rollback' : 'build',
      });
      published = withoutHistory ? undefined : world;
      // A publication without history is a gap in an archive, and nothing where there is none yet.
      isArchived ||= !withoutHistory || imports.size > 0;
    }
    if (random() < 0.3 && importDays.length > 0) {
      const [day] = importDays.splice(below(random, importDays.length), 1);
      imports.set(day!, changed(EMPTY_WORLD, random));
      importEntry(openArchive(origin), { day: day!, name: `${day}.csv`, answers: answersOfWorld(imports.get(day!)!) });
    }
    if (night >= firstPull && (own === undefined || random() < 0.5)) {
      own = world!;
      publish(node, { release: `r${night}`, world: own, now: now + 1000, event: 'pull' });
    }
    // Before that, what was imported holds.
    if (isArchived || own !== undefined) {
      for (let each = 0; each < step; each++) truth.set(dayOf(now + each * DAY_MS), own ?? published);
    }
    if (own === undefined) continue;
    const isLast = night === nights - 1;
    const { offered, ...client } = repositoryOf(origin, random, isLast ? 0 : 0.4);
    const packs = readdirSync(join(node, 'history')).filter((name) => name.endsWith('.pack'));
    for (const lost of packs) if (random() < 0.3) rmSync(join(node, 'history', lost));
    const context = { dataDir: node, workDir: node, note: () => {} };
    await killedAt(isLast || random() < 0.5 ? Number.POSITIVE_INFINITY : below(random, 12), () =>
      pullHistory(client, offered, context),
    );
    for (let count = 0; count < 20; count++) {
      const days = night * step + (count % 2 === 0 ? 0 : 710);
      const day = dayOf(now - below(random, days + 1) * DAY_MS);
      const answers = answersAt(node, day);
      // An import that the node has not taken yet is not missed.
      const known = [copyOf(day), ...[...imports.values()].map(expected)];
      if (answers !== undefined) expect(truth.has(day) ? known.slice(0, 1) : known).toContainEqual(answers);
    }
  }
  // Each day on which answers may change, and the day before it.
  const starts = [...imports.keys(), ...[...truth.keys()].filter((_, index) => index % step === 0)];
  for (const day of starts.flatMap((start) => [shiftedDay(start, -1), start])) {
    yield [day, answersAt(node, day), copyOf(day)];
  }
}
