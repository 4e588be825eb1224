/** Imports of keys that are killed at random moments. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type SharedKey, writeKeyFile } from '../../src/api/keys/key-file.js';
import { hashKey, importKeys, listKeys } from '../../src/api/keys/key-store.js';
import { finished, ipatlas, start } from '../support/cli.js';
import { temporaryDir } from '../support/release.js';
import { randomFrom, rounds } from '../support/seed.js';

/** Keys that all differ from those of another rate. */
const keysOf = (count: number, rate: number): SharedKey[] =>
  Array.from({ length: count }, (_, index) => ({
    id: index.toString(16),
    hash: hashKey(`${index}`),
    rate,
    origins: null,
    self_issued: false,
    created: '2026-01-01T00:00:00.000Z',
    expires: null,
  }));

it('an import that is killed leaves all keys or none of its file', async () => {
  const dir = temporaryDir();
  const file = join(dir, 'keys');
  const command = ['keys', 'import', file, '--data', dir];
  const random = randomFrom();
  importKeys(dir, keysOf(5_000, 1), false);
  let killed = 0;
  const count = rounds(60);
  for (let round = 2; round < 2 + count; round++) {
    const keys = keysOf(5_000 + round, round);
    writeFileSync(file, writeKeyFile(keys));
    const child = start(command);
    const timer = setTimeout(() => child.kill('SIGKILL'), 200 + 800 * random());
    if ((await finished(child)).signal === 'SIGKILL') killed++;
    clearTimeout(timer);
    const now = listKeys(dir);
    expect(now).toHaveLength(now[0]!.rate === 1 ? 5_000 : 5_000 + now[0]!.rate!);
    expect(new Set(now.map(({ rate }) => rate)).size).toBe(1);
  }
  expect(killed).toBeGreaterThan(0);
  expect((await ipatlas(command)).code).toBe(0);
  expect(listKeys(dir)[0]!.rate).toBe(1 + count);
  rmSync(dir, { recursive: true });
});
