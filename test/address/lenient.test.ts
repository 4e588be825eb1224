/** Addresses in other text. The kernel's twin of this parser is tested in test/enrich/fields.test.ts. */
import { describe, expect, it } from 'vitest';
import { findAddress } from '../../src/address/lenient.js';
import { MAX_LENIENT_BYTES } from '../../src/limits.js';

describe('findAddress', () => {
  it.each([
    ['8.8.8.8', '8.8.8.8'],
    ['2a00::1', '2a00::1'],
    ['8.8.8.8:53', '8.8.8.8'],
    ['8.8.8.8:65535', '8.8.8.8'],
    ['[2a00::1]', '2a00::1'],
    ['[2a00::1]:443', '2a00::1'],
    ['[::ffff:8.8.8.8]:1', '::ffff:8.8.8.8'],
    ['8.8.8.8/0', '8.8.8.8'],
    ['8.8.8.8/32', '8.8.8.8'],
    ['2a00::/128', '2a00::'],
    ['::ffff:8.8.8.8/96', '::ffff:8.8.8.8'],
    ['10.0.0.1, 8.8.8.8', '10.0.0.1'],
    ['unknown, \t8.8.8.8:53 ,2a00::1', '8.8.8.8'],
    [' 8.8.8.8\t', '8.8.8.8'],
    [',,8.8.8.8', '8.8.8.8'],
    [`${'x,'.repeat((MAX_LENIENT_BYTES - 8) / 2)}8.8.8.8`, '8.8.8.8'],
    // Without brackets, this is an address without a port.
    ['2a00::1:443', '2a00::1:443'],
  ])('%s', (text, address) => {
    expect(findAddress(text)).toBe(address);
  });

  it.each([
    ...[
      '',
      ' ',
      ',',
      'unknown',
      '8.8.8',
      '8.8.8.8:',
      ':80',
      '/8',
      '8.8.8.8/',
      '8.8.8.8/33',
      '8.8.8.8/0032',
      '2a00::/129',
    ],
    ...[
      '8.8.8.8:65536',
      '8.8.8.8:123456',
      '8.8.8.8:8x',
      '8.8.8.8:-1',
      '8.8.8.8 :80',
      '8.8.8.8;10.0.0.1',
      '8.8.8.8 8.8.4.4',
    ],
    ...[
      '[8.8.8.8]',
      '[8.8.8.8]:80',
      '[2a00::1',
      '2a00::1]',
      '[2a00::1]:',
      '[2a00::1]80',
      '[2a00::1]/64',
      '[[2a00::1]]',
      '[]:1',
    ],
    ...['01.2.3.4:80', '8.8.8.8:80:80', '8.8.8.8/8/8', '8.8.8.8/8:80', '"8.8.8.8"', '8.8.8.8\n', '\ud800,8.8.8.8'],
    `${'x,'.repeat(MAX_LENIENT_BYTES / 2)}8.8.8.8`,
  ])('finds none in %j', (text) => {
    expect(findAddress(text)).toBeUndefined();
  });
});
