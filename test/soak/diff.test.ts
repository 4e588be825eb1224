/** The differences of two whole data sets, compared with a lookup in both at every boundary. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { mergeSources } from '../../pipeline/merging/range-merger.js';
import { readSource } from '../../pipeline/source-formats/read-source.js';
import { rangeSize } from '../../src/address/words.js';
import { countryTable } from '../../src/country/country.js';
import { PairTotals, rangeList, segments } from '../../src/database/diff.js';
import { RANGE_FILE, releaseDir } from '../../src/database/release.js';
import { packageFile } from '../../src/package-root.js';
import { decodeRangeFile, openRangeFile, type RangeFile } from '../../src/rangefile/reader.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import { encodeRangeFile } from '../../src/rangefile/writer.js';
import { builtRelease } from '../support/built-release.js';

describe('two real data sets', () => {
  // Only one version of each package is pinned, so a release of one package and one of all take the place of two versions.
  const reference = loadReference();
  const countries = countryTable(reference, '2026-01-01');
  const fileOfPackage = async (id: string): Promise<RangeFile> => {
    const files = ['ipv4', 'ipv6'].map((family) => {
      const name = `${id}-${family}.csv`;
      return { name, path: packageFile(`node_modules/@ip-location-db/${id}/${name}`), bytes: 0, sha256: '' };
    });
    const fetched = { files };
    const { ingested } = await readSource(
      { source: { id, format: 'ip-location-db', maxRejectShare: 0 }, fetched },
      () => {},
    );
    const { v4, v6, records } = mergeSources({ sources: [ingested], reference, countries, overrides: [] });
    return decodeRangeFile(encodeRangeFile({ asOf: '2026-01-01', v4, v6, records }), id);
  };

  it('give the same sums as a lookup in both at every boundary', async () => {
    const all = openRangeFile(join(releaseDir(await builtRelease()), RANGE_FILE));
    const [a, b] = [await fileOfPackage('asn-country'), all];
    const label = (file: RangeFile, record: number): string => {
      const answer = file.records[record]!;
      return answer.kind === 'country' ? answer.code : answer.kind === 'none' ? answer.reason : answer.scheme;
    };
    const totals = (family: 4 | 6): Record<string, bigint> => {
      const pairs = new PairTotals();
      for (const segment of segments(rangeList(a, family), rangeList(b, family))) {
        if (segment.from !== segment.to) pairs.add(segment, rangeSize(segment.first, segment.last));
      }
      return Object.fromEntries(pairs.sorted().map(({ from, to, addresses }) => [`${from} ${to}`, addresses]));
    };

    const naive4: Record<string, bigint> = {};
    const bounds4 = [...new Set([...a.start4, ...b.start4, 2 ** 32])].sort((x, y) => x - y);
    for (let i = 0; i + 1 < bounds4.length; i++) {
      const at = bounds4[i]!;
      const pair = `${label(a, a.record4[findIPv4(a, at)]!)} ${label(b, b.record4[findIPv4(b, at)]!)}`;
      naive4[pair] = (naive4[pair] ?? 0n) + BigInt(bounds4[i + 1]! - at);
    }
    const naive6: Record<string, bigint> = {};
    const start6 = ({ high6, low6 }: RangeFile, i: number): bigint =>
      (BigInt(high6[2 * i + 1]!) << 96n) +
      (BigInt(high6[2 * i]!) << 64n) +
      (BigInt(low6[2 * i + 1]!) << 32n) +
      BigInt(low6[2 * i]!);
    const starts6 = [a, b].flatMap((file) => Array.from({ length: file.count6 }, (_, i) => start6(file, i)));
    // No Set: V8 hashes a BigInt by its low 64 bits, which are zero in nearly all of these.
    const sorted6 = [...starts6, 1n << 128n].sort((x, y) => (x < y ? -1 : x > y ? 1 : 0));
    const bounds6 = sorted6.filter((at, i) => at !== sorted6[i - 1]);
    for (let i = 0; i + 1 < bounds6.length; i++) {
      const at = bounds6[i]!;
      const words = Uint32Array.from([96n, 64n, 32n, 0n], (shift) => Number((at >> shift) & 0xffffffffn));
      const pair = `${label(a, a.record6[findIPv6(a, words)]!)} ${label(b, b.record6[findIPv6(b, words)]!)}`;
      naive6[pair] = (naive6[pair] ?? 0n) + bounds6[i + 1]! - at;
    }
    for (const [family, naive] of [
      [4, naive4],
      [6, naive6],
    ] as const) {
      const differing = Object.entries(naive).filter(([pair]) => new Set(pair.split(' ')).size === 2);
      expect(differing.length).toBeGreaterThan(3000);
      const found = totals(family);
      expect(found).toEqual(Object.fromEntries(differing));
    }
  });
});
