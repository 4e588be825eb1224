import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AtlasError } from '../../src/errors.js';
import { ENTRY_BYTES, HEADER, HEADER_BYTES, type RangeRecord, SECTION_TAGS } from '../../src/rangefile/layout.js';
import { decodeRangeFile, openRangeFile } from '../../src/rangefile/reader.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import { verifyRangeFile } from '../../src/rangefile/verifier.js';
import { encodeRangeFile } from '../../src/rangefile/writer.js';
import { partitionOf, reason, SMALL_WORLD } from '../support/release.js';

/** Each file has two indexes of 65,536 entries, which take most of the time. */
const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 200) / 10);

function smallWorld(): Buffer {
  const records: RangeRecord[] = [reason('unallocated')];
  const [v4, v6] = [partitionOf(4, SMALL_WORLD, records), partitionOf(6, SMALL_WORLD, records)];
  return encodeRangeFile({ asOf: '2026-01-01', v4, v6, records });
}

const GOLDEN = new URL('../golden/small-world.ipr.gz', import.meta.url);

/** Updates the CRC-32 of the head after a change, so that the check after it is tested. */
function resealHead(bytes: Buffer): Buffer {
  const headEnd = HEADER_BYTES + bytes.readUInt32LE(HEADER.sections) * ENTRY_BYTES;
  bytes.writeUInt32LE(0, HEADER.crc32);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, headEnd)), HEADER.crc32);
  return bytes;
}

/** Updates both checksums. */
function reseal(bytes: Buffer): Buffer {
  const headEnd = HEADER_BYTES + bytes.readUInt32LE(HEADER.sections) * ENTRY_BYTES;
  bytes.set(createHash('sha256').update(bytes.subarray(headEnd)).digest(), HEADER.sha256);
  return resealHead(bytes);
}

/** Returns the offset of a section. */
function sectionAt(bytes: Buffer, tag: (typeof SECTION_TAGS)[number]): number {
  return Number(bytes.readBigUInt64LE(HEADER_BYTES + SECTION_TAGS.indexOf(tag) * ENTRY_BYTES + 8));
}

function open(bytes: Buffer) {
  return decodeRangeFile(bytes, 'test.ipr');
}

describe('the range file', () => {
  it('has not changed: golden bytes', () => {
    const bytes = smallWorld();
    // After an intended change of the format: raise the version in layout.ts and FORMAT.md, then run with UPDATE_GOLDEN=1.
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(GOLDEN, gzipSync(bytes, { level: 9 }));
    const golden = gunzipSync(readFileSync(GOLDEN));
    const firstDifference = bytes.findIndex((byte, index) => byte !== golden[index]);
    expect({ firstDifference, length: bytes.length }).toEqual({ firstDifference: -1, length: golden.length });
  });

  it('opens, verifies and has the ranges that were written', () => {
    const file = open(smallWorld());
    verifyRangeFile(file);
    expect(file.asOf).toBe('2026-01-01');
    expect(file.records).toContainEqual({ kind: 'country', code: 'CI', name: "Côte d'Ivoire", isEu: false });
    expect(file.records).toContainEqual({ kind: 'embedded', scheme: '6to4' });
    expect(file.records).toContainEqual({ kind: 'none', reason: 'private' });
  });

  it('does not depend on the order of the records', () => {
    const shuffled: RangeRecord[] = [reason('unallocated'), ...SMALL_WORLD.map(([, record]) => record).reverse()];
    const records = shuffled.filter((a, i) => shuffled.findIndex((b) => JSON.stringify(a) === JSON.stringify(b)) === i);
    const [v4, v6] = [partitionOf(4, SMALL_WORLD, records), partitionOf(6, SMALL_WORLD, records)];
    const bytes = encodeRangeFile({ asOf: '2026-01-01', v4, v6, records });
    expect(bytes.equals(smallWorld())).toBe(true);
  });

  it('opens from memory that is not aligned', () => {
    const bytes = smallWorld();
    const shifted = Buffer.alloc(bytes.length + 1).subarray(1);
    shifted.set(bytes);
    verifyRangeFile(open(shifted));
  });
});

