/** The service over real sockets: in this process where that is enough, and as `ipatlas serve` with one and two workers. */
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { switchCurrent } from '../../pipeline/operations/current-link.js';
import { createKey, isValidKey, listKeys, revokeKey } from '../../src/api/keys/key-store.js';
import { publicUrl, requireInUnion } from '../../src/api/service.js';
import { keepDevKey, readSettings } from '../../src/cli/serve.js';
import { SIGN_UPS_PER_NETWORK } from '../../src/limits.js';
import { finished, MAIN, start } from '../support/cli.js';
import { country, publishBlocks, SMALL_WORLD, smallRelease, temporaryDir } from '../support/release.js';
import { exchange, type ServeProcess, serve, serveWith, until } from '../support/serve.js';
import { type RunningService, startService } from '../support/service.js';

let dataDir: string;
let key: string;
let release: string;
const running: (RunningService | ServeProcess)[] = [];
const started = async (...args: Parameters<typeof startService>): Promise<RunningService> => {
  const service = await startService(...args);
  running.push(service);
  return service;
};
const processOf = async (...args: Parameters<typeof serve>): Promise<ServeProcess> => {
  const server = await serve(...args);
  running.push(server);
  return server;
};

beforeAll(async () => {
  dataDir = temporaryDir();
  release = await publishBlocks(dataDir, SMALL_WORLD);
  key = createKey(dataDir).key;
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => ('child' in one ? one.stop('SIGKILL') : one.stop())));
});

const ask = (url: string, withKey = key) => fetch(url, { headers: { 'x-api-key': withKey } });
const json = async (url: string, withKey = key) => (await ask(url, withKey)).json() as Promise<Record<string, unknown>>;
const textOf = async (url: unknown) => (await fetch(String(url))).text();

