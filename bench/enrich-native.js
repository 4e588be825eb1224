// Bulk enrichment, one job, against a native program (native.cpp), which is compiled here: whole processes by wall time, which
// take turns. All write the same bytes; that is checked first.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FORMAT_SHAPES, SHAPES, writeFormat, writeLines } from './enrich-lines.js';
import { row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const FILE_BYTES = 60_000_000;
/** How often both programs read the file: half a gigabyte, so that the start of Node counts as little as for a user. */
const REPEATS = 9;
const ROUNDS = 5;
/** What the native program does for each line: what is held against the goal, and what else could be done in C++. */
const NATIVE = [
  { mode: 'splice', what: 'looks up and splices', hasGoal: true },
  { mode: 'keep', what: 'keeps the text of each entry', hasGoal: false },
];

const SOURCE = fileURLToPath(new URL('native.cpp', import.meta.url));
/** Format or shape, field, and the least ratio to the first native program. */
const TRIALS = [
  ['flat', 'ip', 2.2],
  ['spaced', 'ip', 2.2],
  ['nested field', 'client.ip', 2.2],
  ['arrays and escapes', 'ip', 2],
  ['mixed', 'ip', 2],
  ['IPv6 only', 'ip', 2],
  ['CSV plain', 'ip', 3.8],
];

/** Compiles the native program; returns undefined if the compiler or a library is missing. */
function compile(folder) {
  const program = join(folder, 'native');
  const flags = ['-O3', '-march=native', '-std=c++17', '-o', program, SOURCE, '-lsimdjson', '-lmaxminddb'];
  const { error, status, stderr } = spawnSync('g++', flags, { encoding: 'utf8' });
  if (error === undefined && status === 0) return program;
  console.log(
    `  SKIPPED: g++ with libsimdjson-dev and libmaxminddb-dev is needed: ${error?.message ?? stderr.split('\n')[0]}`,
  );
  return undefined;
}

function secondsOf([command, ...args], output = '/dev/null') {
  const file = openSync(output, 'w');
  const begun = performance.now();
  execFileSync(command, args, { stdio: ['ignore', file, 'ignore'] });
  closeSync(file);
  return (performance.now() - begun) / 1000;
}

function hashOf(command, output) {
  secondsOf(command, output);
  return createHash('sha256').update(readFileSync(output)).digest('hex');
}

export function run() {
  section('Enrichment, one job, against C++ with simdjson, inet_pton and libmaxminddb');
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-bench-'));
  try {
    const program = compile(folder);
    if (program === undefined) return;
    const dataDir = dataDirectory();
    const [input, output, database] = ['input', 'output', 'countries.mmdb'].map((name) => join(folder, name));
    execFileSync(process.execPath, [CLI, 'export', 'mmdb', '--data', dataDir, '-o', database], { stdio: 'ignore' });
    for (const [name, field, goal] of TRIALS) {
      const format = FORMAT_SHAPES[name];
      if (format === undefined) writeLines(input, Math.ceil(FILE_BYTES / (SHAPES[name].line(0).length + 1)), name);
      else writeFormat(input, FILE_BYTES, format);
      const fields = [...(format === undefined ? ['json', field] : ['csv', '2']), database];
      const ours = [process.execPath, CLI, 'enrich', '--data', dataDir, '--jobs', '1', '--field', `${field}=geo`];
      if (format !== undefined) ours.push('--format', 'csv');
      const programs = [ours, ...NATIVE.map(({ mode }) => [program, mode, ...fields])];
      const hashes = programs.map((command) => hashOf([...command, input], output));
      if (new Set(hashes).size > 1) throw new Error(`${name}: a native program writes something else`);
      const least = programs.map(() => Number.POSITIVE_INFINITY);
      for (let round = 0; round < ROUNDS; round++) {
        for (const [index, command] of programs.entries()) {
          least[index] = Math.min(least[index], secondsOf([...command, ...Array(REPEATS).fill(input)]));
        }
      }
      for (const [index, { what, hasGoal }] of NATIVE.entries()) {
        const ratio = least[index + 1] / least[0];
        const goalText = hasGoal ? `≥ ${goal} ×` : '';
        row(`${name}: C++ that ${what} / ipatlas`, `${ratio.toFixed(2)} ×`, goalText, !hasGoal || ratio >= goal);
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}
