/** Addresses are encrypted as libsodium does it (`crypto_ipcrypt`), for random keys and a million addresses of both families. */
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';
import { addressCipher, CIPHER_KEY_BYTES, type CipherName } from '../../src/enrich/address-cipher.js';
import { packageFile } from '../../src/package-root.js';

type Encrypt = (address: Uint8Array, key: Uint8Array) => Uint8Array;
interface Sodium {
  ready: Promise<void>;
  crypto_ipcrypt_encrypt: Encrypt;
  crypto_ipcrypt_pfx_encrypt: Encrypt;
}

/** `make soak` installs it. */
const sodium = createRequire(packageFile('test/soak/runtimes/package.json'))('libsodium-wrappers-sumo') as Sodium;
const SCALE = Math.min(1, Number(process.env.SOAK_SCALE ?? 1));
const KEYS = 20;
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255];

it.each([
  ['ipcrypt', 1_000_000],
  ['ipcrypt-pfx', 50_000],
] as const)('%s encrypts as libsodium does, and back', async (name: CipherName, all) => {
  await sodium.ready;
  const encrypt = name === 'ipcrypt' ? sodium.crypto_ipcrypt_encrypt : sodium.crypto_ipcrypt_pfx_encrypt;
  for (let round = 0; round < KEYS; round++) {
    const key = randomBytes(CIPHER_KEY_BYTES[name]);
    const plain = randomBytes(16 * Math.ceil((SCALE * all) / KEYS));
    // Every other one is IPv4.
    for (let at = 0; at < plain.length; at += 32) plain.set(MAPPED, at);
    const addresses = Buffer.from(plain);
    addressCipher(name, key, false)(addresses);
    for (let at = 0; at < plain.length; at += 16) {
      const expected = encrypt(plain.subarray(at, at + 16), key);
      if (!addresses.subarray(at, at + 16).equals(expected)) {
        expect(addresses.subarray(at, at + 16).toString('hex')).toBe(Buffer.from(expected).toString('hex'));
      }
    }
    addressCipher(name, key, true)(addresses);
    expect(addresses.equals(plain)).toBe(true);
  }
});
