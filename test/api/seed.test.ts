/** A server that answers from the seed until the first release is published. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createKey } from '../../src/api/keys/key-store.js';
import { createLog } from '../../src/api/log.js';
import { runService } from '../../src/api/service.js';
import { readSettings } from '../../src/cli/serve.js';
import type { SeedUse } from '../../src/database/origin.js';
import { verifyRelease } from '../../src/database/verify.js';
import { country, publishBlocks, temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';

let dir: string;
let dataDir: string;
let stop: () => void;
let stopped: Promise<unknown>;
beforeEach(() => {
  dir = temporaryDir();
  dataDir = join(dir, 'data');
});
afterEach(async () => {
  stop();
  await stopped;
  rmSync(dir, { recursive: true });
});

/** Starts a server in this process, and returns its address. */
function start(seed: SeedUse): Promise<string> {
  const settings = readSettings({ dataDir, seed, values: { port: '0', host: '127.0.0.1' }, positionals: [] });
  const untilStopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  return new Promise((resolve, reject) => {
    stopped = runService(settings, {
      log: createLog({ write() {} }),
      verify: async (release) => void verifyRelease(release),
      onListening: resolve,
      untilStopped,
    });
    stopped.catch(reject);
  });
}

it('answers from the seed, says so, and follows the first release', { timeout: 60_000 }, async () => {
  const { key } = createKey(dataDir);
  const url = await start('without-release');
  const readiness = async () => (await (await fetch(`${url}/readyz`)).json()) as Record<string, unknown>;
  const ready = await readiness();
  expect(ready).toEqual({ status: 'ready', release: expect.stringMatching(/^20\d\d-/), seed: true });
  const page = async (accept: string) => {
    const response = await fetch(url, { headers: { accept } });
    return response.text();
  };
  expect(await page('text/html')).toContain('the older database that comes with ipatlas');
  expect(await page('text/plain')).toMatch(/^Seed: +this is the older database/m);
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
  const url = await start('never');
  expect((await fetch(`${url}/readyz`)).status).toBe(503);
});
