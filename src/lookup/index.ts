/**
 * The package @ipatlas/lookup: the country of any address, without files, servers, or anything of Node.
 *
 * ```ts
 * import { load } from '@ipatlas/lookup';
 * const db = await load();
 * db.country('193.0.6.139'); // { country: 'Netherlands', country_code: 'NL', is_eu: true }
 * ```
 */
import { zlibIfAny } from '../builtins.js';
import { containerSize, MAGIC } from '../compact/container.js';
import { CompactCountries } from '../compact/countries.js';
import { BinaryEngine } from '../database/binary-engine.js';
import { Lookups } from '../database/lookups.js';
import { DAY_MS } from '../day.js';
import { AtlasError, isAtlasError, messageOf } from '../errors.js';
import { MAX_COMPACT_BYTES } from '../limits.js';
import type { KindDatabase, LookupDatabase, NetworkDatabase } from './database.js';
import { CompactKinds, CompactNetworks } from './partitions.js';
import { searchable } from './ranges.js';

export type { Country, LookupResult, ReasonedResult } from '../database/results.js';
export type { KindDatabase, LookupDatabase, Network, NetworkDatabase, NetworkKind } from './database.js';

class CompactDatabase extends Lookups implements LookupDatabase {
  readonly dataDate: string;
  readonly attribution: readonly string[];

  constructor(compact: CompactCountries) {
    super(
      new BinaryEngine({ records: compact.records, ...searchable(compact.ranges(6, true), compact.ranges(4, true)) }),
    );
    const { data_date, as_of, attribution } = compact.about;
    this.dataDate = data_date ?? as_of;
    this.attribution = Object.freeze(attribution);
  }

  age(now = Date.now()): number {
    return Math.max(0, Math.floor((now - Date.parse(this.dataDate)) / DAY_MS));
  }
}

/** Bytes that zlib unpacks at a time: more than the countries of the world, which then are not copied. */
const CHUNK_BYTES = 2 ** 21;

/** Unpacks gzip, up to the size that the header of the compact form in it says. */
async function gunzip(bytes: Uint8Array<ArrayBuffer>, name: string): Promise<Uint8Array> {
  const damaged = (what: string): AtlasError => new AtlasError('E_DAMAGED', `${name}: ${what}; get the file again`);
  // It takes a third of the time of streams in Node.
  const zlib = zlibIfAny();
  if (zlib !== undefined) {
    try {
      const { buffer, byteOffset, length } = zlib.gunzipSync(bytes, {
        chunkSize: CHUNK_BYTES,
        maxOutputLength: MAX_COMPACT_BYTES,
      });
      return new Uint8Array(buffer, byteOffset, length); // faster than the Buffer of Node
    } catch {
      throw damaged('cannot be unpacked');
    }
  }
  const reader = new Response(bytes).body!.pipeThrough(new DecompressionStream('gzip')).getReader();
  let unpacked: Uint8Array | undefined;
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw damaged('cannot be unpacked');
    });
    if (done) break;
    if (unpacked === undefined) {
      const size = containerSize(value, name);
      if (size > MAX_COMPACT_BYTES) throw damaged(`${size} bytes are more than ${MAX_COMPACT_BYTES}`);
      unpacked = new Uint8Array(size);
    }
    if (length + value.length > unpacked.length) throw damaged('is longer than its header says');
    unpacked.set(value, length);
    length += value.length;
  }
  return unpacked?.subarray(0, length) ?? new Uint8Array();
}

/** Returns a compact form as it is, unpacked if it is compressed. */
async function unpacked(bytes: Uint8Array | ArrayBuffer, name: string): Promise<Uint8Array> {
  const given = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  if (given[0] === 0x1f && given[1] === 0x8b) return gunzip(given as Uint8Array<ArrayBuffer>, name);
  if (given.length > 0 && given[0] !== MAGIC[0]) {
    // Brotli, the default of exports, has no magic number, and not every runtime can unpack it.
    const advice = 'if it is compressed with Brotli, write it with "ipatlas export compact --gzip"';
    throw new AtlasError('E_DAMAGED', `${name}: neither a compact form nor one with gzip; ${advice}`);
  }
  return given;
}

/**
 * Opens a database.
 *
 * @param bytes a compact form, as it is or compressed with gzip, such as a file of `ipatlas export compact --gzip`. They must
 *   not change afterwards
 * @throws an error with the code E_DAMAGED if they are not a compact form
 */
