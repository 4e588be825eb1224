/** Addresses in other text, as recognition finds them. fields.test.ts compares those of the kernel with a naive twin. */
import { describe, expect, it } from 'vitest';
import { addressesOf } from '../../src/enrich/sample-reader.js';
import { MAX_LENIENT_BYTES } from '../../src/limits.js';

describe('addressesOf', () => {
  it.each([
    ['8.8.8.8', '8.8.8.8'],
    ['8.8.8.8:53', '8.8.8.8'],
    ['[2a00::1]:443', '2a00::1'],
    ['[::ffff:8.8.8.8]:1', '::ffff:8.8.8.8'],
    ['8.8.8.8/0', '8.8.8.8'],
    ['2a00::/128', '2a00::'],
    ['10.0.0.1, 8.8.8.8', '10.0.0.1'],
    ['unknown, \t8.8.8.8:53 ,2a00::1', '8.8.8.8'],
    [`${'x,'.repeat((MAX_LENIENT_BYTES - 8) / 2)}8.8.8.8`, '8.8.8.8'],
    ['[8.8.8.8]:80', '8.8.8.8'],
    ['[2a00::1]/64', '2a00::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25en-0.1]:443', 'fe80::1'],
    // The examples of RFC 7239, section 4.
    ['for="_gazonk", 8.8.8.8', '8.8.8.8'],
    ['For="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'],
    ['for=192.0.2.60;proto=http;by=203.0.113.43', '192.0.2.60'],
    ['by=203.0.113.43; for=192.0.2.43:4711 ;proto=http', '192.0.2.43'],
    ['web-1.example/8.8.8.8:80', '8.8.8.8'],
    ['HIER_DIRECT/[2a00::1]', '2a00::1'],
    ['x, host/8.8.8.8', '8.8.8.8'],
    ['1.2.3.4:4711:X1', '1.2.3.4'],
    // Without brackets, this is an address without a port.
    ['2a00::1:443', '2a00::1:443'],
  ])('%s', (text, address) => {
    expect(addressesOf([text])[0]).toBe(address);
  });

  it.each([
    '8.8.8.8:',
    '8.8.8.8:65536',
    '8.8.8.8/33',
    '8.8.8.8 8.8.4.4',
    '[2a00::1',
    '[2a00::1]/129',
    'by=8.8.8.8',
    'fe80::1%',
    'a/b/8.8.8.8',
    '"8.8.8.8"',
    `${'x,'.repeat(MAX_LENIENT_BYTES / 2)}8.8.8.8`,
  ])('finds none in %j', (text) => {
    expect(addressesOf([text])[0]).toBeUndefined();
  });
});
