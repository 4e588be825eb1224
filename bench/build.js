// The build of the default sources against csv-parse alone over the same files; peak memory; file size.
import { spawnSync } from 'node:child_process';
import { createReadStream, mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'csv-parse';
import { PRINT_PEAK, printedPeak, row, seconds, section } from './measure.js';
import { BUILD_FILES, CLI, dataDirectory, MMDB } from './paths.js';

const RUNS = 5;
const STAGES_COUNTED = new Set(['ingest', 'merge', 'compile', 'verify', 'gate', 'publish']);

async function iterate(path) {
  const parser = createReadStream(path).pipe(parse());
  await new Promise((resolve, reject) => {
    parser.on('readable', () => {
      while (parser.read() !== null);
    });
    parser.on('end', resolve).on('error', reject);
  });
}

export async function run() {
  section('Build of the default sources');
  const alone = [];
  const built = [];
  let memory = 0;
  const dataDir = mkdtempSync(join(tmpdir(), 'ipatlas-bench-'));
  for (let i = 0; i < RUNS; i++) {
    alone.push(
      await seconds(async () => {
        for (const file of BUILD_FILES) await iterate(file);
      }),
    );
    rmSync(dataDir, { recursive: true });
    const args = [...PRINT_PEAK, CLI, 'build', '--offline', '--data', dataDir];
    const child = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (child.status !== 0) throw new Error(child.stderr);
    memory = Math.max(memory, printedPeak(child.stderr));
    const report = JSON.parse(readFileSync(join(dataDir, 'current', 'report.json'), 'utf8'));
    const stages = report.stages.filter(({ stage }) => STAGES_COUNTED.has(stage));
    // `publish` is the one stage that the report, written before it, cannot hold; it prints its own time.
    const publish = Number(/^publish\s+([\d.]+) s/m.exec(child.stderr)[1]);
    built.push(stages.reduce((sum, stage) => sum + stage.seconds, publish));
  }
  const [a, b] = [Math.min(...alone), Math.min(...built)];
  row('csv-parse alone', `${a.toFixed(2)} s`);
  row('ingest to publish', `${b.toFixed(2)} s`);
  row('ingest to publish / csv-parse alone', `${(b / a).toFixed(2)} ×`, '≤ 4 ×', b / a <= 4);
  row('peak memory of the build', `${memory.toFixed(0)} MB`, '< 400 MB', memory < 400);

  // The twin has the ranges of the first source only.
  const size = statSync(join(realpathSync(join(dataDirectory('user-country'), 'current')), 'ranges.ipr')).size;
  const twin = statSync(MMDB).size;
  row('range file of the first source / its MMDB twin', `${(size / twin).toFixed(3)} (${size} B)`, '≤ 1', size <= twin);
  rmSync(dataDir, { recursive: true });
}
