import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { afterEach, describe, expect, test } from 'vitest';
import { loadReference, readReference, type SpecialRange } from '../../pipeline/config/reference.js';
import { embeddedIPv4 } from '../../src/address/embedded.js';
import { formatIPv4, formatIPv6 } from '../../src/address/format.js';
import { parseAddress } from '../../src/address/parse.js';
import { REASONS } from '../../src/country/assignment.js';
import { packageFile } from '../../src/package-root.js';

const reference = loadReference();

/** Returns an address as one number, computed from hexadecimal text, without the code under test. */
function toNumber(words: ArrayLike<number>): bigint {
  return BigInt(`0x${Array.from(words, (word) => word.toString(16).padStart(8, '0')).join('')}`);
}

function toText(family: 4 | 6, number: bigint): string {
  if (family === 4) return formatIPv4(Number(number));
  const word = (shift: bigint): number => Number((number >> shift) & 0xffffffffn);
  return formatIPv6(word(96n), word(64n), word(32n), word(0n));
}

/** Returns the narrowest special range that contains the address, by a scan over all. */
function specialAt(text: string): SpecialRange | undefined {
  const words = new Uint32Array(4);
  const family = parseAddress(text, words);
  const number = toNumber(family === 4 ? words.slice(0, 1) : words);
  const size = (range: SpecialRange): bigint => toNumber(range.last) - toNumber(range.first);
  return reference.special
    .filter((range) => range.family === family && toNumber(range.first) <= number && number <= toNumber(range.last))
    .sort((a, b) => (size(a) < size(b) ? -1 : 1))[0];
}

/** Returns `private`, `6to4`, …; undefined if the sources decide. */
function wordAt(text: string): string | undefined {
  const result = specialAt(text)?.result;
  return result?.kind === 'none' ? result.reason : result?.scheme;
}