export async function fromBytes(bytes: Uint8Array | ArrayBuffer, name = 'the compact form'): Promise<LookupDatabase> {
  return new CompactDatabase(new CompactCountries(await unpacked(bytes, name), name));
}

/**
 * Opens the networks of a compact form that has them, such as a file of `ipatlas export compact --with networks`.
 *
 * @param bytes as {@link fromBytes} takes them
 * @throws an error with the code E_DAMAGED if they are not a compact form with networks
 */
export async function networksFromBytes(
  bytes: Uint8Array | ArrayBuffer,
  name = 'the compact form',
): Promise<NetworkDatabase> {
  return new CompactNetworks(await unpacked(bytes, name), name);
}

/**
 * Opens the kinds of networks of a compact form that has them, such as a file of `ipatlas export compact --with kinds`.
 *
 * @param bytes as {@link fromBytes} takes them
 * @throws an error with the code E_DAMAGED if they are not a compact form with kinds of networks
 */
export async function kindsFromBytes(
  bytes: Uint8Array | ArrayBuffer,
  name = 'the compact form',
): Promise<KindDatabase> {
  return new CompactKinds(await unpacked(bytes, name), name);
}

function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Databases by their address, to open only newer ones. */
type Fetched<Database> = Map<string, { etag: string; database: Database }>;
const countries: Fetched<LookupDatabase> = new Map();
const networks: Fetched<NetworkDatabase> = new Map();
const kinds: Fetched<KindDatabase> = new Map();

/** Whether a browser asks the server first whether it may send `If-None-Match` (CORS), which few servers of files allow. */
function isOfOtherOrigin(url: string): boolean {
  const { location } = globalThis as { location?: Pick<URL, 'href' | 'origin'> };
  return location !== undefined && new URL(url, location.href).origin !== location.origin;
}

async function fetchDatabase<Database>(
  url: string,
  fetched: Fetched<Database>,
  open: (bytes: ArrayBuffer, name: string) => Promise<Database>,
): Promise<Database> {
  const failed = (what: string, cause?: unknown): AtlasError =>
    new AtlasError('E_FETCH', `${url} ${what}; check the address of the compact form`, { cause });
  const known = fetched.get(url);
  try {
    // Of other origins, the browser's own cache asks with the ETag, and gives the file that it has.
    const response = isOfOtherOrigin(url)
      ? await fetch(url, { cache: 'no-cache' } as RequestInit)
      : await fetch(url, { headers: known === undefined ? {} : { 'If-None-Match': known.etag } });
    const etag = response.headers.get('ETag');
    if (known !== undefined && (response.status === 304 || (response.ok && etag === known.etag))) {
      await response.body?.cancel();
      return known.database;
    }
    if (!response.ok) throw failed(`answers ${response.status} ${response.statusText}`);
    const database = await open(await response.arrayBuffer(), url);
    if (etag !== null) fetched.set(url, { etag, database });
    return database;
  } catch (error) {
    throw isAtlasError(error) ? error : failed(`cannot be fetched: ${messageOf(error)}`, error);
  }
}

/**
 * Loads a database.
 *
 * @param url of a compact form, such as `https://…/db/country.ipc` of a server; the data of the package by default. If the
 *   server sends an ETag, a later call for the same URL gets a newer database or the same one
 * @throws an error with the code E_FETCH if there is no answer or no file, E_DAMAGED if it is not a compact form
 */
export async function load(url?: string | URL): Promise<LookupDatabase> {
  if (url !== undefined) return fetchDatabase(String(url), countries, fromBytes);
  // The module is made by scripts/make-lookup.js, and stays a file of its own beside the bundle.
  const { default: data }: { default: string } = await import('./data.js');
  return fromBytes(fromBase64(data), 'the data of @ipatlas/lookup');
}

/**
 * Loads the networks of a server, or any other compact form that has them.
 *
 * @param url such as `https://…/db/networks.ipc`; an ETag works as in {@link load}
 * @throws as {@link load}
 */
export function loadNetworks(url: string | URL): Promise<NetworkDatabase> {
  return fetchDatabase(String(url), networks, networksFromBytes);
}

/** Loads the kinds of networks of a server, `https://…/db/kinds.ipc`, or another compact form that has them; as {@link loadNetworks}. */
export function loadKinds(url: string | URL): Promise<KindDatabase> {
  return fetchDatabase(String(url), kinds, kindsFromBytes);
}
