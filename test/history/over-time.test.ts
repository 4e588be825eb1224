import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS, dayOf, openArchive } from '../../src/history/archive.js';
import { type AnswersOverTime, answersOverTime, NO_STATE } from '../../src/history/over-time.js';
import { importEntry } from '../../src/history/write.js';
import type { RangeRecord } from '../../src/rangefile/layout.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import { randomFrom } from '../support/seed.js';
import { SIZE } from '../support/tiny-space.js';
import {
  answersAt,
  answersOfWorld,
  dataDirForHistory,
  EMPTY_WORLD,
  type Labels,
  nightsAgainstCopies,
  SPACES,
} from './support.js';

let dataDir: string;
beforeEach(() => {
  dataDir = dataDirForHistory();
});
afterEach(() => rmSync(dataDir, { recursive: true }));

/** Returns the record that a timeline has in a state. */
function recordIn({ timelines, steps, records }: AnswersOverTime, timeline: number, state: number): RangeRecord {
  const all = steps.subarray(timelines[timeline], timelines[timeline + 1]);
  return records[all.findLast((step) => step >>> 16 <= state)! & 0xffff]!;
}

/** Returns the answers of a day for the tiny spaces; undefined if they are not known. */
function labelsAt(all: AnswersOverTime, day: string): Labels | undefined {
  const state = all.states[Date.parse(`${day}T00:00:00Z`) / DAY_MS - all.firstDay] ?? NO_STATE;
  if (state === NO_STATE) return undefined;
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

describe('the answers of all days as one table', () => {
  it('are those of each day', () => {
    const days = [...nightsAgainstCopies(dataDir, 60, randomFrom(4))].map(([day]) => day);
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

  it('have the membership of each day', () => {
    const gb = { v4: EMPTY_WORLD.v4.map(() => 3), v6: EMPTY_WORLD.v6 };
    importEntry(dataDir, { day: '2020-01-15', name: 'a', answers: answersOfWorld(gb) });
    const all = answersOverTime(openArchive(dataDir));
    const timeline = all.record4[findIPv4(all, SPACES[4].place(3)[0]! | 0)]!;
    const isEu = (day: string): boolean => {
      const record = recordIn(all, timeline, all.states[Date.parse(day) / DAY_MS - all.firstDay]!);
      return record.kind === 'country' && record.code === 'GB' && record.isEu;
    };
    expect(['2020-01-15', '2020-01-31', '2020-02-01', dayOf(Date.now())].map(isEu)).toEqual([true, true, false, false]);
    expect(all.dates[all.states.at(-1)!]).toBe('2020-01-15');
  });
});
