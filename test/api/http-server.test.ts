/** Connections that a client does not end, and the order in which a server stops. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { type ApiHttpServer, type ClientTimes, drain } from '../../src/api/http-server.js';
import type { Access } from '../../src/api/log.js';
import { RATE_WINDOW_MS } from '../../src/limits.js';
import { packageFile } from '../../src/package-root.js';
import { type AppChanges, appDeps, fixedKeys, KEY, portOf, startServer } from '../support/api.js';
import { smallRelease } from '../support/release.js';
import { exchange, textFrom, until } from '../support/serve.js';

/** A busy machine may take its time. */
const TIMES: ClientTimes = {
  headers: 60_000,
  request: 60_000,
  socket: 60_000,
  keepAlive: 60_000,
  check: 50,
  refused: 1_000,
};

const dataDir = await smallRelease();
const servers: ApiHttpServer[] = [];
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

async function start(changes: AppChanges = {}, times = TIMES): Promise<ApiHttpServer> {
  const server = await startServer(appDeps(dataDir, changes), { times });
  servers.push(server);
  return server;
}

const connections = (server: ApiHttpServer): Promise<number> =>
  new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );

/** A client that sends one byte after another, and never ends its half of the connection. */
function drip(port: number, first: string | Buffer): { socket: Socket; answer: () => string; stop: () => void } {
  let timer: NodeJS.Timeout | undefined;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => {
    socket.write(first);
    // Not before: what is written to a socket that is connecting comes first.
    timer = setInterval(() => {
      if (socket.writable) socket.write('x');
    }, 20);
  });
  const answer = textFrom(socket);
  socket.on('error', () => {});
  return { socket, answer, stop: () => clearInterval(timer) };
}

describe('a client that continues to send after the last response', () => {
  it.each([
    ['400', 'no request at all\r\n\r\n'],
    ['408', 'GET /api/lookup/8.8.8.8 HTTP/1.1\r\nHost: a\r\nX-A'],
    ['431', `GET /healthz HTTP/1.1\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`],
    ['405', 'CONNECT ip.example:443 HTTP/1.1\r\nHost: ip.example\r\n\r\n'],
    ['417', 'GET /healthz HTTP/1.1\r\nExpect: miracles\r\n\r\n'],
  ])('loses its connection: %s', async (status, bytes) => {
    const server = await start({}, status === '408' ? { ...TIMES, headers: 300, request: 400 } : TIMES);
    const { answer, stop } = drip(portOf(server), bytes);
    await until(() => answer().includes(`HTTP/1.1 ${status} `), `the response ${status}`);
    await until(async () => (await connections(server)) === 0, 'the end of the connection');
    stop();
  });
});

