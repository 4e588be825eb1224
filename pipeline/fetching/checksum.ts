/** Checksums that a publisher puts beside its files. */
import { baseName } from '../config/file-pattern.js';

/** Hex digits of a SHA-256 or an MD5. */
const HASH = /(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![0-9a-f])/i;

export interface Checksum {
  algorithm: 'sha256' | 'md5';
  /** Hexadecimal, lower case. */
  hash: string;
}

/**
 * Reads the checksum of a file from the text beside it: the output of `sha256sum` or `md5sum`, its BSD form
 * (`MD5 (name) = hash`), or the hash alone. The number of digits tells the algorithm.
 *
 * @param text of the checksum file
 * @param fileName name of the file; a line with it is preferred, as a list may cover several files
 * @throws Error if the text has no checksum for the file
 */
export function parseChecksum(text: string, fileName: string): Checksum {
  const lines = text.split(/\r?\n/).filter((line) => HASH.test(line));
  const named = lines.find((line) => line.split(/[\s()*]+/).some((word) => baseName(word) === fileName));
  const line = named ?? (lines.length === 1 ? lines[0] : undefined);
  if (line === undefined) throw new Error(`the checksum file has no SHA-256 or MD5 of ${fileName}`);
  const hash = HASH.exec(line)![0].toLowerCase();
  return { algorithm: hash.length === 64 ? 'sha256' : 'md5', hash };
}
