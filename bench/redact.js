// What hiding addresses costs: `enrich --redact` against plain `enrich`, one job, flat JSON lines, whole processes by wall time.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SHAPES, writeLines } from './enrich-lines.js';
import { row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const FILE_BYTES = 60_000_000;
/** The file is read several times, so that the start of a process counts as little as on a long input. */
const REPEATS = 8;
/** Each of the ways with a goal is as fast as its fastest run of these. */
const ROUNDS = 14;
/** The least speed, as a share of that of plain `enrich`; undefined where AES alone decides. */
const GOALS = { drop: 0.9, truncate: 0.9, ipcrypt: 0.75, 'ipcrypt-pfx': undefined };

const ipatlas = (...args) => execFileSync(process.execPath, [CLI, ...args], { stdio: 'ignore' });

function secondsOf(args) {
  const begun = performance.now();
  ipatlas(...args);
  return (performance.now() - begun) / 1000;
}

export function run() {
  section('Hiding addresses: speed, as a share of that of enrich without --redact');
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-bench-'));
  try {
    const input = join(folder, 'lines.jsonl');
    writeLines(input, Math.ceil(FILE_BYTES / (SHAPES.flat.line(0).length + 1)), 'flat');
    const keyOf = (how) => join(folder, `${how}.key`);
    ipatlas('redact', '--new-key', keyOf('ipcrypt'));
    ipatlas('redact', '--redact', 'ipcrypt-pfx', '--new-key', keyOf('ipcrypt-pfx'));
    const enrich = ['enrich', '--data', dataDirectory(), '--jobs', '1', '--field', 'ip=geo'];
    const files = Array(REPEATS).fill(input);
    const least = {};
    for (let round = 0; round < ROUNDS; round++) {
      for (const how of ['plain', ...Object.keys(GOALS)]) {
        // It takes as long as all others together.
        if (how === 'ipcrypt-pfx' && round > 1) continue;
        const key = how.startsWith('ipcrypt') ? ['--redact-key', keyOf(how)] : [];
        const flags = how === 'plain' ? [] : ['--redact', how, ...key];
        least[how] = Math.min(least[how] ?? Number.POSITIVE_INFINITY, secondsOf([...enrich, ...flags, ...files]));
      }
    }
    for (const [how, goal] of Object.entries(GOALS)) {
      const share = least.plain / least[how];
      row(`--redact ${how}`, `${share.toFixed(2)} ×`, goal === undefined ? '' : `≥ ${goal} ×`, !(share < goal));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}
