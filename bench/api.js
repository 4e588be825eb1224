// The lookup API, one worker, over loopback: single lookups in the forms that clients send them, against servers that only
// answer with the same headers and body, and batches of 1,000. autocannon loads them from another core.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { formatIPv4, formatIPv6 } from '../dist/src/address/format.js';
import { cpuSecondsOf, randomWords, row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const CONNECTIONS = 32;
const BATCH = 1000;
const ROUNDS = 10;
const SECONDS = 1;
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

/** The best of several rounds for each server. They take turns, so that other load hits all of them alike. */
async function best(...loads) {
  const results = loads.map(() => ({ rate: 0, cost: Number.POSITIVE_INFINITY }));
  for (const one of loads) await one();
  for (let i = 0; i < ROUNDS; i++) {
    for (const [index, one] of loads.entries()) {
      const { rate, cost } = await one();
      const result = results[index];
      result.rate = Math.max(result.rate, rate);
      result.cost = Math.min(result.cost, cost);
    }
  }
  return results;
}

function addresses() {
  const next = randomWords(2463534242);
  return Array.from({ length: BATCH }, (_, index) =>
    index % 2 === 0 ? formatIPv4(next()) : formatIPv6((0x2a000000 | (next() >>> 8)) >>> 0, next(), next(), next()),
  );
}

/** The headers and body of an answer, to be sent by a bare server; without those that Node adds itself. */
async function answerOf(url, headers) {
  const response = await fetch(url, { headers });
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
  const api = await started(
    [CLI, 'serve', '--host', '127.0.0.1', '--port', '0', '--rate', String(RATE), '--data', dataDir],
    'stderr',
    /"url":"http:\/\/localhost:(\d+)".*"listening"/,
  );
  const headers = { 'X-API-Key': key };
  const path = `/api/lookup/${ADDRESS}`;
  const script = fileURLToPath(new URL('api-bare.js', import.meta.url));
  const processes = [api];

  /** Starts a bare server that sends the headers and body with which the API answers a request. */
  async function bareServer(kind, answer) {
    const server = await started([script, kind, JSON.stringify(answer)], 'stdout', /(\d+)\n/);
    processes.push(server);
    return server;
  }

  const forms = [
    ['key in the header', path, headers],
    ['key in the query', `${path}?apikey=${key}`, {}],
    ['a browser, key in the header', path, { ...headers, Origin: 'https://shop.example' }],
  ];
  for (const [name, target, sent] of forms) {
    const answer = await answerOf(`http://127.0.0.1:${api.port}${target}`, sent);
    const servers = [await bareServer('node', answer), await bareServer('fastify', answer), api];
    const loads = servers.map((server) => () => load(server, target, { headers: sent }));
    const [node, fastify, own] = await best(...loads);
    row(`single lookups, ${name}`, `${own.rate.toFixed(0)} requests/s`);
    for (const [bare, { rate, cost }, goal] of [
      ['node:http', node, 0],
      ['Fastify route', fastify, 0.9],
    ]) {
      const text = goal === 0 ? '' : `≥ ${goal} ×`;
      const requests = own.rate / rate;
      row(`  / bare ${bare} (${rate.toFixed(0)})`, `${requests.toFixed(2)} ×`, text, requests >= goal);
      // The program that makes the load shares the machine, so requests a second vary more than what they cost.
      const processor = cost / own.cost;
      row('  the same by processor time of the server', `${processor.toFixed(2)} ×`, text, !(processor < goal));
    }
  }

  const [{ rate: batches }] = await best(() =>
    load(api, '/api/batch', {
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
  for (const { child } of processes) {
    child.kill();
    await once(child, 'exit');
  }
}
