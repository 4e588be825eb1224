/**
 * Encrypts addresses into addresses, by draft-denis-ipcrypt: `ipcrypt-deterministic` (one block of AES-128) and `ipcrypt-pfx`, which keeps
 * the lengths of common prefixes. An address has its 16-byte form; IPv4 is mapped (RFC 4291, section 2.5.5.2).
 */
import type { CipherGCM } from 'node:crypto';
import { crypto } from '../builtins.js';
import { misuse } from '../errors.js';

/** The ciphers and the bytes of their keys. */
export const CIPHER_KEY_BYTES = { ipcrypt: 16, 'ipcrypt-pfx': 32 } as const;
export type CipherName = keyof typeof CIPHER_KEY_BYTES;

const ADDRESS_BYTES = 16;
/** The bits before an IPv4 address in its 16-byte form. */
const MAPPED_BITS = 96;
const ALL_BITS = 128;

/** Encrypts or decrypts blocks, all at once. */
type Blocks = (blocks: Uint8Array) => Uint8Array;

/** AES-128 without chaining or padding: each block is by itself. */
function aes(key: Uint8Array, direction: 'encrypt' | 'decrypt'): Blocks {
  const { createCipheriv, createDecipheriv } = crypto();
  const create = direction === 'encrypt' ? createCipheriv : createDecipheriv;
  const cipher = create('aes-128-ecb', key, null) as CipherGCM;
  cipher.setAutoPadding(false);
  return (blocks) => cipher.update(blocks);
}

/** Returns whether the address at an offset is IPv4. */
function isMapped(addresses: DataView, at: number): boolean {
  return (
    addresses.getUint32(at) === 0 && addresses.getUint32(at + 4) === 0 && addresses.getUint32(at + 8) === 0x0000_ffff
  );
}

/** Adds a bit to a prefix: it is in the last bits of a block, with a one before it. */
function addBit(blocks: DataView, at: number, bit: number): void {
  for (let word = at; word < at + 12; word += 4) {
    blocks.setUint32(word, (blocks.getUint32(word) << 1) | (blocks.getUint32(word + 4) >>> 31));
  }
  blocks.setUint32(at + 12, (blocks.getUint32(at + 12) << 1) | bit);
}

/**
 * Inverts each bit of the addresses for whose prefix the sum of two ciphers has its last bit set. The prefix is that of the address
 * before encryption.
 */
function applyPrefixes(addresses: Uint8Array, [first, second]: readonly Blocks[], isReverse: boolean): void {
  const view = new DataView(addresses.buffer, addresses.byteOffset, addresses.byteLength);
  const starts = Array.from({ length: addresses.length / ADDRESS_BYTES }, (_, index) => ADDRESS_BYTES * index);
  const v6 = starts.filter((at) => !isMapped(view, at));
  // The first 96 bits of an IPv4 address are the same in all, and stay.
  const ordered = [...v6, ...starts.filter((at) => isMapped(view, at))];
  const blocks = new Uint8Array(addresses.length);
  const prefixes = new DataView(blocks.buffer);
  ordered.forEach((at, index) => {
    prefixes.setUint32(ADDRESS_BYTES * index + (index < v6.length ? 12 : 0), 1);
    if (index >= v6.length) prefixes.setUint32(ADDRESS_BYTES * index + 12, view.getUint32(at + 8));
  });
  for (let bit = v6.length > 0 ? 0 : MAPPED_BITS; bit < ALL_BITS; bit++) {
    const count = bit < MAPPED_BITS ? v6.length : ordered.length;
    const some = blocks.subarray(0, ADDRESS_BYTES * count);
    const [a, b] = [first!(some), second!(some)];
    const shift = 7 - (bit & 7);
    for (let index = 0; index < count; index++) {
      const byte = ordered[index]! + (bit >> 3);
      const last = ADDRESS_BYTES * index + ADDRESS_BYTES - 1;
      const before = (addresses[byte]! >> shift) & 1;
      const inverts = (a[last]! ^ b[last]!) & 1;
      addresses[byte]! ^= inverts << shift;
      addBit(prefixes, ADDRESS_BYTES * index, isReverse ? before ^ inverts : before);
    }
  }
}

/**
 * Checks a key.
 *
 * @throws AtlasError E_USAGE if it has another length, or two equal halves, which would encrypt nothing
 */
export function checkCipherKey(name: CipherName, key: Uint8Array): void {
  const bytes = CIPHER_KEY_BYTES[name];
  if (key.length !== bytes) throw misuse(`the key has ${key.length} bytes; ${name} takes ${bytes}`);
  if (name === 'ipcrypt-pfx' && Buffer.compare(key.subarray(0, 16), key.subarray(16)) === 0) {
    throw misuse('the two halves of the key are equal; make a key with "ipatlas redact --new-key FILE"');
  }
}

/**
 * Returns a function that encrypts addresses in place, all at once.
 *
 * @param key as {@link checkCipherKey} allows; @param isReverse decrypts them
 * @returns a function of addresses, 16 bytes each
 */
export function addressCipher(name: CipherName, key: Uint8Array, isReverse: boolean): (addresses: Uint8Array) => void {
  if (name === 'ipcrypt') {
    const blocks = aes(key, isReverse ? 'decrypt' : 'encrypt');
    return (addresses) => addresses.set(blocks(addresses));
  }
  const halves = [aes(key.subarray(0, 16), 'encrypt'), aes(key.subarray(16), 'encrypt')];
  return (addresses) => applyPrefixes(addresses, halves, isReverse);
}
