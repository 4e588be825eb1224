// Bulk enrichment of a million lines against what a user would write or pick instead; its memory on a large input.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeLines } from './enrich-lines.js';
import { PRINT_PEAK, printedPeak, row, section } from './measure.js';
import { CLI, CSV_IPV6, CSV_NUMBERS, dataDirectory, MMDB } from './paths.js';

const LINES = 1_000_000;
const ROUNDS = 5;
/** How often the lines are read for the memory figure: 5 GB and more. */
const REPEATS = 25;
/** How often they are read to tell what threads gain from what starting them takes. */
const LONG_REPEATS = 5;

let runs = 0;

const child = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Seconds that a program says it took. */
function secondsSaid(script, ...args) {
  return Number(execFileSync(process.execPath, [script, ...args], { encoding: 'utf8' }));
}

function hasDuckDB() {
  try {
    createRequire(import.meta.url).resolve('@duckdb/node-api');
    return true;
  } catch {
    return false;
  }
}

/** Runs `ipatlas enrich` over the same file a number of times; resolves with the seconds that it says it took. */
async function secondsOfEnrich(dataDir, jobs, input, folder, times = 1, ...flags) {
  const stats = join(folder, `stats-${++runs}.json`);
  const args = [CLI, 'enrich', '--data', dataDir, '--jobs', String(jobs), '--stats', stats, ...flags];
  const output = openSync('/dev/null', 'w');
  const enrich = spawn(process.execPath, [...args, ...Array(times).fill(input)], {
    stdio: ['ignore', output, 'ignore'],
  });
  closeSync(output);
  const [status] = await once(enrich, 'exit');
  if (status !== 0) throw new Error(`enrich ended with ${status}`);
  return JSON.parse(readFileSync(stats, 'utf8')).seconds;
}

/** The least seconds of each of some trials, which take turns: a machine that is busy for a while is so for all of them. */
async function leastOf(trials) {
  const least = Object.fromEntries(Object.keys(trials).map((name) => [name, Number.POSITIVE_INFINITY]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, trial] of Object.entries(trials)) least[name] = Math.min(least[name], await trial());
  }
  return least;
}

/** Everything about an address, against a program that reads two MMDBs; and what the networks cost beside the default. */
async function networkRows(dataDir, input, folder, megabytes) {
  const files = ['mmdb', 'asn-mmdb'].map((format) => {
    const file = join(folder, `${format}.mmdb`);
    execFileSync(process.execPath, [CLI, 'export', format, '--data', dataDir, '-o', file], { stdio: 'pipe' });
    return file;
  });
  const least = await leastOf({
    parse: () => secondsSaid(child('enrich-parse-networks.js'), input, ...files),
    plain: () => secondsOfEnrich(dataDir, 1, input, folder),
    all: () => secondsOfEnrich(dataDir, 1, input, folder, 1, '--add', 'country_code,asn,as_name,network'),
  });
  row('--add country_code,asn,as_name,network, one job', `${(megabytes / least.all).toFixed(0)} MB/s`);
  const share = least.plain / least.all;
  row('all fields / the default', `${share.toFixed(2)} ×`, '≥ 0.6 ×', share >= 0.6);
  const over = least.parse / least.all;
  row('all fields / JSON.parse, maxmind with two databases', `${over.toFixed(1)} ×`, '≥ 15 ×', over >= 15);
}

/** Peak memory in MB of `ipatlas enrich` over the same file many times; the process tells it on the way out. */
async function peakMemory(dataDir, input) {
  const args = [...PRINT_PEAK, CLI, 'enrich', '--data', dataDir];
  const enrich = spawn(process.execPath, [...args, ...Array(REPEATS).fill(input)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  for await (const chunk of enrich.stderr) said += chunk;
  return printedPeak(said);
}

/** Two jobs over a longer input, where starting a thread counts for less, and what the machine gives two processes. */
async function longRow(dataDir, input, folder) {
  const one = () => secondsOfEnrich(dataDir, 1, input, folder, LONG_REPEATS);
  const least = await leastOf({
    one,
    two: () => secondsOfEnrich(dataDir, 2, input, folder, LONG_REPEATS),
    sideBySide: async () => Math.max(...(await Promise.all([one(), one()]))),
  });
  const lines = (LONG_REPEATS * LINES).toLocaleString('en');
  row(`two jobs / one job, over ${lines} lines`, `${(least.one / least.two).toFixed(2)} ×`);
  row('two processes of one job, side by side / one process', `${((2 * least.one) / least.sideBySide).toFixed(2)} ×`);
}

export async function run() {
  section(`Enrichment of ${LINES.toLocaleString('en')} lines`);
  const dataDir = dataDirectory();
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-bench-'));
  try {
    const input = join(folder, 'lines.jsonl');
    const megabytes = writeLines(input, LINES) / 1e6;
    const duckdb = hasDuckDB();
    const secondsOfDuckDB = (scope) =>
      duckdb ? secondsSaid(child('enrich-duckdb.js'), input, CSV_NUMBERS, CSV_IPV6, scope) : Number.NaN;
    const trials = {
      parse: () => secondsSaid(child('enrich-parse.js'), input, MMDB),
      duckdb: () => secondsOfDuckDB('all'),
      duckdbLess: () => secondsOfDuckDB('ipv4'),
      one: () => secondsOfEnrich(dataDir, 1, input, folder),
      two: () => secondsOfEnrich(dataDir, 2, input, folder),
    };
    const least = await leastOf(trials);
    const speed = (seconds) => `${(megabytes / seconds).toFixed(0)} MB/s`;
    const times = (ratio) => `${ratio.toFixed(1)} ×`;
    row('readline + JSON.parse + maxmind + JSON.stringify', speed(least.parse));
    row(
      'DuckDB, ASOF joins, two threads',
      duckdb ? speed(least.duckdb) : 'not installed; see "make bench"',
      '',
      duckdb,
    );
    if (duckdb) row('DuckDB without IPv6, one ASOF join, the code alone', speed(least.duckdbLess));
    row('ipatlas enrich, one job', speed(least.one));
    const overParse = least.parse / least.one;
    row('one job / JSON.parse', times(overParse), '≥ 15 ×', overParse >= 15);
    const overDuckDB = least.duckdb / least.one;
    if (duckdb) {
      row('one job / DuckDB', times(overDuckDB), '≥ 8 ×', overDuckDB >= 8);
      row('one job / DuckDB without IPv6', times(least.duckdbLess / least.one));
    }
    if (availableParallelism() >= 2) {
      const overOne = least.one / least.two;
      row('ipatlas enrich, two jobs', speed(least.two));
      row('two jobs / one job', `${overOne.toFixed(2)} ×`, '≥ 1.6 ×', overOne >= 1.6);
      await longRow(dataDir, input, folder);
    }
    await networkRows(dataDir, input, folder, megabytes);
    const memory = await peakMemory(dataDir, input);
    const gigabytes = (REPEATS * statSync(input).size) / 1e9;
    row(`peak memory over ${gigabytes.toFixed(1)} GB`, `${memory.toFixed(0)} MB`, '< 200 MB', memory < 200);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
