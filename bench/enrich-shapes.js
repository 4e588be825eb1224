// Bulk enrichment of JSON lines of many shapes, against a program that parses each line: whole processes by wall time.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SHAPES, writeLines } from './enrich-lines.js';
import { row, section } from './measure.js';
import { CLI, dataDirectory, MMDB } from './paths.js';

/** Bytes of a shape's file; `ipatlas enrich` reads it several times, so that its start counts as little as on a long input. */
const FILE_BYTES = 60_000_000;
const REPEATS = 16;
const ROUNDS = 3;

const PARSE = fileURLToPath(new URL('enrich-parse.js', import.meta.url));

function secondsOf(args) {
  const begun = performance.now();
  execFileSync(process.execPath, args, { stdio: 'ignore' });
  return (performance.now() - begun) / 1000;
}

/** The least seconds of both programs for one reading of the file. They take turns, so that both see the same machine. */
function leastSeconds(dataDir, input, field, flags, naive) {
  const least = { parse: Number.POSITIVE_INFINITY, enrich: Number.POSITIVE_INFINITY };
  const enrich = [CLI, 'enrich', '--data', dataDir, '--jobs', '1', '--field', `${field}=geo`, ...flags];
  for (let round = 0; round < ROUNDS; round++) {
    least.parse = Math.min(least.parse, secondsOf([PARSE, input, MMDB, naive]));
    least.enrich = Math.min(least.enrich, secondsOf([...enrich, ...Array(REPEATS).fill(input)]) / REPEATS);
  }
  return least;
}

export function run() {
  section('Enrichment by shape of line, one job: MB/s, and times readline + JSON.parse + maxmind');
  const dataDir = dataDirectory();
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-bench-'));
  try {
    for (const [name, { field = 'ip', flags = [], naive = field, goal, line }] of Object.entries(SHAPES)) {
      const input = join(folder, 'lines.jsonl');
      writeLines(input, Math.ceil(FILE_BYTES / (line(0).length + 1)), name);
      const { parse, enrich } = leastSeconds(dataDir, input, field, flags, naive);
      const speed = statSync(input).size / 1e6 / enrich;
      const ratio = parse / enrich;
      const goalText = goal === undefined ? '' : `≥ ${goal} ×`;
      row(name, `${speed.toFixed(0)} MB/s, ${ratio.toFixed(1)} ×`, goalText, !(ratio < goal));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}