describe('search', () => {
  it('equals a linear scan', () => {
    const tag = (i: number): RangeRecord => reason(`r${i}`);
    const starts4 = fc.uniqueArray(
      fc.oneof(
        fc.nat(0xffffffff),
        fc.nat(3).map((n) => n * 65536),
        fc.nat(70_000),
      ),
      { maxLength: 40 },
    );
    const words6 = fc.tuple(
      fc.constantFrom(0, 1, 0x20010000, 0xffffffff),
      fc.nat(2),
      fc.constantFrom(0, 0xffffffff),
      fc.nat(3),
    );
    fc.assert(
      fc.property(starts4, fc.array(words6, { maxLength: 40 }), fc.array(fc.nat(0xffffffff)), (s4, s6, probes) => {
        const hex = (words: number[]): string => words.map((word) => word.toString(16).padStart(8, '0')).join('');
        const first4 = [...new Set([0, ...s4])].sort((a, b) => a - b);
        const first6 = [...new Map([[0, 0, 0, 0], ...s6].map((words) => [hex(words), words])).entries()].sort(
          ([a], [b]) => (a < b ? -1 : 1),
        );
        const column = (family: 4 | 6, first: number[], count: number) => ({
          family,
          count,
          first: Uint32Array.from(first),
          value: Uint16Array.from({ length: count }, (_, i) => i),
        });
        const records = Array.from({ length: Math.max(first4.length, first6.length) }, (_, i) => tag(i));
        const file = open(
          encodeRangeFile({
            asOf: '2026-01-01',
            v4: column(4, first4, first4.length),
            v6: column(
              6,
              first6.flatMap(([, words]) => words),
              first6.length,
            ),
            records,
          }),
        );
        verifyRangeFile(file);
        const near = first4.flatMap((start) => [start, start - 1, start + 1]).filter((a) => a >= 0 && a <= 0xffffffff);
        for (const address of [...probes, ...near]) {
          expect(findIPv4(file, address | 0)).toBe(first4.findLastIndex((start) => start <= address));
        }
        for (const words of [...s6, ...probes.map((p) => [0x20010000, p % 3, p, p % 4])]) {
          expect(findIPv6(file, Uint32Array.from(words))).toBe(first6.findLastIndex(([key]) => key <= hex(words)));
        }
      }),
      { numRuns: RUNS },
    );
  });
});