describe('a service', () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await startService(dataDir, {
      ...{ 'trust-proxy': '127.0.0.0/8, 10.0.0.0/8', 'metrics-port': '0' },
      ...{ region: 'fra-1', country: 'DE', eu: true, 'eu-base-url': 'https://eu.ip.example/api/' },
    });
  });
  afterAll(() => service.stop());

  it('serves callers over IPv4 and IPv6, and each sees its own address', async () => {
    for (const [host, ip] of [
      ['127.0.0.1', '127.0.0.1'],
      ['[::1]', '0000:0000:0000:0000:0000:0000:0000:0001'],
    ]) {
      const base = `http://${host}:${service.port}`;
      for (const path of ['/api/lookup/', '/api/lookup'])
        expect(await json(base + path)).toMatchObject({ ip, country: null });
      expect(await json(`${base}/api/lookup/2001:4860::1`)).toMatchObject({ country_code: 'US' });
      expect(await (await fetch(`${base}/api/lookup/193.0.0.1?apikey=${key}`)).json()).toMatchObject({ is_eu: true });
      expect((await fetch(`${base}/api/lookup/8.8.8.8`)).status).toBe(401);
      expect((await ask(`${base}/api/lookup/8.8.8.8`, 'wrong')).status).toBe(403);
    }
  });

  it('trusts the configured proxies', async () => {
    const caller = async (host: string) => {
      const headers = { 'x-api-key': key, 'x-forwarded-for': '8.8.8.8, 193.0.6.139, 10.2.3.4' };
      return (await (await fetch(`http://${host}:${service.port}/api/lookup/`, { headers })).json()) as { ip: string };
    };
    expect((await caller('127.0.0.1')).ip).toBe('193.0.6.139');
    expect((await caller('[::1]')).ip).toBe('0000:0000:0000:0000:0000:0000:0000:0001');
  });

  it('in a member state names its place and the EU base address', async () => {
    const response = await ask(`${service.url}/api/lookup/8.8.8.8`);
    expect(response.headers.get('x-served-by')).toBe('fra-1');
    const { servers } = JSON.parse(await textOf(`${service.url}/openapi.json`)) as { servers: { url: string }[] };
    expect(servers.map(({ url }) => url)).toEqual(['/', 'https://eu.ip.example']);
  });

  it('serves metrics, also of batches, on the loopback address only', async () => {
    const url = new URL(String((await service.logged('metrics')).url));
    const count = async (outcome: string) =>
      Number(
        new RegExp(`^ipatlas_lookups_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm').exec(await textOf(url))?.[1] ?? 0,
      );
    const counts = async () => [await count('found'), await count('no_country'), await count('invalid')];
    const before = await counts();
    const body = '["8.8.8.8","10.0.0.1","x","193.0.0.1"]';
    const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' };
    expect(await (await fetch(`${service.url}/api/batch`, { method: 'POST', headers, body })).json()).toMatchObject({
      '8.8.8.8': { ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false },
      x: { error: 'invalid ip' },
    });
    expect(await counts()).toEqual([before[0]! + 2, before[1]! + 1, before[2]! + 1]);
    // The port is free on another address of the machine only if no process listens on all of them.
    const other = createServer();
    await new Promise<void>((resolve, reject) => {
      other.once('error', reject).listen({ host: '127.0.0.2', port: Number(url.port), exclusive: true }, resolve);
    });
    other.close();
  });
});

describe('a release', () => {
  it('is waited for, used, and kept if the next one is damaged', async () => {
    const empty = temporaryDir();
    const ownKey = createKey(empty).key;
    const service = await started(empty, { 'metrics-port': '0', 'metrics-host': '127.0.0.2' });
    const url = `${service.url}/api/lookup/8.8.8.8`;
    expect((await ask(url, ownKey)).status).toBe(503);
    expect((await fetch(`${service.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    expect(service.log.map(([, message]) => message)).toContainEqual(expect.stringMatching(/no release to serve/));
    const served = async () => (await ask(url, ownKey)).headers.get('x-database-release');

    const first = await publishBlocks(empty, SMALL_WORLD);
    await until(async () => (await served()) === first, 'the first release');
    const second = await publishBlocks(empty, [...SMALL_WORLD, ['8.8.8.0/24', country('DE', 'Germany', true)]]);
    await until(async () => (await served()) === second, 'the second release');
    expect(await json(url, ownKey)).toMatchObject({ country_code: 'DE' });

    const third = await publishBlocks(empty, SMALL_WORLD.slice(1), '2026-01-02');
    const file = join(empty, 'releases', third, 'ranges.ipr');
    truncateSync(file, statSync(file).size - 1);
    // The watcher may have been faster than the damage; then the link is replaced again.
    switchCurrent(empty, third);
    const { problem } = await service.logged(/is not used/);
    expect(problem).toMatch(/ranges\.ipr has \d+ bytes, but its manifest says/);
    expect((await ask(url, ownKey)).status).toBe(200);
    const { url: metricsUrl } = await service.logged('metrics');
    expect(metricsUrl).toContain('//127.0.0.2:');
    const metrics = await textOf(metricsUrl);
    expect(metrics).toMatch(/^ipatlas_failed_reloads_total 1$/m);
    expect(metrics).toMatch(/^ipatlas_release_age_seconds \d/m);
    expect(metrics).toMatch(/^ipatlas_requests_total\{route="\/api\/lookup\/:ip",status="503"\} \d/m);
    expect(metrics).toMatch(/^ipatlas_request_duration_seconds_bucket\{le="0.001",route="\/api\/lookup\/:ip"\} \d/m);
  });

  it('is kept by an EU server if the next one puts its country outside the Union', async () => {
    const own = temporaryDir();
    const first = await publishBlocks(own, SMALL_WORLD);
    const service = await started(own, { region: 'fra-1', country: 'DE', eu: true });
    const others = SMALL_WORLD.filter(([, one]) => one.kind !== 'country' || one.code !== 'DE');
    await publishBlocks(own, [...others, ['9.9.9.0/24', country('DE', 'Germany', false)]], '2026-01-02');
    const { problem } = await service.logged(/is not used/);
    expect(problem).toMatch(/Germany \(DE\) is not in the European Union as of 2026-01-02/);
    expect(await (await fetch(`${service.url}/readyz`)).json()).toMatchObject({ release: first });
  });
});

describe('the key for the developer', () => {
  it('is kept if it works, and replaced if not', () => {
    const own = temporaryDir();
    const file = join(own, 'of the developer', "dev's.key");
    const kept = () => {
      keepDevKey(own, file);
      return readFileSync(file, 'utf8');
    };
    const first = kept();
    expect([isValidKey(own, first.trim()), kept() === first]).toEqual([true, true]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    revokeKey(own, listKeys(own).find(({ label }) => label.includes('dev'))!.id);
    expect(kept()).not.toBe(first);
  });

  it('is stored for its owner only, and follows no link next to it', () => {
    const file = join(dataDir, 'others', 'dev.key');
    const trap = join(dataDir, 'others', 'trap');
    mkdirSync(join(file, '..'));
    writeFileSync(file, 'not a key\n', { mode: 0o644 });
    writeFileSync(trap, '');
    symlinkSync(trap, `${file}.new`);
    keepDevKey(dataDir, file);
    expect(readFileSync(file, 'utf8')).toMatch(/^ipa_/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(trap, 'utf8')).toBe('');
    expect(readdirSync(join(file, '..')).sort()).toEqual(['dev.key', 'dev.key.new', 'trap']);
  });

  it('is an error if it cannot be written', () => {
    expect(() => keepDevKey(dataDir, '/dev/null/key')).toThrow(
      /--dev-key \/dev\/null\/key cannot be written: file already exists: \/dev\/null/,
    );
  });
});

describe('a process', () => {
  it('writes an access log with five fields for each request, and a line that works when pasted', async () => {
    const file = join(dataDir, "dev's.key");
    const server = await processOf(dataDir, '--access-log', '--dev-key', file);
    const line = await until(() => /^curl .*\n/m.exec(server.stdout())?.[0], 'the curl line');
    expect(JSON.parse(execFileSync('bash', ['-c', `${line.trim()} -s`], { encoding: 'utf8' }))).toMatchObject({
      country_code: 'US',
    });
    expect(server.stdout()).toMatch(/^The page: +http:\/\/\S+\/$/m);
    expect(server.stdout() + server.stderr()).not.toContain(readFileSync(file, 'utf8').trim());
    await fetch(`${server.url}/api/lookup/9.9.9.9?apikey=${key}`);
    await ask(`${server.url}/api/lookup/nonsense`);
    await fetch(`${server.url}/nothing`);
    await exchange(server.port, 'no request\r\n\r\n');
    await exchange(server.port, 'CONNECT ip.example:443 HTTP/1.1\r\nHost: ip.example\r\n\r\n');
    expect(await server.stop()).toBe(0);
    const lines = server
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    for (const line of lines) {
      expect(Object.keys(line)).toEqual(['time', 'method', 'route', 'status', 'duration_ms']);
      expect(line).toMatchObject({ time: expect.stringMatching(/^\d{4}-.*Z$/), duration_ms: expect.any(Number) });
    }
    expect(lines.map(({ method, route, status }) => [method, route, status])).toEqual([
      ['GET', '/api/lookup/:ip', 200],
      ['GET', '/api/lookup/:ip', 200],
      ['GET', '/api/lookup/:ip', 400],
      ['GET', 'unmatched', 404],
      [null, 'unparsed', 400],
      [null, 'unparsed', 405],
    ]);
  });

  it('exits after an internal error, and logs nothing from a request', async () => {
    const bug = `--import "data:text/javascript,${encodeURIComponent(
      'process.on("SIGUSR2", () => { throw new RangeError(Array(4).fill(8).join(".")); });',
    )}"`;
    const server = await serveWith({ NODE_OPTIONS: bug }, dataDir);
    running.push(server);
    expect(await server.stop('SIGUSR2')).toBe(1);
    expect(server.log().at(-1)).toMatchObject({ msg: expect.stringMatching(/internal error/) });
    expect(server.stderr()).toContain('RangeError');
    expect(server.stderr()).not.toContain('8.8.8.8');
  });

  it('ends at once at the second signal', async () => {
    const server = await processOf(dataDir);
    server.child.kill('SIGTERM');
    await server.logged('stopping');
    expect(await server.stop('SIGTERM')).toBe(130);
  });
});

describe('two workers', () => {
  let own: string;
  let server: ServeProcess;
  beforeAll(async () => {
    own = await smallRelease();
    server = await serve(own, '--workers', '2', '--metrics-port', '0', '--sign-up', 'open', '--access-log');
  });
  afterAll(async () => {
    await server.stop('SIGKILL');
  });

  /** Asks on a new connection, so that the workers take turns. */
  const request = (
    path: string,
    withKey: string | undefined,
    init: RequestInit = {},
    headers: Record<string, string> = {},
  ) =>
    fetch(server.url + path, {
      ...init,
      headers: { connection: 'close', ...(withKey === undefined ? {} : { 'x-api-key': withKey }), ...headers },
    });
  const status = async (...args: Parameters<typeof request>) => (await request(...args)).status;
  const many = (count: number, withKey: string) =>
    Promise.all(Array.from({ length: count }, () => status('/api/lookup/8.8.8.8', withKey)));
  const batch = async (withKey: string, addresses: number) => {
    const body = JSON.stringify(Array(addresses).fill('8.8.8.8'));
    const response = await request(
      '/api/batch',
      withKey,
      { method: 'POST', body },
      { 'content-type': 'application/json' },
    );
    return [response.status, ((await response.json()) as { error?: string }).error];
  };
  /** Waits until both workers accept a key, or refuse it, without using its rate. */
  const isKnown = (withKey: string, expected = 200) =>
    until(async () => {
      const all = await Promise.all(Array.from({ length: 8 }, () => status('/api/keys/current', withKey)));
      return all.every((one) => one === expected);
    }, `the answer ${expected} of both workers`);

  it('count batches, empty batches and single lookups exactly, and refuse a batch that is larger than the rate', async () => {
    const { key } = createKey(own, { rate: 600 });
    await isKnown(key);
    expect(await batch(key, 601)).toEqual([
      400,
      'The batch has more addresses than the rate of the key allows in a minute',
    ]);
    let allowed = 0;
    for (let round = 0; round < 12; round++) {
      const sizes = [0, 100, 0, 7, 1];
      const statuses = await Promise.all(sizes.map((size) => batch(key, size)));
      for (const [index, [status]] of statuses.entries()) if (status === 200) allowed += sizes[index]!;
      expect(allowed).toBeLessThanOrEqual(600);
    }
    // Addresses that one worker reserved and did not use come back within a second.
    await until(async () => {
      if ((await batch(key, 1))[0] === 200) allowed++;
      return allowed === 600;
    }, 'the whole rate');
    expect((await batch(key, 1))[0]).toBe(429);
  });

  it('notice a key that is revoked', async () => {
    const { key, id } = createKey(own);
    await isKnown(key);
    revokeKey(own, id);
    await isKnown(key, 403);
    expect(new Set(await many(8, key))).toEqual(new Set([403]));
  });

  it('know the key of a visitor of the page, whichever made it', async () => {
    const { key } = (await (await fetch(`${server.url}/page/key`)).json()) as { key: string };
    for (let i = 0; i < 8; i++) expect(await status('/api/lookup/8.8.8.8', key, {}, { origin: server.url })).toBe(200);
  });

  it('make keys for visitors that work in both and can be revoked, and limit them together', async () => {
    /** Makes a key. On a busy machine a worker that reads the keys may lock them for longer than the service waits: 503. */
    const signUp = async (): Promise<Response> => {
      for (;;) {
        const response = await request('/api/keys', undefined, { method: 'POST' });
        if (response.status !== 503) return response;
        await response.arrayBuffer();
      }
    };
    const response = await signUp();
    const { key, id } = (await response.json()) as { key: string; id: string };
    expect(response.status).toBe(201);
    await isKnown(key);
    const revoke = () => status('/api/keys/current', key, { method: 'DELETE' });
    await until(async () => [200, 403].includes(await revoke()), 'the revocation');
    await isKnown(key, 403);
    const made = await Promise.all(
      Array.from({ length: SIGN_UPS_PER_NETWORK[64] + 2 }, async () => (await signUp()).status),
    );
    expect(made.filter((one) => one === 201)).toHaveLength(SIGN_UPS_PER_NETWORK[64] - 1);
    expect(made.filter((one) => one === 429)).toHaveLength(3);
    const written = server.stdout() + server.stderr();
    for (const secret of [key, id, '127.0.0.1']) expect(written).not.toContain(secret);
  });

  it('swap releases together', async () => {
    const next = await publishBlocks(own, SMALL_WORLD.slice(1));
    await until(async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => request('/readyz', undefined)));
      const all = (await Promise.all(answers.map((answer) => answer.json()))) as { release: string }[];
      return all.every(({ release }) => release === next);
    }, 'the new release in every worker');
    expect(await textOf((await server.logged('metrics')).url)).toContain(`ipatlas_release_info{release="${next}"} 1`);
  });

  it('are replaced if they end, and the successor has the release and the keys', async () => {
    const { key } = createKey(own);
    const workers = () =>
      execFileSync('ps', ['-o', 'pid=', '--ppid', String(server.child.pid)], { encoding: 'utf8' })
        .trim()
        .split(/\s+/);
    process.kill(Number(workers()[0]), 'SIGKILL');
    await server.logged(/another one replaces it/);
    await until(() => workers().length === 2, 'the second worker');
    await until(async () => (await many(8, key)).every((one) => one === 200), 'answers of all workers');
    expect(await server.stop()).toBe(0);
    expect(server.log().at(-1)?.msg).toBe('stopping'); // and nothing was cut off
    expect(server.stdout()).toContain('"route":"/api/keys"');
  });
});

