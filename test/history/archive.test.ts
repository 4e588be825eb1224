import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS, dayOf } from '../../src/day.js';
import { openArchive } from '../../src/history/archive.js';
import { differenceOf, joinLayers, overlay, type Values } from '../../src/history/changes.js';
import { openDay } from '../../src/history/day.js';
import { importEntry, pruneHistory, removeImports, settlePublication } from '../../src/history/write.js';
import { killedAt } from '../support/killed-writer.js';
import { randomFrom } from '../support/seed.js';
import { temporaryDir } from '../support/temporary.js';
import { SIZE } from '../support/tiny-space.js';
import {
  answersAt,
  answersOfWorld,
  below,
  changed,
  EMPTY_WORLD,
  expected,
  layerOf,
  nightsAgainstCopies,
  publish,
  RECORDS,
  START,
  type World,
} from './support.js';

let dataDir: string;
beforeEach(() => {
  dataDir = temporaryDir();
});

/** Of the bytes of an archive, each of these many is changed; all by "make soak". */
const EVERY = process.env.FUZZ_RUNS === undefined ? 7 : 1;

describe('changes', () => {
  it.each([4, 6] as const)('lead from one partition to the next, alone and joined, IPv%d', (family) => {
    const random = randomFrom(family);
    for (let round = 0; round < 300; round++) {
      const worlds = [EMPTY_WORLD];
      for (let step = 0; step < 6; step++) worlds.push(changed(worlds.at(-1)!, random));
      const layers = worlds.map((world) => layerOf(family, family === 4 ? world.v4 : world.v6));
      const steps = layers.slice(1).map((layer, index) => differenceOf(layers[index]!, layer));
      let state: Values = layers[0]!;
      steps.forEach((step, index) => {
        state = overlay(state, step);
        expect(state).toEqual(layers[index + 1]);
      });
      expect(overlay(layers[0]!, joinLayers(steps))).toEqual(layers.at(-1));
    }
  });
});