describe('special-purpose ranges', () => {
  // One address of each at least; their ends are compared with ipaddr.js below.
  test.each([
    ['0.0.0.0', 'unspecified'],
    ['0.0.0.1', 'reserved'],
    ['0.255.255.255', 'reserved'],
    ['10.0.0.0', 'private'],
    ['100.64.0.0', 'shared'],
    ['127.0.0.1', 'loopback'],
    ['169.254.255.255', 'link_local'],
    ['172.16.0.0', 'private'],
    ['192.0.0.0', 'protocol'],
    ['192.0.0.7', 'protocol'],
    ['192.0.0.8', 'protocol'],
    ['192.0.0.9', 'anycast'],
    ['192.0.0.10', 'anycast'],
    ['192.0.0.11', 'protocol'],
    ['192.0.0.170', 'protocol'],
    ['192.0.0.255', 'protocol'],
    ['192.0.2.1', 'documentation'],
    ['192.31.196.1', 'anycast'],
    ['192.52.193.1', 'anycast'],
    ['192.88.99.1', 'anycast'],
    ['192.168.255.255', 'private'],
    ['192.175.48.6', 'anycast'],
    ['198.18.0.0', 'benchmarking'],
    ['198.19.255.255', 'benchmarking'],
    ['198.51.100.1', 'documentation'],
    ['203.0.113.1', 'documentation'],
    ['224.0.0.0', 'multicast'],
    ['240.0.0.0', 'reserved'],
    ['255.255.255.254', 'reserved'],
    ['255.255.255.255', 'broadcast'],
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['::2', 'reserved'],
    ['::8.8.8.8', 'reserved'], // IPv4-compatible, deprecated by RFC 4291 §2.5.5.1
    ['64:ff9b::', 'nat64'],
    ['64:ff9b::ffff:ffff', 'nat64'],
    ['64:ff9b::1:0:0', 'reserved'],
    ['64:ff9b:1::1', 'protocol'],
    ['100::1', 'discard'],
    ['100:0:0:1::1', 'protocol'],
    ['100:0:0:2::', 'reserved'],
    ['1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
    ['2001::', 'teredo'],
    ['2001:1::', 'protocol'],
    ['2001:1::1', 'anycast'],
    ['2001:1::3', 'anycast'],
    ['2001:1::4', 'protocol'],
    ['2001:2::1', 'benchmarking'],
    ['2001:2:1::', 'protocol'],
    ['2001:3::1', 'anycast'],
    ['2001:4:112::1', 'anycast'],
    ['2001:10::1', 'reserved'],
    ['2001:20::1', 'protocol'],
    ['2001:30::1', 'protocol'],
    ['2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', 'protocol'],
    ['2001:db8::1', 'documentation'],
    ['2002::', '6to4'],
    ['2620:4f:8000::1', 'anycast'],
    ['3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff', 'documentation'],
    ['4000::', 'reserved'],
    ['5f00::1', 'protocol'],
    ['5f01::', 'reserved'],
    ['fc00::1', 'private'],
    ['fe00::1', 'reserved'],
    ['fe80::1', 'link_local'],
    ['fec0::1', 'reserved'],
    ['ff02::1', 'multicast'],
  ])('%s is %s', (ip, expected) => {
    expect(wordAt(ip)).toBe(expected);
  });

  test('cover all IPv6 addresses except 2000::/3', () => {
    const blocks = reference.special
      .filter(({ family }) => family === 6)
      .map(({ first, last }) => ({ first: toNumber(first), last: toNumber(last) }))
      .sort((a, b) => (a.first < b.first ? -1 : 1));
    let end = -1n;
    const gaps: string[] = [];
    for (const { first, last } of blocks) {
      expect(last >= first).toBe(true);
      if (first > end + 1n) gaps.push(toText(6, end + 1n), toText(6, first - 1n));
      if (last > end) end = last;
    }
    expect(end).toBe((1n << 128n) - 1n);
    expect(gaps[0]).toBe('2000::');
    expect(gaps.at(-1)).toBe('3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff');
  });

  test('are below the sources only if their addresses embed an IPv4 address', () => {
    for (const { result, layer } of reference.special)
      expect(layer).toBe(result.kind === 'embedded' ? 'under' : 'over');
    expect(reference.special.filter(({ layer }) => layer === 'under').map(({ block }) => block)).toEqual([
      '64:ff9b::/96',
      '2001::/32',
      '2002::/16',
    ]);
  });

  test('use every reason except those that come from sources', () => {
    const used = new Set(reference.special.map(({ result }) => (result.kind === 'none' ? result.reason : '')));
    const unused = Object.keys(REASONS).filter((reason) => !used.has(reason as never));
    expect(unused).toEqual(['unknown', 'unallocated']);
  });

  // ipaddr.js has its own tables of the same registries. Left its name, right our names for it.
  const words: Record<string, (string | undefined)[]> = {
    broadcast: ['broadcast'],
    multicast: ['multicast'],
    linkLocal: ['link_local'],
    loopback: ['loopback'],
    carrierGradeNat: ['shared'],
    private: ['private'],
    uniqueLocal: ['private'],
    unspecified: ['unspecified', 'reserved'], // it has one name for all of 0.0.0.0/8
    reserved: ['reserved', 'protocol', 'anycast', 'documentation', 'benchmarking'],
    as112: ['anycast'],
    as112v6: ['anycast'],
    amt: ['anycast'],
    deprecatedSiteLocal: ['reserved'],
    discard: ['discard'],
    rfc6145: ['reserved'],
    rfc6052: ['nat64', 'protocol'],
    '6to4': ['6to4'],
    teredo: ['teredo'],
    benchmarking: ['benchmarking'],
    deprecatedOrchid: ['reserved'],
    orchid2: ['protocol'],
    droneRemoteIdProtocolEntityTags: ['protocol'],
    segmentRouting: ['protocol'],
    unicast: [undefined],
  };

  /** Returns whether our name for an address matches that of ipaddr.js. */
  function agrees(text: string): boolean {
    const theirs = ipaddr.parse(text).range() as string;
    if (theirs === 'ipv4Mapped') return true; // treated as IPv4 here
    const outside = text.includes(':') && !/^[23][0-9a-f]{3}:/.test(text);
    // It does not have what IANA reserves outside 2000::/3, nor the dummy prefix of RFC 9780.
    if (theirs === 'unicast' && outside) return ['reserved', 'protocol'].includes(wordAt(text) ?? '');
    return words[theirs]!.includes(wordAt(text));
  }

  test('agree with ipaddr.js at both ends of every range and next to them', () => {
    const top = { 4: (1n << 32n) - 1n, 6: (1n << 128n) - 1n };
    for (const { family, first, last } of reference.special) {
      const ends = [toNumber(first) - 1n, toNumber(first), toNumber(last), toNumber(last) + 1n];
      for (const end of ends.filter((number) => number >= 0n && number <= top[family])) {
        const text = toText(family, end);
        expect([text, agrees(text)]).toEqual([text, true]);
      }
    }
  });

  test('agree with ipaddr.js on random addresses', () => {
    const v6Top = fc.constantFrom(0x2001n, 0x2002n, 0x2620n, 0x3fffn, 0x64n, 0x100n, 0xfe80n, 0x5f00n);
    const v6 = fc.oneof(
      fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }),
      fc
        .tuple(
          v6Top,
          fc.constantFrom(0n, 1n, 2n, 3n, 4n, 0x10n, 0x20n, 0x30n, 0xdb8n, 0x4fn, 0xff9bn, 0x1ffn),
          fc.bigInt(0n, (1n << 96n) - 1n),
        )
        .map(([group, second, rest]) => (group << 112n) | (second << 96n) | rest),
    );
    const text = fc.oneof(
      fc.bigInt({ min: 0n, max: (1n << 32n) - 1n }).map((number) => toText(4, number)),
      fc.integer({ min: 0, max: 65_535 }).map((low) => toText(4, 0xc0000000n | BigInt(low))),
      v6.map((number) => toText(6, number)),
    );
    fc.assert(fc.property(text, agrees), { numRuns: 2_000 });
  });
});

