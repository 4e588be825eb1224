/**
 * Stores what V8 compiles when a command that processes records runs, for src/cli/start.cts. Run by "npm run build".
 *
 * A child process runs each of these commands on a small release, so that the functions in use are compiled.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileStage } from '../dist/pipeline/stages/compile.js';
import { publishStage } from '../dist/pipeline/stages/publish.js';
import { releaseId } from '../dist/src/database/release.js';
import { mergeRanges } from '../dist/src/range/merge.js';

const LINE = '{"ip":"8.8.8.8"}\n';

/** Publishes a release in which all addresses are in one country. */
async function publishRelease(dataDir) {
  const everything = (family, words) =>
    mergeRanges({
      family,
      count: 1,
      first: new Uint32Array(words),
      last: new Uint32Array(words).fill(0xffff_ffff),
      value: new Uint16Array(1),
      layer: new Uint8Array(1),
    });
  const asOf = '2026-01-01';
  const inputHash = '0'.repeat(64);
  const context = { dataDir, workDir: mkdtempSync(join(dataDir, 'work-')), offline: true, asOf, note() {} };
  const records = [{ kind: 'country', code: 'NL', name: 'Netherlands', isEu: true }];
  const normalized = { v4: everything(4, 1), v6: everything(6, 4), records };
  const identity = { id: releaseId(asOf, inputHash), inputHash, toolVersion: 'none' };
  const { output } = await compileStage.run({ normalized, inputs: [], identity }, context);
  await publishStage(1).run(output, context);
}

/** In the child process: runs the commands, then stores the compiled code. */
async function runCommands(dataDir, file) {
  const require = createRequire(import.meta.url);
  const { compiledCodePath, loadRecordCommands } = require('../dist/src/cli/start.cjs');
  const { program, script } = loadRecordCommands();
  const data = ['--data', dataDir];
  for (const [name, ...args] of [
    ['enrich'],
    ['enrich', file],
    ['filter', '--eu', file],
    ['summarize', file],
    ['lookup', '8.8.8.8', '2001:db8::1'],
  ]) {
    await program.run(name, [...args, ...data]);
    if (process.exitCode !== 0) return;
  }
  writeFileSync(compiledCodePath(), script.createCachedData());
}

const [dataDir, file] = process.argv.slice(2);
if (dataDir !== undefined) {
  await runCommands(dataDir, file);
} else {
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-build-'));
  try {
    await publishRelease(folder);
    const lines = join(folder, 'lines.jsonl');
    writeFileSync(lines, LINE);
    const child = spawnSync(process.execPath, [fileURLToPath(import.meta.url), folder, lines], { input: LINE });
    if (child.status !== 0) throw new Error(String(child.stderr));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
