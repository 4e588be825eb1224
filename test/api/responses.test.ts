/** Every response to a lookup, header for header, against a naive model of the wire contract. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ApiHttpServer } from '../../src/api/http-server.js';
import { createKey } from '../../src/api/keys/key-store.js';
import { RequestMetrics } from '../../src/api/metrics.js';
import { RateLimiter } from '../../src/api/rates/rate-limit.js';
import { type RateStore, RateWindows } from '../../src/api/rates/rate-windows.js';
import { type AppChanges, appDeps, KEY, listenerOf, OTHER_KEY, portOf, startServer } from '../support/api.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { exchange, serve, textFrom, until } from '../support/serve.js';

let dataDir: string;
let release: string;
const servers: ApiHttpServer[] = [];
beforeAll(async () => {
  dataDir = temporaryDir();
  release = await publishBlocks(dataDir, SMALL_WORLD);
});
afterAll(() => {
  for (const server of servers) server.close();
});

/** Always returns the same time: the model does not know that a window of a rate ends after a minute. */
const noTime = (): number => 0;

/** A store that answers later, as one in another process. */
function remoteStore(): RateStore {
  const store = new RateWindows(noTime);
  return {
    reserve: (...demand) => new Promise((resolve) => setImmediate(() => resolve(store.reserve(...demand)))),
  };
}

async function start(changes: AppChanges = {}, store: RateStore = new RateWindows(noTime)): Promise<number> {
  const server = await startServer(
    appDeps(dataDir, { limiter: new RateLimiter(store, 0, noTime), defaultRate: 1_000, ...changes }),
    { region: changes.region },
  );
  servers.push(server);
  return portOf(server);
}

/** A request as a test writes it. */
interface Asked {
  method: string;
  target: string;
  version: '1.0' | '1.1';
  headers: [name: string, value: string][];
  body: string;
}

function asked(target: string, headers: Asked['headers'] = [], more: Partial<Asked> = {}): Asked {
  return { method: 'GET', target, version: '1.1', headers, body: '', ...more };
}

const bytesOf = ({ method, target, version, headers, body }: Asked): string => {
  const all: Asked['headers'] = body === '' ? [...headers] : [...headers, ['Content-Length', String(body.length)]];
  return [
    `${method} ${target} HTTP/${version}`,
    ...(all.some(([name]) => name === 'Host') ? [] : ['Host: a']),
    ...all.map(([name, value]) => `${name}: ${value}`),
    '',
    body,
  ].join('\r\n');
};

/** A response: its status, its headers by lower-case name, its body. */
interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Parses the responses to some requests from all bytes that were received. */
function parseAnswers(text: string, requests: Asked[]): Answer[] {
  const answers: Answer[] = [];
  for (let rest = text; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n');
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n');
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const [, name, value] = /^([^:]+): (.*)$/.exec(line)!;
      expect(headers[name!.toLowerCase()], `${name} twice`).toBeUndefined();
      headers[name!.toLowerCase()] = value!;
    }
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)![1]);
    const isHead = requests[answers.length]?.method === 'HEAD';
    const length = isHead ? 0 : Number(headers['content-length'] ?? 0);
    const from = end + 4;
    answers.push({ status, headers, body: rest.slice(from, from + length) });
    rest = rest.slice(from + length);
  }
  return answers;
}

const RESULTS: Record<string, string> = {
  '8.8.8.8': '{"ip":"8.8.8.8","country":"United States","country_code":"US","is_eu":false}',
  '::ffff:8.8.8.8': '{"ip":"8.8.8.8","country":"United States","country_code":"US","is_eu":false}',
  '2001:4860::1':
    '{"ip":"2001:4860:0000:0000:0000:0000:0000:0001","country":"United States","country_code":"US","is_eu":false}',
  '193.0.6.139': '{"ip":"193.0.6.139","country":"Netherlands","country_code":"NL","is_eu":true}',
  '10.0.0.1': '{"ip":"10.0.0.1","country":null,"country_code":null,"is_eu":false}',
  '::1': '{"ip":"0000:0000:0000:0000:0000:0000:0000:0001","country":null,"country_code":null,"is_eu":false}',
  '127.0.0.1': '{"ip":"127.0.0.1","country":null,"country_code":null,"is_eu":false}',
};

