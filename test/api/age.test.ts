import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildListener } from '../../src/api/app.js';
import { appDeps, KEY, testApp } from '../support/api.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

let dataDir: string;
beforeAll(async () => {
  dataDir = temporaryDir();
  await publishBlocks(dataDir, SMALL_WORLD, '2026-01-01');
});
afterAll(() => rmSync(dataDir, { recursive: true }));

/** Seconds since the release's date began. */
const expected = (): number => Math.floor((Date.now() - Date.UTC(2026, 0, 1)) / 1000);

it('every answer of a release says how old its data is', async () => {
  const app = testApp(dataDir);
  const headers = { 'x-api-key': KEY };
  const before = expected();
  const answers = [
    await app.inject({ url: '/api/lookup/8.8.8.8', headers }),
    await app.inject({ url: '/api/lookup/nonsense', headers }),
    await app.inject({ method: 'POST', url: '/api/batch', headers, payload: ['8.8.8.8'] }),
  ];
  for (const answer of answers) {
    const age = Number(answer.headers['x-database-age']);
    expect(age).toBeGreaterThanOrEqual(before);
    expect(age).toBeLessThanOrEqual(expected());
  }
});

it('the short way says so as well', async () => {
  const { app, listener } = await buildListener(appDeps(dataDir));
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const before = expected();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/lookup/8.8.8.8`;
  const age = Number((await fetch(url, { headers: { 'X-API-Key': KEY } })).headers.get('x-database-age'));
  expect(age).toBeGreaterThanOrEqual(before);
  expect(age).toBeLessThanOrEqual(expected());
  server.closeAllConnections();
  server.close();
  await app.close();
});
