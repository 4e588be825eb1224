// Two kinds of clients that once brought a server down, to run by hand. Starts the server that is compiled in dist/ and prints
// how it fares.
//
//   node scripts/hostile-clients.js          both
//   node scripts/hostile-clients.js files    100 clients request a static file twice at once and go away: open descriptors
//   node scripts/hostile-clients.js readers  100 clients send 1,400 requests each and never read: memory, delay of /healthz
import { fork, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const CLIENTS_OF_FILES = 100;
const [folder] = readdirSync(new URL('../dist/page/assets', import.meta.url));
const FILES = ['world.svg', 'worker.js'].map((name) => `/page/${folder}/${name}`);
const READERS = 100;
const REQUESTS = 1_400;
const SECONDS = 20;

let server;

function listening() {
  return new Promise((resolve, reject) => {
    let log = '';
    server.stderr.setEncoding('utf8').on('data', (chunk) => {
      log += chunk;
      const port = /"url":"http:\/\/localhost:(\d+)"/.exec(log)?.[1];
      if (port !== undefined) resolve(Number(port));
    });
    server.once('exit', () => reject(new Error(`the server ended: ${log}`)));
  });
}

/** Returns the descriptors that the server has open, by kind. */
function descriptors() {
  return readdirSync(`/proc/${server.pid}/fd`).length;
}

/** Returns the memory of the server in MB, and its processor time in seconds. */
function usage() {
  const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024;
  const ticks = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return { rss, processor: (Number(ticks[11]) + Number(ticks[12])) / 100 };
}

const request = (target) => `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

async function leaveFilesBehind(port) {
  const before = descriptors();
  for (const file of FILES) {
    for (let i = 0; i < CLIENTS_OF_FILES; i++) {
      await new Promise((resolve) => {
        const socket = connect(port, '127.0.0.1', () => socket.write(request(file) + request(file)));
        socket.once('data', () => socket.destroy());
        socket.once('close', resolve);
        socket.once('error', resolve);
      });
    }
  }
  await sleep(3_000);
  console.log(`files: ${before} descriptors before ${2 * CLIENTS_OF_FILES} clients, ${descriptors()} after`);
}

async function neverRead(port) {
  const before = usage();
  // A process of its own: this one is busy sending.
  const probe = fork(import.meta.filename, ['probe', String(port)]);
  await sleep(1_000);
  const block = Buffer.from(request('/openapi.json').repeat(REQUESTS));
  const sockets = Array.from({ length: READERS }, () => {
    const socket = connect(port, '127.0.0.1', () => socket.write(block));
    return socket.pause().on('error', () => {});
  });
  let peak = before.rss;
  let slowest;
  probe.once('message', (message) => {
    slowest = message;
  });
  while (slowest === undefined) {
    peak = Math.max(peak, usage().rss);
    await sleep(50);
  }
  const processor = usage().processor - before.processor;
  console.log(
    `readers: ${before.rss.toFixed()} MB before, ${peak.toFixed()} MB at most; /healthz took ${slowest.toFixed()} ms at most; ${processor.toFixed(1)} s of processor time`,
  );
  for (const socket of sockets) socket.destroy();
}

/** Requests /healthz again and again, and sends the longest time in milliseconds. */
async function probe(port) {
  let slowest = 0;
  const end = performance.now() + SECONDS * 1_000;
  while (performance.now() < end) {
    const asked = performance.now();
    await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: 'close' } });
    slowest = Math.max(slowest, performance.now() - asked);
    await sleep(50);
  }
  process.send(slowest);
  process.disconnect();
}

async function main(kind) {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'ipatlas-hostile-'));
  const start = path.join(import.meta.dirname, '../dist/src/cli/start.cjs');
  server = spawn(process.execPath, [start, 'serve', '--data', dataDir, '--port', '0'], {
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  try {
    const port = await listening();
    if (kind !== 'readers') await leaveFilesBehind(port);
    if (kind !== 'files') await neverRead(port);
  } finally {
    server.kill('SIGKILL');
    rmSync(dataDir, { recursive: true });
  }
}

if (process.argv[2] === 'probe') await probe(Number(process.argv[3]));
else await main(process.argv[2]);