describe('shutdown', () => {
  /** Sends requests one after the other until the server has ended, and keeps their statuses; returns the failures. */
  async function client(url: string, statuses: number[], done: () => boolean) {
    const failures: string[] = [];
    while (!done()) {
      try {
        const response = await ask(url);
        await response.arrayBuffer();
        statuses.push(response.status);
        // Half of the time there is no request: a connection that is idle is also closed in time.
        await new Promise((resolve) => setTimeout(resolve, Math.floor(Math.random() * 4)));
      } catch (error) {
        failures.push(String((error as { cause?: { code?: string } }).cause?.code ?? error));
        // The server no longer listens: this is how clients see that it has stopped.
        if (failures.at(-1) === 'ECONNREFUSED') break;
      }
    }
    return failures;
  }

  // A terminal that is closed sends SIGHUP to the workers as well. "make soak" also sends SIGTERM to the parent of two workers.
  it.each([['SIGTERM', '1'], ['SIGHUP', '2'], ...(process.env.FUZZ_RUNS === undefined ? [] : [['SIGTERM', '2']])])(
    'drops no request on %s, also if the access log is on a full disk, with %s workers',
    async (stop, workers) => {
      const full = openSync('/dev/full', 'w');
      const args = ['serve', '--data', dataDir, '--port', '0', '--access-log', '--workers', workers];
      const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', full, 'pipe'], detached: true });
      closeSync(full);
      let log = '';
      child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
        log += chunk;
      });
      const ended = new Promise((resolve) => child.once('close', resolve));
      try {
        const url = await until(() => /"url":"([^"]+)".*"listening"/.exec(log)?.[1], 'the start');
        let isEnded = false;
        const answers = Array.from({ length: 4 }, (): number[] => []);
        const clients = answers.map((statuses) => client(`${url}/api/lookup/8.8.8.8`, statuses, () => isEnded));
        await until(() => answers.every(({ length }) => length > 5), 'some answers for each');
        await until(() => log.includes('the access log cannot be written'), 'the report');
        expect(log).toContain('"code":"ENOSPC"');
        process.kill(stop === 'SIGHUP' ? -child.pid! : child.pid!, stop);
        expect(await ended).toBe(0);
        isEnded = true;
        for (const failures of await Promise.all(clients)) {
          expect(failures.filter((code) => code !== 'ECONNREFUSED')).toEqual([]);
        }
        for (const statuses of answers) expect(new Set(statuses)).toEqual(new Set([200]));
        expect(log).not.toMatch(/cut off|EPIPE|broken pipe/);
      } finally {
        child.kill('SIGKILL');
      }
    },
  );
});

