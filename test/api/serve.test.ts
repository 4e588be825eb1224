/** `ipatlas serve` as a process, over real sockets. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { publicUrl, requireInUnion } from '../../src/api/service.js';
import { readSettings } from '../../src/cli/serve.js';
import { packageFile } from '../../src/package-root.js';
import { finished, ipatlas, start } from '../support/cli.js';
import { country, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { exchange, makeKey, type ServeProcess, serve, serveWith, until } from '../support/serve.js';

let dataDir: string;
let key: string;
let release: string;
const servers: ServeProcess[] = [];
const started = async (...args: Parameters<typeof serve>): Promise<ServeProcess> => {
  const server = await serve(...args);
  servers.push(server);
  return server;
};

beforeAll(async () => {
  dataDir = temporaryDir();
  release = await publishBlocks(dataDir, SMALL_WORLD);
  key = await makeKey(dataDir);
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop('SIGKILL')));
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const ask = (url: string, withKey = key) => fetch(url, { headers: { 'x-api-key': withKey } });
const json = async (url: string, withKey = key) => (await ask(url, withKey)).json() as Promise<Record<string, unknown>>;

describe('one process', () => {
  it('serves callers over IPv4 and IPv6, and each sees its own address', async () => {
    const server = await started(dataDir);
    for (const [host, ip] of [
      ['127.0.0.1', '127.0.0.1'],
      ['[::1]', '0000:0000:0000:0000:0000:0000:0000:0001'],
    ]) {
      const base = `http://${host}:${server.port}`;
      for (const path of ['/api/lookup/', '/api/lookup'])
        expect(await json(base + path)).toMatchObject({ ip, country: null });
      expect(await json(`${base}/api/lookup/8.8.8.8`)).toMatchObject({ ip: '8.8.8.8', country_code: 'US' });
      expect(await json(`${base}/api/lookup/2001:4860::1`)).toMatchObject({ country_code: 'US' });
      expect(await (await fetch(`${base}/api/lookup/193.0.0.1?apikey=${key}`)).json()).toMatchObject({ is_eu: true });
      const batch = await fetch(`${base}/api/batch`, {
        method: 'POST',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: '["8.8.8.8","x"]',
      });
      expect(await batch.json()).toEqual({
        '8.8.8.8': { ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false },
        x: { error: 'invalid ip' },
      });
      expect((await fetch(`${base}/api/lookup/8.8.8.8`)).status).toBe(401);
      expect((await ask(`${base}/api/lookup/8.8.8.8`, 'wrong')).status).toBe(403);
      expect((await ask(`${base}/api/lookup/nonsense`)).status).toBe(400);
      expect((await fetch(`${base}/readyz`)).status).toBe(200);
    }
    expect(await server.stop()).toBe(0);
  });

  it('trusts the configured proxies', async () => {
    const server = await started(dataDir, '--trust-proxy', '127.0.0.0/8, 10.0.0.0/8');
    const caller = async (host: string) => {
      const headers = { 'x-api-key': key, 'x-forwarded-for': '8.8.8.8, 193.0.6.139, 10.2.3.4' };
      return ((await (await fetch(`http://${host}:${server.port}/api/lookup/`, { headers })).json()) as { ip: string })
        .ip;
    };
    expect(await caller('127.0.0.1')).toBe('193.0.6.139');
    expect(await caller('[::1]')).toBe('0000:0000:0000:0000:0000:0000:0000:0001');
  });

  it('waits for a database, uses it, and keeps it if the next one is damaged', async () => {
    const empty = temporaryDir();
    const ownKey = await makeKey(empty);
    const server = await started(empty, '--metrics-port', '0');
    const url = `${server.url}/api/lookup/8.8.8.8`;
    expect((await ask(url, ownKey)).status).toBe(503);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    expect(server.log().map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/no release to serve/));
    const served = async () => (await ask(url, ownKey)).headers.get('x-database-release');

    const first = await publishBlocks(empty, SMALL_WORLD);
    await until(async () => (await served()) === first, 'the first release');
    const second = await publishBlocks(empty, [...SMALL_WORLD, ['8.8.8.0/24', country('DE', 'Germany', true)]]);
    await until(async () => (await served()) === second, 'the second release');
    expect(await json(url, ownKey)).toMatchObject({ country_code: 'DE' });

    const third = await publishBlocks(empty, SMALL_WORLD.slice(1), '2026-01-02').then((id) => {
      execFileSync('truncate', ['-s', '-1', join(empty, 'releases', id, 'ranges.ipr')]);
      return id;
    });
    // The watcher may have been faster than the damage; then the link is replaced again.
    execFileSync('ln', ['-sfn', join('releases', third), join(empty, 'current')]);
    const { problem } = await server.logged(/is not used/);
    expect(problem).toMatch(/ranges\.ipr has \d+ bytes, but its manifest says/);
    expect((await ask(url, ownKey)).status).toBe(200);
    const metrics = await (await fetch(String((await server.logged('metrics')).url))).text();
    expect(metrics).toMatch(/^ipatlas_failed_reloads_total 1$/m);
    expect(metrics).toMatch(/^ipatlas_release_age_seconds \d/m);
    expect(metrics).toMatch(/^ipatlas_lookups_total\{outcome="found"\} \d/m);
    expect(metrics).toMatch(/^ipatlas_requests_total\{route="\/api\/lookup\/:ip",status="503"\} \d/m);
    expect(metrics).toMatch(/^ipatlas_request_duration_seconds_bucket\{le="0.001",route="\/api\/lookup\/:ip"\} \d/m);
    expect(await server.stop()).toBe(0);
    rmSync(empty, { recursive: true });
  });

  it('serves metrics, also of batches, on the loopback address only', async () => {
    const server = await started(dataDir, '--metrics-port', '0');
    const body = '["8.8.8.8","10.0.0.1","x","193.0.0.1"]';
    const headers = { 'X-API-Key': key, 'Content-Type': 'application/json' };
    await fetch(`${server.url}/api/batch`, { method: 'POST', headers, body });
    const url = new URL(String((await server.logged('metrics')).url));
    const metrics = await (await fetch(url)).text();
    for (const [outcome, count] of [
      ['found', 2],
      ['no_country', 1],
      ['invalid', 1],
    ]) {
      expect(metrics).toMatch(new RegExp(`^ipatlas_lookups_total\\{outcome="${outcome}"\\} ${count}$`, 'm'));
    }
    // The port is free on another address of the machine only if no process listens on all of them.
    const other = createServer();
    await new Promise<void>((resolve, reject) => {
      other.once('error', reject).listen({ host: '127.0.0.2', port: Number(url.port), exclusive: true }, resolve);
    });
    other.close();
  });

  it('exits after an internal error, and logs nothing from a request', async () => {
    const bug = `--import "data:text/javascript,${encodeURIComponent(
      'process.on("SIGUSR2", () => { throw new RangeError(Array(4).fill(8).join(".")); });',
    )}"`;
    const server = await serveWith({ NODE_OPTIONS: bug }, dataDir);
    servers.push(server);
    expect(await server.stop('SIGUSR2')).toBe(1);
    expect(server.log().at(-1)).toMatchObject({ msg: expect.stringMatching(/internal error/) });
    expect(server.stderr()).toContain('RangeError');
    expect(server.stderr()).not.toContain('8.8.8.8');
  });

  it('writes an access log with five fields for each request', async () => {
    const server = await started(dataDir, '--access-log');
    await ask(`${server.url}/api/lookup/8.8.8.8`);
    await fetch(`${server.url}/api/lookup/9.9.9.9?apikey=${key}`);
    await ask(`${server.url}/api/lookup/nonsense`);
    await fetch(`${server.url}/nothing`);
    await exchange(server.port, 'no request\r\n\r\n');
    await exchange(server.port, 'CONNECT ip.example:443 HTTP/1.1\r\nHost: ip.example\r\n\r\n');
    expect(await server.stop()).toBe(0);
    const lines = server
      .stdout()
      .trim()
      .split('\n')
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

  it.each(['1', '2'])('continues if its access log is on a full disk, with %s workers', async (workers) => {
    const full = openSync('/dev/full', 'w');
    const args = ['serve', '--data', dataDir, '--port', '0', '--access-log', '--workers', workers];
    const child = spawn(process.execPath, [packageFile('dist/src/cli/start.cjs'), ...args], {
      stdio: ['ignore', full, 'pipe'],
    });
    closeSync(full);
    let log = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      log += chunk;
    });
    const ended = new Promise((resolve) => child.once('close', resolve));
    try {
      const url = await until(() => /"url":"([^"]+)".*"listening"/.exec(log)?.[1], 'the start');
      await until(async () => {
        expect((await ask(`${url}/api/lookup/8.8.8.8`)).status).toBe(200);
        return log.includes('the access log cannot be written');
      }, 'the report');
      expect(log).toContain('"code":"ENOSPC"');
      expect((await ask(`${url}/api/lookup/8.8.8.8`)).status).toBe(200);
      child.kill('SIGTERM');
      expect(await ended).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('stops even if a client keeps a refused tunnel open', async () => {
    const server = await started(dataDir);
    const tunnel = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    tunnel.on('error', () => {});
    tunnel.write('CONNECT ip.example:443 HTTP/1.1\r\nHost: ip.example\r\n\r\n');
    await new Promise((resolve) => tunnel.once('data', resolve));
    expect(await server.stop()).toBe(0);
    tunnel.destroy();
  });

  it('reports a current link that names no release, and counts it', async () => {
    const own = temporaryDir();
    await publishBlocks(own, SMALL_WORLD);
    const server = await started(own, '--metrics-port', '0');
    execFileSync('ln', ['-sfn', join('releases', '2026-01-01-000000000000'), join(own, 'current')]);
    const { problem } = await server.logged(/is not used/);
    expect(problem).toMatch(/current names a release that does not exist/);
    const metrics = await (await fetch(String((await server.logged('metrics')).url))).text();
    expect(metrics).toMatch(/^ipatlas_failed_reloads_total 1$/m);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    rmSync(own, { recursive: true });
  });

  it('keeps a key for the developer and prints a line that works when pasted', async () => {
    const file = join(dataDir, 'of the developer', "dev's.key");
    const first = await started(dataDir, '--dev-key', file);
    const line = await until(() => /^curl .*\n/m.exec(first.stdout())?.[0], 'the curl line');
    expect(JSON.parse(execFileSync('bash', ['-c', `${line.trim()} -s`], { encoding: 'utf8' }))).toMatchObject({
      country_code: 'US',
    });
    expect(first.stdout()).toMatch(/^The page: +http:\/\/\S+\/$/m);
    const kept = readFileSync(file, 'utf8');
    expect(first.stdout() + first.stderr()).not.toContain(kept.trim());
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await first.stop();
    // A key that works is kept, one that does not is replaced.
    await (await started(dataDir, '--dev-key', file)).stop();
    expect(readFileSync(file, 'utf8')).toBe(kept);
    const keys = JSON.parse((await ipatlas(['keys', 'list', '--json', '--data', dataDir])).stdout) as {
      id: string;
      label: string;
    }[];
    await ipatlas(['keys', 'revoke', keys.find(({ label }) => label.includes('dev'))!.id, '--data', dataDir]);
    await (await started(dataDir, '--dev-key', file)).stop();
    expect(readFileSync(file, 'utf8')).not.toBe(kept);
  });

  it('stores the key for the developer for its owner only, and follows no link next to it', async () => {
    const file = join(dataDir, 'others', 'dev.key');
    const trap = join(dataDir, 'others', 'trap');
    mkdirSync(join(file, '..'));
    writeFileSync(file, 'not a key\n', { mode: 0o644 });
    writeFileSync(trap, '');
    symlinkSync(trap, `${file}.new`);
    await (await started(dataDir, '--dev-key', file)).stop();
    expect(readFileSync(file, 'utf8')).toMatch(/^ipa_/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(trap, 'utf8')).toBe('');
    expect(readdirSync(join(file, '..')).sort()).toEqual(['dev.key', 'dev.key.new', 'trap']);
  });
});

describe('several workers', () => {
  it('share the rate limit, notice a revoked key, and swap releases together', async () => {
    const own = temporaryDir();
    await publishBlocks(own, SMALL_WORLD);
    const ownKey = await makeKey(own, '--rate', '50');
    const server = await started(own, '--workers', '2', '--metrics-port', '0');
    // One connection for each, so that the workers take turns.
    const status = async (withKey: string) =>
      (await fetch(`${server.url}/api/lookup/8.8.8.8`, { headers: { 'x-api-key': withKey, connection: 'close' } }))
        .status;
    const many = (count: number, withKey: string) => Promise.all(Array.from({ length: count }, () => status(withKey)));
    const seen = await many(80, ownKey);
    expect(seen.filter((one) => one === 200)).toHaveLength(50);
    expect(seen.filter((one) => one === 429)).toHaveLength(30);

    const other = await makeKey(own);
    await until(async () => (await many(9, other)).every((one) => one === 200), 'the new key in every worker');
    const [, { id }] = JSON.parse((await ipatlas(['keys', 'list', '--json', '--data', own])).stdout) as [
      unknown,
      { id: string },
    ];
    await ipatlas(['keys', 'revoke', id, '--data', own]);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(new Set(await many(12, other))).toEqual(new Set([403]));

    const third = await makeKey(own);
    const next = await publishBlocks(own, SMALL_WORLD.slice(1));
    await until(async () => {
      const answers = await Promise.all(
        Array.from({ length: 9 }, () => fetch(`${server.url}/readyz`, { headers: { connection: 'close' } })),
      );
      const releases = await Promise.all(
        answers.map(async (answer) => ((await answer.json()) as { release: string }).release),
      );
      return releases.every((one) => one === next);
    }, 'the new release in every worker');

    const metrics = async () => (await fetch(String((await server.logged('metrics')).url))).text();
    const counted = await metrics();
    const value = (name: string) =>
      Number(
        counted
          .split('\n')
          .find((line) => line.startsWith(name))
          ?.split(' ')[1],
      );
    expect(value('ipatlas_requests_total{route="/api/lookup/:ip",status="429"}')).toBe(30);
    expect(value('ipatlas_requests_total{route="/api/lookup/:ip",status="200"}')).toBeGreaterThanOrEqual(59);
    expect(counted).toContain(`ipatlas_release_info{release="${next}"} 1`);

    // A worker that ends is replaced, and its successor has the release and the keys.
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(server.child.pid)], { encoding: 'utf8' });
    process.kill(Number(children.trim().split(/\s+/)[0]), 'SIGKILL');
    await server.logged(/another one replaces it/);
    await until(async () => {
      const now = execFileSync('ps', ['-o', 'pid=', '--ppid', String(server.child.pid)], { encoding: 'utf8' });
      return now.trim().split(/\s+/).length === 2;
    }, 'the second worker');
    await until(async () => (await many(9, third)).every((one) => one === 200), 'answers of all workers');
    expect(await server.stop()).toBe(0);
    expect(server.log().at(-1)?.msg).toBe('stopping'); // and nothing was cut off
    rmSync(own, { recursive: true });
  });
});

describe('the rate of a key, with two workers', () => {
  /** Sends each request on a new connection, so that the workers take turns. */
  const batch = async (server: ServeProcess, withKey: string, addresses: number) => {
    const response = await fetch(`${server.url}/api/batch`, {
      method: 'POST',
      headers: { 'x-api-key': withKey, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify(Array(addresses).fill('8.8.8.8')),
    });
    return [response.status, ((await response.json()) as { error?: string }).error];
  };

  it('is counted exactly for batches, empty batches and single lookups', async () => {
    const server = await started(dataDir, '--workers', '2');
    const ownKey = await makeKey(dataDir, '--rate', '3000');
    await until(async () => (await batch(server, ownKey, 0))[0] === 200, 'the key in one worker');
    await until(async () => (await batch(server, ownKey, 0))[0] === 200, 'the key in the other worker');
    let allowed = 0;
    for (let round = 0; round < 60; round++) {
      const sizes = [0, 100, 0, 7, 1];
      const statuses = await Promise.all(sizes.map((size) => batch(server, ownKey, size)));
      for (const [index, [status]] of statuses.entries()) if (status === 200) allowed += sizes[index]!;
      expect(allowed).toBeLessThanOrEqual(3_000);
    }
    // Addresses that one worker drew ahead and did not use come back within a second.
    await until(async () => {
      if ((await batch(server, ownKey, 1))[0] === 200) allowed++;
      return allowed === 3_000;
    }, 'the whole rate');
    expect((await batch(server, ownKey, 1))[0]).toBe(429);
  });

  it('gives a 400 to a batch that is larger than the rate', async () => {
    const server = await started(dataDir, '--workers', '2');
    const ownKey = await makeKey(dataDir, '--rate', '5');
    await until(async () => (await batch(server, ownKey, 0))[0] === 200, 'the key');
    expect(
      await until(
        // Until both workers know the key, one of them may refuse it.
        async () => {
          const answer = await batch(server, ownKey, 6);
          return answer[0] === 400 ? answer : false;
        },
        'the refusal',
      ),
    ).toEqual([400, 'The batch has more addresses than the rate of the key allows in a minute']);
  });
});

