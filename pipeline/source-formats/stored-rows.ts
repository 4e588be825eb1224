/**
 * The rows of sources as a build read them, `<data>/cache/rows/<key>`, so that `explain` need not read the files again. A file that
 * is missing, damaged or of another version of Node counts as absent.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import type { ManifestInput } from '../../src/database/release.js';
import { makeFolder, replaceFile } from '../../src/files.js';
import type { SourceKind } from '../../src/range/vote.js';
import { rowsDir, rowsPath } from '../fetching/cache.js';
import type { SourceInput, SourceResult } from './read-source.js';

/** Version of what is stored. */
const FORMAT = 1;

/** What was read of a source. */
export type SourceRows = Pick<SourceResult, 'ingested' | 'owned' | 'files'>;

/** What is stored: the rows, and the AS numbers whose space was asked for. */
interface Stored extends SourceRows {
  asns: ReadonlySet<number>;
}

/** What determines the rows of a source. */
interface IdentifiedRows extends Pick<ManifestInput, 'format' | 'files'> {
  kind?: SourceKind | undefined;
}

const sha256 = (content: string | Buffer) => createHash('sha256').update(content);

/** Returns the name of the rows of a source: a hash of what determines them. */
export function rowsKey({ format, kind, files }: IdentifiedRows): string {
  const named = files.map(({ name, sha256: hash }) => [name, hash]);
  return sha256(JSON.stringify([FORMAT, format, kind === 'anycast', named])).digest('hex');
}

/** Stores the rows of a source. */
export function storeRows(dataDir: string, { source, files, asns = new Set() }: SourceInput, rows: SourceRows): void {
  const { networks } = rows.ingested;
  // Nobody asks for the names.
  const ingested = { ...rows.ingested, ...(networks && { networks: { ...networks, names: [] } }) };
  const stored: Stored = { ingested, owned: rows.owned, files: rows.files, asns };
  const content = serialize(stored);
  makeFolder(rowsDir(dataDir));
  const key = rowsKey({ format: source.format, kind: source.kind, files: [...files] });
  replaceFile(rowsPath(dataDir, key), [sha256(content).digest(), content]);
}

/**
 * Returns the stored rows of a source.
 *
 * @param asns AS numbers whose space the caller wants to know
 * @returns undefined if there are none
 */
export function storedRows(dataDir: string, input: IdentifiedRows, asns: ReadonlySet<number>): SourceRows | undefined {
  try {
    const bytes = readFileSync(rowsPath(dataDir, rowsKey(input)));
    const content = bytes.subarray(HASH_BYTES);
    if (!sha256(content).digest().equals(bytes.subarray(0, HASH_BYTES))) return undefined;
    const stored = deserialize(content) as Stored;
    return [...asns].every((asn) => stored.asns.has(asn)) ? stored : undefined;
  } catch {
    return undefined; // not a failure: the files are read again
  }
}

const HASH_BYTES = 32;