describe('an EU base address', () => {
  it.each([
    ['DE', undefined],
    ['NL', undefined],
    ['GB', /United Kingdom \(GB\) is not in the European Union as of 2026-01-01/],
    ['QQ', /QQ is not in the database/],
  ])('checks that a country is in the Union: %s', (code, refusal) => {
    const check = () => requireInUnion(join(dataDir, 'releases', release), code);
    if (refusal === undefined) check();
    else expect(check).toThrow(refusal);
  });

  it('is refused outside the European Union, and without a database', async () => {
    const place = (country: string) => ({ region: 'a', country, eu: true });
    await expect(startService(dataDir, place('US'))).rejects.toMatchObject({
      code: 'E_USAGE',
      message: expect.stringMatching(/--eu: United States \(US\) is not in the European Union as of 2026-01-01/),
    });
    const empty = temporaryDir();
    await expect(startService(empty, place('DE'))).rejects.toMatchObject({
      code: 'E_NO_DATABASE',
      message: expect.stringMatching(/no release in/),
    });
  });
});

describe('ipatlas serve', () => {
  it.each<[Record<string, string | boolean>, RegExp]>([
    [{ port: '65536' }, /--port is "65536"; write a whole number from 0 to 65535/],
    [{ port: 'http' }, /--port is "http"; write a whole number/],
    [{ workers: '-1' }, /--workers is "-1"; write a whole number/],
    [{ rate: '1.5' }, /--rate is "1.5"; write a whole number/],
    [{ 'metrics-host': '::' }, /--metrics-host needs --metrics-port/],
    [{ keyless: true, 'no-keyless': true }, /exclude each other/],
    [{ 'metrics-port': '' }, /--metrics-port is ""; write a whole number/],
    [{ 'trust-proxy': '10.0.0.1/8' }, /"10.0.0.1\/8" is not a CIDR block \(it has bits set after its prefix\)/],
    [{ 'trust-proxy': '' }, /"" is not a CIDR block/],
    [{ 'base-url': 'ftp://x' }, /--base-url "ftp:\/\/x" is not an http or https URL/],
    [{ 'eu-base-url': 'ip.example' }, /--eu-base-url "ip.example" is not an http/],
    [{ eu: true }, /--region NAME and --country CC must be used together/],
    [{ region: 'fra-1' }, /--region NAME and --country CC must be used together/],
    [{ region: 'a b', country: 'DE' }, /--region "a b"/],
    [{ region: 'fra-1', country: 'de' }, /--country "de" is not a country code/],
  ])('refuses %j', (values, message) => {
    const read = () => readSettings({ dataDir, seed: 'never', values, positionals: [] });
    expect(read).toThrow(message);
    expect(read).toThrow(expect.objectContaining({ code: 'E_USAGE' }));
  });

  it('has default settings', () => {
    expect(readSettings({ dataDir, seed: 'never', values: {}, positionals: [] })).toMatchObject({
      host: undefined,
      port: 8080,
      workers: 1,
      trustProxy: [],
      accessLog: false,
      region: undefined,
      metrics: undefined,
      page: { keyless: 'loopback' },
    });
    const values = { workers: '0', rate: '0' };
    expect(readSettings({ dataDir, seed: 'never', values, positionals: [] })).toMatchObject({
      workers: availableParallelism(),
      rate: 0,
    });
    for (const [more, keyless] of [
      [{ keyless: true }, 'everyone'],
      [{ 'eu-base-url': 'https://eu.example' }, 'everyone'],
      [{ 'no-keyless': true, 'base-url': 'https://ip.example' }, 'nobody'],
    ] as const)
      expect(readSettings({ dataDir, seed: 'never', values: more, positionals: [] }).page.keyless).toBe(keyless);
  });

  it('fails if it cannot listen', async () => {
    await expect(startService(dataDir, { host: '192.0.2.1' })).rejects.toMatchObject({
      code: 'E_USAGE',
      message: expect.stringMatching(/cannot listen on port \d+: .*EADDRNOTAVAIL/),
    });
    const other = createServer().listen(0, '::');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo;
    await expect(startService(dataDir, { port: String(port) })).rejects.toThrow(/EADDRINUSE/);
    const child = start(['serve', '--data', dataDir, '--port', String(port), '--workers', '2']);
    expect(await finished(child)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/EADDRINUSE/) });
    other.close();
  });

  it('prints a URL that works', () => {
    expect(
      [undefined, '::', '::1', '127.0.0.1', '192.0.2.7', '2001:db8::1', 'ip.example'].map((host) =>
        publicUrl(host, 8080),
      ),
    ).toEqual([
      ...Array(4).fill('http://localhost:8080'),
      'http://192.0.2.7:8080',
      'http://[2001:db8::1]:8080',
      'http://ip.example:8080',
    ]);
  });
});
