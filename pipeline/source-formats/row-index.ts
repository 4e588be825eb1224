/**
 * What `explain` needs of a build besides the rows that cover an address, so that it need not read all rows again:
 * `<data>/cache/rows/<input hash>`. A release without one can be explained as well, only slower.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import type { Family } from '../../src/address/parse.js';
import { systemErrorCode } from '../../src/errors.js';
import { makeFolder, replaceFile } from '../../src/files.js';
import type { BoundedRanges } from '../../src/range/columns.js';
import type { OwnedRange } from '../merging/evidence.js';
import type { MergeResult } from '../merging/range-merger.js';
import type { FileIndex } from './read-source.js';

/** Version of this structure. */
const VERSION = 3;

export interface RowIndex {
  version: number;
  /** By id of the source: where the rows of its files are. */
  files: Record<string, readonly FileIndex[]>;
  /** The ranges that belong to networks. */
  owned: readonly OwnedRange[];
  undelegated: Record<Family, BoundedRanges>;
}

/** Returns the folder with the indexes of releases, named by their input hash. */
function rowIndexDir(dataDir: string): string {
  return join(dataDir, 'cache', 'rows');
}

/**
 * Makes the index of a build.
 *
 * @param files by id of the source
 * @param merged the outcome of merging the sources
 */
export function makeRowIndex(
  files: RowIndex['files'],
  owned: readonly OwnedRange[],
  { undelegated }: Pick<MergeResult, 'undelegated'>,
): RowIndex {
  return { version: VERSION, files, owned, undelegated };
}

/** Stores the index of a build. */
export function writeRowIndex(dataDir: string, inputHash: string, index: RowIndex): void {
  const path = join(rowIndexDir(dataDir), inputHash);
  makeFolder(dirname(path));
  replaceFile(path, [serialize(index)]);
}

/** Reads the index of a release; undefined if there is none that can be read. */
export function readRowIndex(dataDir: string, inputHash: string): RowIndex | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(join(rowIndexDir(dataDir), inputHash));
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const index = deserialize(bytes) as RowIndex;
    return index.version === VERSION ? index : undefined;
  } catch {
    return undefined; // damaged, or of another version of V8: it is made again
  }
}

/** Removes the indexes of other releases. The caller must hold the lock of the data directory. */
export function pruneRowIndexes(dataDir: string, inputHashes: ReadonlySet<string>): void {
  const dir = rowIndexDir(dataDir);
  if (!existsSync(dir)) return;
  for (const name of readdirSync(dir)) if (!inputHashes.has(name)) rmSync(join(dir, name));
}
