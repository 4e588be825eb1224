import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadOverrides, type Overrides } from '../../pipeline/config/overrides.js';
import { loadReference } from '../../pipeline/config/reference.js';
import { formatAddress } from '../../src/address/format.js';
import { temporaryDir } from '../support/temporary.js';

const reference = loadReference();
const folder = temporaryDir();

function load(text: string | Buffer, asOf = '2026-06-15'): Overrides {
  const file = path.join(folder, 'overrides.csv');
  writeFileSync(file, text);
  return loadOverrides(file, reference, asOf);
}

/** The rows as text, `first-last result`. */
function plain({ rows }: Overrides): string[] {
  return rows.map(({ family, first, last, result }) => {
    expect([first.length, last.length]).toEqual(family === 4 ? [1, 1] : [4, 4]);
    const what = result.kind === 'country' ? result.code : result.reason;
    return `${formatAddress(family, first)}-${formatAddress(family, last)} ${what}`;
  });
}

// range, country, the row as it is read
test.each([
  ['203.0.113.0/24', 'NL', '203.0.113.0-203.0.113.255 NL'],
  ['0.0.0.0/0', 'nl', '0.0.0.0-255.255.255.255 NL'],
  ['8.8.8.8', 'UK', '8.8.8.8-8.8.8.8 GB'],
  ['8.8.8.8/32', 'XK', '8.8.8.8-8.8.8.8 XK'],
  ['1.0.0.0-1.0.2.255', 'AU', '1.0.0.0-1.0.2.255 AU'],
  ['1.0.0.0 - 1.0.2.255', 'AU', '1.0.0.0-1.0.2.255 AU'],
  ['1.0.0.5-1.0.0.5', 'AU', '1.0.0.5-1.0.0.5 AU'],
  ['0.0.0.0-255.255.255.255', 'AU', '0.0.0.0-255.255.255.255 AU'],
  ['2001:db8::/32', 'FR', '2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff FR'],
  ['2001:DB8::1', 'FR', '2001:db8::1-2001:db8::1 FR'],
  ['2001:db8::-2001:db8:0:1::', 'FR', '2001:db8::-2001:db8:0:1:: FR'],
  ['::/0', 'FR', '::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff FR'],
  ['::ffff:1.2.3.0/120', 'FR', '1.2.3.0-1.2.3.255 FR'],
  ['::ffff:0:0/96', 'FR', '0.0.0.0-255.255.255.255 FR'],
  ['::ffff:1.2.3.4', 'FR', '1.2.3.4-1.2.3.4 FR'],
  ['::ffff:1.2.3.4-1.2.3.9', 'FR', '1.2.3.4-1.2.3.9 FR'],
  ['::fffe:0:0/95', 'FR', '::fffe:0:0-::ffff:ffff:ffff FR'],
  ['10.0.0.0/8', '', '10.0.0.0-10.255.255.255 unknown'],
  ['10.0.0.0/8', '-', '10.0.0.0-10.255.255.255 unknown'],
  ['44.0.0.0/9', 'reason:private', '44.0.0.0-44.127.255.255 private'],
])('range %s, country %j: %s', (range, country, expected) => {
  expect(plain(load(`range,country,note,expires\n${range},${country},,\n`))).toEqual([expected]);
});

test('rows keep their order, line and note; comments and blank lines are ignored', () => {
  const { rows, expired } = load(
    '\ufeff# ours\nrange,country,note,expires\r\n\n9.0.0.0/8,US,"the lab, upstairs",\r\n# a comment\n8.0.0.0/8,DE,,2030-01-01\n',
  );
  expect(expired).toBe(0);
  expect(rows.map(({ line, note, result }) => ({ line, note, result }))).toEqual([
    { line: 4, note: 'the lab, upstairs', result: { kind: 'country', code: 'US' } },
    { line: 6, note: '', result: { kind: 'country', code: 'DE' } },
  ]);
});

test('note and expires may be missing, and columns may be in any order', () => {
  expect(plain(load('country,range\nDE,8.0.0.0/8\n'))).toEqual(['8.0.0.0-8.255.255.255 DE']);
  expect(plain(load('expires,country,range\n,DE,8.0.0.0/8\n'))).toEqual(['8.0.0.0-8.255.255.255 DE']);
});

