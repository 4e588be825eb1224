// What grows with servers and keys: the reservations that one Redis can answer, and a server that knows a million keys.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { hashKey, importKeys } from '../dist/src/api/keys/key-store.js';
import { cpuSecondsOf, row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const SCRIPT = new URL('../schemas/rate-window.lua', import.meta.url);
const CALLS = 200_000;
/** Calls that are open at a time. */
const OPEN = 500;
/** Keys whose windows Redis holds. */
const BUSY_KEYS = 100_000;
const KEYS = [1_000, 1_000_000];

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** The processor time of Redis for one reservation, in seconds. */
async function reservationCost() {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'ipatlas-bench-redis-'));
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir];
  const child = spawn('redis-server', args, { stdio: 'ignore' });
  const client = createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 50 } });
  client.on('error', () => {});
  try {
    await client.connect();
    const sha = await client.scriptLoad(readFileSync(SCRIPT, 'utf8'));
    const before = cpuSecondsOf(child.pid);
    for (let call = 0; call < CALLS; call += OPEN) {
      await Promise.all(
        Array.from({ length: OPEN }, (_, index) =>
          client.evalSha(sha, {
            keys: [`ipatlas:rate:${(call + index) % BUSY_KEYS}`],
            arguments: ['1000000', '1', '1000', '60000'],
          }),
        ),
      );
    }
    return (cpuSecondsOf(child.pid) - before) / CALLS;
  } finally {
    client.destroy();
    child.kill('SIGKILL');
    await once(child, 'exit');
    rmSync(dir, { recursive: true });
  }
}

/** Starts a server that has so many keys; returns its seconds of processor time until it listens, and its memory in MB. */
async function startWithKeys(count) {
  const keys = Array.from({ length: count }, (_, index) => ({
    ...{ id: index.toString(16), hash: hashKey(`${index}`), rate: null, origins: null, self_issued: false },
    ...{ created: '2026-01-01T00:00:00.000Z', expires: null },
  }));
  const dir = dataDirectory();
  importKeys(dir, keys, true);
  const args = [CLI, 'serve', '--host', '127.0.0.1', '--port', '0', '--data', dir];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  for await (const chunk of child.stderr) {
    log += chunk;
    if (log.includes('"listening"')) break;
  }
  const seconds = cpuSecondsOf(child.pid);
  const memory = Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1]) / 1024;
  child.kill('SIGKILL');
  await once(child, 'exit');
  return { seconds, memory, bytes: statSync(join(dir, 'keys.sqlite')).size };
}

export async function run() {
  section('Servers that share rates and keys');
  if (spawnSync('redis-server', ['--version']).error !== undefined) {
    row('redis-server', 'not installed', 'apt-get install redis-server', false);
  } else {
    const costs = [];
    for (let round = 0; round < 3; round++) costs.push(await reservationCost());
    const cost = Math.min(...costs);
    row('Redis: reservations', `${Math.round(1 / cost)}/s`);
    row('Redis: processor time of one', `${(1e6 * cost).toFixed(1)} µs`);
  }
  for (const count of KEYS) {
    const { seconds, memory, bytes } = await startWithKeys(count);
    const name = `keys: ${count.toLocaleString('en-US')}`;
    row(`${name}: file`, `${(bytes / 1e6).toFixed(1)} MB`);
    row(`${name}: start`, `${seconds.toFixed(2)} s`);
    row(`${name}: memory of the server`, `${memory.toFixed(0)} MB`);
  }
}
