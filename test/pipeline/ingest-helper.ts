/** Helpers for tests of ingest: sources from text, and ranges as readable text. */

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readSource, type SourceInput, type SourceResult } from '../../pipeline/source-formats/read-source.js';
import type { FetchedFile, IngestedSource } from '../../pipeline/stage.js';
import { formatAddress } from '../../src/address/format.js';
import { addressWords, compareAddresses } from '../../src/address/words.js';
import type { BoundedRanges } from '../../src/range/columns.js';

/** Returns the files of a folder as those of a source, in order of name. */
export function filesOf(folder: string): FetchedFile[] {
  return readdirSync(folder)
    .sort()
    .map((name) => ({ name, path: path.join(folder, name), bytes: 0, sha256: '' }));
}

export function inputOf(format: string | object, files: FetchedFile[], maxRejectShare = 0, id = 'test'): SourceInput {
  return { source: { id, format, maxRejectShare }, files };
}

/** Calls `act` with the contents as the files of a source, in the order given. */
export async function withFiles<T>(
  contents: Record<string, string | Uint8Array>,
  act: (files: FetchedFile[], folder: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(path.join(tmpdir(), 'ipatlas-ingest-'));
  try {
    const files = Object.entries(contents).map(([name, content], index) => {
      const file = path.join(folder, `${index}`);
      writeFileSync(file, content);
      return { name, path: file, bytes: content.length, sha256: '' };
    });
    return await act(files, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Reads contents as the files of a source. */
export async function ingestContents(
  format: string | object,
  contents: Record<string, string | Uint8Array>,
  maxRejectShare = 0,
): Promise<SourceResult> {
  return withFiles(contents, (files) => readSource(inputOf(format, files, maxRejectShare), () => {}));
}

/** Returns the ranges of a source, IPv4 first: `1.0.0.0-1.0.0.255 AU`. */
export function rangesText({ v4, v6, codes }: IngestedSource): string[] {
  return [...rowsText(v4, codes), ...rowsText(v6, codes)];
}

function rowsText({ family, count, first, last, value }: BoundedRanges, codes: readonly string[]): string[] {
  const width = addressWords(family);
  return Array.from({ length: count }, (_, i) => {
    const [from, to] = [formatAddress(family, first, i * width), formatAddress(family, last, i * width)];
    return `${from}-${to} ${codes[value[i]!]}`;
  });
}

/** Returns the code that a source has for an address. */
export function codeAt(rows: BoundedRanges, codes: string[], address: Uint32Array): string {
  const words = addressWords(rows.family);
  let low = 0;
  let high = rows.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareAddresses(rows.first, middle, address, 0, words) <= 0) low = middle + 1;
    else high = middle;
  }
  if (low === 0 || compareAddresses(rows.last, low - 1, address, 0, words) < 0) return '';
  return codes[rows.value[low - 1]!]!;
}