test('a file with only a header has no rows', () => {
  expect(load('range,country,note,expires\n')).toEqual({ rows: [], expired: 0 });
});

test.each([
  ['2026-06-14', 1, 0],
  ['2026-06-15', 0, 1],
  ['2026-06-16', 0, 1],
])('as of %s, of rows that expire on 2026-06-15, %i apply and %i are expired', (asOf, rows, expired) => {
  const loaded = load('range,country,note,expires\n8.0.0.0/8,DE,,2026-06-15\n', asOf);
  expect([loaded.rows.length, loaded.expired]).toEqual([rows, expired]);
});

describe('refused', () => {
  // a row, what the message must say
  test.each([
    ['8.8.8.8.8,DE,,', 'range "8.8.8.8.8" is not an address, a CIDR block or first-last'],
    [',DE,,', 'range "" is not an address'],
    ['8.0.0.0/08,DE,,', 'range "8.0.0.0/08" is not an address'],
    ['8.0.0.1/8,DE,,', 'has bits set after its prefix'],
    ['8.0.0.9-8.0.0.1,DE,,', 'ends before it begins'],
    ['8.0.0.0-2001:db8::,DE,,', 'mixes IPv4 and IPv6'],
    ['8.0.0.0-,DE,,', '"" is not an address'],
    ['fe80::1%eth0,DE,,', 'range "fe80::1%eth0" is not an address'],
    ['8.0.0.0/8,Germany,,', 'country "Germany" is not an ISO 3166-1 code'],
    ['8.0.0.0/8,QQ,,', 'country "QQ" is not an ISO 3166-1 code'],
    ['8.0.0.0/8,EU,,', 'country "EU" names no country; leave the cell empty if that is intended'],
    ['8.0.0.0/8,reason:secret,,', '"reason:secret": the reasons are private, '],
    ['8.0.0.0/8,DE,,2026-02-30', 'expires "2026-02-30": write a day as YYYY-MM-DD'],
    ['8.0.0.0/8,DE,,never', 'expires "never": write a day as YYYY-MM-DD'],
    ['8.0.0.0/8,Germany,,2001-01-01', 'country "Germany" is not an ISO 3166-1 code'], // expired, but still an error
    ['8.0.0.0/8,DE', '2 cells under 4 columns'],
    ['8.0.0.0/8,DE,a note, with a comma,', '5 cells under 4 columns'],
    ['8.0.0.0/8,DE,"a note,', 'Quote Not Closed'],
  ])('%s', (row, message) => {
    const text = `# ours\nrange,country,note,expires\n9.0.0.0/8,US,,\n${row}\n`;
    expect(() => load(text)).toThrow(expect.objectContaining({ code: 'E_CONFIG' }));
    expect(() => load(text)).toThrow(message);
    expect(() => load(text)).toThrow(/overrides\.csv:[45]: /);
  });

  test('all errors are listed at once, with their lines', () => {
    const text = 'range,country,note,expires\nx,DE,,\n8.0.0.0/8,DE,,\n9.0.0.0/8,QQ,,soon\n';
    let message = '';
    try {
      load(text);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message.split('\n').map((line) => line.slice(line.indexOf('overrides.csv')).split(': ')[0])).toEqual([
      'overrides.csv:2',
      'overrides.csv:4',
      'overrides.csv:4',
    ]);
  });

  test.each([
    ['', 'empty'],
    ['8.0.0.0/8,DE,,\n', 'its first row must name the columns range, country [, note] [, expires]'],
    ['range,country,remark\n', 'its first row must name the columns'],
    ['range,note\n', 'its first row must name the columns'],
    [Buffer.from([0x89, 0x50, 0xff, 0xfe, 0x00]), 'not UTF-8'],
  ])('%j', (text, message) => {
    expect(() => load(text)).toThrow(expect.objectContaining({ code: 'E_CONFIG' }));
    expect(() => load(text)).toThrow(message);
  });

  test('a missing file, a folder, or a device without end', () => {
    for (const file of [path.join(folder, 'missing.csv'), folder, '/dev/zero']) {
      expect(() => loadOverrides(file, reference, '2026-01-01')).toThrow(/cannot be read/);
    }
  });
});
