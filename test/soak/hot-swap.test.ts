/** Under load, while the database is swapped twenty times and once with a damaged release. */

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { switchCurrent } from '../../pipeline/operations/current-link.js';
import { createKey } from '../../src/api/keys/key-store.js';
import { RANGE_FILE, RELEASES_DIR } from '../../src/database/release.js';
import { packageFile } from '../../src/package-root.js';
import { type Block, country, publishBlocks, temporaryDir } from '../support/release.js';
import { type ServeProcess, serveWith, until } from '../support/serve.js';

/** What autocannon, which `bench` has, reports of a load; and how the load is ended early. */
interface Load {
  errors: number;
  timeouts: number;
  non2xx: number;
  requests: { total: number };
}
type Autocannon = (options: object) => Promise<Load> & { stop: () => void };
const autocannon = createRequire(packageFile('bench/package.json'))('autocannon') as Autocannon;

const SWAPS = 20;
/** Requests per second: a steady load that leaves enough of the machine to other tests. */
const RATE = 4_000;

/** Makes the server collect its garbage all the time: else its memory would depend on when the collector runs. */
const TIDY = `--import "data:text/javascript,${encodeURIComponent(
  "import v8 from 'node:v8'; import vm from 'node:vm'; v8.setFlagsFromString('--expose-gc');" +
    "setInterval(vm.runInNewContext('gc'), 250).unref();",
)}"`;

/** Many ranges, about a megabyte, so that a release that is not freed can be noticed. */
function world(first: string, second: string): Block[] {
  const blocks: Block[] = [];
  for (let block = 0; block < 30_000; block++) {
    const code = block % 2 === 0 ? first : second;
    blocks.push([`${20 + (block >> 16)}.${(block >> 8) & 255}.${block & 255}.0/25`, country(code, `Country ${code}`)]);
  }
  return [...blocks, ['2001:db8::/32', country(second, `Country ${second}`)]];
}

let dataDir: string;
let key: string;
let server: ServeProcess;
let releases: string[];
let damaged: string;

beforeAll(async () => {
  dataDir = temporaryDir();
  damaged = await publishBlocks(dataDir, world('EE', 'FF'));
  const path = join(dataDir, RELEASES_DIR, damaged, RANGE_FILE);
  const bytes = readFileSync(path);
  bytes[bytes.length - 100_000] = bytes[bytes.length - 100_000]! ^ 1;
  writeFileSync(path, bytes);
  releases = [await publishBlocks(dataDir, world('AA', 'BB')), await publishBlocks(dataDir, world('CC', 'DD'))];
  key = createKey(dataDir).key;
  server = await serveWith({ NODE_OPTIONS: TIDY }, dataDir, '--metrics-port', '0', '--rate', '0');
});
afterAll(async () => {
  await server.stop('SIGKILL');
});

/** The results of each release, by its id; `20.0.0.1` is in its first country, `20.0.1.1` in its second. */
const answers = (): Record<string, [single: string, batch: string]> =>
  Object.fromEntries(
    [
      [releases[0]!, 'AA', 'BB'],
      [releases[1]!, 'CC', 'DD'],
    ].map(([id, first, second]) => {
      const result = (ip: string, code: string) =>
        JSON.stringify({ ip, country: `Country ${code}`, country_code: code, is_eu: false });
      const full = '2001:0db8:0000:0000:0000:0000:0000:0001';
      return [
        id!,
        [
          result('20.0.0.1', first!),
          `{"20.0.0.1":${result('20.0.0.1', first!)},"20.0.1.1":${result('20.0.1.1', second!)},"2001:db8::1":${result(full, second!)}}`,
        ],
      ];
    }),
  );

const servedRelease = async (): Promise<string> =>
  ((await (await fetch(`${server.url}/readyz`)).json()) as { release: string }).release;

it('swapping releases fails no request, gives no wrong result, and does not use more memory over time', async () => {
  const expected = answers();
  const wrong: string[] = [];
  const seen = new Map<string, number>();
  const check =
    (kind: 0 | 1) =>
    (status: number, body: string, _context: object, headers?: unknown): void => {
      const id = String((headers as Record<string, string>)['x-database-release']);
      seen.set(id, (seen.get(id) ?? 0) + 1);
      if (status !== 200 || body !== expected[id]?.[kind]) wrong.push(`${status} ${id} ${body}`);
    };
  const headers = { 'X-API-Key': key };
  const load = autocannon({
    url: server.url,
    connections: 32,
    duration: 120, // stopped before
    overallRate: RATE,
    requests: [
      { method: 'GET', path: '/api/lookup/20.0.0.1', headers, onResponse: check(0) },
      {
        method: 'POST',
        path: '/api/batch',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: '["20.0.0.1","20.0.1.1","2001:db8::1"]',
        onResponse: check(1),
      },
      { method: 'GET', path: `/api/lookup/20.0.0.1?apikey=${key}`, onResponse: check(0) },
    ],
  });

  const metricsUrl = String((await server.logged('metrics')).url);
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(metricsUrl)).text();
    return Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.split(' ')[1],
    );
  };
  /** Bytes of releases and of objects in use: the least of several samples, because garbage is collected every quarter second. */
  const memory = async (): Promise<number[]> => {
    const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let look = 0; look < 10; look++) {
      for (const [index, name] of ['nodejs_external_memory_bytes', 'nodejs_heap_size_used_bytes'].entries())
        least[index] = Math.min(least[index]!, await metric(name));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return least;
  };
  let early: number[] = [];
  for (let swap = 0; swap < SWAPS; swap++) {
    const next = releases[swap % 2]!;
    switchCurrent(dataDir, next);
    await until(async () => (await servedRelease()) === next, `swap ${swap}`);
    if (swap === 4) early = await memory();
    if (swap === 9) {
      switchCurrent(dataDir, damaged);
      await server.logged(/is not used/);
      expect(await servedRelease()).toBe(next);
    }
  }
  const late = await memory();
  const answered = [...seen.values()].reduce((sum, count) => sum + count, 0);
  load.stop();
  const result = await load;

  expect(wrong.slice(0, 3)).toEqual([]);
  expect([result.errors, result.timeouts, result.non2xx]).toEqual([0, 0, 0]);
  expect(result.requests.total).toBeGreaterThan(1_000);
  expect([...seen.keys()].sort()).toEqual([...releases].sort());
  for (const count of seen.values()) expect(count).toBeGreaterThan(100);
  expect(await metric('ipatlas_failed_reloads_total')).toBe(1);
  // Fifteen releases that were not freed would be fifteen megabytes.
  expect(Math.min(...early)).toBeGreaterThan(1_000_000);
  expect(late[0]! - early[0]!).toBeLessThan(7_000_000);
  // A hundred bytes kept of each request would be more than this.
  expect(answered).toBeGreaterThan(10_000);
  expect(late[1]! - early[1]!).toBeLessThan(50 * answered);
});
