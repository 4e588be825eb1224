/** The ids of keys are short, so that people can type them: two keys may draw the same. */
import * as crypto from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { temporaryDir } from '../support/release.js';

it('a key whose id is taken gets another one', async () => {
  const dataDir = temporaryDir();
  const drawn = ['0a', '0a', '0a', '0b'];
  const randomBytes = (size: number): Buffer =>
    size === 4 ? Buffer.from(drawn.shift()!.repeat(4), 'hex') : crypto.randomBytes(size);
  // The module is loaded once more, with these numbers.
  vi.resetModules();
  vi.doMock('node:crypto', () => ({ ...crypto, randomBytes }));
  const { createKey, isValidKey } = await import('../../src/api/keys/key-store.js');
  vi.doUnmock('node:crypto');
  const keys = [createKey(dataDir), createKey(dataDir)];
  expect(keys.map(({ id }) => id)).toEqual(['0a0a0a0a', '0b0b0b0b']);
  expect([drawn, ...keys.map(({ key }) => isValidKey(dataDir, key))]).toEqual([[], true, true]);
  vi.resetModules();
});
