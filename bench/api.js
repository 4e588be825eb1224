// The lookup API, one worker, over loopback: single lookups in the forms that clients send them, against servers that only
// answer with the same headers and body (api-bare.js), and batches of 1,000. autocannon loads them from another core.
import { deepStrictEqual } from 'node:assert';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { formatIPv4, formatIPv6 } from '../dist/src/address/format.js';
import { cpuSecondsOf, randomWords, row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const CONNECTIONS = 32;
const BATCH = 1000;
const ROUNDS = 15;
const SECONDS = 1;
/** Least share of the time in which a server must be at work if its requests a second are to be compared. */
const LEAST_BUSY = 0.75;
const ADDRESS = '8.8.8.8';
/** Never reached. Every key has a rate, so it is measured with one; below 2^32, as real rates are. */
const RATE = 2e9;

/** Starts a process and waits for the line with its port. */
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

/** Loads a server for a second. Returns the requests a second, and the server's processor time for one in seconds. */
async function load({ child, port }, path, options) {
  const url = `http://127.0.0.1:${port}${path}`;
  const before = cpuSecondsOf(child.pid);
  const result = await autocannon({ url, connections: CONNECTIONS, duration: SECONDS, ...options });
  const cpuSeconds = cpuSecondsOf(child.pid) - before;
  const failed = result.non2xx + result.errors;
  if (failed > 0) throw new Error(`${failed} requests failed: ${JSON.stringify(result.statusCodeStats)}`);
  return { rate: result.requests.total / result.duration, cost: cpuSeconds / result.requests.total };
}

/** Loads servers in turn, in several rounds, so that other load hits all of them alike. Returns the results of each. */
async function rounds(...loads) {
  const results = loads.map(() => []);
  for (const one of loads) await one();
  for (let i = 0; i < ROUNDS; i++) {
    const turns = [...loads.entries()];
    for (const [index, one] of i % 2 === 0 ? turns : turns.reverse()) results[index].push(await one());
  }
  return results;
}

function median(numbers) {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1];
}

function addresses() {
  const next = randomWords(2463534242);
  return Array.from({ length: BATCH }, (_, index) =>
    index % 2 === 0 ? formatIPv4(next()) : formatIPv6((0x2a000000 | (next() >>> 8)) >>> 0, next(), next(), next()),
  );
}

/** The share of the time in which a server was at work. A server that often waited was not what limited the requests. */
function busyShare(results) {
  return median(results.map(({ rate, cost }) => rate * cost));
}

/** The processor time of a request. Other load on the machine can only add to it, so the least of the rounds counts. */
function leastCost(results) {
  return Math.min(...results.map(({ cost }) => cost));
}

/** Requests a second, processor time of one, and share of the time at work, as text. */
function figures(results) {
  const rate = median(results.map((result) => result.rate)).toFixed(0);
  const busy = (100 * busyShare(results)).toFixed(0);
  return `${rate} requests/s, ${(1e6 * leastCost(results)).toFixed(1)} µs, ${busy} % busy`;
}

/** Returns the headers and body of an answer, to be sent by a bare server; without those that Node adds itself. */
async function answerOf({ port }, path, headers) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
  const own = [...response.headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name));
  return { headers: Object.fromEntries(own), body: await response.text() };
}

export async function run() {
  section('The lookup API, one worker');
  const dataDir = dataDirectory();
  const key = execFileSync(process.execPath, [CLI, 'keys', 'create', '--data', dataDir], {
    encoding: 'utf8',
    stdio: 'pipe',
  }).trim();
  const serve = (...flags) =>
    started(
      [CLI, 'serve', '--host', '127.0.0.1', '--port', '0', '--data', dataDir, ...flags],
      'stderr',
      /"url":"http:\/\/localhost:(\d+)".*"listening"/,
    );
  const api = await serve('--rate', String(RATE));
  const gate = await serve('--trust-proxy', '127.0.0.1', '--forward-auth', 'gate=allow:EU,US');
  const headers = { 'X-API-Key': key };
  const path = `/api/lookup/${ADDRESS}`;
  const script = fileURLToPath(new URL('api-bare.js', import.meta.url));
  const processes = [api, gate];

  /** Starts a bare server that sends the headers and body with which a server answers a request. */
  async function bareServer(kind, of, route, target, sent) {
    const answer = await answerOf(of, target, sent);
    const server = await started([script, kind, JSON.stringify(answer), route], 'stdout', /(\d+)\n/);
    processes.push(server);
    // Neither Node nor Fastify may add or change anything, or the comparison would not be fair.
    deepStrictEqual(await answerOf(server, target, sent), answer);
    return server;
  }

  const forms = [
    ['single lookups, key in the header', api, path, headers, 0.9],
    ['single lookups, key in the query', api, `${path}?apikey=${key}`, {}, 0.9],
    ['single lookups, a browser, key in the header', api, path, { ...headers, Origin: 'https://shop.example' }, 0.9],
    ['single lookups, all fields', api, `${path}?include=asn,as_name,network,continent`, headers, 0.8],
    ['forward auth', gate, '/forward-auth/gate', { 'X-Forwarded-For': ADDRESS }, 0.91],
  ];
  for (const [name, of, target, sent, least] of forms) {
    const route = of === gate ? target : '/api/lookup/:ip';
    const bare = async (kind) => bareServer(kind, of, route, target, sent);
    const servers = [await bare('node'), await bare('fastify'), of];
    const [node, fastify, own] = await rounds(
      ...servers.map((server) => () => load(server, target, { headers: sent })),
    );
    row(name, figures(own));
    for (const [kind, results, goal] of [
      ['node:http', node, 0],
      ['Fastify route', fastify, least],
    ]) {
      const text = goal === 0 ? '' : `≥ ${goal} ×`;
      row(`  bare ${kind}`, figures(results));
      // The median of the rounds, each of which compares what ran within the same seconds.
      const requests = median(own.map(({ rate }, i) => rate / results[i].rate));
      const waited = Math.min(busyShare(own), busyShare(results)) < LEAST_BUSY;
      row(
        `    requests/s: API / ${kind}`,
        `${requests.toFixed(2)} ×`,
        waited ? 'says nothing: the servers waited for the load' : text,
        waited || requests >= goal,
      );
      const processor = leastCost(results) / leastCost(own);
      row(`    processor time: ${kind} / API`, `${processor.toFixed(2)} ×`, text, !(processor < goal));
    }
  }

  const [results] = await rounds(() =>
    load(api, '/api/batch', {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(addresses()),
    }),
  );
  const batches = Math.max(...results.map(({ rate }) => rate));
  row(
    `batches of ${BATCH}, half of them IPv6`,
    `${((batches * BATCH) / 1e6).toFixed(2)} M addresses/s`,
    '≥ 1 M addresses/s',
    batches * BATCH >= 1e6,
  );
  for (const { child } of processes) {
    child.kill();
    await once(child, 'exit');
  }
}
