// Enrichment by the date of each record, against plain enrichment: whole processes by wall time, over a year of weekly tables
// that change 0.5 % of the ranges each. The shape of the changes is synthetic: single ranges that get another country.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { releaseDir } from '../dist/src/database/release.js';
import { openReleaseRanges } from '../dist/src/database/release-files.js';
import { DAY_MS, dayOf } from '../dist/src/day.js';
import { openArchive } from '../dist/src/history/archive.js';
import { answersOf, importEntry } from '../dist/src/history/write.js';
import { combine } from '../dist/src/range/cut.js';
import { leastSeconds, randomWords, row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const WEEKS = 52;
const WEEK_MS = 7 * DAY_MS;
const FIRST = Date.UTC(2025, 0, 1);
const LINES = 500_000;
/** Times that a file is read. */
const REPEATS = 8;
const ROUNDS = 2;

const random = randomWords(28);

/** Returns answers in which one range in 200 has another country. */
function changed({ records, v4, v6 }) {
  const countries = records.flatMap(({ kind }, record) => (kind === 'country' ? [record + 1] : []));
  const change = (layer) => {
    const value = layer.value.map((each) => (random() % 200 === 0 ? countries[random() % countries.length] : each));
    // Neighbors in a partition differ.
    return combine(layer, { ...layer, value }, (_before, after) => after);
  };
  return { records, v4: change(v4), v6: change(v6) };
}

function writeLog(path, timeOf) {
  const lines = Array.from({ length: LINES }, (_, line) => {
    const ip = `${1 + (random() % 223)}.${random() % 256}.${random() % 256}.${random() % 256}`;
    return JSON.stringify({ ts: new Date(timeOf(line)).toISOString(), ip, status: 200, path: '/index.html' });
  });
  writeFileSync(path, `${lines.join('\n')}\n`);
}

export async function run() {
  section('Enrichment by the date of each record (--at-field), a year of weekly tables, 1 thread');
  const release = dataDirectory();
  const dir = mkdtempSync(join(tmpdir(), 'ipatlas-bench-dates-'));
  try {
    let answers = answersOf(openReleaseRanges(releaseDir(release)).file);
    for (let week = 0; week < WEEKS; week++) {
      importEntry(openArchive(dir), { day: dayOf(FIRST + week * WEEK_MS), name: `week ${week}`, answers });
      answers = changed(answers);
    }
    row('bytes of the year', `${(openArchive(dir).bytes / 1e6).toFixed(1)} MB`);
    const [sorted, shuffled, mixed] = ['sorted', 'shuffled', 'random'].map((name) => join(dir, `${name}.jsonl`));
    const span = WEEKS * WEEK_MS;
    const dayOfLine = (line) => Math.floor((span * line) / LINES / DAY_MS);
    writeLog(sorted, (line) => FIRST + (span * line) / LINES);
    writeLog(shuffled, (line) => FIRST + DAY_MS * dayOfLine(line) + (random() % DAY_MS));
    writeLog(mixed, () => FIRST + (random() % (span / 1000)) * 1000);
    const start = join(dir, 'start.jsonl');
    writeFileSync(start, '{"ip":"8.8.8.8","ts":"2025-01-01"}\n');
    const enrich =
      (dataDir, input, ...flags) =>
      () =>
        execFileSync(
          process.execPath,
          [CLI, 'enrich', '--jobs', '1', '--data', dataDir, ...flags, ...Array(REPEATS).fill(input)],
          { stdio: 'ignore' },
        );
    const at = ['--at-field', 'ts'];
    const [plainStart, atStart, plain, bySorted, byShuffled, byRandom] = await leastSeconds(
      ROUNDS,
      enrich(release, start),
      enrich(dir, start, ...at),
      enrich(release, sorted),
      enrich(dir, sorted, ...at),
      enrich(dir, shuffled, ...at),
      enrich(dir, mixed, ...at),
    );
    const speed = (time) => `${((REPEATS * statSync(sorted).size) / 1e6 / time).toFixed(0)} MB/s`;
    row('start: plain; by date', `${plainStart.toFixed(2)} s; ${atStart.toFixed(2)} s`);
    row('plain, without its start', speed(plain - plainStart));
    // An MMDB for each week: the same one under other names, which takes the naive program as long.
    const mmdb = join(dir, '0.mmdb');
    execFileSync(process.execPath, [CLI, 'export', 'mmdb', '--data', release, '-o', mmdb], { stdio: 'ignore' });
    for (let week = 1; week < WEEKS; week++) copyFileSync(mmdb, join(dir, `${week}.mmdb`));
    const program = new URL('enrich-dates-naive.js', import.meta.url).pathname;
    const naiveArguments = [program, mixed, dir, `${FIRST}`, `${WEEK_MS}`];
    const naive = Number(execFileSync(process.execPath, naiveArguments, { encoding: 'utf8' }));
    const ratio = (naive * REPEATS) / (byRandom - atStart);
    row('lines of random days / an MMDB a week kept open', `${ratio.toFixed(1)} ×`, '≥ 10 ×', ratio >= 10);
    for (const [name, time] of [
      ['lines sorted by date / plain, without the start', bySorted - atStart],
      ['lines shuffled within each day / plain, without the start', byShuffled - atStart],
      ['lines of random days / plain, without the start', byRandom - atStart],
    ]) {
      const ratio = (plain - plainStart) / time;
      row(name, `${speed(time)}, ${ratio.toFixed(2)} ×`, '≥ 0.6 ×', ratio >= 0.6);
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
}
