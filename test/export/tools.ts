/** Installed programs that read exports, and their configuration in docs/exports.md. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { it } from 'vitest';
import { packageFile } from '../../src/package-root.js';

/** Debian installs servers in a folder that is not in the PATH of users. */
const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;

/** Runs a program to its end. */
export function run(command: string, args: string[], input = '') {
  return spawnSync(command, args, { input, encoding: 'utf8', env: { ...process.env, PATH }, maxBuffer: 2 ** 28 });
}

/** Returns why a program is missing, or undefined if it is installed. */
export function missingProgram(command: string, debianPackage: string, args = ['--version']): string | undefined {
  return run(command, args).error === undefined ? undefined : `${command} is not installed (Debian: ${debianPackage})`;
}

/** Debian's Python has Debian's modules; the first one in the PATH may be another one. */
export const PYTHON = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';

export function missingPythonModule(module: string, debianPackage: string): string | undefined {
  return run(PYTHON, ['-c', `import ${module}`]).status === 0
    ? undefined
    : `Python has no module ${module} (Debian: ${debianPackage})`;
}

/** Debian's Go and its package of the MMDB reader, without modules and without network. */
const GO_PATH = '/usr/share/gocode';

export function missingGo(): string | undefined {
  return (
    missingProgram('go', 'golang-go', ['version']) ??
    missingFile(`${GO_PATH}/src/github.com/oschwald/maxminddb-golang`, 'golang-github-oschwald-maxminddb-golang-dev')
  );
}

/** Compiles and runs a Go program of the repository. The compiler keeps the libraries for later runs: they take half a minute. */
export function goRun(source: string, args: string[], input: string) {
  const env = { ...process.env, GO111MODULE: 'off', GOPATH: GO_PATH, GOFLAGS: '' };
  return spawnSync('go', ['run', packageFile(source), ...args], { input, encoding: 'utf8', env, maxBuffer: 2 ** 28 });
}

export const GEOIP2_MODULE = '/usr/lib/nginx/modules/ngx_http_geoip2_module.so';

export function missingFile(path: string, debianPackage: string): string | undefined {
  return existsSync(path) ? undefined : `${path} is not there (Debian: ${debianPackage})`;
}

/** Runs a shell script in a separate network namespace, so that it changes nothing on this machine. */
export function inNetwork(script: string) {
  return run('unshare', [...(process.getuid?.() === 0 ? ['-n'] : ['-rn']), 'sh', '-ec', script]);
}

export function missingNft(): string | undefined {
  const noProgram = missingProgram('nft', 'nftables') ?? missingProgram('unshare', 'util-linux');
  if (noProgram !== undefined) return noProgram;
  const { status, stderr } = inNetwork('nft list ruleset');
  return status === 0 ? undefined : `no network of one's own to load sets into: ${stderr.trim()}`;
}

/** Defines a test that needs a program. If it is missing, the test is skipped, and its title says so. */
export function testWith(missing: string | undefined, title: string, body: () => void | Promise<void>): void {
  if (missing === undefined) {
    it(title, body);
    return;
  }
  console.warn(`NOT TESTED: ${title}: ${missing}`);
  it.skip(`${title} (NOT TESTED: ${missing})`, body);
}

/** The folder of the exports in docs/exports.md. */
const DOCUMENTED_DIR = '/var/lib/ipatlas/';

/**
 * Returns a block of code from docs/exports.md.
 *
 * @param language the info string of the code fence
 * @param part some text in the block
 * @param dir the directory of the exports, instead of the documented one
 */
export function documented(language: string, part: string, dir: string): string {
  const text = readFileSync(packageFile('docs/exports.md'), 'utf8');
  const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  const block = blocks.find(([, name, code]) => name === language && code!.includes(part));
  if (block === undefined) throw new Error(`docs/exports.md has no ${language} block with ${part}`);
  return block[2]!.replaceAll(DOCUMENTED_DIR, `${dir}/`);
}

/** Starts a server that listens on a Unix socket, and waits until it does. */
export async function startServer(command: string, args: string[], socket: string): Promise<ChildProcess> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, PATH } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`${command} ended: ${output}`);
    if (existsSync(socket)) return child;
    await sleep(50);
  }
  child.kill('SIGKILL');
  throw new Error(`${command} does not listen: ${output}`);
}

export async function stopServer(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

/** Requests paths from a server on a Unix socket over one connection (HTTP/1.1 pipelining); returns the bodies. */
export function bodies(socket: string, paths: string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const found: string[] = [];
    let pending = '';
    const client = connect(socket);
    client.setEncoding('latin1');
    client.on('error', reject);
    client.on('close', () => reject(new Error(`the server closed after ${found.length} of ${paths.length} answers`)));
    client.on('data', (chunk: string) => {
      pending += chunk;
      for (;;) {
        const headEnd = pending.indexOf('\r\n\r\n');
        if (headEnd < 0) return;
        const length = Number(/\ncontent-length: *(\d+)/i.exec(pending.slice(0, headEnd))?.[1]);
        const end = headEnd + 4 + length;
        if (pending.length < end) return;
        found.push(pending.slice(headEnd + 4, end));
        pending = pending.slice(end);
        if (found.length < paths.length) continue;
        client.removeAllListeners('close');
        client.destroy();
        resolve(found);
        return;
      }
    });
    client.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`).join(''));
  });
}