it('a client that does not read its responses loses its connection', async () => {
  const slow: ClientTimes = { ...TIMES, socket: 300 };
  const server = await startServer(appDeps(dataDir, { defaultRate: 0 }), { times: slow });
  servers.push(server);
  const body = JSON.stringify(Array.from({ length: 1000 }, (_, index) => `8.8.${index >> 8}.${index & 255}`));
  const head = ['POST /api/batch HTTP/1.1', 'Host: a', `X-API-Key: ${KEY}`, 'Content-Type: application/json'].join(
    '\r\n',
  );
  const batch = `${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const socket = connect(portOf(server), '127.0.0.1');
  socket.pause().on('error', () => {});
  let lost = false;
  // 30 MB of responses, more than the buffers of the kernel.
  for (let i = 0; i < 300; i++) {
    socket.write(batch, (error) => {
      if (error) lost = true;
    });
  }
  await until(async () => (await connections(server)) === 1, 'the connection');
  await until(async () => (await connections(server)) === 0, 'the end of the connection');
  socket.resume();
  await until(() => lost || socket.destroyed, 'the end at the client');
});

describe('a client that sends requests ahead', () => {
  const request = (target: string) => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;

  it('and does not read is not answered further, until it reads', async () => {
    const answered: string[] = [];
    const accessLog = { write: ({ route }: Access) => answered.push(route), flush: async () => {} };
    const server = await startServer(appDeps(dataDir, { accessLog }), { times: TIMES });
    servers.push(server);
    const accepted: Socket[] = [];
    server.on('connection', (connection) => accepted.push(connection));
    const socket = connect(portOf(server), '127.0.0.1');
    const first = 2_000;
    // 25 kB each: 50 MB, more than the buffers of the kernel.
    for (let i = 0; i < first; i++) socket.write(request(i % 2 === 0 ? '/openapi.json' : '/healthz'));
    socket.pause();
    let before = -1;
    await until(async () => {
      const isStable = before === answered.length && before > 0;
      before = answered.length;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return isStable;
    }, 'the pause');
    expect(answered.length).toBeLessThan(first - 500);
    // Nothing more is read either, but for a block that was on its way.
    const { bytesRead } = accepted.at(-1)!;
    const more = Buffer.from(request('/healthz').repeat(5_000));
    socket.write(more);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(accepted.at(-1)!.bytesRead - bytesRead).toBeLessThan(more.length / 2);
    const count = first + 5_000;
    const text = textFrom(socket);
    socket.resume();
    await until(() => answered.length === count, 'all responses');
    socket.end();
    await once(socket, 'close');
    const bodies = [...text().matchAll(/"openapi":"3\.1\.0"|\{"status":"ok"\}/g)].map(([body]) => body);
    expect(bodies).toHaveLength(count);
    expect(bodies.every((body, i) => (i < first && i % 2 === 0) === body.startsWith('"openapi"'))).toBe(true);
  });
});

it('an idle connection is still served after the server has stopped listening', async () => {
  const server = await start();
  const socket = connect(portOf(server), '127.0.0.1');
  const answers = textFrom(socket);
  const request = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';
  socket.write(request);
  await until(() => answers().includes('{"status":"ok"}'), 'the first response');
  const stopped = new Promise<void>((resolve) => server.stopListening(resolve));
  expect(server.listening).toBe(false);
  socket.write(request);
  await until(() => answers().match(/\{"status":"ok"\}/g)?.length === 2, 'the second response');
  server.closeIdleConnections();
  await stopped;
});

it('connections that wait to be accepted are served when the server stops', async () => {
  for (let round = 0; round < 5; round++) {
    const server = await startServer(appDeps(dataDir));
    const port = portOf(server);
    const answers = Array.from({ length: 40 }, () =>
      exchange(port, 'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
    );
    // In the same turn: the kernel has the connections before the event loop accepts one.
    await new Promise((resolve) => setImmediate(resolve));
    // However long their requests take to come: it ends when no connection is left.
    const drained = drain(server, 60_000, 60_000);
    for (const answer of await Promise.all(answers)) expect(answer).toContain('{"status":"ok"}');
    expect(await drained).toBe(true);
  }
});

it('a server without connections does not wait for the grace period', () => {
  const module = JSON.stringify(pathToFileURL(packageFile('dist/src/api/http-server.js')).href);
  const program = `
    import { ApiHttpServer, drain, listen } from ${module};
    const server = new ApiHttpServer(() => {}, {});
    await listen(server, '127.0.0.1', 0);
    console.log(await drain(server, 3_600_000));`;
  // The process ends when no timer is left.
  const args = ['--input-type=module', '--eval', program];
  expect(execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 })).toBe('true\n');
});

describe('100 Continue', () => {
  const head = (headers: string[]) => ['POST /api/batch HTTP/1.1', 'Host: a', ...headers, '', ''].join('\r\n');
  const EXPECT = ['Expect: 100-continue', 'Connection: close'];
  const JSON_TYPE = 'Content-Type: application/json';
  const KEYED = `X-API-Key: ${KEY}`;

  it('is sent if the body is wanted', async () => {
    const port = portOf(await start());
    const body = '["8.8.8.8"]';
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(head([...EXPECT, KEYED, JSON_TYPE, `Content-Length: ${body.length}`])),
    );
    let answer = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      if (answer === '') socket.write(body);
      answer += chunk;
    });
    await once(socket, 'close');
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[\s\S]*"country_code":"US"/);
  });

  it.each([
    ['413', [KEYED, JSON_TYPE, 'Content-Length: 300000']],
    ['415', [KEYED, 'Content-Type: text/plain', 'Content-Length: 3']],
    ['415', [KEYED, JSON_TYPE, 'Content-Encoding: gzip', 'Content-Length: 3']],
    ['401', [JSON_TYPE, 'Content-Length: 3']],
    ['403', ['X-API-Key: wrong', JSON_TYPE, 'Content-Length: 3']],
    ['404', [KEYED, JSON_TYPE, 'Content-Length: 3']],
  ])('is not sent before a %s', async (status, headers) => {
    const port = portOf(await start());
    const text =
      status === '404' ? head([...EXPECT, ...headers]).replace('batch', 'other') : head([...EXPECT, ...headers]);
    expect(await exchange(port, text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });

  it('is not sent before a 429', async () => {
    const port = portOf(await start({ keys: fixedKeys({ [KEY]: { id: 'one', rate: 1 } }) }));
    const lookup = `GET /api/lookup/8.8.8.8 HTTP/1.1\r\nHost: a\r\n${KEYED}\r\nConnection: close\r\n\r\n`;
    expect(await exchange(port, lookup)).toContain(' 200 OK');
    const answer = await exchange(port, head([...EXPECT, KEYED, JSON_TYPE, 'Content-Length: 3']));
    expect(answer).toMatch(/^HTTP\/1\.1 429 /);
    expect(Number(/retry-after: (\d+)/.exec(answer)?.[1])).toBeLessThanOrEqual(RATE_WINDOW_MS / 1000);
  });
});
