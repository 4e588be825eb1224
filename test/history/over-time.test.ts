import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS, dayOf } from '../../src/day.js';
import { openArchive } from '../../src/history/archive.js';
import { answersOverTime } from '../../src/history/over-time.js';
import { importEntry } from '../../src/history/write.js';
import { findIPv4 } from '../../src/rangefile/search.js';
import { randomFrom } from '../support/seed.js';
import { temporaryDir } from '../support/temporary.js';
import { answersAt, answersOfWorld, EMPTY_WORLD, labelsAt, nightsAgainstCopies, recordIn, SPACES } from './support.js';

let dataDir: string;
beforeEach(() => {
  dataDir = temporaryDir();
});

describe('the answers of all days as one table', () => {
  it('are those of each day', () => {
    const days = [...nightsAgainstCopies(dataDir, 30, randomFrom(4))].map(([day]) => day);
    const all = answersOverTime(openArchive(dataDir));
    for (const day of ['2025-12-31', ...days])
      expect([day, labelsAt(all, day)]).toEqual([day, answersAt(dataDir, day)]);
  });

  it('are unknown where an entry is damaged, and only there', () => {
    const days = [...nightsAgainstCopies(dataDir, 20, randomFrom(5))].map(([day]) => day);
    const folder = join(dataDir, 'history');
    const path = join(folder, readdirSync(folder).sort()[9]!);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length - 4));
    const all = answersOverTime(openArchive(dataDir));
    const answers = days.map((day) => answersAt(dataDir, day));
    expect(answers).toContain(undefined);
    expect(days.map((day) => labelsAt(all, day))).toEqual(answers);
  });

  it('are refused if no day is known', () => {
    importEntry(openArchive(dataDir), { day: '2020-01-15', name: 'a', answers: answersOfWorld(EMPTY_WORLD) });
    const path = join(dataDir, 'history', readdirSync(join(dataDir, 'history'))[0]!);
    writeFileSync(path, readFileSync(path).subarray(1));
    expect(() => answersOverTime(openArchive(dataDir))).toThrow(/no day of its history is known/);
  });

  it('are on days to come those of today, if there is a release: a process may run on after midnight', () => {
    importEntry(openArchive(dataDir), { day: '2020-01-15', name: 'a', answers: answersOfWorld(EMPTY_WORLD) });
    const [today, tomorrow] = [dayOf(Date.now()), dayOf(Date.now() + DAY_MS)];
    const all = answersOverTime(openArchive(dataDir), () => answersOfWorld(EMPTY_WORLD));
    expect(labelsAt(all, tomorrow)).toEqual(labelsAt(all, today));
    expect(labelsAt(answersOverTime(openArchive(dataDir)), tomorrow)).toBe(undefined);
  });

  it('have the membership of each day', () => {
    const gb = { v4: EMPTY_WORLD.v4.map(() => 3), v6: EMPTY_WORLD.v6 };
    importEntry(openArchive(dataDir), { day: '2020-01-15', name: 'a', answers: answersOfWorld(gb) });
    const today = dayOf(Date.now());
    const all = answersOverTime(openArchive(dataDir));
    const timeline = all.record4[findIPv4(all, SPACES[4].place(3)[0]! | 0)]!;
    const isEu = (day: string): boolean => {
      const record = recordIn(all, timeline, all.states[Date.parse(day) / DAY_MS - all.firstDay]!);
      return record.kind === 'country' && record.code === 'GB' && record.isEu;
    };
    expect(['2020-01-15', '2020-01-31', '2020-02-01', today].map(isEu)).toEqual([true, true, false, false]);
    expect(all.dates[all.states.at(-1)!]).toBe('2020-01-15');
  });
});
