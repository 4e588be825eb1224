// End-to-end throughput of stream workers on a real nats-server: against the same pipeline without work in it.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { writeLines } from './enrich-lines.js';
import { row, section } from './measure.js';
import { dataDirectory } from './paths.js';

const WORKER = fileURLToPath(new URL('stream-worker.js', import.meta.url));
const MAX_PAYLOAD = 4_194_304;
/** Rounds of each trial; the best counts. The trials take turns, so that a busy machine is busy for all of them. */
const ROUNDS = 3;
/** Message sizes in bytes with the input in bytes; a message of one line costs a round trip for 200 bytes. */
const SIZES = [
  { name: 'one line', bytes: 0, total: 4_000_000 },
  { name: '10 KB', bytes: 10_000, total: 80_000_000 },
  { name: '100 KB', bytes: 100_000, total: 200_000_000 },
  { name: '1 MB', bytes: 1_000_000, total: 200_000_000 },
];
/** Bytes for the memory figure. */
const LAG_BYTES = 1_000_000_000;
const GOAL = 0.8;

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

async function startServer(folder) {
  const port = await freePort();
  mkdirSync(join(folder, 'store'));
  const config = [
    `listen: "127.0.0.1:${port}"`,
    `jetstream { store_dir: "${join(folder, 'store')}", max_file_store: 12GB }`,
    `max_payload: ${MAX_PAYLOAD}`,
  ];
  writeFileSync(join(folder, 'nats.conf'), config.join('\n'));
  const child = spawn('nats-server', ['-c', join(folder, 'nats.conf')], { stdio: 'ignore' });
  for (let tries = 0; ; tries++) {
    try {
      return { child, port, connection: await connect({ servers: `127.0.0.1:${port}` }) };
    } catch (error) {
      if (tries === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Cuts lines into messages of whole lines of about `bytes` bytes; one line each for 0. */
function messagesOf(lines, bytes, total) {
  const messages = [];
  let from = 0;
  for (let taken = 0; taken < total; ) {
    if (from >= lines.length) from = 0;
    const end = lines.indexOf(10, Math.min(from + Math.max(0, bytes - 100), lines.length - 1)) + 1;
    const message = lines.subarray(from, end === 0 ? lines.length : end);
    messages.push(message);
    taken += message.length;
    from += message.length;
  }
  return messages;
}

/** Fills a new stream; resolves with the seconds that took. */
async function fill(connection, name, messages) {
  const client = jetstream(connection);
  const manager = await jetstreamManager(connection);
  const settings = { retention: 'limits', storage: 'file', discard: 'new', max_bytes: 2_000_000_000 };
  await manager.streams.add({ ...settings, name, subjects: [`${name.toLowerCase()}.>`] });
  const begun = performance.now();
  const window = new Set();
  for (const message of messages) {
    const done = client.publish(`${name.toLowerCase()}.lines`, message).then(() => window.delete(done));
    window.add(done);
    if (window.size >= 64) await Promise.race(window);
  }
  await Promise.all(window);
  return (performance.now() - begun) / 1000;
}

/** Starts workers on a filled stream, waits until they are ready, lets them go at once, and waits for their end. */
async function drain(port, from, to, mode, workers, dataDir) {
  const started = await Promise.all(
    Array.from({ length: workers }, async () => {
      const args = [WORKER, `nats://127.0.0.1:${port}`, from, to, mode, dataDir];
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
  for (const child of started) child.stdin.end('go');
  const results = await Promise.all(reports);
  const first = Math.min(...results.map(({ begun }) => begun));
  const last = Math.max(...results.map(({ ended }) => ended));
  return { seconds: (last - first) / 1000, peakMegabytes: Math.max(...results.map(({ peak }) => peak)) };
}

let runs = 0;

async function trial(server, { messages, bytes, dataDir }, mode, workers) {
  const number = ++runs;
  const manager = await jetstreamManager(server.connection);
  const producing = await fill(server.connection, `IN${number}`, messages);
  const { seconds, peakMegabytes } = await drain(server.port, `IN${number}`, `OUT${number}`, mode, workers, dataDir);
  for (const name of [`IN${number}`, `OUT${number}`, `OUT${number}_REJECTS`]) await manager.streams.delete(name);
  return { speed: bytes / 1e6 / seconds, producing: bytes / 1e6 / producing, peakMegabytes };
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
      const best = { empty: 0, one: 0, two: 0, producing: 0 };
      for (let round = 0; round < ROUNDS; round++) {
        const empty = await trial(server, input, 'empty', 1);
        const one = await trial(server, input, 'enrich', 1);
        const two = await trial(server, input, 'enrich', 2);
        best.empty = Math.max(best.empty, empty.speed);
        best.one = Math.max(best.one, one.speed);
        best.two = Math.max(best.two, two.speed);
        best.producing = Math.max(best.producing, empty.producing);
      }
      const speed = (value) => `${value.toFixed(value < 10 ? 1 : 0)} MB/s`;
      row(`${name}: producer alone`, speed(best.producing));
      row(`${name}: read, publish, acknowledge without work`, speed(best.empty));
      row(`${name}: one worker`, speed(best.one));
      row(`${name}: two workers`, speed(best.two));
      const ratio = best.one / best.empty;
      const hasGoal = size >= 100_000;
      row(
        `${name}: one worker / without work`,
        `${ratio.toFixed(2)} ×`,
        hasGoal ? `≥ ${GOAL} ×` : '',
        !hasGoal || ratio >= GOAL,
      );
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
