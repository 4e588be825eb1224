/** A server that answers from the seed until the first release is published. */
import { afterEach, expect, it } from 'vitest';
import { createKey } from '../../src/api/keys/key-store.js';
import { dataDir, giveFolders } from '../support/own-folder.js';
import { country, publishBlocks } from '../support/release.js';
import { until } from '../support/serve.js';
import { type RunningService, startService } from '../support/service.js';

let service: RunningService;
giveFolders();
afterEach(async () => {
  await service.stop();
});

it('answers from the seed, says so, and follows the first release', async () => {
  const { key } = createKey(dataDir);
  service = await startService(dataDir, {}, 'without-release');
  const { url } = service;
  const readiness = async () => (await (await fetch(`${url}/readyz`)).json()) as Record<string, unknown>;
  const ready = await readiness();
  expect(ready).toEqual({ status: 'ready', release: expect.stringMatching(/^20\d\d-/), seed: true });
  const page = async (accept: string) => {
    const response = await fetch(url, { headers: { accept } });
    return response.text();
  };
  expect(await page('text/html')).toContain('the older database that comes with ipatlas');
  expect(await page('text/plain')).toMatch(/^Seed: +This is the older database/m);
  const answer = await fetch(`${url}/api/lookup/193.0.6.139`, { headers: { 'x-api-key': key } });
  expect(await answer.json()).toMatchObject({ country_code: 'NL' });
  expect(answer.headers.get('x-database-release')).toBe(ready.release);
  expect(Number(answer.headers.get('x-database-age'))).toBeGreaterThan(0);

  const id = await publishBlocks(dataDir, [['193.0.0.0/8', country('AA', 'A')]]);
  await until(async () => (await readiness()).release === id, 'the release');
  expect(await readiness()).toEqual({ status: 'ready', release: id });
  expect(await page('text/html')).not.toContain('comes with ipatlas');
});

it('answers 503 without a release in a named data directory', async () => {
  service = await startService(dataDir);
  const { url } = service;
  expect((await fetch(`${url}/readyz`)).status).toBe(503);
});
