/** Servers that close the connection after each response, and those that close it before its end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished } from 'vitest';
import { missingProgram, PYTHON } from '../export/tools.js';
import { freePort } from '../support/ports.js';
import { atlasError, runFetch, scratchDir, source, textsOf } from './fetch-support.js';

/** A body whose last piece a socket often has together with the end of the connection. */
export const BODY = Buffer.alloc(1_048_576, 'abc\n');

/** Waits for a server that was started. */
async function reachable(port: number): Promise<void> {
  for (;;) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
    if (isOpen) return;
    await sleep(50);
  }
}

async function started(port: number, child: ChildProcess): Promise<string> {
  onTestFinished(() => void child.kill('SIGKILL'));
  await reachable(port);
  return `http://127.0.0.1:${port}/a`;
}

/** Servers that close the connection after each response; each serves {@link BODY} and returns its address. */
export const CLOSING_SERVERS: Record<string, { missing?: () => string | undefined; start: () => Promise<string> }> = {
  "Node's server": {
    start: async () => {
      const server = http.createServer((_request, response) =>
        response.writeHead(200, { 'content-length': BODY.length, connection: 'close' }).end(BODY),
      );
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/a`;
    },
  },
  "Python's http.server": {
    missing: () => missingProgram(PYTHON, 'python3'),
    start: async () => {
      const dir = scratchDir();
      writeFileSync(join(dir, 'a'), BODY);
      const port = await freePort();
      const args = ['-m', 'http.server', '--bind', '127.0.0.1', '--directory', dir, String(port)];
      return started(port, spawn(PYTHON, args, { stdio: 'ignore' }));
    },
  },
  nginx: {
    missing: () => missingProgram('nginx', 'nginx', ['-v']),
    start: async () => {
      const dir = scratchDir();
      writeFileSync(join(dir, 'a'), BODY);
      mkdirSync(join(dir, 'logs'));
      const port = await freePort();
      writeFileSync(
        join(dir, 'nginx.conf'),
        `daemon off; master_process off; pid ${dir}/pid; error_log ${dir}/errors;
        events {} http { access_log off; keepalive_timeout 0; server { listen 127.0.0.1:${port}; root ${dir}; } }`,
      );
      const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
      return started(port, spawn('nginx', ['-p', dir, '-c', join(dir, 'nginx.conf')], { stdio: 'ignore', env }));
    },
  },
};

const TEXT = '80.0.0.0,80.255.255.255,DE\n'.repeat(3);
const PACKED = gzipSync(TEXT);

/** Responses with the same content. Of those in the first group, each shortened one is recognizable. */
export const RESPONSES: Record<string, { isFramed: boolean; bytes: Buffer }> = {
  'a length': {
    isFramed: true,
    bytes: Buffer.from(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${TEXT.length}\r\n\r\n${TEXT}`),
  },
  chunks: {
    isFramed: true,
    bytes: Buffer.from(
      `HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${[...TEXT.matchAll(/.+\n/g)].map(([line]) => `${line.length.toString(16)}\r\n${line}\r\n`).join('')}0\r\n\r\n`,
    ),
  },
  gzip: {
    isFramed: true,
    bytes: Buffer.concat([Buffer.from(`HTTP/1.0 200 OK\r\nContent-Length: ${PACKED.length}\r\n\r\n`), PACKED]),
  },
  neither: { isFramed: false, bytes: Buffer.from(`HTTP/1.0 200 OK\r\n\r\n${TEXT}`) },
};

/**
 * Fetches a source from a server that closes the connection after each number of bytes of a response, and expects the whole
 * file or E_FETCH; and its stored copy if it has one.
 */
export async function expectCutsSurvived({ isFramed, bytes }: (typeof RESPONSES)[string], cuts: readonly number[]) {
  let end = bytes.length;
  const server = createServer((socket) => {
    socket.on('error', () => {}).once('data', () => socket.end(bytes.subarray(0, end)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a`;
  const location = { kind: 'https' as const, urls: [url], files: [] };
  const [empty, filled] = [scratchDir(), scratchDir()];
  const fetch = (dataDir: string) =>
    runFetch([source(location)], dataDir, { limits: { retries: 1 }, accept: dataDir === filled });
  await fetch(filled);
  const bodyAt = bytes.indexOf('\r\n\r\n') + 4;
  for (const cut of cuts) {
    end = cut;
    const fallback = await fetch(filled);
    if (!isFramed && cut >= bodyAt) continue; // nothing tells that it is not whole
    expect(textsOf(fallback.output[0]), `${cut}`).toEqual({ a: TEXT });
    const fresh = runFetch([source(location)], empty, { limits: { retries: 1 }, accept: false });
    if (cut < bytes.length) expect((await atlasError(fresh)).code, `${cut}`).toBe('E_FETCH');
    else expect(textsOf((await fresh).output[0])).toEqual({ a: TEXT });
  }
}
