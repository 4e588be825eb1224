import { readFileSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, gzipSync, crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeColumn, encodeColumn } from '../../src/compact/column.js';
import { Container, ENTRY_BYTES, HEADER_BYTES, writeContainer } from '../../src/compact/container.js';
import { aboutSection, CompactCountries } from '../../src/compact/countries.js';
import { decodePartition, encodePartition } from '../../src/compact/partition.js';
import { fileSections } from '../../src/compact/range-file.js';
import { crc32 } from '../../src/crc32.js';
import { unpackCompact } from '../../src/database/compact.js';
import { AtlasError } from '../../src/errors.js';
import type { RangeColumns } from '../../src/range/columns.js';
import type { RangeRecord } from '../../src/rangefile/layout.js';
import { COUNTRIES } from '../../src/rangefile/partitions.js';
import { decodeRangeFile } from '../../src/rangefile/reader.js';
import { encodeRangeFile } from '../../src/rangefile/writer.js';
import { buildRangeFile, randomPartition, replaceSection, reseal } from '../support/compact.js';
import { type Block, LARGE_WORLD, partitionOf, reason, SMALL_WORLD } from '../support/release.js';

const ABOUT = { release: 'r', as_of: '2026-01-01', licenses: ['MIT'], attribution: ['Ann'] };

/** Returns the range file of blocks, with a confidence if `percent` gives one for each range. */
function rangeFileOf(blocks: Block[], percent?: (range: number) => number): Buffer {
  const records: RangeRecord[] = [reason('unallocated')];
  const [v4, v6] = [partitionOf(4, blocks, records), partitionOf(6, blocks, records)];
  const column = (count: number) => Uint8Array.from({ length: count }, (_, range) => percent!(range));
  const confidence = percent && { v4: column(v4.count), v6: column(v6.count) };
  return encodeRangeFile({ asOf: ABOUT.as_of, v4, v6, records, confidence });
}

function compactOf(rangeFile: Buffer, withConfidence = false): Uint8Array {
  const sections = fileSections(COUNTRIES, decodeRangeFile(rangeFile, 'ranges'), withConfidence);
  return writeContainer(new Map([aboutSection(ABOUT), ...sections]));
}

function errorOf(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}

const GOLDEN = new URL('../golden/small-world.ipc.gz', import.meta.url);

describe('the compact form', () => {
  it('has not changed: golden bytes', () => {
    const bytes = compactOf(rangeFileOf(SMALL_WORLD));
    // After an intended change of the format: raise the version and change FORMAT.md, then run with UPDATE_GOLDEN=1.
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(GOLDEN, gzipSync(bytes, { level: 9 }));
    const golden = unpackCompact(readFileSync(GOLDEN), 'golden');
    const firstDifference = bytes.findIndex((byte, index) => byte !== golden[index]);
    expect({ firstDifference, length: bytes.length }).toEqual({ firstDifference: -1, length: golden.length });
  });

  it.each<[string, Block[], ((range: number) => number)?]>([
    ['a small world', SMALL_WORLD],
    ['a large world', LARGE_WORLD],
    ['a world without ranges', []],
    ['a confidence', LARGE_WORLD, (range) => (range * 7) % 101],
    ['a confidence that is always the highest', SMALL_WORLD, () => 100],
  ])('gives the range file back, byte for byte: %s', (_, blocks, percent) => {
    const before = rangeFileOf(blocks, percent);
    const after = buildRangeFile(new CompactCountries(compactOf(before, percent !== undefined), 'x'));
    expect(after.equals(before)).toBe(true);
  });

  it('is E_DAMAGED after a change of any byte and each truncation', () => {
    const bytes = compactOf(
      rangeFileOf(SMALL_WORLD, () => 99),
      true,
    );
    const refused = (changed: Uint8Array): boolean => {
      const error = errorOf(() => buildRangeFile(new CompactCountries(changed, 'x')));
      return error instanceof AtlasError && error.code === 'E_DAMAGED';
    };
    const accepted: string[] = [];
    for (let length = 0; length < bytes.length; length++) {
      if (!refused(bytes.subarray(0, length))) accepted.push(`${length} bytes`);
    }
    const changed = bytes.slice();
    for (let at = 0; at < bytes.length; at++) {
      for (const value of [1, 0x20, 0x80, 0xff]) {
        changed[at] = bytes[at]! ^ value;
        if (!refused(changed)) accepted.push(`byte ${at} changed by ${value}`);
      }
      changed[at] = bytes[at]!;
    }
    expect(accepted).toEqual([]);
  });
});

