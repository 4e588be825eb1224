/** Builds from small made-up sources in this process, for tests of several builds in a row. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BuildOptions, build } from '../../pipeline/build.js';
import { loadReference } from '../../pipeline/config/reference.js';
import { currentReleaseId, MANIFEST_FILE, type Manifest, MIRROR_FILE } from '../../src/database/release.js';
import { AtlasError, ERROR_TABLE } from '../../src/errors.js';
import { sqlite } from '../../src/sqlite.js';

/**
 * Writes CSV files as sources, in order of priority, and their sources file.
 *
 * @param files rows by id of the source: first, last, country
 * @param more further members of sources.json
 * @returns the path of the sources file
 */
export function writeSources(dir: string, files: Record<string, string | string[]>, more: object = {}): string {
  mkdirSync(dir, { recursive: true });
  for (const [id, rows] of Object.entries(files)) {
    writeFileSync(join(dir, `${id}.csv`), typeof rows === 'string' ? rows : `${rows.join('\n')}\n`);
  }
  const path = join(dir, 'sources.json');
  const sources = Object.keys(files).map((id) => ({
    ...{ id, license: 'CC0-1.0', fetch: { file: `${id}.csv` }, format: 'ip-location-db' },
  }));
  writeFileSync(path, JSON.stringify({ sources, ...more }));
  return path;
}

export interface Built {
  /** `published`, `unchanged`, or the code of the error. */
  outcome: string;
  exit: number;
  id: string | undefined;
  /** Of the error; empty if there is none. */
  message: string;
  notes: string[];
}

/** Builds once; an AtlasError is an outcome. */
export async function buildOnce(
  dataDir: string,
  sourcesFile: string,
  options: Partial<BuildOptions> = {},
): Promise<Built> {
  const notes: string[] = [];
  const note = (line: string): void => {
    notes.push(line);
  };
  const defaults = { dataDir, sourcesFile, only: [], asOf: undefined, offline: true, force: false, note };
  try {
    const { id, outcome } = await build({ ...defaults, ...options });
    return { outcome, exit: 0, id, message: '', notes };
  } catch (error) {
    if (!(error instanceof AtlasError)) throw error;
    return { outcome: error.code, exit: ERROR_TABLE[error.code].exit, id: undefined, message: error.message, notes };
  }
}

export function manifestOf(dataDir: string, id = currentReleaseId(dataDir)!): Manifest {
  return JSON.parse(readFileSync(join(dataDir, 'releases', id, MANIFEST_FILE), 'utf8'));
}

/** Names in a folder below the data directory, sorted. */
export function namesIn(dataDir: string, ...path: string[]): string[] {
  return readdirSync(join(dataDir, ...path)).sort();
}

/** Country codes of the made-up world, used in turn. */
const TURNS =
  'AR AT AU BE BR CA CH CL CN CO CZ DE DK EG ES FI FR GB GR HU ID IN IT JP KR MX NL NO NZ PE PL PT RO SE TH TR UA US VN ZA'.split(
    ' ',
  );

/** A row of a range in text. */
export type Row = { first: string; last: string; code: string };

/**
 * Returns a made-up world with the right country for every sentinel: each /8 of IPv4 in sixteen rows, sixty-four IPv6 /24s, countries by
 * turns; a row for each sentinel. Two small countries have one /12 each, MT 100.0.0.0/12 and CY 101.0.0.0/12; the smallest,
 * LI, has 102.0.0.0/24.
 */
export function madeUpWorld(): Row[] {
  const rows: Row[] = [];
  let turn = 0;
  const next = (): string => TURNS[turn++ % TURNS.length]!;
  for (let octet = 1; octet < 224; octet++) {
    if (octet === 10 || octet === 127) continue;
    for (let part = 0; part < 16; part++) {
      rows.push({ first: `${octet}.${16 * part}.0.0`, last: `${octet}.${16 * part + 15}.255.255`, code: next() });
    }
  }
  for (const [first, code] of [
    ['100.0.0.0', 'MT'],
    ['101.0.0.0', 'CY'],
  ])
    rows.find((row) => row.first === first)!.code = code!;
  rows.push({ first: '102.0.0.0', last: '102.0.0.255', code: 'LI' });
  for (let block = 0; block < 64; block++) {
    const prefix = `${(0x2a00 + Math.floor(block / 4)).toString(16)}:${block % 4}`;
    rows.push({ first: `${prefix}00::`, last: `${prefix}ff:ffff:ffff:ffff:ffff:ffff:ffff`, code: next() });
  }
  for (const { ip, expected } of loadReference().sentinels) {
    if (expected.kind === 'country' && !isCarrier(ip)) rows.push({ first: ip, last: ip, code: expected.code });
  }
  return rows;
}

/** Returns whether the result of a sentinel comes from an embedded IPv4 address. */
function isCarrier(ip: string): boolean {
  return /^(2002|64|2001:0|::ffff):/.test(ip);
}

export function rowsText(rows: readonly Row[]): string[] {
  return rows.map(({ first, last, code }) => `${first},${last},${code}`);
}

/** Damages the rows that builds stored for `explain`, and removes one of the files. */
export function spoilRows(dataDir: string): void {
  const directory = join(dataDir, 'cache/rows');
  for (const [index, name] of readdirSync(directory).entries()) {
    const path = join(directory, name);
    if (index === 0) rmSync(path);
    else writeFileSync(path, readFileSync(path).fill(0xff, 40, 60));
  }
}

/** Changes the mirror of a release, and its manifest as if it had been made so: only a comparison notices it. */
export function changeMirror(dir: string, sql: string): void {
  const path = join(dir, MIRROR_FILE);
  const mirror = new (sqlite())(path);
  mirror.exec(sql);
  mirror.close();
  const bytes = readFileSync(path);
  const manifest = JSON.parse(readFileSync(join(dir, MANIFEST_FILE), 'utf8')) as Manifest;
  const output = manifest.outputs.find(({ name }) => name === MIRROR_FILE)!;
  Object.assign(output, { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') });
  writeFileSync(join(dir, MANIFEST_FILE), JSON.stringify(manifest));
}
