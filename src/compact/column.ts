/** A column of the compact form: one number for each range of a partition, such as its confidence. See FORMAT.md. */
import { ByteWriter, decodeNumbers, encodeNumbers, readUint32 } from './codes.js';
import { damaged } from './container.js';

/** Bytes before the distinct numbers: number of ranges, number of distinct numbers. */
const HEADER_BYTES = 8;

/** Encodes one number, 0 to 2^32 - 1, for each range. */
export function encodeColumn(values: Uint8Array | Uint32Array): Uint8Array {
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  const places = new Map(distinct.map((value, place) => [value, place]));
  const { codes, others } = encodeNumbers(
    Array.from(values, (value) => places.get(value)!),
    'fixed',
  );
  const section = new ByteWriter();
  section.uint32(values.length);
  section.uint32(distinct.length);
  for (const value of distinct) section.uint32(value);
  section.bytes(codes);
  section.bytes(others);
  return section.finish();
}

/**
 * Decodes a column.
 *
 * @param count number of ranges of the partition
 * @param max greatest number allowed
 * @param name of the file, for messages
 * @throws AtlasError E_DAMAGED if it is not a column of the partition
 */
export function decodeColumn(section: Uint8Array, count: number, max: number, name: string): Uint32Array {
  const fail = (what: string): Error => damaged(name, `a column ${what}`);
  if (section.length < HEADER_BYTES) throw fail('is too short');
  if (readUint32(section, 0) !== count) throw fail('is not that of its partition');
  const distinct = readUint32(section, 4);
  const codesAt = HEADER_BYTES + 4 * distinct;
  const othersAt = codesAt + count;
  if (othersAt > section.length) throw fail('ends early');
  const others = section.subarray(othersAt);
  const values = new Uint32Array(count);
  const read = decodeNumbers(section.subarray(codesAt, othersAt), others, 'fixed', distinct, values);
  if (read < 0) throw fail('names a number that does not exist');
  for (let i = 0; i < count; i++) {
    const place = values[i]!;
    if (place >= distinct) throw fail('names a number that does not exist');
    values[i] = readUint32(section, HEADER_BYTES + 4 * place);
    if (values[i]! > max) throw fail(`has a number above ${max}`);
  }
  if (read !== others.length) throw fail('has bytes that belong to no range');
  return values;
}