/** Whether the client ends the connection with this request (RFC 9112 §9.3). */
function endsConnection({ version, headers }: Asked): boolean {
  const connection = headers.find(([name]) => name === 'Connection')?.[1];
  return connection === 'close' || (version === '1.0' && connection !== 'keep-alive');
}

/** The service as the wire contract describes it, one request after the other. */
class Model {
  readonly #options: { limit: number; region?: string | undefined; closing?: boolean; noDatabase?: boolean };
  readonly #left: Record<string, number>;

  constructor(options: { limit: number; region?: string | undefined; closing?: boolean; noDatabase?: boolean }) {
    this.#options = options;
    this.#left = { [KEY]: options.limit, [OTHER_KEY]: options.limit };
  }

  /**
   * Returns the responses to requests that are sent together: none after one that ends the connection, whoever ends it.
   * Requests after that one are not counted.
   */
  answers(requests: Asked[]): Answer[] {
    const answers: Answer[] = [];
    for (const request of requests) {
      const answer = this.#answer(request);
      answers.push(answer);
      if (answer.headers.connection === 'close' || endsConnection(request)) break;
    }
    return answers;
  }

  #answer(request: Asked): Answer {
    const of = (name: string) =>
      request.headers.filter(([one]) => one.toLowerCase() === name).map(([, value]) => value);
    const { region, closing } = this.#options;
    // HTTP/1.0 has no expectations (RFC 9110 §10.1.1).
    const unexpected = request.version === '1.1' && of('expect').includes('the-unexpected');
    // Node keeps no HTTP/1.0 connection after a response without a length.
    const hasNoLength = request.version === '1.0' && request.method === 'OPTIONS';
    const ends = unexpected || closing || hasNoLength || endsConnection(request);
    const common: Record<string, string> = {
      'access-control-allow-origin': '*',
      date: 'a date',
      connection: ends ? 'close' : 'keep-alive',
      ...(ends ? {} : { 'keep-alive': 'timeout=65' }),
      ...(region === undefined ? {} : { 'x-served-by': region }),
      ...(of('origin').length > 0 && !unexpected
        ? {
            'access-control-expose-headers':
              'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Database-Release, X-Database-Age, X-Served-By, ETag',
          }
        : {}),
    };
    const json = (status: number, body: string, headers: Record<string, string> = {}): Answer => ({
      status,
      headers: {
        ...common,
        ...(unexpected ? {} : { 'cache-control': 'private, no-store', vary: 'Origin' }),
        ...headers,
        'content-type': 'application/json; charset=utf-8',
        'content-length': String(body.length),
      },
      body: request.method === 'HEAD' ? '' : body,
    });
    const error = (status: number, message: string, headers: Record<string, string> = {}): Answer =>
      json(status, JSON.stringify({ error: message }), headers);

