// Bulk enrichment from a file to a file with several threads: what two jobs gain, and what is left to the main thread.
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SHAPES, writeLines } from './enrich-lines.js';
import { row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const FILE_BYTES = 250_000_000;
const REPEATS = 8;
const ROUNDS = 3;
const GOALS = { twoJobs: 1.85, mainThread: 0.08 };

const HOOK = fileURLToPath(new URL('thread-times.cjs', import.meta.url));

/** Runs a command. Returns its seconds, and the processor seconds of its main thread. */
function times(args, report) {
  const file = openSync(report, 'w');
  const begun = performance.now();
  const { status } = spawnSync(process.execPath, ['--require', HOOK, CLI, ...args], {
    stdio: ['ignore', 'ignore', 'ignore', file],
  });
  const seconds = (performance.now() - begun) / 1000;
  closeSync(file);
  if (status !== 0) throw new Error(`enrich ended with ${status}`);
  return { seconds, mainThread: Number(readFileSync(report, 'utf8')) };
}

export function run() {
  section('Enrichment from file to file, with several threads');
  // In memory, if there is room: the speed of a disk is not ours.
  const memory = '/dev/shm';
  const folder = mkdtempSync(join(existsSync(memory) ? memory : tmpdir(), 'ipatlas-bench-'));
  try {
    const dataDir = dataDirectory();
    const [input, output, report] = ['input', 'output', 'report'].map((name) => join(folder, name));
    writeLines(input, Math.ceil(FILE_BYTES / (SHAPES.flat.line(0).length + 1)), 'flat');
    const gigabytes = statSync(input).size / 1e9;
    const enrich = (jobs, repeats) =>
      times(
        ['enrich', '--data', dataDir, '--jobs', String(jobs), '--field', 'ip=geo', '-o', output].concat(
          Array(repeats).fill(input),
        ),
        report,
      );
    const least = { 1: Number.POSITIVE_INFINITY, 2: Number.POSITIVE_INFINITY };
    const perGigabyte = { 2: Number.POSITIVE_INFINITY, 16: Number.POSITIVE_INFINITY };
    for (let round = 0; round < ROUNDS; round++) {
      for (const jobs of [1, 2]) least[jobs] = Math.min(least[jobs], enrich(jobs, REPEATS).seconds);
      for (const jobs of [2, 16]) {
        // The difference of two sizes is free of what a start takes.
        const seconds = enrich(jobs, REPEATS).mainThread - enrich(jobs, 1).mainThread;
        perGigabyte[jobs] = Math.min(perGigabyte[jobs], seconds / ((REPEATS - 1) * gigabytes));
      }
    }
    const all = (REPEATS * gigabytes).toFixed(1);
    const gain = least[1] / least[2];
    row(`two jobs, ${all} GB`, `${gain.toFixed(2)} x one job`, `goal ${GOALS.twoJobs} x`, gain >= GOALS.twoJobs);
    const value = `${perGigabyte[16].toFixed(3)} s/GB`;
    row('main thread, 16 jobs', value, `goal ${GOALS.mainThread} s/GB`, perGigabyte[16] <= GOALS.mainThread);
    row('main thread, 2 jobs, its share of the work included', `${perGigabyte[2].toFixed(3)} s/GB`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
