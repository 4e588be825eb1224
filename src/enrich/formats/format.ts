/** The interface of the formats that are read by a library rather than by the kernel. */
import type { Database } from '../../database/database.js';
import type { EnrichCounts } from '../counts.js';
import type { EnrichOptions } from '../options.js';

export interface FormatContext {
  database: Database;
  options: EnrichOptions;
  /** Updated by the format, except for `bytes`. */
  counts: EnrichCounts;
  /** Receives each record that is not valid in the format, with its line ending, whatever the policy. */
  reject: (record: Uint8Array) => void;
}

export interface FormatEnricher {
  /** The line ending to add if an input lacks its last one and another input follows. */
  readonly newline: string;
  /**
   * Enriches one input. An enricher keeps its state, such as the columns of a table, from one input to the next.
   *
   * @param name name of the input in messages
   * @param chunks the bytes of the input, split anywhere
   * @returns the output in whole records, even if `chunks` throws
   * @throws AtlasError E_BAD_INPUT; the message names the input and the line
   */
  enrich(name: string, chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
}

/**
 * Byte text: a string in which each character is one byte. The formats work on byte text, so any bytes are passed on
 * unchanged and positions are byte positions. Everything with a meaning in JSON and CSV is ASCII.
 */
export function bytesToText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
export function textToBytes(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}
/** Converts a string to byte text: one character for each byte of its UTF-8 encoding. */
export function asByteText(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
/** Converts byte text to the string that it encodes. */
export function fromByteText(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8');
}

/** The byte order mark of UTF-8, as byte text. */
export const BYTE_ORDER_MARK = '\xef\xbb\xbf';
