// The lookup API, one worker, over loopback: single look-ups against a bare node:http server, and batches of 1,000. Both
// are loaded by autocannon, which takes the other core of a machine with two.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { formatIPv4, formatIPv6 } from '../dist/src/address/format.js';
import { randomWords, row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const CONNECTIONS = 32;
const BATCH = 1000;
const ROUNDS = 5;
const SECONDS = 2;
const ADDRESS = '8.8.8.8';
/** Never reached: what is measured is a key with a rate, as every key has one. Within 32 bits, as real ones are. */
const RATE = 2e9;

/** Starts a process and waits for a line that tells its port. */
async function started(args, stream, pattern) {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for await (const chunk of child[stream]) {
    text += chunk;
    const port = pattern.exec(text)?.[1];
    if (port !== undefined) return { child, port };
  }
  throw new Error(`${args[0]} ended: ${text}`);
}

/** Requests a second. */
async function load(port, path, options) {
  const url = `http://127.0.0.1:${port}${path}`;
  const result = await autocannon({ url, connections: CONNECTIONS, duration: SECONDS, ...options });
  const failed = result.non2xx + result.errors;
  if (failed > 0) throw new Error(`${failed} requests failed: ${JSON.stringify(result.statusCodeStats)}`);
  return result.requests.total / result.duration;
}

/** The most requests a second of several rounds; the servers take turns, so that a busy machine is so for all of them. */
async function mostRequests(...loads) {
  const most = loads.map(() => 0);
  for (const one of loads) await one();
  for (let i = 0; i < ROUNDS; i++) {
    for (const [index, one] of loads.entries()) most[index] = Math.max(most[index], await one());
  }
  return most;
}

function addresses() {
  const next = randomWords(2463534242);
  return Array.from({ length: BATCH }, (_, index) =>
    index % 2 === 0 ? formatIPv4(next()) : formatIPv6((0x2a000000 | (next() >>> 8)) >>> 0, next(), next(), next()),
  );
}

export async function run() {
  section('The lookup API, one worker');
  const dataDir = dataDirectory();
  const key = execFileSync(process.execPath, [CLI, 'keys', 'create', '--data', dataDir], {
    encoding: 'utf8',
    stdio: 'pipe',
  }).trim();
  const api = await started(
    [CLI, 'serve', '--port', '0', '--rate', String(RATE), '--data', dataDir],
    'stderr',
    /"url":"http:\/\/localhost:(\d+)".*"listening"/,
  );
  const headers = { 'X-API-Key': key };
  const path = `/api/lookup/${ADDRESS}`;
  const answer = await (await fetch(`http://127.0.0.1:${api.port}${path}`, { headers })).text();
  const bare = await started(
    [fileURLToPath(new URL('api-bare.js', import.meta.url)), String(answer.length)],
    'stdout',
    /(\d+)\n/,
  );

  const [plain, single] = await mostRequests(
    () => load(bare.port, path, { headers }),
    () => load(api.port, path, { headers }),
  );
  row('bare node:http', `${plain.toFixed(0)} requests/s`);
  row('single look-ups', `${single.toFixed(0)} requests/s`);
  row('single look-ups / bare node:http', `${(single / plain).toFixed(2)} ×`, '≥ 0.8 ×', single / plain >= 0.8);

  const [batches] = await mostRequests(() =>
    load(api.port, '/api/batch', {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(addresses()),
    }),
  );
  row(
    `batches of ${BATCH}, half of them IPv6`,
    `${((batches * BATCH) / 1e6).toFixed(2)} M addresses/s`,
    '≥ 1 M addresses/s',
    batches * BATCH >= 1e6,
  );
  for (const { child } of [api, bare]) {
    child.kill();
    await once(child, 'exit');
  }
}