describe('shutdown', () => {
  /** Sends requests one after the other until the server has ended; returns the statuses and the failures. */
  async function client(url: string, done: () => boolean) {
    const statuses: number[] = [];
    const failures: string[] = [];
    while (!done()) {
      try {
        const response = await ask(url);
        await response.arrayBuffer();
        statuses.push(response.status);
      } catch (error) {
        failures.push(String((error as { cause?: { code?: string } }).cause?.code ?? error));
        // The server no longer listens: this is how clients see that it has stopped.
        if (failures.at(-1) === 'ECONNREFUSED') break;
      }
    }
    return { statuses, failures };
  }

  it.each([['1'], ['2']])('drops no request on SIGTERM, with %s workers', async (workers) => {
    const server = await started(dataDir, '--workers', workers);
    let ended = false;
    const clients = Array.from({ length: 8 }, () => client(`${server.url}/api/lookup/8.8.8.8`, () => ended));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await server.stop()).toBe(0);
    ended = true;
    for (const { statuses, failures } of await Promise.all(clients)) {
      expect(statuses.length).toBeGreaterThan(5);
      expect(new Set(statuses)).toEqual(new Set([200]));
      expect(failures.filter((code) => code !== 'ECONNREFUSED')).toEqual([]);
    }
    expect(server.log().at(-1)?.msg).toBe('stopping');
  });

  it('is immediate at the second signal', async () => {
    const server = await started(dataDir);
    server.child.kill('SIGTERM');
    await server.logged('stopping');
    expect(await server.stop('SIGTERM')).toBe(130);
  });
});