describe('search in a crowded bucket', () => {
  it('equals a linear scan', () => {
    // Enough ranges with the same top 16 bits, or up to 72, that the search within a bucket is used, and some on either side.
    const next = fc.tuple(
      fc.constantFrom(
        ...[
          [0xffff, 2, 0],
          [0xff, 0xffff_ffff, 0],
          [0, 0xffff_ffff, 0],
          [0, 0xffff, 0],
          [0, 0xff, 2],
          [0, 1, 0xffff_ffff],
        ],
      ),
      fc.array(fc.tuple(fc.nat(0xffff_ffff), fc.nat(0xffff_ffff), fc.nat(0xffff_ffff)), {
        minLength: 200,
        maxLength: 400,
      }),
    );
    fc.assert(
      fc.property(next, ([mask, triples]) => {
        const words = [
          ...triples.map((triple) => [
            0x2a00_0000 + ((triple[0] & mask[0]!) >>> 0),
            ...[1, 2].map((k) => (triple[k]! & mask[k]!) >>> 0),
            0,
          ]),
          [0x29ff_0000, 0, 0, 0],
          [0x2a01_0000, 0, 0, 0],
          [0, 0, 0, 0],
        ];
        const hex = (four: number[]): string => four.map((word) => word.toString(16).padStart(8, '0')).join('');
        const sorted = [...new Map(words.map((four) => [hex(four), four])).entries()].sort(([a], [b]) =>
          a < b ? -1 : 1,
        );
        const value = Uint16Array.from(sorted, (_, i) => i);
        const first = Uint32Array.from(sorted.flatMap(([, four]) => four));
        const records = sorted.map((_, i) => reason(`r${i}`));
        const v4 = { family: 4 as const, count: 1, first: Uint32Array.of(0), value: Uint16Array.of(0) };
        const v6 = { family: 6 as const, count: sorted.length, first, value };
        const file = open(encodeRangeFile({ asOf: '2026-01-01', v4, v6, records }));
        return sorted.every(([, four]) =>
          [-1, 0, 1].every((by) => {
            const probe = four.map((word, k) => (k === 3 ? 5 : Math.min(0xffff_ffff, Math.max(0, word + by))));
            return findIPv6(file, Uint32Array.from(probe)) === sorted.findLastIndex(([key]) => key <= hex(probe));
          }),
        );
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });
});

describe('bad files', () => {
  const set = (at: number | ((bytes: Buffer) => number), value: number) => (bytes: Buffer) => {
    bytes[typeof at === 'number' ? at : at(bytes)] = value;
    return bytes;
  };
  const section = (tag: (typeof SECTION_TAGS)[number], plus: number) => (bytes: Buffer) => sectionAt(bytes, tag) + plus;

  // Each row: the damage, the phase that notices it, and the message.
  it.each<[string, (bytes: Buffer) => Buffer, 'open' | 'verify', RegExp]>([
    ['empty', () => Buffer.alloc(0), 'open', /0 bytes are not enough/],
    ['cut in the section table', (b) => b.subarray(0, 100), 'open', /100 bytes long, but its header says/],
    ['last byte cut off', (b) => b.subarray(0, -1), 'open', /bytes long, but its header says/],
    ['bytes after its end', (b) => Buffer.concat([b, Buffer.of(0)]), 'open', /bytes long, but its header says/],
    [
      'line ends altered',
      (b) => Buffer.from(b.toString('latin1').replace('\r\n', '\n'), 'latin1'),
      'open',
      /no magic number/,
    ],
    ['another major version', set(8, 2), 'open', /format version 2, but this ipatlas reads version 1/],
    ['another minor version is read', (b) => reseal(set(10, 7)(b)), 'verify', /^$/],
    [
      'a section outside the file',
      (b) => resealHead(set(HEADER_BYTES + 12, 0xff)(b)),
      'open',
      /is not inside the file/,
    ],
    ['a section not aligned', (b) => resealHead(set(HEADER_BYTES + 8, 1)(b)), 'open', /is not inside the file/],
    ['a tag that is missing', (b) => resealHead(set(HEADER_BYTES, 0x58)(b)), 'open', /section 4STA is missing/],
    ['elements of another size', (b) => resealHead(set(HEADER_BYTES + 4, 8)(b)), 'open', /elements of 4 bytes/],
    [
      'a column too short',
      (b) => resealHead(set(HEADER_BYTES + 16, b[HEADER_BYTES + 16]! - 4)(b)),
      'open',
      /equal length/,
    ],
    ['a record that does not exist', set(section('4REC', 1), 0xff), 'open', /names a record that does not exist/],
    ['an index beyond the ranges', set(section('4IDX', 3), 0xff), 'open', /an index points outside its column/],
    ['an index that falls', set(section('4IDX', 4 * 65535), 0), 'open', /an index points outside its column/],
    ['an index that begins late', set(section('6IDX', 4), 0), 'open', /an index points outside its column/],
    ['an unknown kind of record', set(section('RECO', 0), 9), 'open', /record 0 is of an unknown kind/],
    ['a text outside its section', set(section('RECO', 11), 0xff), 'open', /text of record 0 is outside/],
    [
      'ranges out of order',
      (b) => reseal(set(section('4STA', 7), 0xff)(b)),
      'verify',
      /IPv4 ranges 1 and 2 are out of order/,
    ],
    [
      'first range not at zero',
      (b) => reseal(set(section('4STA', 0), 1)(b)),
      'open',
      /first IPv4 range does not begin at zero/,
    ],
    [
      'IPv6 out of order',
      (b) => reseal(set(section('6LOW', 15), 0xff)(set(section('6HIG', 15), 0xff)(b))),
      'verify',
      /IPv6 ranges 1 and 2/,
    ],
    [
      'neighbors of one record',
      (b) => reseal(set(section('4REC', 2), b[sectionAt(b, '4REC')]!)(b)),
      'verify',
      /have the same record/,
    ],
    [
      'a wrong index',
      (b) => {
        let entry = sectionAt(b, '4IDX') + 4;
        while (b[entry] === b[entry + 4]) entry += 4;
        return reseal(Buffer.from(b).fill(b[entry + 4]!, entry, entry + 1));
      },
      'verify',
      /entry \d+ of the IPv4 index is wrong/,
    ],
    ['padding not zero', (b) => reseal(set(section('4REC', -1), 1)(b)), 'verify', /between two sections, is not zero/],
    ['header padding not zero', (b) => reseal(set(70, 1)(b)), 'verify', /byte 70 of its header is not zero/],
    [
      'a country code in lower case',
      (b) => reseal(set(section('RECO', 16 * 3 + 2), 0x61)(b)),
      'verify',
      /country code/,
    ],
  ])('%s', (_, spoil, phase, message) => {
    const bytes = spoil(Buffer.from(smallWorld()));
    let thrown: unknown;
    let opened = false;
    try {
      const file = open(bytes);
      opened = true;
      verifyRangeFile(file);
    } catch (error) {
      thrown = error;
    }
    if (message.source === '^$') return expect(thrown).toBeUndefined();
    expect(thrown).toBeInstanceOf(AtlasError);
    expect((thrown as AtlasError).code).toBe('E_DAMAGED');
    expect((thrown as AtlasError).message).toMatch(message);
    expect(opened ? 'verify' : 'open').toBe(phase);
  });

  it('notices any flipped bit', () => {
    const sound = smallWorld();
    const places = fc.nat(sound.length - 1);
    fc.assert(
      fc.property(places, fc.nat(7), (at, bit) => {
        const bytes = Buffer.from(sound);
        bytes[at] = bytes[at]! ^ (1 << bit);
        try {
          verifyRangeFile(open(bytes));
        } catch (error) {
          return error instanceof AtlasError && error.code === 'E_DAMAGED';
        }
        // Another minor version would be accepted, but the checksum covers it.
        return false;
      }),
      { numRuns: 2 * RUNS },
    );
  });

  it('names a missing file', () => {
    const path = join('no', 'such', 'ranges.ipr');
    expect(() => openRangeFile(path)).toThrow(
      expect.objectContaining({ code: 'E_NO_DATABASE', message: expect.stringContaining(path) }),
    );
  });
});
