/** Helpers for tests of the fetch stage: a temporary data directory, a real HTTP server, a zip writer, a tarball writer. */
import { mkdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import type { Location, SourceConfig } from '../../pipeline/config/sources.js';
import type { FetchedSource } from '../../pipeline/stage.js';
import { type FetchOptions, fetchSources } from '../../pipeline/stages/fetch.js';
import { AtlasError } from '../../src/errors.js';

export { temporaryDir as scratchDir } from '../support/temporary.js';

export function source(location: Location | Location[], id = 'test', optional = false): SourceConfig {
  const texts = { title: id, license: 'CC0-1.0', attribution: '', homepage: '', corrections: '' };
  const merging = { lineage: id, kind: 'geolocation' as const, space: [], asns: [], interpolates: false, optional };
  return { id, ...texts, ...merging, locations: [location].flat(), format: 'ip-location-db', maxRejectShare: 0 };
}

/** Runs the stage as a build does. Waits between attempts take no time and are recorded. */
export async function runFetch(
  sources: SourceConfig[],
  dataDir: string,
  {
    offline = false,
    asOf = '2026-01-01',
    accept = true,
    brief = false,
    notes = [],
    ...options
  }: FetchOptions & { offline?: boolean; asOf?: string; accept?: boolean; brief?: boolean; notes?: string[] } = {},
) {
  const waits: number[] = [];
  const workDir = path.join(dataDir, 'tmp', 'work');
  mkdirSync(workDir, { recursive: true });
  const wait = async (milliseconds: number) => {
    waits.push(milliseconds);
  };
  const context = { dataDir, workDir, offline, asOf, brief, note: (text: string) => notes.push(text), stages: [] };
  const { output, counts } = await fetchSources(sources, context, { wait, ...options });
  // As after a build that was published.
  if (accept) for (const each of output.sources) await each.accept();
  return { output: output.sources, missing: output.missing, counts, notes, waits };
}

/** Returns the files of a fetched source by name, as text. */
export function textsOf(fetched: Pick<FetchedSource, 'files'> | undefined): Record<string, string> {
  return Object.fromEntries((fetched?.files ?? []).map((file) => [file.name, readFileSync(file.path, 'utf8')]));
}

/** Returns the AtlasError of a promise; any other outcome fails the test. */
export async function atlasError(promise: Promise<unknown>): Promise<AtlasError> {
  const result = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (result instanceof AtlasError) return result;
  throw new Error(`expected an AtlasError, got ${String(result)}`);
}

/** Starts a server on this machine that is closed after the test. */
export async function serve(handler: http.RequestListener): Promise<{ url: string; requests: http.IncomingMessage[] }> {
  const requests: http.IncomingMessage[] = [];
  const server = http.createServer((request, response) => {
    requests.push(request);
    handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

export interface ZipEntry {
  name: string;
  content: string | Buffer;
  /** Unix mode with its file type, as `st_mode`. */
  mode?: number;
  /** Another checksum than the right one. */
  crc?: number;
  /** Another size than the right one. */
  size?: number;
}

/** A zip archive (APPNOTE.TXT §4.3), deflated. Own code, because tools do not write invalid archives. */
export function makeZip(entries: ZipEntry[]): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const name = Buffer.from(entry.name);
    const content = Buffer.from(entry.content);
    const packed = deflateRawSync(content);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(entry.crc ?? crc32(content), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(entry.size ?? content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(((entry.mode ?? 0o100644) << 16) >>> 0, 6);
    rest.writeUInt32LE(offset, 10);
    // Made by: Unix, so that the upper half of the attributes is a mode.
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03'), common, rest, name]));
    locals.push(local);
    offset += local.length;
  }
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(Buffer.concat(directory).length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, ...directory, Buffer.from('PK\x05\x06'), end]);
}
