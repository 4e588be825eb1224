#!/usr/bin/env node
// Catches up a lag on a real nats-server and prints the worker's peak memory: undisturbed, with a server that is stopped for
// half of the time, and with an output stream that is full for a while. Fails if it exceeds a limit.
// usage: node scripts/stream-lag.js [MEGABYTES [MESSAGE_BYTES [LIMIT_MB]]]   (default: 1000 MB, messages of 1 MB, 200 MB)
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { writeLines } from '../bench/enrich-lines.js';
import { fill, messagesOf, PATIENCE_MS, startServer } from '../bench/nats.js';
import { CLI, dataDirectory } from '../bench/paths.js';

const [megabytes = 1000, messageBytes = 1_000_000, limit = 200] = process.argv.slice(2).map(Number);
/** The server is stopped this long, and then works this long, in milliseconds. */
const STOP_MS = 500;
/** How long the output stays full after the worker was refused for the first time, in milliseconds. */
const FULL_MS = 10_000;
const STREAM_BYTES = 2 * 1_000_000 * megabytes;

const folder = mkdtempSync(join(tmpdir(), 'ipatlas-lag-'));
const dataDir = dataDirectory();
const server = await startServer(folder);
const manager = await jetstreamManager(server.connection, { timeout: PATIENCE_MS });
let worst = 0;

/** @returns peak of the resident memory in megabytes; NaN after the end of the process */
function peakOf(pid) {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

/** Runs a worker until the lag is caught up, and something that disturbs it meanwhile. */
async function catchUp(name, outputBytes, disturb) {
  const settings = { retention: 'limits', storage: 'file', discard: 'new' };
  await manager.streams.add({ ...settings, name: 'OUT', subjects: ['out.>'], max_bytes: outputBytes });
  const flags = ['--server', `nats://127.0.0.1:${server.port}`, '--from', 'IN', '--to', 'OUT', '--data', dataDir];
  const begun = performance.now();
  const worker = spawn(process.execPath, [CLI, 'stream', ...flags, '--init', '--once', '--max-bytes', '1000000'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  worker.stderr.setEncoding('utf8').on('data', (chunk) => {
    log += chunk;
  });
  let peak = 0;
  const sampling = setInterval(() => {
    peak = Math.max(peak, peakOf(worker.pid) || 0);
  }, 50);
  const ended = new AbortController();
  const exit = once(worker, 'exit').then(([code]) => {
    ended.abort();
    if (code !== 0) throw new Error(`the worker ended with ${code}: ${log}`);
  });
  await Promise.all([exit, disturb(() => log, ended.signal)]);
  clearInterval(sampling);
  worst = Math.max(worst, peak);
  const seconds = (performance.now() - begun) / 1000;
  console.log(`${name}: ${megabytes} MB in ${seconds.toFixed(0)} s, peak memory of the worker ${peak.toFixed(0)} MB`);
  await manager.streams.delete('OUT');
  await manager.streams.delete('OUT_REJECTS');
  await manager.consumers.delete('IN', 'ipatlas_OUT');
}

try {
  const path = join(folder, 'lines.jsonl');
  writeLines(path, 100_000);
  const bytes = 1_000_000 * megabytes;
  await fill(server.connection, 'IN', messagesOf(readFileSync(path), messageBytes, bytes), STREAM_BYTES);
  await catchUp('undisturbed', STREAM_BYTES, async () => {});
  await catchUp('server stopped for half of the time', STREAM_BYTES, async (_log, signal) => {
    while (!signal.aborted) {
      await sleep(STOP_MS, undefined, { signal }).catch(() => {});
      server.child.kill('SIGSTOP');
      await sleep(STOP_MS);
      server.child.kill('SIGCONT');
    }
  });
  await catchUp('output full for a while', STREAM_BYTES / 10, async (log, signal) => {
    while (!signal.aborted && !log().includes('maximum bytes exceeded')) await sleep(100);
    await sleep(FULL_MS, undefined, { signal }).catch(() => {});
    await manager.streams.update('OUT', { max_bytes: STREAM_BYTES });
  });
} finally {
  await server.connection.close();
  server.child.kill('SIGKILL');
  await once(server.child, 'exit');
  rmSync(folder, { recursive: true });
}
if (worst > limit) {
  console.error(`more than ${limit} MB`);
  process.exitCode = 1;
}
