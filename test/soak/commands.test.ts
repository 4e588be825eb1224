/** Commands around a build: kills during the steps after a publication, and a source whose command never stops writing. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { rollBack } from '../../pipeline/operations/rollback.js';
import { MAX_DOWNLOAD_BYTES } from '../../src/limits.js';
import { atlasError, runFetch, source } from '../pipeline/fetch-support.js';
import { finished, ipatlas, start } from '../support/cli.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { randomFrom, rounds } from '../support/seed.js';
import { buildOnce, writeSources } from '../support/sources.js';

giveFolders();

const read = (name: string): string => (existsSync(join(dir, name)) ? readFileSync(join(dir, name), 'utf8') : '');

it('does each step, or does it again, after a kill at any moment, and never leaves half a file', async () => {
  const random = randomFrom();
  const wanted = rounds(40);
  const exports = ['nginx', 'haproxy'];
  const ids: string[] = [];
  const whole: Record<string, string[]> = { nginx: [''], haproxy: [''] };
  for (const country of ['DE', 'FR']) {
    const rows = Array.from(
      { length: 50_000 },
      (_, i) => `9.${i >> 8}.${i & 255}.0,9.${i >> 8}.${i & 255}.127,${country}`,
    );
    const sources = writeSources(dir, { a: rows });
    ids.push((await buildOnce(dataDir, sources, { asOf: '2026-01-01', force: true })).id!);
    for (const format of exports) whole[format]!.push((await ipatlas(['export', format, '--data', dataDir])).stdout);
  }
  const tell = { run: ['bash', '-c', 'echo $IPATLAS_RELEASE >> told'] };
  const steps = exports.flatMap((format) => [{ export: format, output: format }, tell]);
  writeFileSync(join(dir, 'steps.json'), JSON.stringify(steps));
  const after = ['after', '--after', join(dir, 'steps.json'), '--data', dataDir];
  const begin = performance.now();
  expect((await ipatlas(after)).code).toBe(0);
  const duration = performance.now() - begin;
  let killed = 0;
  for (let round = 0; round < wanted; round++) {
    const id = ids[round % 2]!;
    rollBack(dataDir, id);
    writeFileSync(join(dir, 'told'), '');
    const child = start(after);
    const end = finished(child);
    const timer = setTimeout(() => child.kill('SIGKILL'), random() * duration);
    if ((await end).signal === 'SIGKILL') killed++;
    clearTimeout(timer);
    for (const format of exports) expect(whole[format]).toContain(read(format));
    expect((await ipatlas(after)).code).toBe(0);
    expect(exports.map(read)).toEqual(exports.map((format) => whole[format]![1 + (round % 2)]));
    // Once for each export, more often if it was killed in between.
    const told = read('told').trim().split('\n');
    expect(told.filter((each) => each === id).length).toBeGreaterThanOrEqual(2);
    expect(told.length).toBeLessThanOrEqual(3);
  }
  // Otherwise the test shows nothing; in a short run, the only kill may come too late.
  expect(killed).toBeGreaterThan(wanted / 4 - 1);
  expect(readdirSync(dir).filter((name) => name.includes('ipatlas-new'))).toEqual([]);
});

it('ends a command that writes 2 GB, and keeps nothing of it in memory or on the disk', async () => {
  mkdirSync(dataDir);
  const command = ['head', '-c', '2147483648', '/dev/zero'];
  const before = process.memoryUsage().rss;
  const error = await atlasError(
    runFetch([source({ kind: 'command', command, file: 'a.csv', files: [], baseDir: dir, timeout: '5m' })], dataDir),
  );
  expect(error.message).toContain(`it wrote more than ${MAX_DOWNLOAD_BYTES} bytes`);
  expect(process.memoryUsage().rss - before).toBeLessThan(100e6);
  expect(readdirSync(join(dataDir, 'tmp', 'work'))).toEqual([]);
});
