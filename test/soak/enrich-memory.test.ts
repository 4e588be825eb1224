/** The memory of `ipatlas enrich` on long inputs. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { createEnricher } from '../../src/enrich/enricher.js';
import { builtRelease } from '../support/built-release.js';
import { shell, start } from '../support/cli.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { rounds } from '../support/seed.js';

let dir: string;
let dataDir: string;
beforeAll(async () => {
  dir = temporaryDir();
  dataDir = join(dir, 'data');
  await publishBlocks(dataDir, SMALL_WORLD);
});

it('is measured on Linux only', () => {
  expect(existsSync('/proc/self/status'), 'these tests need /proc').toBe(true);
});

/** Returns the peak memory of a process in bytes, from /proc/PID/status. */
const peakOf = (status: string): number => Number(/VmHWM:\s*(\d+) kB/.exec(status)![1]) * 1024;

const RECORDS = 20;
const INPUT_BYTES = 60_000_000 * rounds(20);
const MAX_MEMORY_BYTES = 200_000_000;
const TEXT = 'x'.repeat(2000);

it.each([
  ['jsonl', '', `{"ip":"8.8.8.8","text":"${TEXT}"}\n`, ''],
  ['csv', 'id,ip\n', `"${TEXT}",8.8.8.8\n`, ''],
  ['json', '[\n{},\n', `{"ip":"8.8.8.8","text":"${TEXT}"},\n`, '{}]\n'],
])('does not grow with the size of the input, for %s', async (format, head, record, tail) => {
  const child = start(['enrich', '--data', dataDir, '--format', format]);
  child.stdout!.resume();
  child.stderr!.resume();
  const end = once(child, 'close');
  const block = Buffer.from(record.repeat(RECORDS));
  child.stdin!.write(head);
  for (let written = 0; written < INPUT_BYTES; written += block.length) {
    if (!child.stdin!.write(block)) await once(child.stdin!, 'drain');
  }
  const peak = peakOf(readFileSync(`/proc/${child.pid}/status`, 'utf8'));
  child.stdin!.end(tail);
  expect((await end)[0]).toBe(0);
  expect(peak).toBeLessThan(MAX_MEMORY_BYTES);
});

it('of a JSON message of 64 MB in the library is a few times its size, with its output', () => {
  const code = `const { openDatabase, createBlockEnricher } = require('ipatlas');
    const { enrichBlock } = createBlockEnricher(openDatabase(process.argv[1]), { format: 'json' });
    const message = Buffer.alloc(64_000_000, ',{"ip":"8.8.8.8","text":"' + 'x'.repeat(80) + '"}');
    message[0] = 0x5b;
    message.fill(' ', message.lastIndexOf('}') + 1);
    message[message.length - 1] = 0x5d;
    const output = enrichBlock(message);
    if (output.length < 1.5 * message.length) throw new Error(output.length + ' bytes of output');
    process.stdout.write(require('node:fs').readFileSync('/proc/self/status'));`;
  const peak = peakOf(execFileSync(process.execPath, ['-e', code, dataDir], { encoding: 'utf8' }));
  expect(peak).toBeLessThan(550_000_000);
});

it.each([1, 2])('does not grow with the changes of log between inputs, with %i jobs', async (jobs) => {
  const combined = join(dir, 'combined.log');
  const caddy = join(dir, 'caddy.log');
  writeFileSync(combined, '8.8.8.8 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 2 "-" "-"\n');
  writeFileSync(caddy, '{"logger":"http.log.access","request":{"remote_ip":"8.8.8.8","client_ip":"8.8.8.8"}}\n');
  const inputs = Array.from({ length: 2 * rounds(40) }, (_, index) => [combined, caddy][index % 2]!);
  const child = start(['enrich', '--data', await builtRelease(), '--jobs', String(jobs), ...inputs, '-']);
  child.stderr!.resume();
  const end = once(child, 'close');
  let lines = 0;
  for await (const chunk of child.stdout!) {
    lines += String(chunk).split('\n').length - 1;
    if (lines === inputs.length) break;
  }
  const peak = peakOf(readFileSync(`/proc/${child.pid}/status`, 'utf8'));
  child.stdin!.end();
  await end;
  expect(peak).toBeLessThan(MAX_MEMORY_BYTES);
});

it('is not more for a pipe than for a file, with two jobs', async () => {
  const hook = join(dir, 'hook.cjs');
  writeFileSync(
    hook,
    `const { readFileSync, writeFileSync } = require('node:fs');
    if (require('node:worker_threads').isMainThread)
      process.on('exit', () => writeFileSync(process.env.PEAK, readFileSync('/proc/self/status')));`,
  );
  const input = join(dir, 'in.jsonl');
  writeFileSync(input, `{"ip":"8.8.8.8","text":"${'x'.repeat(200)}"}\n`.repeat(500_000));
  async function peakOfRun(name: string, command: string): Promise<number> {
    const env = { DATA: dataDir, NODE_OPTIONS: `--require=${hook}`, PEAK: join(dir, name) };
    expect(await shell(`${command} > /dev/null`, env)).toMatchObject({ code: 0 });
    return peakOf(readFileSync(join(dir, name), 'utf8'));
  }
  const jobs = '"$NODE" "$MAIN" enrich --data "$DATA" --jobs 2';
  const ofFile = await peakOfRun('file', `${jobs} "${input}"`);
  const ofPipe = await peakOfRun('pipe', `cat "${input}" | ${jobs}`);
  // Buffers that a stream allocates pile up to 25 MB.
  expect(ofPipe - ofFile).toBeLessThan(16 * 1024 * 1024);
});

it('does not grow with the number of enrichers that have ended', async () => {
  const database = openDatabase(dataDir);
  const run = async (): Promise<void> => {
    const enricher = createEnricher(database).resume();
    enricher.end('{"ip":"8.8.8.8"}\n');
    await once(enricher, 'end');
  };
  for (let i = 0; i < 20; i++) await run();
  const before = process.memoryUsage.rss();
  // Nearly half a megabyte each if none were released.
  for (let i = 0; i < 200; i++) await run();
  expect(process.memoryUsage.rss() - before).toBeLessThan(60_000_000);
  database.close();
});