describe('the container', () => {
  const sections = new Map([
    ['about', Uint8Array.of(1, 2, 3)],
    ['of-the-future', Uint8Array.of(4)],
    ['sixteen-letters!', new Uint8Array(0)],
  ]);

  it('has named sections, and readers skip those that they do not know', () => {
    const bytes = writeContainer(sections);
    const container = new Container(bytes, 'x');
    expect([...sections.keys()].map((name) => [...container.section(name)])).toEqual([[1, 2, 3], [4], []]);
    expect([container.has('about'), container.has('abou')]).toEqual([true, false]);
    bytes[bytes.length - 1] = 0; // the section of the future: nobody reads it, so nobody sees the damage
    expect([...new Container(bytes, 'x').section('about')]).toEqual([1, 2, 3]);
  });

  it.each<[string, (view: DataView, bytes: Uint8Array) => void, RegExp]>([
    ['no magic number', (_, bytes) => bytes.fill(0, 0, 1), /no magic number/],
    ['another major version', (view) => view.setUint16(8, 2, true), /format version 2/],
    ['another size', (view) => view.setUint32(16, 9999, true), /its header says 9999/],
    ['more sections than fit', (view) => view.setUint32(12, 2 ** 32 - 1, true), /4294967295 sections does not fit/],
    ['a section that does not fit', (view) => view.setUint32(HEADER_BYTES + 16, 2 ** 32 - 1, true), /not inside/],
    ['a section that ends early', (view) => view.setUint32(HEADER_BYTES + 16, 2, true), /1 bytes follow/],
    [
      'a name twice',
      (_, bytes) => bytes.copyWithin(HEADER_BYTES + ENTRY_BYTES, HEADER_BYTES, HEADER_BYTES + 16),
      /twice/,
    ],
  ])('refuses %s', (_, change, message) => {
    const bytes = writeContainer(sections);
    change(new DataView(bytes.buffer), bytes);
    const error = errorOf(() => new Container(reseal(bytes), 'file.ipc'));
    expect(error).toMatchObject({ code: 'E_DAMAGED', message: expect.stringMatching(message) });
    expect(error).toMatchObject({ message: expect.stringMatching(/^file\.ipc: /) });
  });

  it('refuses a wrong checksum of its header', () => {
    const bytes = writeContainer(sections);
    bytes[10] = 1;
    expect(errorOf(() => new Container(bytes, 'x'))).toMatchObject({ message: expect.stringContaining('checksum') });
    expect(errorOf(() => new Container(reseal(bytes), 'x'))).toBeUndefined(); // a higher minor version is accepted
  });

  it('has the checksum of zlib', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => crc32(bytes) === zlibCrc32(bytes)));
  });
});

