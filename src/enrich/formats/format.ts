/** What every format but JSON lines is: the bytes of an input in, the same bytes with the answers in them out. */
import type { Database } from '../../database/database.js';
import type { EnrichCounts } from '../counts.js';
import type { EnrichOptions } from '../options.js';

export interface FormatContext {
  database: Database;
  options: EnrichOptions;
  /** Counted up as the work goes on; `bytes` is the reader's to count. */
  counts: EnrichCounts;
  /** Receives each record that is none of the format, with its line ending, whatever the policy. */
  reject: (record: Uint8Array) => void;
}

export interface Format {
  /** What ends a line, for the one that is missing between two inputs. */
  readonly newline: string;
  /**
   * Enriches one input. A format keeps what it knows (the columns of a table) from one input to the next.
   *
   * @param name how messages call the input
   * @param chunks its bytes, however split
   * @returns the output, whole records only: where `chunks` throws, nothing half is left behind
   * @throws AtlasError E_BAD_INPUT, with name and line
   */
  enrich(name: string, chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
}

/**
 * The formats work on text in which each character stands for one byte: whatever the bytes are, they come out as they
 * went in, and positions are byte positions. All that has a meaning in JSON and CSV is ASCII.
 */
export function bytesToText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
export function textToBytes(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}
/** Text of ours as such text: one character for each byte of its UTF-8. */
export function asByteText(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
/** Such text as what it says. */
export function fromByteText(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8');
}

/** The byte order mark of UTF-8, as such text. */
export const BYTE_ORDER_MARK = '\xef\xbb\xbf';
