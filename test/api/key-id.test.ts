/** The ids of keys are short, so that people can type them: two keys may draw the same. */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { createKey, isValidKey } from '../../src/api/keys/key-store.js';
import { temporaryDir } from '../support/release.js';

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  return { ...crypto, randomBytes: vi.fn(crypto.randomBytes) };
});

it('a key whose id is taken gets another one', async () => {
  const dataDir = temporaryDir();
  const drawn = ['0a', '0a', '0a', '0b'];
  const { randomBytes: random } = await vi.importActual<typeof import('node:crypto')>('node:crypto');
  vi.mocked(randomBytes).mockImplementation(((size: number) =>
    size === 4 ? Buffer.from(drawn.shift()!.repeat(4), 'hex') : random(size)) as typeof randomBytes);
  const keys = [createKey(dataDir), createKey(dataDir)];
  expect(keys.map(({ id }) => id)).toEqual(['0a0a0a0a', '0b0b0b0b']);
  expect([drawn, ...keys.map(({ key }) => isValidKey(dataDir, key))]).toEqual([[], true, true]);
  rmSync(dataDir, { recursive: true });
});