describe('an EU base address', () => {
  it('is served from a member state, which responses name', async () => {
    const server = await started(
      dataDir,
      '--region',
      'fra-1',
      '--country',
      'DE',
      '--eu',
      '--eu-base-url',
      'https://eu.ip.example/api/',
    );
    const response = await ask(`${server.url}/api/lookup/8.8.8.8`);
    expect(response.headers.get('x-served-by')).toBe('fra-1');
    const { servers: listed } = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      servers: { url: string }[];
    };
    expect(listed.map(({ url }) => url)).toEqual(['/', 'https://eu.ip.example']);
  });

  it('keeps its release if the next one puts the country outside the Union', async () => {
    const own = temporaryDir();
    const first = await publishBlocks(own, SMALL_WORLD);
    const server = await started(own, '--region', 'fra-1', '--country', 'DE', '--eu');
    await publishBlocks(
      own,
      [
        ...SMALL_WORLD.filter(([, one]) => one.kind !== 'country' || one.code !== 'DE'),
        ['9.9.9.0/24', country('DE', 'Germany', false)],
      ],
      '2026-01-02',
    );
    const { problem } = await server.logged(/is not used/);
    expect(problem).toMatch(/Germany \(DE\) is not in the European Union as of 2026-01-02/);
    expect(await (await fetch(`${server.url}/readyz`)).json()).toMatchObject({ release: first });
    rmSync(own, { recursive: true });
  });

  it('is refused outside the European Union', async () => {
    const args = ['--port', '0', '--region', 'iad', '--country', 'US', '--eu'];
    expect(await ipatlas(['serve', '--data', dataDir, ...args])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/--eu: United States \(US\) is not in the European Union as of 2026-01-01/),
    });
  });

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

  it('is refused without a database', async () => {
    const empty = join(dataDir, 'empty');
    mkdirSync(empty, { recursive: true });
    const result = await ipatlas([
      'serve',
      '--data',
      empty,
      '--port',
      '0',
      '--region',
      'fra-1',
      '--country',
      'DE',
      '--eu',
    ]);
    expect(result).toMatchObject({ code: 5, stderr: expect.stringMatching(/no release in/) });
  });
});