    if (unexpected) return error(417, 'Expectation not supported');
    const [path = '', query = ''] = request.target.split(/[?#](.*)/s);
    const text = path.slice('/api/lookup/'.length);
    const allow: Record<string, string> = text.includes('/') ? {} : { allow: 'GET, HEAD, OPTIONS' };
    if (request.method === 'OPTIONS') {
      const cors = {
        'access-control-allow-methods': 'GET, HEAD, POST',
        'access-control-allow-headers': 'X-API-Key, Content-Type',
        'access-control-max-age': '86400',
      };
      return { status: 204, headers: { ...common, ...cors, ...allow }, body: '' };
    }
    const keys = [...of('x-api-key'), ...query.split('&').flatMap((pair) => /^apikey=(.*)$/.exec(pair)?.[1] ?? [])];
    if (keys.length > 1) return error(400, 'Provide the API key once, as apikey or X-API-Key');
    const key = keys[0] ?? '';
    if (key === '') return error(401, 'Missing API key');
    if (this.#left[key] === undefined) return error(403, 'Invalid API key');
    if (text.includes('/')) return error(404, 'Not found');
    if (!['GET', 'HEAD'].includes(request.method)) return error(405, 'Method not allowed', allow);

    const { limit } = this.#options;
    const headers: Record<string, string> = {};
    if (limit > 0) {
      const allowed = this.#left[key] > 0;
      if (allowed) this.#left[key]--;
      headers['x-ratelimit-limit'] = String(limit);
      headers['x-ratelimit-remaining'] = String(this.#left[key]);
      headers['x-ratelimit-reset'] = 'in a minute';
      if (!allowed) return error(429, 'Rate limit exceeded', { ...headers, 'retry-after': 'in a minute' });
    }
    if (this.#options.noDatabase) return error(503, 'Database not loaded', headers);
    Object.assign(headers, { 'x-database-release': release, 'x-database-age': 'a number' });
    const address = text === '' ? '127.0.0.1' : text === '%3A%3A1' ? '::1' : text;
    const result = RESULTS[address.toLowerCase()];
    return result === undefined ? error(400, 'Invalid IP address', headers) : json(200, result, headers);
  }
}

/** Replaces values that depend on the clock, after a check that they are plausible. */
function withoutTimes({ status, headers, body }: Answer): Answer {
  const now = Date.now() / 1000;
  const checked = { ...headers };
  if (/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/.test(headers.date ?? '')) checked.date = 'a date';
  if (/^\d+$/.test(headers['x-database-age'] ?? '')) checked['x-database-age'] = 'a number';
  const reset = Number(headers['x-ratelimit-reset']);
  if (reset > now && reset < now + 62) checked['x-ratelimit-reset'] = 'in a minute';
  const retry = Number(headers['retry-after']);
  if (retry >= 1 && retry <= 60) checked['retry-after'] = 'in a minute';
  return { status, headers: checked, body };
}

/** Sent after the requests that are compared: ends a connection that was kept, and is not counted. */
const LAST = 'GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

async function answersOf(port: number, requests: Asked[]): Promise<Answer[]> {
  const text = await exchange(port, Buffer.from(requests.map(bytesOf).join('') + LAST, 'latin1'));
  const answers = parseAnswers(text, requests);
  // The answer to the last one, unless a request before it ended the connection.
  if (answers.at(-1)?.body === '{"error":"Not found"}' && answers.length > requests.length) answers.pop();
  return answers.map(withoutTimes);
}

const KEYED: [string, string] = ['X-API-Key', KEY];
const LOOKUP = '/api/lookup/8.8.8.8';
const REQUESTS: [what: string, request: Asked][] = [
  ['IPv4', asked(LOOKUP, [KEYED])],
  ['IPv6', asked('/api/lookup/2001:4860::1', [['x-api-key', KEY]])],
  ['a mapped address', asked('/api/lookup/::ffff:8.8.8.8', [['X-Api-Key', KEY]])],
  ['no country', asked('/api/lookup/10.0.0.1', [KEYED])],
  ['a host and other headers', asked(LOOKUP, [['Host', 'ip.example'], ['Accept', '*/*'], KEYED, ['Cookie', 'a=b']])],
  ['HTTP/1.0', asked(LOOKUP, [KEYED], { version: '1.0' })],
  ['HTTP/1.0 kept alive', asked(LOOKUP, [KEYED, ['Connection', 'keep-alive']], { version: '1.0' })],
  ['a browser', asked(LOOKUP, [['Origin', 'https://shop.example'], KEYED])],
  ['a browser with the key in the query', asked(`${LOOKUP}?apikey=${KEY}`, [['Origin', 'https://shop.example']])],
  ['HEAD', asked(LOOKUP, [KEYED], { method: 'HEAD' })],
  ['the key in the query', asked(`${LOOKUP}?apikey=${KEY}`)],
  ['the key in the query, after another parameter', asked(`${LOOKUP}?a=1&apikey=${KEY}`)],
  ['both ways', asked(`${LOOKUP}?apikey=${KEY}`, [KEYED])],
  ['another query', asked(`${LOOKUP}?a=1`, [KEYED])],
  ['an empty query', asked(`${LOOKUP}?`, [KEYED])],
  ['a fragment', asked(`${LOOKUP}#a`, [KEYED])],
  ['the key twice', asked(LOOKUP, [KEYED, ['x-api-key', KEY]])],
  ['no key', asked(LOOKUP)],
  ['an empty key', asked(LOOKUP, [['X-API-Key', '']])],
  ['a wrong key', asked(LOOKUP, [['X-API-Key', 'wrong']])],
  ['no address', asked('/api/lookup/nonsense', [KEYED])],
  ['percent-encoding', asked('/api/lookup/%3A%3A1', [KEYED])],
  ['a malformed percent sign', asked('/api/lookup/%', [KEYED])],
  ["the caller's address", asked('/api/lookup/', [KEYED])],
  ['another path', asked('/api/lookup/8.8.8.8/', [KEYED])],
  ['another method', asked(LOOKUP, [KEYED], { method: 'POST' })],
  ['the end of the connection', asked(LOOKUP, [KEYED, ['Connection', 'close']])],
];

function often<Value>(usual: Value, rare: Value[]): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...rare) });
}