describe('the archive', () => {
  it('answers every day as full copies do, after builds, failures, force, rollbacks and nights without history', () => {
    for (const [day, answers, copy] of nightsAgainstCopies(dataDir, 50, randomFrom(20261123))) {
      expect([day, answers]).toEqual([day, copy]);
    }
  });

  it('uses few bases: one as soon as the changes outweigh the last one', () => {
    const random = randomFrom(7);
    let world = EMPTY_WORLD;
    for (let night = 0; night < 40; night++) {
      world = changed(world, random);
      publish(dataDir, { release: `r${night}`, world, now: START + night * DAY_MS });
    }
    const kinds = openArchive(dataDir).entries.map(({ kind }) => kind);
    expect(kinds[0]).toBe('base');
    expect(kinds.filter((kind) => kind === 'changes').length).toBeGreaterThan(20);
  });

  it('refuses a day with damage in one family before anything is asked of the other one', () => {
    publish(dataDir, { release: 'r0', world: EMPTY_WORLD, now: START });
    const path = openArchive(dataDir).entries[0]!.path;
    const bytes = readFileSync(path);
    bytes[bytes.length - 1]! ^= 1; // of the ranges of IPv6, the last section
    writeFileSync(path, bytes);
    expect(() => openDay(openArchive(dataDir), '2026-01-01')).toThrow(/checksum of section country6/);
  });

  it('is one of the two states whenever a publication is killed', async () => {
    const [first, second] = [changed(EMPTY_WORLD, randomFrom(1)), changed(EMPTY_WORLD, randomFrom(2))];
    publish(dataDir, { release: 'a', world: first, now: START });
    const before = join(temporaryDir(), 'before');
    cpSync(dataDir, before, { recursive: true, verbatimSymlinks: true });
    const seen = new Set<string>();
    let isKilled = true;
    for (let step = 0; isKilled; step++) {
      rmSync(dataDir, { recursive: true });
      cpSync(before, dataDir, { recursive: true, verbatimSymlinks: true });
      const publication = { release: 'b', world: second, now: START + DAY_MS };
      isKilled = await killedAt(step, async () => publish(dataDir, publication));
      for (const work of [() => {}, () => settlePublication(dataDir)]) {
        work();
        expect(answersAt(dataDir, '2026-01-01')).toEqual(expected(first));
        const after = JSON.stringify(answersAt(dataDir, '2026-01-02'));
        expect([JSON.stringify(expected(first)), JSON.stringify(expected(second))]).toContain(after);
        seen.add(after);
      }
      publish(dataDir, { release: 'c', world: first, now: START + 2 * DAY_MS });
      expect(answersAt(dataDir, '2026-01-03')).toEqual(expected(first));
    }
    expect(seen.size).toBe(2);
  });

  it('notices every changed byte and every lost entry, and loses no day that does not need it', () => {
    const random = randomFrom(3);
    const worlds: World[] = [];
    for (let night = 0; night < 3; night++) {
      worlds.push(changed(worlds.at(-1) ?? EMPTY_WORLD, random));
      publish(dataDir, { release: `r${night}`, world: worlds[night]!, now: START + night * DAY_MS });
    }
    const folder = join(dataDir, 'history');
    const files = readdirSync(folder).sort();
    const { entries } = openArchive(dataDir);
    expect(files).toHaveLength(3);
    const check = (damagedEntry: number, what: string): void => {
      let mayBeLost = false;
      for (let night = Math.max(0, damagedEntry - 1); night < 3; night++) {
        if (night === damagedEntry) mayBeLost = true;
        else if (entries[night]!.kind === 'base') mayBeLost = false;
        // Without the last entry, nothing tells when the one before ended.
        if (what === 'lost' && damagedEntry === 2) mayBeLost = true;
        const answers = answersAt(dataDir, dayOf(START + night * DAY_MS));
        if (mayBeLost && answers === undefined) continue;
        expect([what, damagedEntry, night, answers]).toEqual([what, damagedEntry, night, expected(worlds[night]!)]);
      }
    };
    files.forEach((file, index) => {
      const path = join(folder, file);
      const bytes = readFileSync(path);
      for (let at = 0; at < bytes.length; at += EVERY) {
        const damaged = Buffer.from(bytes);
        damaged[at]! ^= 1 << below(random, 8);
        writeFileSync(path, damaged);
        check(index, `byte ${at}`);
      }
      rmSync(path);
      check(index, 'lost');
      expect(answersAt(dataDir, dayOf(START + index * DAY_MS))).toBeUndefined();
      writeFileSync(path, bytes);
    });
  });

  it('keeps imported tables before its own publications, in whatever order they come', () => {
    const random = randomFrom(4);
    publish(dataDir, { release: 'own', world: EMPTY_WORLD, now: START });
    const days = ['2020-01-31', '2024-02-29', '2021-05-01', '2020-02-01', '2025-12-31', '2022-01-01'];
    const truth = new Map<string, World>();
    for (const day of days) {
      truth.set(day, changed(changed(EMPTY_WORLD, random), random));
      importEntry(openArchive(dataDir), { day, name: `${day}.csv`, answers: answersOfWorld(truth.get(day)!) });
      for (const [each, world] of truth) expect([each, answersAt(dataDir, each)]).toEqual([each, expected(world)]);
    }
    expect(() =>
      importEntry(openArchive(dataDir), { day: '2026-01-01', name: 'x', answers: answersOfWorld(EMPTY_WORLD) }),
    ).toThrow(/2026-01-01 cannot be imported/);
    expect(() =>
      importEntry(openArchive(dataDir), { day: '2020-02-01', name: 'x', answers: answersOfWorld(EMPTY_WORLD) }),
    ).toThrow(/imported already/);
    expect(answersAt(dataDir, '2023-01-01')).toEqual(expected(truth.get('2022-01-01')!));
    expect(removeImports(openArchive(dataDir), '2021-01-01', '2024-12-31')).toEqual([
      '2021-05-01',
      '2022-01-01',
      '2024-02-29',
    ]);
    expect(answersAt(dataDir, '2023-01-01')).toEqual(expected(truth.get('2020-02-01')!));
    expect(answersAt(dataDir, '2026-01-01')).toEqual(expected(EMPTY_WORLD));
    expect(answersAt(dataDir, '2019-12-31')).toBeUndefined();
  });

  it('says that British addresses left the Union on 2020-02-01', () => {
    const british = { v4: new Array(SIZE).fill(3), v6: new Array(SIZE).fill(3) };
    importEntry(openArchive(dataDir), { day: '2019-06-01', name: 'old.csv', answers: answersOfWorld(british) });
    const isEu = (day: string): boolean =>
      openDay(openArchive(dataDir), day).file.records.some((record) => record.kind === 'country' && record.isEu);
    const isBritain = ({ records }: { records: readonly unknown[] }) => records.length === RECORDS.length;
    expect(isBritain(openDay(openArchive(dataDir), '2020-01-31').file)).toBe(true);
    const gb = (day: string) =>
      openDay(openArchive(dataDir), day).file.records.find(
        (record) => record.kind === 'country' && record.code === 'GB',
      );
    expect(gb('2020-01-31')).toMatchObject({ isEu: true });
    expect(gb('2020-02-01')).toMatchObject({ isEu: false });
    expect(isEu('2020-02-01')).toBe(true);
  });

  it('forgets its own publications after the days to keep, and never an imported table', () => {
    const random = randomFrom(5);
    importEntry(openArchive(dataDir), { day: '2020-01-01', name: 'old.csv', answers: answersOfWorld(EMPTY_WORLD) });
    const worlds: World[] = [];
    for (let night = 0; night < 60; night++) {
      worlds.push(changed(worlds.at(-1) ?? EMPTY_WORLD, random));
      const now = START + night * DAY_MS;
      publish(dataDir, { release: `r${night}`, world: worlds[night]!, now, days: 10 });
      pruneHistory(openArchive(dataDir), 10, now);
    }
    for (let night = 49; night < 60; night++) {
      expect(answersAt(dataDir, dayOf(START + night * DAY_MS))).toEqual(expected(worlds[night]!));
    }
    expect(answersAt(dataDir, dayOf(START + 20 * DAY_MS))).toBeUndefined();
    expect(answersAt(dataDir, '2025-06-01')).toEqual(expected(EMPTY_WORLD));
    expect(openArchive(dataDir).entries.length).toBeLessThan(40);
  });
});
