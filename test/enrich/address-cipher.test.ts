import { randomBytes } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { addressCipher, type CipherName, checkCipherKey } from '../../src/enrich/address-cipher.js';

/** The vectors of draft-denis-ipcrypt-13, appendices A.1 and A.2; libsodium tests `crypto_ipcrypt` with the same. */
const VECTORS: [name: CipherName, key: string, address: string, encrypted: string][] = [
  ['ipcrypt', '0123456789abcdeffedcba9876543210', '0.0.0.0', 'bde9:6789:d353:824c:d7c6:f58a:6bd2:26eb'],
  ['ipcrypt', '1032547698badcfeefcdab8967452301', '255.255.255.255', 'aed2:92f6:ea23:58c3:48fd:8b8:74e8:45d8'],
  ['ipcrypt', '2b7e151628aed2a6abf7158809cf4f3c', '192.0.2.1', '1dbd:c1b9:fff1:7586:7d0b:67b4:e76e:4777'],
  [
    'ipcrypt',
    '0123456789abcdeffedcba9876543210',
    '2001:db8:85a3::8a2e:370:7334',
    '1eef:2352:64c8:18e6:6456:1373:f615:5032',
  ],
  ...['0.0.0.0 151.82.155.134', '255.255.255.255 94.185.169.89', '192.0.2.1 100.115.72.131'].map(pfx(0)),
  ...['2001:db8::1 c180:5dd4:2587:3524:30ab:fa65:6ab6:f88'].map(pfx(0)),
  ...['10.0.0.47 19.214.210.244', '10.0.0.129 19.214.210.80', '10.0.0.234 19.214.210.30'].map(pfx(1)),
  ...['172.16.5.193 210.78.229.136', '172.16.97.42 210.78.179.241', '172.16.248.177 210.78.121.215'].map(pfx(1)),
  ...[
    '2001:db8::a5c9:4e2f:bb91:5a7d 7cec:702c:1243:f70:1956:125:b9bd:1aba',
    '2001:db8::7234:d8f1:3c6e:9a52 7cec:702c:1243:f70:a3ef:c8e:95c1:cd0d',
    '2001:db8::f1e0:937b:26d4:8c1a 7cec:702c:1243:f70:443c:c8e:6a62:b64d',
    '2001:db8:3a5c:0:e7d1:4b9f:2c8a:f673 7cec:702c:3503:bef:e616:96bd:be33:a9b9',
    '2001:db8:9f27:0:b4e2:7a3d:5f91:c8e6 7cec:702c:a504:b74e:194a:3d90:b047:2d1a',
    '2001:db8:d8b4:0:193c:a5e7:8b2f:46d1 7cec:702c:f840:aa67:1b8:e84f:ac9d:77fb',
  ].map(pfx(1)),
];

function pfx(key: 0 | 1) {
  const keys = [
    '0123456789abcdeffedcba98765432101032547698badcfeefcdab8967452301',
    '2b7e151628aed2a6abf7158809cf4f3ca9f5ba40db214c3798f2e1c23456789a',
  ];
  return (pair: string): (typeof VECTORS)[number] => {
    const [address, encrypted] = pair.split(' ') as [string, string];
    return ['ipcrypt-pfx', keys[key]!, address, encrypted];
  };
}

function bytesOf(address: string): Buffer {
  const parsed = ipaddr.parse(address);
  return Buffer.from((parsed.kind() === 'ipv4' ? (parsed as ipaddr.IPv4).toIPv4MappedAddress() : parsed).toByteArray());
}

const textOf = (bytes: Buffer): string => ipaddr.process(ipaddr.fromByteArray([...bytes]).toString()).toString();

describe('the ciphers of addresses', () => {
  it.each(VECTORS)('%s with %s makes %s to %s, and back', (name, hex, address, encrypted) => {
    const key = Buffer.from(hex, 'hex');
    const bytes = bytesOf(address);
    addressCipher(name, key, false)(bytes);
    expect(textOf(bytes)).toBe(encrypted);
    addressCipher(name, key, true)(bytes);
    expect(textOf(bytes)).toBe(address);
  });

  it.each([
    ['ipcrypt', 16],
    ['ipcrypt-pfx', 32],
  ] as const)('%s reverses to the input, for random addresses of both families', (name, length) => {
    // `make soak` sets FUZZ_RUNS: then they are a million of `ipcrypt`, and of `ipcrypt-pfx` a fifth.
    const count = process.env.FUZZ_RUNS === undefined ? 2000 : name === 'ipcrypt' ? 1_000_000 : 200_000;
    const key = randomBytes(length);
    const plain = randomBytes(16 * count);
    for (let at = 0; at < plain.length; at += 32) plain.set([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255], at);
    const bytes = Buffer.from(plain);
    const [encrypt, decrypt] = [addressCipher(name, key, false), addressCipher(name, key, true)];
    // In parts of different lengths.
    for (let at = 0, part = 1; at < bytes.length; at += 16 * part, part = (part % 999) + 1) {
      const addresses = bytes.subarray(at, at + 16 * part);
      encrypt(addresses);
      expect(addresses.equals(plain.subarray(at, at + addresses.length))).toBe(false);
      decrypt(addresses);
    }
    expect(bytes.equals(plain)).toBe(true);
  });

  it('refuses keys that are not safe or have another length', () => {
    expect(() => checkCipherKey('ipcrypt', new Uint8Array(32))).toThrow('the key has 32 bytes; ipcrypt takes 16');
    expect(() => checkCipherKey('ipcrypt-pfx', new Uint8Array(32))).toThrow('the two halves of the key are equal');
  });
});
