/** Hostile input to a real server: it sends the response of the contract, never a 500, and continues. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiHttpServer, drain } from '../../src/api/http-server.js';
import { RateLimiter } from '../../src/api/rates/rate-limit.js';
import { type RateStore, RateWindows } from '../../src/api/rates/rate-windows.js';
import { type AppChanges, appDeps, KEY, keptLog, portOf, startServer } from '../support/api.js';
import { smallRelease } from '../support/release.js';
import { exchange, textFrom } from '../support/serve.js';

const log = keptLog();
const unparsed: number[] = [];
let dataDir: string;
let server: ApiHttpServer;
let port: number;

beforeAll(async () => {
  dataDir = await smallRelease();
  server = await startServer(appDeps(dataDir, { log }), { onUnparsed: (status) => unparsed.push(status) });
  port = portOf(server);
});
afterAll(() => {
  server.close();
});

/** Sends a request and parses its response. */
async function ask(bytes: string | Buffer) {
  const answer = await exchange(port, bytes);
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]), head, body };
}

const request = (line: string, headers: string[] = [], body: string | Buffer = ''): Buffer =>
  Buffer.concat([
    Buffer.from(
      `${[line, 'Host: a', `X-API-Key: ${KEY}`, 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`,
      'latin1',
    ),
    Buffer.from(body),
  ]);
