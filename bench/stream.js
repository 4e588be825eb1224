// End-to-end throughput of stream workers on a real nats-server: against the same pipeline without work in it. All workers have
// processed some messages before the clock starts, as if they had been running for long.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { jetstreamManager } from '@nats-io/jetstream';
import { writeLines } from './enrich-lines.js';
import { cpuSecondsOf, row, section } from './measure.js';
import { fill, messagesOf, PATIENCE_MS, startServer } from './nats.js';
import { dataDirectory } from './paths.js';

const WORKER = fileURLToPath(new URL('stream-worker.js', import.meta.url));
/** Rounds of each trial; the best counts. The trials take turns, so that a busy machine is busy for all of them. */
const ROUNDS = 6;
/** No further round begins for a size after this many seconds. */
const MAX_SECONDS = 90;
/**
 * Message sizes in bytes with the input in bytes; a message of one line costs a round trip for 200 bytes. All files of a trial
 * together stay far below 1 GB: a virtual machine may give free memory back to its host, and writing to such memory for the
 * first time takes up to six times as long, which would be measured instead of the workers.
 */
const SIZES = [
  { name: 'one line', bytes: 0, total: 4_000_000 },
  { name: '10 KB', bytes: 10_000, total: 80_000_000 },
  { name: '100 KB', bytes: 100_000, total: 200_000_000 },
  { name: '1 MB', bytes: 1_000_000, total: 200_000_000 },
];
/** Bytes for the memory figure. */
const LAG_BYTES = 1_000_000_000;
/** Part of the input of a trial that its workers process before, and the most bytes. */
const WARM_UP_SHARE = 0.4;
const WARM_UP_BYTES = 100_000_000;
const WARM_UP = 'WARM_UP';
const GOAL = 0.8;
/** The size with which more workers and partitions are tried, and how often each. */
const SPREAD_SIZE = 100_000;
const SPREAD_ROUNDS = 3;
const SPREAD_WORKERS = { four: 4, eight: 8 };
const PARTITIONS = { two: 2, four: 4 };

/**
 * Starts workers on a filled stream, waits until they are ready and for `beforeStart`, lets them go at once, and waits for
 * their end.
 */
async function drain({ port, child: serverProcess }, from, to, mode, workers, dataDir, beforeStart) {
  const started = await Promise.all(
    Array.from({ length: workers }, async () => {
      const args = [WORKER, `nats://127.0.0.1:${port}`, WARM_UP, from, to, mode, dataDir];
      const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
      child.stdout.setEncoding('utf8');
      await once(child.stdout, 'data');
      return child;
    }),
  );
  const reports = started.map(async (child) => {
    let text = '';
    for await (const chunk of child.stdout) text += chunk;
    return JSON.parse(text);
  });
  await beforeStart();
  const serverBefore = cpuSecondsOf(serverProcess.pid);
  for (const child of started) child.stdin.end('go');
  const results = await Promise.all(reports);
  const serverCpuSeconds = cpuSecondsOf(serverProcess.pid) - serverBefore;
  const first = Math.min(...results.map(({ begun }) => begun));
  const last = Math.max(...results.map(({ ended }) => ended));
  const cpuSeconds = results.reduce((sum, one) => sum + one.cpuSeconds, 0);
  const peakMegabytes = Math.max(...results.map(({ peak }) => peak));
  return { seconds: (last - first) / 1000, cpuSeconds, serverCpuSeconds, peakMegabytes };
}

/** Deletes the streams whose names begin with `prefix`. */
async function deleteStreams(manager, prefix) {
  for await (const name of manager.streams.names()) if (name.startsWith(prefix)) await manager.streams.delete(name);
}

let runs = 0;

async function trial(server, { messages, bytes, dataDir }, mode, workers) {
  const number = ++runs;
  const manager = await jetstreamManager(server.connection, { timeout: PATIENCE_MS });
  const share = Math.min(WARM_UP_SHARE, WARM_UP_BYTES / bytes);
  await fill(server.connection, WARM_UP, messages.slice(0, share * messages.length));
  const producing = await fill(server.connection, `IN${number}`, messages);
  const { seconds, cpuSeconds, serverCpuSeconds, peakMegabytes } = await drain(
    server,
    `IN${number}`,
    `OUT${number}`,
    mode,
    workers,
    dataDir,
    // The output gets the memory of these files.
    () => deleteStreams(manager, WARM_UP),
  );
  await deleteStreams(manager, '');
  const gigabytes = bytes / 1e9;
  return {
    speed: bytes / 1e6 / seconds,
    producing: bytes / 1e6 / producing,
    cpu: cpuSeconds / gigabytes,
    serverCpu: serverCpuSeconds / gigabytes,
    peakMegabytes,
  };
}

/** Enriches the same messages from several streams at a time, each with an output and a worker of its own. Returns MB/s. */
async function partitioned(server, { messages, bytes, dataDir }, count) {
  const manager = await jetstreamManager(server.connection, { timeout: PATIENCE_MS });
  await fill(server.connection, WARM_UP, messages.slice(0, (WARM_UP_SHARE * messages.length) / count));
  for (let part = 0; part < count; part++) {
    await fill(
      server.connection,
      `PART${part}`,
      messages.filter((_, index) => index % count === part),
    );
  }
  let waiting = count;
  let go;
  const all = new Promise((resolve) => {
    go = resolve;
  });
  const allReady = () => (--waiting === 0 ? deleteStreams(manager, WARM_UP).then(go) : all);
  const parts = Array.from({ length: count }, (_, part) =>
    drain(server, `PART${part}`, `PART_OUT${part}`, 'enrich', 1, dataDir, allReady),
  );
  const longest = Math.max(...(await Promise.all(parts)).map(({ seconds }) => seconds));
  await deleteStreams(manager, '');
  return bytes / 1e6 / longest;
}

