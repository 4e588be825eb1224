// Each format of `ipatlas export`, the whole database, from start to a file on disk.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FORMATS } from '../dist/src/export/formats.js';
import { leastSeconds, row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const GOAL_SECONDS = 3;

export async function run() {
  section('Exports, all countries, both families');
  const dataDir = dataDirectory();
  const dir = mkdtempSync(join(tmpdir(), 'ipatlas-bench-export-'));
  for (const format of Object.keys(FORMATS)) {
    const file = join(dir, format);
    const [taken] = await leastSeconds(3, () => {
      const { status } = spawnSync(process.execPath, [CLI, 'export', format, '-o', file, '--data', dataDir]);
      if (status !== 0) throw new Error(`export ${format} failed with ${status}`);
    });
    const size = `${(statSync(file).size / 1e6).toFixed(1)} MB`;
    const met = taken < GOAL_SECONDS;
    row(`export ${format} (${size})`, `${(1000 * taken).toFixed(0)} ms`, `< ${GOAL_SECONDS} s`, met);
  }
  rmSync(dir, { recursive: true });
}
