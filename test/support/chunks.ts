/** Inputs in chunks, as a pipe might deliver them. */
import { type ByteSource, streamSource } from '../../src/enrich/input/source.js';

/**
 * Splits bytes.
 *
 * @param positions where to split, in any order; each is taken modulo the length
 */
export function cut(bytes: Uint8Array, positions: readonly number[] = []): Uint8Array[] {
  const at = [0, ...positions.map((position) => position % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.slice(at[index], end));
}

/** Returns the positions that split bytes into chunks of one byte. */
export function everyByte(bytes: { readonly length: number }): number[] {
  return Array.from({ length: bytes.length }, (_, index) => index);
}

/** Yields chunks. */
export async function* stream(chunks: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

/** Returns a source of bytes that are split at positions, see {@link cut}. */
export function chunkedSource(name: string, bytes: Uint8Array, positions: readonly number[] = []): ByteSource {
  return streamSource(name, stream(cut(bytes, positions)));
}
