// A fleet of nodes that pull from one origin: the requests and times of real pulls, 50 real nodes beside the model
// (fleet-model.js), and what the model says of 100 to 100,000 nodes. What it assumes of networks is in assumptions.json.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { simulate } from './fleet-model.js';
import { row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

/** Nodes that really run. */
const REAL_NODES = 50;
/** Seconds within which the real nodes start. */
const REAL_JITTER = 10;
const FLEETS = [100, 1_000, 10_000, 100_000];
/** A schedule that is not spread over the time between two pulls, in seconds. */
const NARROW_JITTER = 10;
const DAY_MS = 86_400_000;
const day = (offset) => new Date(Date.now() + offset * DAY_MS).toISOString().slice(0, 10);
/** Makes a program print its seconds of processor time. */
const PRINT_CPU = [
  '--import',
  'data:text/javascript,process.on("exit",()=>{const{user,system}=process.cpuUsage();console.error("cpu",(user+system)/1e6)})',
];
const ipatlas = (...args) => execFileSync(process.execPath, [CLI, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });

const assumptions = Object.fromEntries(
  Object.entries(JSON.parse(readFileSync(new URL('assumptions.json', import.meta.url), 'utf8'))).map(
    ([name, { value }]) => [name, value],
  ),
);

/** Serves a folder, and records each request: its time, name, and length of the answer. */
async function serveFolder(folder) {
  const requests = [];
  const server = createServer(({ url }, response) => {
    const path = join(folder, decodeURIComponent(url));
    const body = existsSync(path) ? readFileSync(path) : undefined;
    response.writeHead(body === undefined ? 404 : 200).end(body);
    const kind = body === undefined ? 'missing' : url.endsWith('/timestamp.json') ? 'timestamp' : 'file';
    requests.push({ kind, name: url, bytes: body?.length ?? 0, time: performance.now() });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { url: `http://127.0.0.1:${server.address().port}`, requests, server };
}

/** Pulls once; returns the requests, and the seconds of a processor before the first and after it. */
async function pullOnce({ url, requests }, root, data) {
  const before = requests.length;
  const begun = performance.now();
  const child = spawn(process.execPath, [...PRINT_CPU, CLI, 'pull', url, '--root', root, '--data', data], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`pull ended with ${code}: ${errors}`);
  const ended = performance.now();
  const sent = requests.slice(before);
  // Processor time, divided as the time on the clock is: other programs take that, too.
  const processor = Number(/^cpu (\S+)$/m.exec(errors)[1]) / (ended - begun);
  return {
    requests: sent.map(({ kind, name, bytes }) => ({ kind, name, bytes })),
    startSeconds: (sent[0].time - begun) * processor,
    installSeconds: (ended - sent[0].time) * processor,
  };
}

const decimal = (number, digits = 0) => number.toLocaleString('en', { maximumFractionDigits: digits });
const seconds = (number) => (Number.isNaN(number) ? 'never' : `${decimal(number, number < 10 ? 1 : 0)} s`);

/** Prints a figure of the model beside the real one. */
function compare(name, real, model, unit) {
  const met = Math.abs(model / real - 1) <= 0.25;
  row(`${name}: ${REAL_NODES} real nodes / model`, `${unit(real)} / ${unit(model)}`, 'within a quarter', met);
}

/** Rows of one fleet: what the origin and the busiest cache have to send, and how soon the nodes have a release. */
function report(name, { origin, cache, half, most, all, failed, oldest }) {
  const peak = (load) => `${decimal(load.peak('requests'))}/s, ${decimal(load.peak('bytes') / 1e6, 1)} MB/s`;
  row(`${name}: origin, peak`, peak(origin));
  if (cache !== undefined) row(`${name}: busiest cache, peak`, peak(cache));
  row(`${name}: half, 99 %, all`, [half, most, all].map(seconds).join(', '));
  row(`${name}: oldest timestamp`, seconds(oldest));
  if (failed > 0) row(`${name}: pulls that failed`, decimal(failed));
}

export async function run() {
  section('Nodes that pull: measured, and by the model');
  const dir = mkdtempSync(join(tmpdir(), 'ipatlas-fleet-'));
  const origin = join(dir, 'origin');
  const repository = join(dir, 'repository');
  const root = join(repository, 'root.json');
  let web;
  try {
    cpSync(dataDirectory(), origin, { recursive: true, verbatimSymlinks: true });
    ipatlas('repo', 'init', repository, '--data', origin);
    ipatlas('repo', 'add', repository, '--data', origin);
    web = await serveFolder(repository);
    const first = join(dir, 'first');
    await pullOnce(web, root, first);
    const idle = await pullOnce(web, root, first);
    // Another day gives the same ranges another release: to take it costs a node what any release costs.
    ipatlas('build', '--offline', '--as-of', day(1), '--data', origin);
    ipatlas('repo', 'add', repository, '--data', origin);
    const nodes = Array.from({ length: REAL_NODES }, (_, index) => join(dir, `node-${index}`));
    // Hard links: releases never change, and other files are replaced as a whole, except for the lock.
    rmSync(join(first, 'lock.sqlite'));
    for (const node of nodes) execFileSync('cp', ['-al', first, node]);
    const night = await pullOnce(web, root, first);
    const pull = { ...night, idle: idle.requests, night: night.requests };
    const bytes = (list) => list.reduce((sum, request) => sum + request.bytes, 0);
    row('a pull of a new release', `${night.requests.length} requests, ${decimal(bytes(night.requests))} bytes`);
    row('a pull of nothing new', `${idle.requests.length} requests, ${decimal(bytes(idle.requests))} bytes`);
    row(
      'a node: processor before the first request, and after',
      `${seconds(night.startSeconds)}, ${seconds(night.installSeconds)}`,
    );

    web.requests.length = 0;
    const begun = performance.now();
    const delays = nodes.map((_, index) => ((index + 0.5) / REAL_NODES) * REAL_JITTER * 1000);
    const ended = await Promise.allSettled(
      nodes.map(async (node, index) => {
        await new Promise((resolve) => setTimeout(resolve, delays[index]));
        await pullOnce(web, root, node);
        return (performance.now() - begun) / 1000;
      }),
    );
    const lost = ended.find(({ status }) => status === 'rejected');
    if (lost !== undefined) throw lost.reason;
    const ends = ended.map(({ value }) => value).sort((a, b) => a - b);
    const local = { ...assumptions, roundTripSeconds: 0.0005, originBitsPerSecond: 1e10, nodeBitsPerSecond: 1e10 };
    const model = simulate(local, pull, {
      ...{
        nodes: REAL_NODES,
        jitter: REAL_JITTER,
        isScheduled: false,
        isDirect: true,
        cores: cpus().length,
        until: 3600,
      },
    });
    compare('requests', web.requests.length, model.origin.requests, decimal);
    const headers = web.requests.length * assumptions.headerBytes;
    compare('bytes', bytes(web.requests) + headers, model.origin.bytes, decimal);
    compare('half have the release after', ends[REAL_NODES / 2 - 1], model.half, seconds);
    compare('all have the release after', ends.at(-1), model.all, seconds);

    const { outageSeconds: outage, scheduleSeconds: period } = assumptions;
    // A release appears just after a time of the schedule, when nodes begin to ask.
    const usual = { isScheduled: true, jitter: period, publishAt: 3 * period + 0.001, until: 7 * period };
    const cases = {
      'through caches': {},
      [`within ${NARROW_JITTER} s`]: { jitter: NARROW_JITTER },
      'without caches': { isDirect: true },
      'bad caches': { areCachesBad: true },
      'after an outage': { outage, publishAt: outage, until: outage + 4 * period },
    };
    for (const nodes of FLEETS) {
      for (const [what, change] of Object.entries(cases)) {
        report(`${decimal(nodes)} nodes ${what}`, simulate(assumptions, pull, { ...usual, nodes, ...change }));
      }
    }
  } finally {
    web?.server.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

// `node bench/fleet.js` runs this part alone.
if (process.argv[1] === new URL(import.meta.url).pathname) await run();
