/** No output of the process has an address, a key or a URL: many requests, then a search for everything they had. */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { createKey } from '../../src/api/keys/key-store.js';
import { smallRelease } from '../support/release.js';
import { exchange, type ServeProcess, serve } from '../support/serve.js';

let dataDir: string;
let keys: string[];
let server: ServeProcess;
beforeAll(async () => {
  dataDir = await smallRelease();
  keys = [createKey(dataDir).key, createKey(dataDir, { rate: 5 }).key];
});
afterEach(() => server.stop('SIGKILL'));

/** Everything of a request that must not be in the output. */
const used = new Set<string>(['127.0.0.1', '0000:0000:0000:0000:0000:0000:0000:0001', '::ffff:127.0.0.1']);
const remember = (text: string): string => {
  used.add(text);
  return text;
};

const byte = () => String(randomBytes(1)[0]);
const ipv4 = () => remember(`${['8', '193', '10'][randomBytes(1)[0]! % 3]}.${byte()}.${byte()}.1${byte().slice(0, 2)}`);
const ipv6 = () => remember(`2001:4860:${randomBytes(2).toString('hex')}::${randomBytes(2).toString('hex')}`);
const junk = () => remember(`junk${randomBytes(6).toString('hex')}`);
const address = () => (randomBytes(1)[0]! & 1 ? ipv4() : ipv6());
const headers = (key: string) => ({
  'x-api-key': remember(key),
  'user-agent': junk(),
  cookie: junk(),
  'x-forwarded-for': ipv4(),
});
const ask = async (target: string, init: RequestInit = {}): Promise<number> => {
  const response = await fetch(server.url + target, init);
  await response.arrayBuffer();
  return response.status;
};
const batch = (body: string, key = keys[0]!) =>
  ask('/api/batch', { method: 'POST', headers: { ...headers(key), 'content-type': 'application/json' }, body });
const withPageKey = async (): Promise<number> => {
  const caller = { 'x-forwarded-for': ipv4() };
  const response = await fetch(`${server.url}/page/key`, { headers: caller });
  const { key } = (await response.json()) as { key: string };
  return ask(remember(`/api/lookup/${address()}`), { headers: { ...headers(key), ...caller, origin: server.url } });
};
const bytes = async (text: string): Promise<number> => {
  const answer = await exchange(server.port, text);
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
};

/** Kinds of requests, valid and invalid, and their status. */
const KINDS: [expected: number | number[], request: () => Promise<number>][] = [
  [200, () => ask(remember(`/api/lookup/${address()}`), { headers: headers(keys[0]!) })],
  [200, () => ask(remember(`/api/lookup/${address()}?apikey=${keys[0]}`))],
  [200, () => ask(remember(`/api/lookup/${encodeURIComponent(ipv6())}`), { headers: headers(keys[0]!) })],
  [200, () => ask('/api/lookup/', { headers: headers(keys[0]!) })],
  [200, () => batch(JSON.stringify([address(), address(), junk()]))],
  [200, () => ask(remember(`/api/lookup/${address()}`), { method: 'HEAD', headers: headers(keys[0]!) })],
  [[200, 429], () => ask(remember(`/api/lookup/${address()}`), { headers: headers(keys[1]!) })],
  [[200, 429], () => batch(JSON.stringify([address(), address(), address()]), keys[1])],
  [400, () => ask(remember(`/api/lookup/${junk()}`), { headers: headers(keys[0]!) })],
  [400, () => ask(remember(`/api/lookup/%zz${junk()}`), { headers: headers(keys[0]!) })],
  [400, () => ask(remember(`/api/lookup/${address()}?apikey=${junk()}`), { headers: headers(keys[0]!) })],
  [400, () => batch(junk())],
  [400, () => batch(JSON.stringify({ [junk()]: address() }))],
  [413, () => batch(JSON.stringify([junk().repeat(20_000)]))],
  [200, () => ask(remember(`/?ip=${address()}`), { headers: { ...headers(keys[0]!), accept: 'text/html' } })],
  [400, () => ask(remember(`/?ip=${junk()}`), { headers: { ...headers(keys[0]!), accept: 'text/html' } })],
  [200, () => withPageKey()],
  // 503: on a busy machine the keys may be locked for longer than the service waits.
  [[201, 429, 503], () => ask('/api/keys', { method: 'POST', headers: headers(keys[0]!) })],
  [200, () => ask('/api/keys/current', { headers: headers(keys[0]!) })],
  [403, () => ask('/api/keys/current', { method: 'DELETE', headers: headers(keys[0]!) })],
  [401, () => ask(remember(`/api/lookup/${address()}?key=${junk()}`))],
  [403, () => ask(remember(`/api/lookup/${address()}`), { headers: headers(remember(`ipa_${junk()}`)) })],
  [404, () => ask(remember(`/${junk()}?${junk()}`))],
  [405, () => ask(remember(`/api/lookup/${address()}`), { method: 'DELETE', headers: headers(keys[0]!) })],
  [
    415,
    () =>
      ask('/api/batch', {
        method: 'POST',
        headers: { ...headers(keys[0]!), 'content-type': 'text/plain' },
        body: junk(),
      }),
  ],
  [
    204,
    () =>
      ask(remember(`/api/lookup/${address()}`), {
        method: 'OPTIONS',
        headers: { origin: remember(`https://${junk()}.example`) },
      }),
  ],
  [400, () => bytes(`GET /api/lookup/${address()}\u0001 HTTP/1.1\r\nX-API-Key: ${keys[0]}\r\n\r\n`)],
  [431, () => bytes(`GET /${junk()} HTTP/1.1\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`)],
  [417, () => bytes(`GET /api/lookup/${address()} HTTP/1.1\r\nHost: a\r\nExpect: ${junk()}\r\n\r\n`)],
];

/** Requests; `make soak` sends more, and to a server without workers as well. */
const REQUESTS = Number(process.env.FUZZ_RUNS ?? 1_500) / 10;
const WORKERS = process.env.FUZZ_RUNS === undefined ? ['2'] : ['1', '2'];

it.each(WORKERS)('no log has anything from the requests, with %s workers', async (workers) => {
  // Every kind of output is enabled.
  const all = ['--sign-up', 'open', '--access-log', '--metrics-port', '0', '--trust-proxy', '127.0.0.1'];
  server = await serve(dataDir, '--workers', workers, '--keyless', ...all);
  const rounds = Math.ceil(REQUESTS / KINDS.length);
  for (let round = 0; round < rounds; round++) {
    const statuses = await Promise.all(KINDS.map(([, request]) => request()));
    for (const [kind, status] of statuses.entries()) {
      expect([KINDS[kind]![0]].flat(), `kind ${kind}`).toContain(status);
    }
  }
  const metrics = await (await fetch(String((await server.logged('metrics')).url))).text();
  await server.stop();
  const written = { stdout: server.stdout(), stderr: server.stderr(), metrics };

  // The search works: it finds what is written …
  expect(written.stdout.split('\n').length).toBeGreaterThan(0.8 * REQUESTS);
  expect(written.stdout).toContain('"route":"/api/lookup/:ip"');
  expect(written.stderr).toContain('"msg":"listening"');
  expect(metrics).toMatch(/ipatlas_lookups_total\{outcome="found"\} \d/);
  // … and does not find what was sent.
  expect(used.size).toBeGreaterThan(1.5 * REQUESTS);
  for (const [where, text] of Object.entries(written)) {
    for (const secret of used) if (text.includes(secret)) expect.fail(`${where} holds ${secret}`);
    expect(text).not.toMatch(/apikey|x-api-key|user-agent/i);
  }
});