/** A request that is ordinary in most of its parts. */
const anyRequest: fc.Arbitrary<Asked> = fc
  .record({
    method: often('GET', ['HEAD', 'OPTIONS', 'POST', 'DELETE']),
    address: often('8.8.8.8', ['::1', '::FFFF:8.8.8.8', '10.0.0.1', '01.2.3.4', '%3A%3A1', '%', '', 'a/b']),
    query: often('', ['?', '?x=1', `?apikey=${KEY}`, '?apikey=', '#x', `?apikey=${KEY}&apikey=${KEY}`]),
    version: often<'1.0' | '1.1'>('1.1', ['1.0']),
    connection: often<[string, string][]>([], [[['Connection', 'close']], [['Connection', 'keep-alive']]]),
    headers: fc.subarray<[string, string]>(
      [
        ['x-api-KEY', OTHER_KEY],
        ['X-API-Key', 'wrong'],
        ['Origin', 'https://shop.example'],
        ['Expect', 'the-unexpected'],
        ['X-Forwarded-For', '9.9.9.9'],
        ['TE', 'trailers'],
        ['Cookie', '\u00e4=b'],
      ],
      { maxLength: 3 },
    ),
    keyed: often(true, [false]),
    // A body that is not read, and must not be parsed as the next request.
    body: often('', ['GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n']),
  })
  .map(({ method, address, query, version, connection, headers, keyed, body }) => ({
    method,
    target: `/api/lookup/${address}${query}`,
    version,
    headers: [...(keyed ? [KEYED] : []), ...headers, ...connection],
    body,
  }));

