// Bulk enrichment of formats other than plain JSON lines, against a program that parses each record: whole processes by wall
// time. Also filter and summarize against enrich, and a pipe into another program.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FORMAT_SHAPES, writeFormat, writeLines } from './enrich-lines.js';
import { row, section } from './measure.js';
import { CLI, dataDirectory, MMDB } from './paths.js';

/** Bytes of a format's file; ipatlas reads it several times, so that its start counts as little as on a long input. */
const FILE_BYTES = 60_000_000;
const REPEATS = 8;
const ROUNDS = 3;
/** Most that the pipe into sha256sum may take, compared to its two halves one after the other. */
const PIPE_LIMIT = 1.3;

const NAIVE = fileURLToPath(new URL('enrich-naive.js', import.meta.url));

function secondsOf(command, args) {
  const begun = performance.now();
  execFileSync(command, args, { stdio: 'ignore' });
  return (performance.now() - begun) / 1000;
}

/** The least seconds of some functions. They take turns, so that all see the same machine. */
function leastOf(trials) {
  const least = trials.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, trial] of trials.entries()) least[index] = Math.min(least[index], trial());
  }
  return least;
}

const ipatlas = (dataDir, command, format, inputs, ...flags) =>
  secondsOf(process.execPath, [
    CLI,
    command,
    '--data',
    dataDir,
    '--jobs',
    '1',
    '--format',
    format,
    ...flags,
    ...inputs,
  ]);

/** Least speed of a format, as a share of that of another one. */
const SHARES = [
  ['W3C (IIS)', 'TSV', 0.8],
  ['Zeek', 'TSV', 0.8],
  ['logfmt', 'free text', 0.5],
];

/** The row of one format, then how filter and summarize compare with enrich. Returns its speed in MB/s. */
function formatRows(dataDir, input, name, { format, goal }, naive = format) {
  const inputs = Array(REPEATS).fill(input);
  const [parse, enrich, filter, summarize] = leastOf([
    () => secondsOf(process.execPath, [NAIVE, naive, input, MMDB]),
    () => ipatlas(dataDir, 'enrich', format, inputs) / REPEATS,
    () => ipatlas(dataDir, 'filter', format, inputs, '--eu') / REPEATS,
    () => ipatlas(dataDir, 'summarize', format, inputs) / REPEATS,
  ]);
  const speed = statSync(input).size / 1e6 / enrich;
  const ratio = parse / enrich;
  row(
    name,
    `${speed.toFixed(0)} MB/s, ${ratio.toFixed(1)} ×`,
    goal === undefined ? '' : `≥ ${goal} ×`,
    !(ratio < goal),
  );
  const slower = Math.max(filter, summarize) / enrich;
  row('  slower of filter and summarize / enrich', `${slower.toFixed(2)} ×`, '≤ 1.05 ×', slower <= 1.05);
  return speed;
}

function pipeRow(dataDir, input) {
  const files = Array(REPEATS).fill(input).join(' ');
  const enrich = `${process.execPath} ${CLI} enrich --data ${dataDir} --jobs 1 ${files}`;
  const shell = (line) => {
    const begun = performance.now();
    const { status } = spawnSync('bash', ['-c', line], { stdio: 'ignore' });
    if (status !== 0) throw new Error(`${line} ended with ${status}`);
    return (performance.now() - begun) / 1000;
  };
  const output = join(input, '..', 'output');
  shell(`${enrich} > ${output}`);
  const [alone, hash, pipe] = leastOf([
    () => shell(`${enrich} > /dev/null`),
    () => shell(`cat ${output} | sha256sum`),
    () => shell(`${enrich} | sha256sum`),
  ]);
  const ratio = pipe / (alone + hash);
  row(
    'enrich | sha256sum / (enrich > /dev/null + cat | sha256sum)',
    `${ratio.toFixed(2)} ×`,
    `≤ ${PIPE_LIMIT} ×`,
    ratio <= PIPE_LIMIT,
  );
}

export function run() {
  section('Enrichment by format, one job: MB/s, and times a parser + maxmind');
  const dataDir = dataDirectory();
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-bench-'));
  try {
    const input = join(folder, 'input');
    const speeds = {};
    for (const [name, shape] of Object.entries(FORMAT_SHAPES)) {
      writeFormat(input, FILE_BYTES, shape);
      speeds[name] = formatRows(dataDir, input, name, shape);
    }
    for (const [name, other, least] of SHARES) {
      const share = speeds[name] / speeds[other];
      row(`${name} / ${other}`, `${share.toFixed(2)} ×`, `≥ ${least} ×`, share >= least);
    }
    writeLines(input, FILE_BYTES / 200);
    execFileSync('gzip', ['-1', '-f', '-S', '.gz', input]);
    formatRows(dataDir, `${input}.gz`, 'gzip of JSON lines (MB/s of compressed bytes)', { format: 'jsonl' }, 'gzip');
    writeLines(input, FILE_BYTES / 200);
    pipeRow(dataDir, input);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