/** Reads a partition as FORMAT.md says, without any code of ours. Naive: numbers of any size, lists that are spliced. */
function readNaively(section: Uint8Array, bits: number): [first: bigint, record: number][] {
  const view = Buffer.from(section);
  const [count, kind, otherBytes] = [view.readUInt32LE(0), view.readUInt32LE(4), view.readUInt32LE(8)];
  const varints = (bytes: number[]): bigint[] => {
    const numbers: bigint[] = [];
    let number = 0n;
    let shift = 0n;
    for (const byte of bytes) {
      number |= BigInt(byte & 127) << shift;
      shift += 7n;
      if (byte > 127) continue;
      numbers.push(number);
      number = 0n;
      shift = 0n;
    }
    return numbers;
  };
  const others = varints([...view.subarray(12 + 2 * count, 12 + 2 * count + otherBytes)]);
  const factors = varints([...view.subarray(12 + 2 * count + otherBytes)]);
  const list = Array.from({ length: 255 }, (_, place) => place);
  const ranges: [bigint, number][] = [];
  let first = 0n;
  for (let i = 0; i < count; i++) {
    const code = view[12 + i]!;
    const record = code === 255 ? Number(others.shift()) : list[code]!;
    if (kind === 1) {
      if (code === 255) list.pop();
      else list.splice(code, 1);
      list.unshift(record);
    }
    ranges.push([first, record]);
    const size = view[12 + count + i]!;
    first += size <= 128 ? 1n << BigInt(size) : (2n * factors.shift()! + 3n) << BigInt(255 - size);
  }
  expect([first, others, factors]).toEqual([1n << BigInt(bits), [], []]);
  return ranges;
}

function addressOf(words: Uint32Array): bigint {
  return words.reduce((address, word) => (address << 32n) | BigInt(word), 0n);
}

describe('a partition', () => {
  it('is read as the naive reader reads it, and has the ranges that were written', () => {
    fc.assert(
      fc.property(randomPartition(), fc.constantFrom('fixed', 'recent'), (partition, list) => {
        const section = encodePartition(partition, list);
        const words = partition.family === 4 ? 1 : 4;
        const expected = Array.from({ length: partition.count }, (_, i): [bigint, number] => [
          addressOf(partition.first.subarray(words * i, words * (i + 1))),
          partition.value[i]!,
        ]);
        expect(readNaively(section, 32 * words)).toEqual(expected);
        const column = (count: number) => new Uint32Array(count);
        const { first, value } = decodePartition(section, partition.family, 1_000_000, 'x', column);
        const ranges = Array.from(value, (record, i) => [
          addressOf(first.subarray(words * i, words * (i + 1))),
          record,
        ]);
        expect(ranges).toEqual(expected);
      }),
    );
  });

  it('has the bytes of the example in FORMAT.md', () => {
    const example: RangeColumns = {
      ...{ family: 4, count: 3 },
      first: Uint32Array.of(0, 2 ** 31, 0x81800000),
      value: Uint16Array.of(0, 1, 2),
    };
    const text = readFileSync(new URL('../../src/compact/FORMAT.md', import.meta.url), 'utf8');
    const bytes = text
      .match(/^(?:[0-9A-F]{2} )+.*$/gm)!
      .flatMap((line) => line.match(/^[0-9A-F ]+/)![0].match(/\w\w/g)!);
    expect(Buffer.from(encodePartition(example, 'fixed')).toString('hex')).toBe(bytes.join('').toLowerCase());
  });

  it.each<[string, number[], RegExp]>([
    ['nothing', [], /has no ranges/],
    ['no range', [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], /has no ranges/],
    ['more ranges than bytes', [255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0], /ends before its columns/],
    ['more other records than bytes', [1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 32], /ends before its columns/],
    ['an unknown list', [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 32], /unknown kind of list/],
    ['an unknown record', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 32], /a record that does not exist/],
    ['a missing other record', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 32], /a record that does not exist/],
    ['an endless other record', [1, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 255, 32, ...Array(6).fill(255)], /does not exist/],
    ['a gap at the end', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 31], /does not end with the last address/],
    ['a range beyond the end', [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 32, 0], /ranges after the last address/],
    ['a range of 2^33', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 33], /larger than the address space/],
    [
      'an endless factor',
      [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, ...Array(6).fill(128)],
      /larger than the address/,
    ],
    ['a missing factor', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255], /ends within a size/],
    ['bytes that are left', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0], /bytes that belong to no range/],
    [
      'a range that goes around',
      [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 231, 24, 255, 0],
      /ranges after the last address/,
    ],
    ['equal neighbors', [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 31, 31], /neighbors with the same record/],
  ])('of IPv4 with %s is refused', (_, section, message) => {
    const error = errorOf(() =>
      decodePartition(Uint8Array.from(section), 4, 2, 'x', (count) => new Uint16Array(count)),
    );
    expect(error).toMatchObject({ code: 'E_DAMAGED', message: expect.stringMatching(message) });
  });
});