describe('responses follow the wire contract', () => {
  it.each<[string, AppChanges, ConstructorParameters<typeof Model>[0]]>([
    ['by default', {}, { limit: 1_000 }],
    ['in a region', { region: 'fra-1' }, { limit: 1_000, region: 'fra-1' }],
    ['without a rate limit', { defaultRate: 0 }, { limit: 0 }],
    ['at the end of a rate', { defaultRate: 3 }, { limit: 3 }],
    ['without a database', { release: () => undefined }, { limit: 1_000, noDatabase: true }],
    ['when stopping', { phase: () => 'closing' }, { limit: 1_000, closing: true }],
  ])('%s', async (_, changes, options) => {
    const model = new Model(options);
    const port = await start(changes);
    for (const [what, request] of REQUESTS) {
      expect([what, ...(await answersOf(port, [request]))]).toEqual([what, ...model.answers([request])]);
    }
  });

  it.each<[string, () => RateStore]>([
    ['', () => new RateWindows(noTime)],
    [', with the rates in another process', remoteStore],
  ])('for any sequence of requests on a connection%s', async (_, store) => {
    const port = await start({ defaultRate: 300, region: 'fra-1' }, store());
    const model = new Model({ limit: 300, region: 'fra-1' });
    await fc.assert(
      fc.asyncProperty(fc.array(anyRequest, { minLength: 1, maxLength: 4 }), async (requests) => {
        expect(await answersOf(port, requests)).toEqual(model.answers(requests));
      }),
      // An answer depends on the requests before it, so a failure does not shrink.
      { numRuns: Number(process.env.FUZZ_RUNS ?? 80), endOnFailure: true },
    );
  });

  it('also those of the server that is shipped', async () => {
    const keys = [createKey(dataDir).key, createKey(dataDir).key];
    const shipped = await serve(dataDir, '--rate', '0', '--region', 'fra-1', '--country', 'DE');
    const real = <Value>(value: Value): Value =>
      JSON.parse(JSON.stringify(value).replaceAll(KEY, keys[0]!).replaceAll(OTHER_KEY, keys[1]!));
    const model = new Model({ limit: 0, region: 'fra-1' });
    try {
      const expectSame = async (requests: Asked[]): Promise<void> => {
        expect(await answersOf(shipped.port, real(requests))).toEqual(model.answers(requests));
      };
      for (const [, request] of REQUESTS) await expectSame([request]);
      await fc.assert(fc.asyncProperty(fc.array(anyRequest, { minLength: 1, maxLength: 4 }), expectSame), {
        numRuns: Number(process.env.FUZZ_RUNS ?? 40),
      });
    } finally {
      await shipped.stop();
    }
  });

  it('survive a caller that disconnects before the response', async () => {
    const port = await start({}, remoteStore());
    const bytes = bytesOf(asked(LOOKUP, [KEYED])).repeat(20);
    const callers = Array.from({ length: 50 }, () => connect(port, '127.0.0.1'));
    await Promise.all(
      callers.map(async (caller) => {
        caller.on('error', () => {});
        await once(caller, 'connect');
        caller.write(bytes, () => caller.resetAndDestroy());
        await once(caller, 'close');
      }),
    );
    const [answer] = await answersOf(port, [asked(LOOKUP, [['X-API-Key', OTHER_KEY]])]);
    expect(answer?.status).toBe(200);
  });

  it('count each request once, by route and status', async () => {
    const metrics = new RequestMetrics();
    const accesses: unknown[] = [];
    const accessLog = {
      write: ({ duration_ms, ...rest }: { duration_ms: number }) => accesses.push(rest),
      flush: async () => {},
    };
    const port = await start({ metrics, accessLog });
    const model = new Model({ limit: 1_000 });
    const expected: unknown[] = [];
    for (const [, request] of REQUESTS) {
      await answersOf(port, [request]);
      const [{ status, headers } = { status: 0, headers: { connection: '' } }] = model.answers([request]);
      const isRouted = status !== 404 && status !== 405;
      const isSelf = request.target === '/api/lookup/';
      const route = isRouted ? (isSelf ? '/api/lookup/' : '/api/lookup/:ip') : 'unmatched';
      expected.push({ method: request.method, route, status });
      if (headers.connection !== 'close') expected.push({ method: 'GET', route: 'unmatched', status: 404 });
    }
    expect(accesses).toEqual(expected);
    const text = await metrics.registry.metrics();
    const total = [...text.matchAll(/^ipatlas_requests_total\{.*\} (\d+)$/gm)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    );
    expect(total).toBe(expected.length);
    expect(text).toMatch(/^ipatlas_lookups_total\{outcome="found"\} 1\d$/m);
  });
});

it('requests after the end of a connection, which are answered later, do not disturb the server', async () => {
  const port = await start({}, remoteStore());
  // Its body is not read, so the response ends the connection. Node continues to parse what it has received.
  const ending = asked(LOOKUP, [KEYED], { method: 'DELETE', body: 'GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n' });
  const lookup = asked(LOOKUP, [KEYED], { body: 'GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n' });
  const refused = asked(LOOKUP, [KEYED, ['Expect', 'the-unexpected']]);
  // Whether the connection is closed by then depends on its timing. An error in the server would fail this test file.
  for (let run = 0; run < 80; run++) {
    expect((await answersOf(port, [refused, ending, lookup]))[0]?.status).toBe(417);
  }
  const [answer] = await answersOf(port, [asked(LOOKUP, [KEYED])]);
  expect(answer?.status).toBe(200);
});

