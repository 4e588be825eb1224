// What a pull transfers: `node bench/pull.js DATA RELEASE…` signs releases of a copy of a data directory one after the other. A node pulls
// each, and once more, when nothing is new. It prints the bytes of all bodies.
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { row, section } from './measure.js';
import { CLI } from './paths.js';

const [data, ...releases] = process.argv.slice(2);
const dir = mkdtempSync(join(tmpdir(), 'ipatlas-pull-'));
const origin = join(dir, 'origin');
const repository = join(dir, 'repository');
const ipatlas = (...args) => execFileSync(process.execPath, [CLI, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });

let answers = [];
const server = createServer(({ url }, response) => {
  const path = join(repository, decodeURIComponent(url));
  const body = existsSync(path) ? readFileSync(path) : undefined;
  response.writeHead(body === undefined ? 404 : 200).end(body);
  answers.push([url.replace(/^.*\/(?:[0-9a-f]{64}\.)?/, ''), body?.length ?? 0]);
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${server.address().port}`;

async function pull(title, node) {
  answers = [];
  const args = ['pull', url, '--root', join(repository, 'root.json'), '--data', join(dir, node), '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, ...args]);
  const { outcome } = JSON.parse(stdout);
  const bytes = answers.reduce((sum, [, length]) => sum + length, 0);
  row(`${title} (${outcome})`, `${bytes.toLocaleString('en')} bytes`);
  for (const [name, length] of answers) console.log(`    ${name} ${length.toLocaleString('en')}`);
}

try {
  cpSync(data, origin, { recursive: true });
  section('Bytes of a pull');
  ipatlas('repo', 'init', repository, '--data', origin);
  for (const release of releases) {
    ipatlas('repo', 'add', repository, release, '--data', origin);
    await pull(release, 'node');
    await pull('nothing new', 'node');
  }
} finally {
  server.close();
  rmSync(dir, { recursive: true });
}