/** Rows of more workers on one stream, and of several streams on one server. */
async function spreadRows(server, input, row) {
  const speeds = async (one) => {
    const trials = [];
    for (let round = 0; round < SPREAD_ROUNDS; round++) trials.push(await one());
    return `${Math.max(...trials).toFixed(0)} MB/s`;
  };
  for (const [name, workers] of Object.entries(SPREAD_WORKERS)) {
    row(`${name} workers`, await speeds(async () => (await trial(server, input, 'enrich', workers)).speed));
  }
  for (const [name, count] of Object.entries(PARTITIONS)) {
    row(`${name} partitions`, await speeds(() => partitioned(server, input, count)));
  }
}

export async function run() {
  section('Streams on NATS JetStream, end to end');
  if (spawnSync('nats-server', ['--version']).error !== undefined) {
    row('nats-server', 'not installed', 'apt-get install nats-server', false);
    return;
  }
  const dataDir = dataDirectory();
  const folder = mkdtempSync(join(tmpdir(), 'ipatlas-bench-'));
  const server = await startServer(folder);
  try {
    const path = join(folder, 'lines.jsonl');
    writeLines(path, 250_000);
    const lines = readFileSync(path);
    for (const { name, bytes: size, total } of SIZES) {
      const messages = messagesOf(lines, size, total);
      const bytes = messages.reduce((sum, message) => sum + message.length, 0);
      const input = { messages, bytes, dataDir };
      const best = { empty: 0, emptyTwo: 0, filler: 0, one: 0, two: 0, producing: 0 };
      const cpu = { empty: Number.POSITIVE_INFINITY, one: Number.POSITIVE_INFINITY, server: Number.POSITIVE_INFINITY };
      const hasGoal = size >= 100_000;
      const begun = performance.now();
      for (let round = 0; round < ROUNDS && performance.now() - begun < 1000 * MAX_SECONDS; round++) {
        const empty = await trial(server, input, 'empty', 1);
        const one = await trial(server, input, 'enrich', 1);
        const two = await trial(server, input, 'enrich', 2);
        if (hasGoal) {
          best.filler = Math.max(best.filler, (await trial(server, input, 'filler', 1)).speed);
          best.emptyTwo = Math.max(best.emptyTwo, (await trial(server, input, 'empty', 2)).speed);
        }
        best.empty = Math.max(best.empty, empty.speed);
        best.one = Math.max(best.one, one.speed);
        best.two = Math.max(best.two, two.speed);
        best.producing = Math.max(best.producing, empty.producing);
        cpu.empty = Math.min(cpu.empty, empty.cpu);
        cpu.one = Math.min(cpu.one, one.cpu);
        cpu.server = Math.min(cpu.server, one.serverCpu);
      }
      const speed = (value) => `${value.toFixed(value < 10 ? 1 : 0)} MB/s`;
      row(`${name}: producer alone`, speed(best.producing));
      row(`${name}: read, publish, acknowledge without work`, speed(best.empty));
      if (hasGoal) {
        row(`${name}: the same, with as many bytes of output as with work`, speed(best.filler));
        row(`${name}: the same, two processes without work`, speed(best.emptyTwo));
      }
      row(`${name}: one worker`, speed(best.one));
      row(`${name}: two workers`, speed(best.two));
      for (const [workers, value] of [
        ['one worker', best.one],
        ['two workers', best.two],
      ]) {
        const ratio = value / best.empty;
        const goal = hasGoal ? `≥ ${GOAL} ×` : '';
        row(`${name}: ${workers} / one without work`, `${ratio.toFixed(2)} ×`, goal, !hasGoal || ratio >= GOAL);
        // The output is larger than the input, and the server stores all of it. This is what the work alone takes.
        if (hasGoal) row(`${name}: ${workers} / one with as much output`, `${(value / best.filler).toFixed(2)} ×`);
      }
      if (hasGoal) row(`${name}: two workers / two without work`, `${(best.two / best.emptyTwo).toFixed(2)} ×`);
      const seconds = [cpu.one, cpu.empty, cpu.server].map((value) => value.toFixed(1)).join(', ');
      row(`${name}: core seconds a GB: worker, without work, server`, seconds);
      if (size === SPREAD_SIZE) await spreadRows(server, input, (what, value) => row(`${name}: ${what}`, value));
    }
    const messages = messagesOf(lines, 100_000, LAG_BYTES);
    const { peakMegabytes } = await trial(server, { messages, bytes: LAG_BYTES, dataDir }, 'enrich', 1);
    row('a lag of 1 GB: peak memory of the worker', `${peakMegabytes.toFixed(0)} MB`, '< 200 MB', peakMegabytes < 200);
  } finally {
    await server.connection.close();
    server.child.kill('SIGKILL');
    await once(server.child, 'exit');
    rmSync(folder, { recursive: true });
  }
}
