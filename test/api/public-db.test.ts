/** The compact form of the release that answers, for everyone. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import type { ApiHttpServer } from '../../src/api/http-server.js';
import { PublicDatabase } from '../../src/api/releases/public-database.js';
import { Container } from '../../src/compact/container.js';
import { buildFile } from '../../src/compact/range-file.js';
import { unpackCompact } from '../../src/database/compact.js';
import { openDatabase } from '../../src/database/database.js';
import { seedPath } from '../../src/database/seed.js';
import { fromBytes } from '../../src/lookup/index.js';
import { NETWORKS } from '../../src/rangefile/partitions.js';
import { type AppChanges, appDeps, portOf, startServer } from '../support/api.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { publishBlocks, SMALL_WORLD, smallRelease, temporaryDir } from '../support/release.js';

const dataDir = await smallRelease();
let server: ApiHttpServer;
afterEach(() => server?.close());

/** Returns a function that sends a request for the file to a server. */
async function served(changes: AppChanges = {}, file = 'country') {
  server = await startServer(appDeps(dataDir, changes));
  const url = `http://127.0.0.1:${portOf(server)}/db/${file}.ipc`;
  return (headers: Record<string, string> = {}, method = 'GET') => fetch(url, { method, headers });
}

it('gives @ipatlas/lookup the answers of the release', async () => {
  const get = await served();
  const response = await get({ origin: 'https://shop.example' });
  const { headers, status } = response;
  expect([status, headers.get('content-type'), headers.get('access-control-allow-origin')]).toEqual([
    200,
    'application/octet-stream',
    '*',
  ]);
  const db = await fromBytes(await response.arrayBuffer());
  using release = openDatabase(dataDir);
  for (const ip of ['8.8.8.8', '193.0.0.1', '2a00::1', '10.0.0.1', '::ffff:80.0.0.1', '2002:5000:1::'])
    expect(db.lookup(ip)).toEqual(release.lookup(ip));
  const etag = headers.get('etag')!;
  for (const [known, expected] of [
    [etag, 304],
    [`"x", W/${etag}`, 304],
    ['"another"', 200],
  ] as const) {
    const again = await get({ 'if-none-match': known });
    // Also without Origin: a shared cache gives the response to scripts of any origin.
    expect(again.headers.get('access-control-expose-headers')).toMatch(/\bETag\b/);
    expect([again.headers.get('cache-control'), again.headers.get('vary')]).toEqual(['public, no-cache', null]);
    expect([again.status, (await again.arrayBuffer()).byteLength === 0]).toEqual([expected, expected === 304]);
  }
  const head = await get({}, 'HEAD');
  expect([head.status, head.headers.get('content-length')]).toEqual([200, headers.get('content-length')]);
});

it('is that of the seed while the seed answers', async () => {
  const bytes = await new PublicDatabase().bytes({ id: 'seed', dir: seedPath() });
  expect((await fromBytes(bytes)).country('193.0.6.139')?.country_code).toBe('NL');
});

it('is made once for a release, and again after a failure', async () => {
  let fails = true;
  const made: string[] = [];
  const publicDatabase = new PublicDatabase(async ({ dir }) => {
    made.push(dir);
    if (fails) throw new Error('no thread');
    return Uint8Array.of(1);
  });
  const get = await served({ publicDatabase });
  expect((await get()).status).toBe(500);
  fails = false;
  const answers = await Promise.all([get(), get(), get()]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(made).toHaveLength(2);
});

it('is 404 if it is switched off, 503 without a release', async () => {
  const get = await served({ page: { ...appDeps(dataDir).page, publicDb: false } });
  expect((await get()).status).toBe(404);
  server.close();
  const without = await served({ release: () => undefined });
  expect((await without()).status).toBe(503);
});

it('has a second file with the networks, if the release has any', async () => {
  const withNetworks = temporaryDir();
  await publishBlocks(withNetworks, SMALL_WORLD, '2026-01-01', 0, SMALL_NETWORKS);
  server = await startServer(appDeps(withNetworks));
  const url = `http://127.0.0.1:${portOf(server)}/db/networks.ipc`;
  const response = await fetch(url);
  expect(response.status).toBe(200);
  const container = new Container(unpackCompact(new Uint8Array(await response.arrayBuffer()), 'x'), 'x');
  expect(container.names).toEqual(['about', 'network', 'network4', 'network6']);
  const built = buildFile(NETWORKS, container, '2026-01-01', 'x');
  expect(built.equals(readFileSync(join(withNetworks, 'current', NETWORKS.file)))).toBe(true);
  rmSync(withNetworks, { recursive: true });
  server.close();
  const without = await served({}, 'networks');
  expect((await without()).status).toBe(404);
});
