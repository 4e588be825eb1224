/** Compact forms for tests: random ones, and changed ones whose checksums are right again. */
import fc from 'fast-check';
import { Container, ENTRY_BYTES, HEADER_BYTES, writeContainer } from '../../src/compact/container.js';
import { CompactCountries } from '../../src/compact/countries.js';
import { buildFile } from '../../src/compact/range-file.js';
import { crc32 } from '../../src/crc32.js';
import { AtlasError } from '../../src/errors.js';
import type { RangeColumns } from '../../src/range/columns.js';
import { COUNTRIES } from '../../src/rangefile/partitions.js';

/** Updates the checksums of a container after a change, as far as its table fits, so that the checks after them are tested. */
export function reseal(bytes: Uint8Array): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = view.getUint32(12, true);
  const headEnd = HEADER_BYTES + count * ENTRY_BYTES;
  if (headEnd > bytes.length) return bytes;
  let offset = headEnd;
  for (let entry = HEADER_BYTES; entry < headEnd; entry += ENTRY_BYTES) {
    const length = view.getUint32(entry + 16, true);
    view.setUint32(entry + 20, crc32(bytes.subarray(offset, offset + length)), true);
    offset += length;
  }
  view.setUint32(20, 0, true);
  view.setUint32(20, crc32(bytes.subarray(0, headEnd)), true);
  return bytes;
}

/** Returns a compact form with another text in one section; each character is one byte. */
export function replaceSection(bytes: Uint8Array, name: string, text: string): Uint8Array {
  const container = new Container(bytes, 'x');
  return writeContainer(
    new Map(
      container.names.map((each) => [each, each === name ? Buffer.from(text, 'latin1') : container.section(each)]),
    ),
  );
}

/** Builds the range file of a compact form. */
export function buildRangeFile({ container, about }: CompactCountries): Buffer {
  return buildFile(COUNTRIES, container, about.as_of, 'x');
}

/**
 * Reads all of a compact form.
 *
 * @throws any error but E_DAMAGED
 */
export function compactOutcome(bytes: Uint8Array): 'valid' | 'damaged' {
  try {
    buildRangeFile(new CompactCountries(bytes, 'x'));
    return 'valid';
  } catch (error) {
    if (error instanceof AtlasError && error.code === 'E_DAMAGED') return 'damaged';
    throw error;
  }
}

/** Random partitions of both families, with few records or many. */
export function randomPartition(): fc.Arbitrary<RangeColumns> {
  const word = fc.oneof(fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1), fc.integer({ min: 0, max: 2 ** 32 - 1 }));
  const record = fc.oneof(fc.nat(3), fc.nat(300), fc.nat(999_999));
  return fc.constantFrom(4 as const, 6 as const).chain((family) => {
    const words = family === 4 ? 1 : 4;
    const address = fc.array(word, { minLength: words, maxLength: words });
    return fc.array(fc.tuple(address, record), { maxLength: 600 }).map((drawn) => {
      const zero = Array<number>(words).fill(0);
      const text = (first: number[]): string => first.map((part) => part.toString(16).padStart(8, '0')).join('');
      const byAddress = new Map(
        [[zero, 0] as const, ...drawn].map(([first, value]) => [text(first), { first, value }]),
      );
      const sorted = [...byAddress].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, range]) => range);
      const ranges = sorted.filter(({ value }, i) => i === 0 || value !== sorted[i - 1]!.value);
      return {
        family,
        count: ranges.length,
        first: Uint32Array.from(ranges.flatMap(({ first }) => first)),
        value: Uint32Array.from(ranges, ({ value }) => value),
      };
    });
  });
}