describe('sentinels', () => {
  test.each(reference.sentinels)('$ip, $why: agrees with the special-purpose ranges', ({ ip, expected }) => {
    const words = new Uint32Array(4);
    expect(parseAddress(ip, words)).not.toBe(0);
    const result = specialAt(ip)?.result;
    // The embedded IPv4 address decides.
    const inner = result?.kind === 'embedded' ? formatIPv4(embeddedIPv4(result.scheme, words)) : ip;
    expect(wordAt(inner)).toBe(expected.kind === 'none' ? expected.reason : undefined);
  });

  test('cover both families, every region and every reason of the registries', () => {
    for (const rir of ['ARIN', 'RIPE', 'APNIC', 'LACNIC', 'AFRINIC']) {
      const ips = reference.sentinels.filter(({ why }) => why.endsWith(`(${rir})`)).map(({ ip }) => ip);
      expect(ips.filter((ip) => ip.includes(':')).length).toBeGreaterThan(1);
      expect(ips.filter((ip) => ip.includes('.')).length).toBeGreaterThan(1);
    }
    const reasons = reference.sentinels.map(({ expected }) => (expected.kind === 'none' ? expected.reason : ''));
    const missing = Object.keys(REASONS).filter((reason) => !reasons.includes(reason as never));
    expect(missing).toEqual(['unknown', 'unallocated']);
  });
});

