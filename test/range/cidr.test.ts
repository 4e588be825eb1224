import { describe, expect, it } from 'vitest';
import { formatCidr, parseCidr, rangeToCidrs } from '../../src/range/cidr.js';

function blocks(family: 4 | 6, first: number[], last: number[]): string[] {
  const list: string[] = [];
  rangeToCidrs(family, Uint32Array.from(first), Uint32Array.from(last), (at, prefix) => {
    list.push(formatCidr(family, at, prefix));
  });
  return list;
}

describe('parseCidr', () => {
  it.each([
    ['10.0.0.0/8', 4, [0x0a000000], [0x0affffff], false],
    ['10.1.2.3/8', 4, [0x0a000000], [0x0affffff], true],
    ['1.2.3.4', 4, [0x01020304], [0x01020304], false],
    ['0.0.0.0/0', 4, [0], [0xffffffff], false],
    ['2001:db8::/32', 6, [0x20010db8, 0, 0, 0], [0x20010db8, 0xffffffff, 0xffffffff, 0xffffffff], false],
    ['::/0', 6, [0, 0, 0, 0], Array(4).fill(0xffffffff), false],
    ['2001:db8::/33', 6, [0x20010db8, 0, 0, 0], [0x20010db8, 0x7fffffff, 0xffffffff, 0xffffffff], false],
    ['::1/128', 6, [0, 0, 0, 1], [0, 0, 0, 1], false],
  ])('%s', (text, family, first, last, hostBitsSet) => {
    const a = new Uint32Array(4);
    const b = new Uint32Array(4);
    expect(parseCidr(text, a, b)).toMatchObject({ family, hostBitsSet });
    expect([...a.slice(0, first.length)]).toEqual(first);
    expect([...b.slice(0, last.length)]).toEqual(last);
  });

  it.each([
    '',
    '/8',
    '10.0.0.0/',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/08',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    '10.0.0.0/8 ',
    '10/8',
  ])('refuses %j', (text) => {
    expect(parseCidr(text, new Uint32Array(4), new Uint32Array(4))).toBeUndefined();
  });
});

// Its naive twin is in test/export/text.test.ts.
describe('rangeToCidrs', () => {
  it.each([
    [4, [0], [0xffffffff], ['0.0.0.0/0']],
    [4, [1], [6], ['0.0.0.1/32', '0.0.0.2/31', '0.0.0.4/31', '0.0.0.6/32']],
    [4, [0xffffffff], [0xffffffff], ['255.255.255.255/32']],
    [6, [0, 0, 0, 0], Array(4).fill(0xffffffff), ['::/0']],
    [6, [0x20010db8, 0, 0, 0], [0x20010db8, 0, 1, 0], ['2001:db8::/96', '2001:db8::1:0:0/128']],
  ] as [4 | 6, number[], number[], string[]][])('IPv%d %j to %j', (family, first, last, expected) => {
    expect(blocks(family, first, last)).toEqual(expected);
  });
});
