// The history of years of nights: its bytes, and the processor time of opening a day and of adding one. The changes are synthetic:
// in each night single ranges get another country.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { releaseDir } from '../dist/src/database/release.js';
import { openReleaseRanges } from '../dist/src/database/release-files.js';
import { DAY_MS, dayOf } from '../dist/src/day.js';
import { openArchive } from '../dist/src/history/archive.js';
import { PastDatabase } from '../dist/src/history/open.js';
import { answersOf, importEntry } from '../dist/src/history/write.js';
import { combine } from '../dist/src/range/cut.js';
import { randomWords, row, section } from './measure.js';
import { dataDirectory } from './paths.js';

const YEARS = [1, 2, 5, 10];
const NIGHTS = 365;
const FIRST = Date.UTC(2010, 0, 1);
/** One in this many ranges changes in a night, about as in two real years (docs/history.md). */
const CHANGES = 5_000;
/** Nights and days over which a time is the mean. */
const SAMPLES = 20;

const random = randomWords(44);

/** Seconds of processor time of this process that something takes. */
function processorSeconds(run) {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

export function run() {
  section('History of years of nights');
  const dir = mkdtempSync(join(tmpdir(), 'ipatlas-bench-history-'));
  try {
    let answers = answersOf(openReleaseRanges(releaseDir(dataDirectory())).file);
    const countries = answers.records.flatMap(({ kind }, record) => (kind === 'country' ? [record + 1] : []));
    const change = (layer) => {
      const value = layer.value.slice();
      for (let count = value.length / CHANGES; count > 0; count--)
        value[random() % value.length] = countries[random() % countries.length];
      // Neighbors in a partition differ.
      return combine(layer, { ...layer, value }, (_before, after) => after);
    };
    const dayAt = (night) => dayOf(FIRST + night * DAY_MS);
    const times = [];
    for (let night = 0; night < NIGHTS * YEARS.at(-1); night++) {
      const entry = { day: dayAt(night), name: `night ${night}`, answers };
      times.push(processorSeconds(() => importEntry(openArchive(dir), entry)));
      answers = { ...answers, v4: change(answers.v4), v6: change(answers.v6) };
      const years = (night + 1) / NIGHTS;
      if (!YEARS.includes(years)) continue;
      const name = `history of ${years} years`;
      row(`${name}: bytes`, `${(openArchive(dir).bytes / 1e6).toFixed(1)} MB`);
      const opening = processorSeconds(() => {
        for (let i = 0; i < SAMPLES; i++) new PastDatabase(dir, dayAt(random() % night)).lookup('8.8.8.8');
      });
      row(`${name}: opening a day`, `${((1000 * opening) / SAMPLES).toFixed(0)} ms`);
      const last = times.slice(-SAMPLES).reduce((sum, seconds) => sum + seconds, 0);
      row(`${name}: one more night`, `${((1000 * last) / SAMPLES).toFixed(0)} ms`);
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
}