describe('files', () => {
  const files = ['countries', 'eu-membership', 'eea-membership', 'country-aliases', 'special-purpose', 'sentinels'];

  test.each(files)('%s.csv names its origin, date and license', (name) => {
    const text = readFileSync(packageFile(`data/reference/${name}.csv`), 'utf8');
    const head = text.slice(0, text.search(/^[^#]/m));
    expect(head).toMatch(/Origin|Codes:/);
    expect(head).toMatch(/\d{4}-\d{2}-\d{2}/);
    expect(head).toMatch(/Licence:/);
    expect(text).not.toContain('\r');
    expect(text.endsWith('\n')).toBe(true);
  });

  let folder = '';
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Returns a copy of the tables with one more row, or with one text replaced. */
  function altered(file: string, change: (text: string) => string): string {
    folder = mkdtempSync(path.join(tmpdir(), 'ipatlas-reference-'));
    cpSync(packageFile('data/reference'), folder, { recursive: true });
    const target = path.join(folder, file);
    writeFileSync(target, change(readFileSync(target, 'utf8')));
    return folder;
  }

  // file, a row to append, what the message must say
  test.each([
    ['countries.csv', 'us,Small', 'code "us": write two capital letters'],
    ['countries.csv', 'USA,Three', 'code "USA": write two capital letters'],
    ['countries.csv', 'US,Twice', 'code US is listed twice'],
    ['countries.csv', 'QQ,France', 'name France is listed twice'],
    ['countries.csv', 'QQ,', 'name is empty'],
    ['countries.csv', 'QQ', '1 cells under 2 columns'],
    ['countries.csv', 'QQ,Q,Q', '3 cells under 2 columns'],
    ['eu-membership.csv', 'QQ,2030-01-01,,Treaty', 'code "QQ" is not in countries.csv'],
    ['eu-membership.csv', 'NO,2030-02-30,,Treaty', '"2030-02-30": write a day as YYYY-MM-DD'],
    ['eu-membership.csv', 'NO,2030-01-01,soon,Treaty', '"soon": write a day as YYYY-MM-DD'],
    ['eu-membership.csv', 'NO,,,Treaty', '"": write a day as YYYY-MM-DD'],
    ['eu-membership.csv', 'NO,2030-01-01,2030-01-01,Treaty', 'until 2030-01-01 is not after from 2030-01-01'],
    ['eu-membership.csv', 'NO,2030-01-01,,', 'basis is empty'],
    ['eu-membership.csv', 'DE,2030-01-01,,Treaty', 'DE: overlaps the membership from 1958-01-01'],
    ['eu-membership.csv', 'GB,2020-01-31,,Treaty', 'GB: overlaps the membership from 1973-01-01'],
    ['country-aliases.csv', 'QX,QQ,note', 'code "QQ" is not in countries.csv'],
    ['country-aliases.csv', 'DE,AT,note', 'alias DE is itself a code of countries.csv'],
    ['country-aliases.csv', 'UK,FR,note', 'alias "UK" is listed twice'],
    ['country-aliases.csv', 'qx,FR,note', 'alias "qx": write it in upper case'],
    ['country-aliases.csv', 'QX,FR,', 'note is empty'],
    ['special-purpose.csv', '10.0.0.1/8,private,,over,n,RFC 1,r', 'prefix "10.0.0.1/8" is not a CIDR block'],
    ['special-purpose.csv', '11.0.0.0,private,,over,n,RFC 1,r', 'prefix "11.0.0.0" is not a CIDR block'],
    ['special-purpose.csv', '10.0.0.0/8,private,,over,n,RFC 1,r', 'prefix 10.0.0.0/8 is already on line'],
    ['special-purpose.csv', 'FE80:0::/10,private,,over,n,RFC 1,r', 'prefix FE80:0::/10 is already on line'],
    [
      'special-purpose.csv',
      '11.0.0.0/8,secret,,over,n,RFC 1,r',
      'write either a known reason or a known embedded scheme',
    ],
    ['special-purpose.csv', '11.0.0.0/8,,,over,n,RFC 1,r', 'write either a known reason or a known embedded scheme'],
    [
      'special-purpose.csv',
      '2003::/16,private,6to4,over,n,RFC 1,r',
      'write either a known reason or a known embedded scheme',
    ],
    [
      'special-purpose.csv',
      '2003::/16,,isatap,over,n,RFC 1,r',
      'write either a known reason or a known embedded scheme',
    ],
    ['special-purpose.csv', '11.0.0.0/8,,6to4,under,n,RFC 1,r', 'embedded is for IPv6 only'],
    ['special-purpose.csv', '11.0.0.0/8,private,,beside,n,RFC 1,r', 'layer "beside": write over or under'],
    ['special-purpose.csv', '11.0.0.0/8,private,,over,,RFC 1,r', 'name is empty'],
    ['special-purpose.csv', '11.0.0.0/8,private,,over,n,,r', 'rfc is empty'],
    ['sentinels.csv', '1.2.3,US,why', 'ip "1.2.3" is not an address'],
    ['sentinels.csv', '8.8.8.8,US,why', 'ip 8.8.8.8 is listed twice'],
    ['sentinels.csv', '8.8.8.9,UK,why', 'expected "UK" is neither a code'],
    ['sentinels.csv', '8.8.8.9,reason:secret,why', 'expected "reason:secret" is neither a code'],
    ['sentinels.csv', '8.8.8.9,US,', 'why is empty'],
    ['sentinels.csv', '8.8.8.9,"US,why', 'Quote Not Closed'],
  ])('%s with the row %j is refused: %s', (file, row, message) => {
    const at = altered(file, (text) => `${text}${row}\n`);
    const line = readFileSync(path.join(at, file), 'utf8').split('\n').length - 1;
    let problem: unknown;
    try {
      readReference(at);
    } catch (error) {
      problem = error;
    }
    expect(problem).toMatchObject({ code: 'E_CONFIG', exitCode: 2 });
    const { message: got } = problem as Error;
    expect(got).toContain(message);
    // A quote that is never closed is noticed at the end of the file, one line later.
    const lines = message === 'Quote Not Closed' ? [line, line + 1] : [line];
    expect(lines.map((number) => `${path.join(at, file)}:${number}: `).some((place) => got.startsWith(place))).toBe(
      true,
    );
  });

  // file, change, what the message must say
  test.each<[string, (text: string) => string, string]>([
    ['countries.csv', () => '', 'empty; its first row must name the columns code, name'],
    ['countries.csv', () => '# only a comment\n', 'empty; its first row must name the columns code, name'],
    [
      'countries.csv',
      (text) => text.replace('code,name', 'code,label'),
      'its first row must name the columns code, name',
    ],
    [
      'countries.csv',
      (text) => text.replace('code,name', 'code,code'),
      'its first row must name the columns code, name',
    ],
    ['countries.csv', (text) => text.replace('DE,Germany\n', ''), 'code "DE" is not in countries.csv'],
  ])('%s, altered, is refused', (file, change, message) => {
    const at = altered(file, change);
    expect(() => readReference(at)).toThrow(expect.objectContaining({ code: 'E_CONFIG' }));
    expect(() => readReference(at)).toThrow(message);
  });

  test.each(['2020-02-01', '2030-01-01'])('a state may join again, on the day it left or later: %s', (from) => {
    const at = altered('eu-membership.csv', (text) => `${text}GB,${from},,"Treaty of Accession, 2029-01-01"\n`);
    expect(readReference(at).memberships.filter(({ code, group }) => code === 'GB' && group === 'EU')).toHaveLength(2);
  });

  test('that are not UTF-8 or missing are refused by name', () => {
    const at = altered('countries.csv', (text) => text);
    writeFileSync(path.join(at, 'countries.csv'), Buffer.from('code,name\nCI,C\xf4te\n', 'latin1'));
    expect(() => readReference(at)).toThrow(/countries\.csv: not UTF-8/);
    rmSync(path.join(at, 'countries.csv'));
    expect(() => readReference(at)).toThrow(/countries\.csv: cannot be read/);
  });

  test('columns may be in another order, with a byte order mark and CRLF', () => {
    const rows = [...reference.countries].map(([code, name]) => `${name},${code}\r\n`).reverse();
    const at = altered('countries.csv', () => `\ufeffname,code\r\n${rows.join('')}`);
    expect([...readReference(at).countries]).toEqual([...reference.countries]);
  });

  test('more than twenty problems are counted, not listed', () => {
    const at = altered(
      'countries.csv',
      (text) => text + Array.from({ length: 30 }, () => 'US,United States\n').join(''),
    );
    try {
      readReference(at);
      expect.unreachable();
    } catch (error) {
      const lines = (error as Error).message.split('\n');
      expect(lines).toHaveLength(21);
      expect(lines.at(-1)).toBe('… and 40 more');
    }
  });
});
