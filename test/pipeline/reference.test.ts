import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ipaddr from 'ipaddr.js';
import { describe, expect, test } from 'vitest';
import { readConfigTable, refuseProblems } from '../../pipeline/config/csv-table.js';
import { loadReference, reasonIn, type SpecialRange } from '../../pipeline/config/reference.js';
import { EMBEDDED_SCHEMES, embeddedIPv4 } from '../../src/address/embedded.js';
import { formatIPv4, formatIPv6 } from '../../src/address/format.js';
import { parseAddress } from '../../src/address/parse.js';
import { REASONS } from '../../src/country/assignment.js';
import { isDate } from '../../src/country/country.js';
import { packageFile } from '../../src/package-root.js';
import { parseCidr } from '../../src/range/cidr.js';
import { temporaryDir } from '../support/release.js';

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
  // What ipaddr.js, below, has no name of its own for.
  test.each([
    ['0.0.0.0', 'unspecified'],
    ['0.0.0.1', 'reserved'],
    ['192.0.0.0', 'protocol'],
    ['192.0.0.7', 'protocol'],
    ['192.0.0.8', 'protocol'],
    ['192.0.0.9', 'anycast'],
    ['192.0.0.10', 'anycast'],
    ['192.0.0.11', 'protocol'],
    ['192.0.0.170', 'protocol'],
    ['192.0.2.1', 'documentation'],
    ['192.88.99.1', 'anycast'],
    ['198.18.0.0', 'benchmarking'],
    ['198.19.255.255', 'benchmarking'],
    ['198.51.100.1', 'documentation'],
    ['203.0.113.1', 'documentation'],
    ['240.0.0.0', 'reserved'],
    ['::', 'unspecified'],
    ['::2', 'reserved'],
    ['::8.8.8.8', 'reserved'], // IPv4-compatible, deprecated by RFC 4291 §2.5.5.1
    ['64:ff9b::', 'nat64'],
    ['64:ff9b::ffff:ffff', 'nat64'],
    ['64:ff9b::1:0:0', 'reserved'],
    ['64:ff9b:1::1', 'protocol'],
    ['100:0:0:1::1', 'protocol'],
    ['100:0:0:2::', 'reserved'],
    ['1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
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
    ['3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff', 'documentation'],
    ['4000::', 'reserved'],
    ['5f00::1', 'protocol'],
    ['5f01::', 'reserved'],
    ['fe00::1', 'reserved'],
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
});

describe('tables', () => {
  const rowsOf = <Column extends string>(name: string, columns: readonly Column[]) => {
    const { rows, problems } = readConfigTable(packageFile(`data/reference/${name}.csv`), columns);
    expect(problems).toEqual([]);
    return rows.map(({ cells }) => cells);
  };
  /** Expects cells that differ and are not empty. */
  const expectKeys = (cells: readonly string[]): void => {
    expect(cells).not.toContain('');
    expect(cells.filter((cell, i) => cells.indexOf(cell) !== i)).toEqual([]);
  };
  const parses = (ip: string): boolean => parseAddress(ip, new Uint32Array(4)) !== 0;
  const countries = rowsOf('countries', ['code', 'name']);
  const codes = countries.map(({ code }) => code);

  test('countries have a code and a name of their own', () => {
    expectKeys(codes);
    expectKeys(countries.map(({ name }) => name));
    for (const code of codes) expect(code).toMatch(/^[A-Z]{2}$/);
  });

  test.each(['eu-membership', 'eea-membership'])('%s: days of countries, without overlaps', (name) => {
    const rows = rowsOf(name, ['code', 'from', 'until', 'basis']);
    for (const { code, from, until, basis } of rows) {
      expect(codes).toContain(code);
      expect(basis).not.toBe('');
      expect([from, ...(until === '' ? [] : [until])].every(isDate), code).toBe(true);
      expect(until === '' || from < until, code).toBe(true);
      const overlapping = rows.filter(
        (other) =>
          other.code === code && (until === '' || other.from < until) && (other.until === '' || from < other.until),
      );
      expect(overlapping).toHaveLength(1);
    }
  });

  test('aliases are no codes, and name countries', () => {
    const rows = rowsOf('country-aliases', ['alias', 'code', 'note']);
    // One of them is the empty text.
    expect(new Set(rows.map(({ alias }) => alias)).size).toBe(rows.length);
    for (const { alias, code, note } of rows) {
      expect([alias.toUpperCase(), codes.includes(alias), note === '']).toEqual([alias, false, false]);
      if (code !== '') expect(codes).toContain(code);
    }
  });

  const block = (text: string): string => {
    const [first, last] = [new Uint32Array(4), new Uint32Array(4)];
    const parsed = parseCidr(text, first, last);
    expect([text, text.includes('/'), parsed?.hostBitsSet]).toEqual([text, true, false]);
    return `${parsed!.family} ${first.join()} ${last.join()}`;
  };

  test('special-purpose ranges are blocks with a reason or a scheme', () => {
    const rows = rowsOf('special-purpose', ['prefix', 'reason', 'embedded', 'layer', 'name', 'rfc', 'registry']);
    expectKeys(rows.map(({ prefix }) => block(prefix)));
    for (const { prefix, reason, embedded, layer, name, rfc, registry } of rows) {
      const isEmbedded = (EMBEDDED_SCHEMES as readonly string[]).includes(embedded) && prefix.includes(':');
      expect([prefix, embedded === '' ? reason in REASONS : isEmbedded && reason === '']).toEqual([prefix, true]);
      expect(['over', 'under']).toContain(layer);
      expect([name, rfc, registry]).not.toContain('');
    }
  });

  test('sentinels are addresses with a country, a reason or an AS number', () => {
    const rows = rowsOf('sentinels', ['ip', 'expected', 'why']);
    const networks = rowsOf('network-sentinels', ['ip', 'asn', 'why']);
    for (const list of [rows, networks]) {
      expectKeys(list.map(({ ip }) => ip));
      for (const { ip, why } of list) expect([ip, parses(ip), why === '']).toEqual([ip, true, false]);
    }
    for (const { expected } of rows) expect(codes.includes(expected) || reasonIn(expected) !== undefined).toBe(true);
    for (const { asn } of networks) expect(asn).toMatch(/^[1-9]\d{0,9}$/);
  });

  test('anycast blocks have a service, an origin and a day', () => {
    for (const { prefix, service, origin, date } of rowsOf('anycast', ['prefix', 'service', 'origin', 'date'])) {
      block(prefix);
      expect([isDate(date), service === '', origin === '']).toEqual([true, false, false]);
    }
  });
});

describe('a table that is written by hand', () => {
  const file = join(temporaryDir(), 'table.csv');
  const read = (text: string | Buffer) => {
    writeFileSync(file, text);
    const table = readConfigTable(file, ['code', 'name'], ['note']);
    refuseProblems([table]);
    return table.rows;
  };

  test.each<[string, string | Buffer, string]>([
    ['nothing', '', 'empty; its first row must name the columns code, name [, note]'],
    ['only a comment', '# only a comment\n', 'empty; its first row must name'],
    ['another column', 'code,label\nDE,Germany\n', '1: its first row must name the columns code, name'],
    ['a column twice', 'code,code\nDE,Germany\n', '1: its first row must name the columns code, name'],
    ['too few cells', '# a\n\ncode,name\nDE\n', '4: 1 cells under 2 columns'],
    ['too many cells', 'code,name\nDE,Germany,x\n', '2: 3 cells under 2 columns'],
    ['a quote without end', 'code,name\nDE,"Germany\n', 'Quote Not Closed'],
    ['latin1', Buffer.from('code,name\nCI,C\xf4te\n', 'latin1'), 'not UTF-8'],
    ['thirty problems', `code,name\n${'DE\n'.repeat(30)}`, '… and 10 more'],
  ])('is refused with %s', (_what, text, message) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'E_CONFIG' }));
    expect(() => read(text)).toThrow(message);
  });

  test('may have its columns in another order, a byte order mark and CRLF', () => {
    expect(read('\ufeffname,code\r\n Germany ,DE\r\n')).toEqual([
      { line: 2, cells: { code: 'DE', name: 'Germany', note: '' } },
    ]);
  });
});