describe('a column', () => {
  it('has the numbers that were written', () => {
    const values = fc.array(fc.oneof(fc.nat(3), fc.integer({ min: 0, max: 2 ** 32 - 1 })), { maxLength: 600 });
    fc.assert(
      fc.property(values, (numbers) => {
        const section = encodeColumn(Uint32Array.from(numbers));
        expect([...decodeColumn(section, numbers.length, 2 ** 32 - 1, 'x')]).toEqual(numbers);
      }),
    );
  });

  it.each<[string, number[], RegExp]>([
    ['nothing', [], /too short/],
    ['another number of ranges', [2, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0], /not that of its partition/],
    ['more numbers than bytes', [1, 0, 0, 0, 255, 255, 255, 255, 7, 0, 0, 0, 0], /ends early/],
    ['an unknown place', [1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1], /a number that does not exist/],
    ['a number above the limit', [1, 0, 0, 0, 1, 0, 0, 0, 101, 0, 0, 0, 0], /above 100/],
    ['bytes that are left', [1, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0], /belong to no range/],
  ])('with %s is refused', (_, section, message) => {
    const error = errorOf(() => decodeColumn(Uint8Array.from(section), 1, 100, 'x'));
    expect(error).toMatchObject({ code: 'E_DAMAGED', message: expect.stringMatching(message) });
  });
});

describe('the countries', () => {
  it.each<[string, string, string]>([
    ['no line', '', '0 records'],
    ['a line that does not end', 'none\tprivate', 'not complete'],
    ['an unknown kind', 'city\tBerlin\n', 'record 0'],
    ['a code of three letters', 'none\ta\ncountry\tDEU\teu\tGermany\n', 'record 1'],
    ['no name', 'country\tDE\teu\n', 'record 0'],
    ['no reason', 'none\t\n', 'record 0'],
    ['an unknown scheme', 'embedded\t4to6\n', 'record 0'],
  ])('with %s are refused', (_, lines, message) => {
    const error = errorOf(
      () => new CompactCountries(replaceSection(compactOf(rangeFileOf([])), 'country', lines), 'x'),
    );
    expect(error).toMatchObject({ code: 'E_DAMAGED', message: expect.stringContaining(message) });
  });

  it.each([
    ['no JSON', '{'],
    ['null', 'null'],
    ['no release', '{"as_of":"2026-01-01","licenses":[],"attribution":[]}'],
    ['a date of another form', '{"release":"r","as_of":"1 May","licenses":[],"attribution":[]}'],
    ['another list', '{"release":"r","as_of":"2026-01-01","licenses":[],"attribution":[1]}'],
    ['bytes that are not UTF-8', '\xff'],
  ])('of a release that is described by %s are refused', (_, json) => {
    const error = errorOf(() => new CompactCountries(replaceSection(compactOf(rangeFileOf([])), 'about', json), 'x'));
    expect(error).toMatchObject({ code: 'E_DAMAGED', message: expect.stringContaining('section about') });
  });
});

describe('unpacking', () => {
  const bytes = compactOf(rangeFileOf(SMALL_WORLD));

  it.each([
    ['as it is', bytes],
    ['gzip', gzipSync(bytes)],
    ['Brotli', brotliCompressSync(bytes)],
  ])('recognizes a compact form: %s', (_, packed) => {
    expect(Buffer.from(unpackCompact(packed, 'x')).equals(bytes)).toBe(true);
  });

  it.each([
    ['a truncated file', gzipSync(bytes).subarray(0, -20)],
    ['another file', Buffer.from('<html>')],
    ['more than the limit', gzipSync(Buffer.alloc(2 ** 26 + 1))],
  ])('refuses %s', (_, packed) => {
    expect(errorOf(() => unpackCompact(packed, 'file.ipc'))).toMatchObject({
      code: 'E_DAMAGED',
      message: expect.stringMatching(/^file\.ipc cannot be unpacked: /),
    });
  });
});