const get = (target: string) => request(`GET ${target} HTTP/1.1`);
const post = (body: string | Buffer, ...headers: string[]) =>
  request(
    'POST /api/batch HTTP/1.1',
    ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`, ...headers],
    body,
  );

describe.each<[string, Buffer, number, string]>([
  ['..', get('/api/lookup/..'), 400, 'Invalid IP address'],
  ['../..', get('/api/lookup/../batch'), 404, 'Not found'],
  ['an encoded ..', get('/api/lookup/%2e%2e%2f%2e%2e%2fetc%2fpasswd'), 400, 'Invalid IP address'],
  ['a NUL', get('/api/lookup/%00'), 400, 'Invalid IP address'],
  ['an address and a NUL', get('/api/lookup/8.8.8.8%00'), 400, 'Invalid IP address'],
  ['10 kB', get(`/api/lookup/${'1'.repeat(10_000)}`), 400, 'Invalid IP address'],
  ['10 kB of percent signs', get(`/api/lookup/${'%25'.repeat(3_300)}`), 400, 'Invalid IP address'],
  ['20 kB', get(`/api/lookup/${'1'.repeat(20_000)}`), 431, 'The headers are larger than 16384 bytes'],
  ['wrong percent-encoding', get('/api/lookup/%E0%A4%A'), 400, 'Invalid IP address'],
  ['a lone percent sign', get('/api/lookup/%'), 400, 'Invalid IP address'],
  ['overlong UTF-8', get('/api/lookup/%C0%AE%C0%AE'), 400, 'Invalid IP address'],
  ['two addresses', get('/api/lookup/8.8.8.8,9.9.9.9'), 400, 'Invalid IP address'],
  ['a line break', get('/api/lookup/8.8.8.8%0d%0aX-Evil:%201'), 400, 'Invalid IP address'],
  ['bytes beyond ASCII', get('/api/lookup/8.8.8.8\u00ff'), 400, 'Bad request'],
  ['a semicolon', get('/api/lookup/8.8.8.8;a=1'), 400, 'Invalid IP address'],
  ['a backslash', get('/api\\lookup\\8.8.8.8'), 404, 'Not found'],
  ['wrong percent-encoding elsewhere', get('/%zz/api/lookup/8.8.8.8'), 404, 'Not found'],
  ['an encoded slash', get('/api%2Flookup%2F8.8.8.8'), 404, 'Not found'],
  [
    'the parameter twice',
    request(`GET /api/lookup/8.8.8.8?apikey=${KEY}&apikey=${KEY} HTTP/1.1`),
    400,
    'Provide the API key once, as apikey or X-API-Key',
  ],
  ['wrong percent-encoding in the query', get('/api/lookup/nonsense?a=%zz&%'), 400, 'Invalid IP address'],
  ['a query of 10 kB', get(`/api/lookup/nonsense?${'a[]=&'.repeat(2_000)}`), 400, 'Invalid IP address'],
  [
    'a query that names prototypes',
    get('/api/lookup/nonsense?__proto__[apikey]=1&constructor=2'),
    400,
    'Invalid IP address',
  ],
  ['UTF-16', post(Buffer.from('["8.8.8.8"]', 'utf16le')), 400, 'The body is not valid JSON'],
  ['20 MB', post(`["${'x'.repeat(20_000_000)}"]`), 413, 'The body is larger than 262144 bytes'],
  [
    'a compressed body',
    post(gzipSync('["8.8.8.8"]'), 'Content-Encoding: gzip'),
    415,
    'The body must not be compressed; send it without Content-Encoding',
  ],
  [
    'a form',
    request('POST /api/batch HTTP/1.1', ['Content-Type: multipart/form-data; boundary=x', 'Content-Length: 3'], 'abc'),
    415,
    'Content-Type must be application/json',
  ],
  [
    'chunks without end',
    request('POST /api/batch HTTP/1.1', ['Content-Type: application/json', 'Transfer-Encoding: chunked'], 'zz\r\n'),
    400,
    'Bad request',
  ],
  ['no HTTP', Buffer.from('\x16\x03\x01\x02\x00\x01\x00'), 400, 'Bad request'],
  ['another protocol', Buffer.from('SSH-2.0-OpenSSH_9.2\r\n'), 400, 'Bad request'],
  ['a blank in a header name', request('GET /healthz HTTP/1.1', ['X Evil: 1']), 400, 'Bad request'],
  ['a bare line break in a header', request('GET /healthz HTTP/1.1', ['A: b\nX-Evil: 1\rC']), 400, 'Bad request'],
  [
    'two lengths',
    request('POST /api/batch HTTP/1.1', ['Content-Length: 2', 'Content-Length: 3'], '[]'),
    400,
    'Bad request',
  ],
  [
    'a length and chunks',
    request('POST /api/batch HTTP/1.1', ['Content-Length: 2', 'Transfer-Encoding: chunked'], '[]'),
    400,
    'Bad request',
  ],
  [
    'many headers',
    request('GET /healthz HTTP/1.1', Array(4_000).fill('A: bcdefgh')),
    431,
    'The headers are larger than 16384 bytes',
  ],
  ['an unknown method', request('BREW /api/lookup/8.8.8.8 HTTP/1.1'), 400, 'Bad request'],
  ['a tunnel', request('CONNECT ip.example:443 HTTP/1.1'), 405, 'Method not allowed'],
  ['a demand', request('POST /api/batch HTTP/1.1', ['Expect: miracles']), 417, 'Expectation not supported'],
])('%s', (_, bytes, status, message) => {
  it(`is answered ${status}, and the next request works`, async () => {
    const answer = await ask(bytes);
    expect([answer.status, answer.body]).toEqual([status, JSON.stringify({ error: message })]);
    expect(answer.head).toMatch(/\r\ncontent-type: application\/json; charset=utf-8(\r\n|$)/i);
    expect(answer.head).toMatch(/\r\naccess-control-allow-origin: \*(\r\n|$)/i);
    expect(/\r\nallow: \w/i.test(answer.head)).toBe(status === 405);
    expect(answer.head).not.toMatch(/x-evil/i);
    expect((await ask(get('/api/lookup/8.8.8.8'))).status).toBe(200);
  });
});

it.each([
  ['in absolute form', 'GET http://ip.example/api/lookup/8.8.8.8 HTTP/1.1'],
  ['with an upgrade', 'GET /api/lookup/8.8.8.8 HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade'],
  ['with a body', 'GET /api/lookup/8.8.8.8 HTTP/1.1\r\nContent-Type: text/x\r\nContent-Length: 0'],
  ['with Expect: 100-continue', 'GET /api/lookup/8.8.8.8 HTTP/1.1\r\nExpect: 100-continue'],
])('answers a request %s', async (_, line) => {
  expect(await exchange(port, request(line))).toContain('"country_code":"US"');
});

it.each([
  ['without Host', ''],
  ['with two', 'Host: a\r\nhost: b\r\n'],
])('refuses a request of HTTP/1.1 %s (RFC 9112 §3.2), and serves HTTP/1.0', async (_, hosts) => {
  const lookup = `GET /api/lookup/8.8.8.8 HTTP/1.1\r\n${hosts}X-API-Key: ${KEY}\r\nConnection: close\r\n\r\n`;
  expect(await exchange(port, lookup)).toMatch(/^HTTP\/1\.1 400 [\s\S]*\{"error":"Bad request"\}$/);
  expect(await exchange(port, lookup.replace('HTTP/1.1', 'HTTP/1.0').replace(hosts, ''))).toContain('"US"');
});

it('nothing was logged, and input that is not a request was counted', () => {
  expect(log.lines).toEqual([]);
  expect(unparsed.length).toBeGreaterThanOrEqual(10);
  for (const status of unparsed) expect([400, 405, 417, 431]).toContain(status);
});

describe('input after a request', () => {
  const kept = (bytes: Buffer) => bytes.toString('latin1').replace('Connection: close\r\n', '');
  const lookup = kept(get('/api/lookup/8.8.8.8'));
  const batch = kept(post('["8.8.8.8"]'));
  const garbage = '\x16\x03 no request\r\n\r\n';
  const tunnel = 'CONNECT ip.example:443 HTTP/1.1\r\nHost: ip.example\r\n\r\n';

  /**
   * A server with a rate store that answers after some turns of the event loop.
   *
   * @param isSent resolves when the client has sent all; the store waits for it
   */
  async function slowly(isSent?: Promise<void>): Promise<number> {
    const near = new RateWindows();
    const far: RateStore = {
      async reserve(...demand) {
        await isSent;
        await sleep(20);
        return near.reserve(...demand);
      },
    };
    const slow = await startServer(appDeps(dataDir, { limiter: new RateLimiter(far) }), {
      region: 'fra-1',
      onUnparsed: (status) => told.push(status),
    });
    slowServers.push(slow);
    return portOf(slow);
  }
  const slowServers: ApiHttpServer[] = [];
  const told: number[] = [];
  afterAll(() => {
    for (const slow of slowServers) slow.close();
  });

  it.each([
    ['garbage after a lookup', lookup + garbage, [200, 400]],
    ['garbage after a batch', batch + garbage, [200, 400]],
    ['garbage twice, after two batches', batch + batch + garbage + garbage, [200, 200, 400]],
    ['a tunnel after a lookup', lookup + tunnel, [200, 405]],
    ['a tunnel after a batch', batch + tunnel, [200, 405]],
    [
      'a malformed body, after a batch',
      batch +
        kept(
          request(
            'POST /api/batch HTTP/1.1',
            ['Content-Type: application/json', 'Transfer-Encoding: chunked'],
            'zz\r\n',
          ),
        ),
      [200, 400],
    ],
  ])('is answered in order: %s', async (_, bytes, statuses) => {
    for (const to of [port, await slowly()]) {
      const answers = await exchange(to, Buffer.from(bytes, 'latin1'));
      expect([...answers.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))).toEqual(statuses);
      expect(answers.match(/"country_code":"US"/g)).toHaveLength(statuses.filter((status) => status === 200).length);
      expect(/^x-served-by: fra-1\r$/im.test(answers)).toBe(to !== port);
    }
  });

  it.each([
    ['a lookup', lookup],
    ['a batch', batch],
  ])('is answered if the client closes its half of the connection after %s', async (_, bytes) => {
    for (const to of [port, await slowly()]) {
      const socket = connect({ port: to, host: '127.0.0.1', allowHalfOpen: true });
      const answer = textFrom(socket);
      socket.end(bytes);
      await new Promise((resolve) => socket.once('end', resolve));
      expect(answer()).toContain('"country_code":"US"');
    }
  });

  it('is answered once, regardless of its length', async () => {
    for (const more of [garbage, batch]) {
      told.length = 0;
      let sent = (): void => {};
      const to = await slowly(
        new Promise((resolve) => {
          sent = resolve;
        }),
      );
      const socket = connect(to, '127.0.0.1', () => {
        socket.write(batch + garbage);
        setTimeout(() => socket.write(more, () => sent()), 5);
      });
      const answers = textFrom(socket);
      await new Promise((resolve) => socket.once('close', resolve));
      expect(answers()).toMatch(/^HTTP\/1\.1 200 [\s\S]*"US"[\s\S]*\}HTTP\/1\.1 400 [\s\S]*\{"error":"Bad request"\}$/);
      expect(answers().match(/HTTP\/1\.1 /g)).toHaveLength(2);
      expect(told).toEqual([400]);
    }
  });

  it('does no harm if it is a CONNECT whose client disconnects before the response', async () => {
    const to = await slowly();
    for (let i = 0; i < 10; i++) {
      const socket = connect(to, '127.0.0.1', () => {
        socket.write(batch + tunnel);
        setTimeout(() => socket.resetAndDestroy(), 5);
      });
      socket.on('error', () => {});
      await new Promise((resolve) => socket.once('close', resolve));
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await exchange(to, get('/api/lookup/8.8.8.8'))).toContain('"US"');
  });
});

it('answers 500 to an internal error in a lookup, and continues', async () => {
  const kept = keptLog();
  let faulty = true;
  const deps = appDeps(dataDir, { log: kept });
  const served = deps.releases.current()!;
  const broken = Object.assign(Object.create(served) as typeof served, {
    answer: () => {
      throw new Error('8.8.8.8 is to blame');
    },
  });
  deps.releases.current = () => (faulty ? broken : served);
  const other = await startServer(deps);
  const lookup = get('/api/lookup/8.8.8.8').toString().replace('Connection: close\r\n', '');
  const answer = await exchange(portOf(other), lookup + get('/healthz'));
  expect(answer).toMatch(/^HTTP\/1\.1 500 [\s\S]*\{"error":"Internal error"\}HTTP\/1\.1 200 /);
  expect(kept.lines).toHaveLength(1);
  expect(JSON.stringify(kept.lines)).not.toContain('8.8.8.8');
  faulty = false;
  expect(await exchange(portOf(other), get('/api/lookup/8.8.8.8'))).toContain('"country_code":"US"');
  other.close();
});

describe('draining', () => {
  /** Opens a connection to write on. */
  function open(to: number) {
    const socket = connect(to, '127.0.0.1');
    const answer = textFrom(socket);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    return { write: (bytes: string) => socket.write(bytes), answer, closed };
  }
  const keepingAlive = (bytes: Buffer) => bytes.toString().replace('Connection: close\r\n', '');

  /** Starts a server; also returns a function that waits until it has read this many bytes from all clients. */
  async function counting(changes: AppChanges = {}) {
    const server = await startServer(appDeps(dataDir, changes));
    const accepted: Socket[] = [];
    server.on('connection', (connection) => accepted.push(connection));
    const hasRead = (bytes: number) =>
      expect.poll(() => accepted.reduce((sum, { bytesRead }) => sum + bytesRead, 0)).toBe(bytes);
    return { server, hasRead };
  }
  const health = keepingAlive(get('/healthz'));
  const body = keepingAlive(post('["8.8.8.8"]'));

  it('refuses new connections, answers requests on open ones, and ends', async () => {
    let closing = false;
    const { server, hasRead } = await counting({ phase: () => (closing ? 'closing' : 'serving') });
    const to = portOf(server);
    const [again, half] = [open(to), open(to)];
    again.write(health);
    await expect.poll(again.answer).toContain('{"status":"ok"}');
    half.write(body.slice(0, -5));
    await hasRead(health.length + body.length - 5);

    closing = true;
    const ended = drain(server, 60_000, 60_000);
    await expect.poll(() => server.listening).toBe(false);
    expect(await exchange(to, get('/healthz'))).toBe('');
    again.write(keepingAlive(get('/api/lookup/8.8.8.8')));
    await again.closed;
    expect(again.answer()).toMatch(/connection: close\r\n(.*\r\n)*\r\n\{.*"country_code":"US"/i);
    half.write(body.slice(-5));
    // Without waiting for the rest of the grace: no connection is left.
    expect(await ended).toBe(true);
    await half.closed;
    expect(half.answer()).toContain('"country_code":"US"');
  });

  it('closes idle connections after the grace, and waits for the requests of others', async () => {
    const { server, hasRead } = await counting();
    const [idle, half] = [open(portOf(server)), open(portOf(server))];
    idle.write(health);
    await expect.poll(idle.answer).toContain('{"status":"ok"}');
    half.write(body.slice(0, -5));
    await hasRead(health.length + body.length - 5);
    const ended = drain(server, 50, 60_000);
    await idle.closed;
    half.write(body.slice(-5));
    expect(await ended).toBe(true);
    await half.closed;
    expect(half.answer()).toContain('"country_code":"US"');
  });

  it('closes connections whose requests take too long', async () => {
    const { server, hasRead } = await counting();
    const part = post('["8.8.8.8"]').subarray(0, -5);
    const half = exchange(portOf(server), part);
    await hasRead(part.length);
    const listening: boolean[] = [];
    expect(await drain(server, 0, 50, () => listening.push(server.listening))).toBe(false);
    expect(listening).toEqual([false]); // called once, when no client can connect any more
    expect(await half).toBe('');
  });

  it('lets responses end their connections when no other process listens, or after the grace period', async () => {
    for (const free of [true, false]) {
      const ending = await startServer(appDeps(dataDir));
      const steps: string[] = [];
      let release = (): void => {};
      const portFree = () => {
        steps.push(`listening ${ending.listening}`);
        return new Promise<void>((resolve) => {
          release = resolve;
        });
      };
      const ended = drain(ending, free ? 3_600_000 : 100, 10_000, () => steps.push('closing'), portFree);
      await expect.poll(() => steps).toEqual(['listening false']);
      if (free) release();
      expect(await ended).toBe(true);
      expect(steps).toEqual(['listening false', 'closing']);
    }
  });
});
