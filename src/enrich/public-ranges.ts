/** Ranges that know of an address only whether it is public, as `isPublicAddress` does, to locate addresses without a release. */
import { rangeFileInMemory } from '../rangefile/memory.js';
import type { DayRanges } from './ranges.js';

/** Where IPv4 ranges begin that are in turn not public and public: private, shared, loopback, link-local, multicast and reserved space. */
const STARTS4 = [
  ...['0.0.0.0', '1.0.0.0', '10.0.0.0', '11.0.0.0', '100.64.0.0', '100.128.0.0', '127.0.0.0', '128.0.0.0'],
  ...['169.254.0.0', '169.255.0.0', '172.16.0.0', '172.32.0.0', '192.168.0.0', '192.169.0.0', '224.0.0.0'],
];
/** The same for IPv6: the first words of ::, 2000::/3, and what is after it. */
const STARTS6 = [0, 0x2000_0000, 0x4000_0000];

function columns<F extends 4 | 6>(family: F, count: number, first: Uint32Array) {
  return () => ({ family, count, first, value: Uint16Array.from({ length: count }, (_, index) => index % 2) });
}

/** Returns two kinds of ranges: public addresses, all with the same country as a mark, and all others, without a country. */
export function publicRanges(): DayRanges {
  const numberOf = (text: string): number => text.split('.').reduce((sum, part) => 256 * sum + Number(part), 0);
  return rangeFileInMemory(
    {
      asOf: '2000-01-01',
      records: [
        { kind: 'none', reason: 'private' },
        { kind: 'country', code: 'ZZ', name: 'public', isEu: false },
      ],
      v4: columns(4, STARTS4.length, Uint32Array.from(STARTS4, numberOf)),
      v6: columns(6, STARTS6.length, Uint32Array.from(STARTS6.flatMap((first) => [first, 0, 0, 0]))),
    },
    'public addresses',
  );
}
