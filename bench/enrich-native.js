// Bulk enrichment, one job, against a native program (native.cpp), which is compiled here: whole processes by wall time, which
// take turns. Both write the same bytes; that is checked first.
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
const GOAL = 2;

const SOURCE = fileURLToPath(new URL('native.cpp', import.meta.url));
/** Name, field, and format or shape. */
const TRIALS = [
  ['flat', 'ip'],
  ['spaced', 'ip'],
  ['nested field', 'client.ip'],
  ['arrays and escapes', 'ip'],
  ['IPv6 only', 'ip'],
  ['CSV plain', 'ip'],
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
    for (const [name, field] of TRIALS) {
      const format = FORMAT_SHAPES[name];
      if (format === undefined) writeLines(input, Math.ceil(FILE_BYTES / (SHAPES[name].line(0).length + 1)), name);
      else writeFormat(input, FILE_BYTES, format);
      const native = [program, ...(format === undefined ? ['json', field] : ['csv', '2']), database];
      const ours = [process.execPath, CLI, 'enrich', '--data', dataDir, '--jobs', '1', '--field', `${field}=geo`];
      if (format !== undefined) ours.push('--format', 'csv');
      if (hashOf([...native, input], output) !== hashOf([...ours, input], output)) {
        throw new Error(`${name}: the native program writes something else`);
      }
      const least = { native: Number.POSITIVE_INFINITY, ours: Number.POSITIVE_INFINITY };
      const inputs = Array(REPEATS).fill(input);
      for (let round = 0; round < ROUNDS; round++) {
        least.native = Math.min(least.native, secondsOf([...native, ...inputs]));
        least.ours = Math.min(least.ours, secondsOf([...ours, ...inputs]));
      }
      const ratio = least.native / least.ours;
      row(`${name}: native / ipatlas`, `${ratio.toFixed(2)} ×`, `≥ ${GOAL} ×`, ratio >= GOAL);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}
