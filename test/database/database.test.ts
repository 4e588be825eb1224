import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/database/database.js';
import { smallRelease } from '../support/release.js';

const US = { country: 'United States', country_code: 'US', is_eu: false };
const NL = { country: 'Netherlands', country_code: 'NL', is_eu: true };
const FR = { country: 'France', country_code: 'FR', is_eu: true };
const NOWHERE = { country: null, country_code: null, is_eu: false };

const dataDir = await smallRelease();

describe.each(['binary', 'sqlite'] as const)('the %s engine', (engine) => {
  let database: Database;
  beforeAll(() => {
    database = openDatabase(dataDir, { engine });
  });
  afterAll(() => database.close());

  it.each([
    ['8.8.8.8', { ip: '8.8.8.8', ...US, reason: null }],
    ['193.0.7.255', { ip: '193.0.7.255', ...NL, reason: null }],
    ['193.0.8.0', { ip: '193.0.8.0', ...NOWHERE, reason: 'unallocated' }],
    ['10.1.2.3', { ip: '10.1.2.3', ...NOWHERE, reason: 'private' }],
    ['0.0.0.0', { ip: '0.0.0.0', ...NOWHERE, reason: 'unallocated' }],
    ['255.255.255.255', { ip: '255.255.255.255', ...NOWHERE, reason: 'unallocated' }],
    ['2001:4860:4860::8888', { ip: '2001:4860:4860:0000:0000:0000:0000:8888', ...US, reason: null }],
    ['::1', { ip: '0000:0000:0000:0000:0000:0000:0000:0001', ...NOWHERE, reason: 'loopback' }],
    ['::', { ip: '0000:0000:0000:0000:0000:0000:0000:0000', ...NOWHERE, reason: 'unallocated' }],
    [
      'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
      { ip: 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', ...NOWHERE, reason: 'unallocated' },
    ],
    // A range of one address inside wider ranges, and both its neighbors.
    ['2a00:1:0:1::41', { ip: '2a00:0001:0000:0001:0000:0000:0000:0041', ...FR, reason: null }],
    ['2a00:1::41', { ip: '2a00:0001:0000:0000:0000:0000:0000:0041', ...FR, reason: null }],
    // An IPv4-mapped address is that IPv4 address.
    ['::ffff:193.0.6.139', { ip: '193.0.6.139', ...NL, reason: null }],
    // The embedded IPv4 address decides: 6to4, NAT64, Teredo (inverted).
    ['2002:0808:0808::1', { ip: '2002:0808:0808:0000:0000:0000:0000:0001', ...US, reason: null }],
    ['2002:a00:1::', { ip: '2002:0a00:0001:0000:0000:0000:0000:0000', ...NOWHERE, reason: 'private' }],
    ['64:ff9b::8.8.8.8', { ip: '0064:ff9b:0000:0000:0000:0000:0808:0808', ...US, reason: null }],
    ['2001:0:1::f7f7:f7f7', { ip: '2001:0000:0001:0000:0000:0000:f7f7:f7f7', ...US, reason: null }],
  ])('gives the expected result for %s', (text, expected) => {
    expect(database.lookupWithReason(text)).toEqual(expected);
    const { reason: _, ...fields } = expected;
    expect(Object.entries(database.lookup(text)!)).toEqual(Object.entries(fields));
  });

  it('writes addresses in full and in lower case, regardless of the spelling', () => {
    const full = '2a00:abcd:0000:0000:0000:0000:00ef:0001';
    for (const text of [
      full,
      full.toUpperCase(),
      '2A00:abcd:0000:0000:0000:0000:00ef:0001',
      '2a00:abcd::0000:0000:0000:00ef:0001',
      '2a00:abcd::ef:1',
      '2a00:abcd:0:0:0:0:0.239.0.1',
      '2a00:abcd:0000:0000:0000:0000:0.239.0.1',
    ]) {
      expect(database.lookup(text)).toEqual({ ip: full, country: 'Germany', country_code: 'DE', is_eu: true });
    }
  });

  it('finds a range of a single address, and not for its neighbors', () => {
    expect(database.lookup('2a00:1:0:1::42')?.country_code).toBe('GB');
    expect(database.lookup('2a00:1:0:1::43')?.country_code).toBe('FR');
  });

  it.each(['', '8.8.8', '8.8.8.256', '1::2::3', 'fe80::1%eth0'])(
    'returns undefined for %j, which is not an address',
    (text) => {
      expect(database.lookup(text)).toBeUndefined();
      expect(database.lookupWithReason(text)).toBeUndefined();
    },
  );

  it('looks up bytes', () => {
    expect(database.lookupBytes(Uint8Array.of(193, 0, 6, 139))).toEqual({ ip: '193.0.6.139', ...NL });
    const mapped = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 193, 0, 6, 139);
    expect(database.lookupBytes(mapped)).toEqual({ ip: '193.0.6.139', ...NL });
    expect(database.lookupBytes(new Uint8Array(5))).toBeUndefined();
  });
});