describe('ipatlas serve', () => {
  it.each<[Record<string, string | boolean>, RegExp]>([
    [{ port: '65536' }, /--port "65536" is not a number from 0 to 65535/],
    [{ port: 'http' }, /--port "http" is not a number/],
    [{ workers: '-1' }, /--workers "-1" is not a number/],
    [{ rate: '1.5' }, /--rate "1.5" is not a number/],
    [{ 'metrics-port': '' }, /--metrics-port "" is not a number/],
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
    expect(read).toThrow(expect.objectContaining({ exitCode: 2 }));
  });

  it('has default settings', () => {
    expect(readSettings({ dataDir, seed: 'never', values: {}, positionals: [] })).toMatchObject({
      host: undefined,
      port: 8080,
      workers: 1,
      trustProxy: [],
      accessLog: false,
      region: undefined,
      metricsPort: undefined,
    });
    const values = { workers: '0', rate: '0' };
    expect(readSettings({ dataDir, seed: 'never', values, positionals: [] })).toMatchObject({
      workers: availableParallelism(),
      rate: 0,
    });
  });

  it.each<[string[], number, RegExp]>([
    [['--host', '192.0.2.1'], 2, /cannot listen on port \d+: .*EADDRNOTAVAIL/],
    [['--dev-key', '/dev/null/key'], 2, /--dev-key \/dev\/null\/key cannot be written: E/],
    [['--data', '/nowhere/at/all'], 5, /there is no directory \/nowhere\/at\/all/],
  ])('fails with arguments %j', async (args, code, message) => {
    expect(await ipatlas(['serve', '--data', dataDir, '--port', '0', ...args])).toMatchObject({
      code,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
  });

  it.each([['1'], ['2']])('refuses a port that is in use, with %s workers', async (workers) => {
    const other = createServer().listen(0, '::');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo;
    const child: ChildProcess = start(['serve', '--data', dataDir, '--port', String(port), '--workers', workers]);
    expect(await finished(child)).toMatchObject({ code: 2, stderr: expect.stringMatching(/EADDRINUSE/) });
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
