import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KEY, testApp } from '../support/api.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

let dataDir: string;
beforeAll(async () => {
  dataDir = temporaryDir();
  await publishBlocks(dataDir, SMALL_WORLD, '2026-01-01');
});
afterAll(() => rmSync(dataDir, { recursive: true }));

/** Seconds since the release's date began. */
const expected = (): number => Math.floor((Date.now() - Date.UTC(2026, 0, 1)) / 1000);

it('every response from a release has the age of its data', async () => {
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
