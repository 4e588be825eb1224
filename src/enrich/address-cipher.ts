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

/**
 * The blocks of `ipcrypt-pfx` for the prefixes of an address: the prefix, with a one before it, in the last bits of a block. The next one
 * has one more bit.
 */
class Prefix {
  readonly #words = new Uint32Array(4);

  /** Starts with the first 96 bits of an IPv4 address, which all have, or with none. */
  constructor(isIPv4: boolean) {
    this.#words.set(isIPv4 ? [1, 0, 0, 0xffff] : [0, 0, 0, 1]);
  }

  write(to: DataView, at: number): void {
    for (let word = 0; word < 4; word++) to.setUint32(at + 4 * word, this.#words[word]!);
  }

  add(bit: number): void {
    const words = this.#words;
    for (let word = 0; word < 3; word++) words[word] = (words[word]! << 1) | (words[word + 1]! >>> 31);
    words[3] = (words[3]! << 1) | bit;
  }
}

/** Returns a bit of an address, counted from its first. */
function bitOf(addresses: Uint8Array, at: number, bit: number): number {
  return (addresses[at + (bit >> 3)]! >> (7 - (bit & 7))) & 1;
}

/** Inverts each bit of the addresses for whose prefix the sum of two ciphers has its last bit set. */
function applyPrefixes(addresses: Uint8Array, [first, second]: readonly Blocks[], isReverse: boolean): void {
  const view = new DataView(addresses.buffer, addresses.byteOffset, addresses.byteLength);
  const starts = Array.from({ length: addresses.length / ADDRESS_BYTES }, (_, index) => ADDRESS_BYTES * index);
  let all = starts.map((at) => {
    const isIPv4 = isMapped(view, at);
    return { at, bit: isIPv4 ? MAPPED_BITS : 0, prefix: new Prefix(isIPv4) };
  });
  // A prefix is that of the address before encryption: then all of it is known, otherwise one bit after the other.
  const most = isReverse ? 1 : ALL_BITS;
  for (; all.length > 0; all = all.filter(({ bit }) => bit < ALL_BITS)) {
    const counts = all.map(({ bit }) => Math.min(ALL_BITS - bit, most));
    const blocks = Buffer.allocUnsafe(ADDRESS_BYTES * counts.reduce((sum, count) => sum + count, 0));
    const blockView = new DataView(blocks.buffer, blocks.byteOffset, blocks.byteLength);
    let to = 0;
    all.forEach(({ at, bit, prefix }, index) => {
      for (let next = 0; next < counts[index]!; next++, to += ADDRESS_BYTES) {
        prefix.write(blockView, to);
        if (!isReverse) prefix.add(bitOf(addresses, at, bit + next));
      }
    });
    const [a, b] = [first!(blocks), second!(blocks)];
    let last = ADDRESS_BYTES - 1;
    all.forEach((one, index) => {
      for (const end = one.bit + counts[index]!; one.bit < end; one.bit++, last += ADDRESS_BYTES) {
        addresses[one.at + (one.bit >> 3)]! ^= ((a[last]! ^ b[last]!) & 1) << (7 - (one.bit & 7));
        if (isReverse) one.prefix.add(bitOf(addresses, one.at, one.bit));
      }
    });
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