it('a release id that is not valid in a header gives a 500, and the server continues', async () => {
  const served = appDeps(dataDir).releases.current()!;
  let damaged = true;
  const broken = Object.assign(Object.create(served) as typeof served, {
    headers: () => ['x-database-release', 'a\r\nb', 'x-database-age', '1'],
    answer: (ip: string) => served.answer(ip),
  });
  const port = await start({ release: () => (damaged ? broken : served) }, remoteStore());
  const [failed] = await answersOf(port, [asked(LOOKUP, [KEYED])]);
  expect([failed?.status, failed?.body]).toEqual([500, '{"error":"Internal error"}']);
  damaged = false;
  expect((await answersOf(port, [asked(LOOKUP, [KEYED])]))[0]?.status).toBe(200);
});

/** Returns what the server writes to a connection for one request, write by write; several parts are one vectored write. */
async function writesFor(request: Asked): Promise<string[][]> {
  const server = new ApiHttpServer(await listenerOf(appDeps(dataDir)), {});
  const writes: string[][] = [];
  const connection = new Duplex({
    decodeStrings: false,
    read() {},
    write(chunk, _encoding, done) {
      writes.push([String(chunk)]);
      done();
    },
    writev(chunks, done) {
      writes.push(chunks.map(({ chunk }) => String(chunk)));
      done();
    },
  });
  server.emit('connection', Object.assign(connection, { setTimeout: () => connection }));
  connection.push(bytesOf(request));
  await vi.waitFor(() => expect(writes.join('')).toMatch(/\r\n\r\n\{.*\}$/), 60_000);
  connection.destroy();
  return writes;
}

// A vectored write of headers and body costs a sixth of the processor time of a lookup.
it.each([
  ['a lookup', asked(LOOKUP, [KEYED])],
  ['a lookup with its key in the query', asked(`${LOOKUP}?apikey=${KEY}`)],
  ['a lookup by a browser', asked(LOOKUP, [KEYED, ['Origin', 'https://shop.example']])],
  ['an error', asked(LOOKUP)],
  [
    'a batch',
    asked('/api/batch', [KEYED, ['Content-Type', 'application/json']], { method: 'POST', body: '["8.8.8.8"]' }),
  ],
])('the response to %s is written as one string', async (_, request) => {
  const writes = await writesFor(request);
  expect(writes).toEqual([[expect.stringMatching(/^HTTP\/1\.1 .*\r\n\r\n\{.*\}$/s)]]);
});

it('large responses to requests that were sent together reach a client that does not read for a while', async () => {
  const ips = Array.from({ length: 1_000 }, (_, index) => `2001:4860::${index.toString(16)}`);
  const request = asked('/api/batch', [KEYED, ['Content-Type', 'application/json']], {
    method: 'POST',
    body: JSON.stringify(ips),
  });
  // More than the kernel keeps for a connection.
  const count = 150;
  const server = await startServer(appDeps(dataDir, { defaultRate: 0 }));
  servers.push(server);
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const socket = connect({ port: portOf(server), host: '127.0.0.1' });
  socket.pause();
  const last = asked('/healthz', [['Connection', 'close']]);
  socket.write(bytesOf(request).repeat(count) + bytesOf(last));
  const [connection] = await accepted;
  await until(() => connection.writableLength > 0, 'a response that waits for the client');
  const text = textFrom(socket);
  socket.resume();
  await once(socket, 'close');
  const answers = parseAnswers(text(), []);
  expect(answers.map(({ status }) => status)).toEqual(Array(count + 1).fill(200));
  expect(new Set(answers.slice(0, count).map(({ body }) => body)).size).toBe(1);
  expect(Object.keys(JSON.parse(answers[0]!.body))).toEqual(ips);
});
