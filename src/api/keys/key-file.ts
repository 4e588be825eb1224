/**
 * The file that carries the keys of one data directory to other servers, by schemas/keys-file.schema.json: hashes of keys, never
 * keys or labels. It is as trustworthy as the way it comes: a copy, or a URL of https.
 */
import { createReadStream } from 'node:fs';
import { AtlasError, messageOf, misuse, orThrow } from '../../errors.js';
import { KEY_FILE_TIMEOUT_MS, MAX_KEY_FILE_BYTES } from '../../limits.js';
import { get } from '../../network.js';
import { compileSchema } from '../../schema-errors.js';
import { isLoopback, PERCENT_ADVICE, parseUrl, takeCredentials, withoutCredentials } from '../../url.js';

/** A valid key, as other servers need it. */
export interface SharedKey {
  id: string;
  /** SHA-256 of the key's text, hexadecimal. */
  hash: string;
  /** Addresses a minute; null for the server's rate. */
  rate: number | null;
  /** The only origins from which the key works, as `parseOrigin` returns them; null for no restriction. */
  origins: string[] | null;
  /** Whether the holder made it by signing up. Such a key expires. */
  self_issued: boolean;
  /** ISO 8601, UTC. */
  created: string;
  /** ISO 8601, UTC; null if it never expires. */
  expires: string | null;
}

/** Most bytes of a file besides its keys. */
export const KEY_FILE_FRAME_BYTES = 16;

/** Returns the lines that list keys; the same for the same keys. */
export function keyLines(keys: readonly SharedKey[]): string {
  return keys
    .map(({ id, hash, rate, origins, self_issued, created, expires }) =>
      JSON.stringify({ id, hash, rate, origins, self_issued, created, expires }),
    )
    .join(',\n');
}

/** Returns a file; the same for the same keys. */
export function writeKeyFile(keys: readonly SharedKey[]): Buffer {
  return Buffer.from(`{"keys":[\n${keyLines(keys)}\n]}\n`);
}

/** Returns the error for a file that is no file of keys. @param what is wrong */
function badFile(what: string): AtlasError {
  return new AtlasError('E_BAD_INPUT', `the file of keys ${what}; repeat "ipatlas keys export"`);
}

/** Reads a file. Throws AtlasError E_BAD_INPUT if the bytes are not one. */
export function readKeyFile(bytes: Uint8Array): SharedKey[] {
  const parse = (): unknown => JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  const value = orThrow(parse, 'E_BAD_INPUT', 'the file of keys is not JSON', 'repeat "ipatlas keys export"');
  // A file may have a mistake in each of 400,000 keys.
  const isValid = compileSchema<{ keys: SharedKey[] }>(['keys-file'], { allErrors: false });
  if (!isValid(value)) {
    // Without the values, which may be secrets if it is another file.
    const problems = isValid.errors!.map(({ instancePath, message }) => `${instancePath} ${message}`);
    throw badFile(`is not valid: ${problems.join(', ')}`);
  }
  for (const column of ['id', 'hash'] as const) {
    if (new Set(value.keys.map((key) => key[column])).size < value.keys.length) {
      throw badFile(`has two keys with the same ${column}`);
    }
  }
  return value.keys;
}

/** The content of a path or URL; the ETag (RFC 9110 §8.8.3) is empty if there is none. */
export interface FetchedKeys {
  bytes: Uint8Array;
  etag: string;
}

/**
 * Fetches a file of keys.
 *
 * @param source a path, or a URL of https, or of http on this machine; user and password in it are sent as HTTP Basic authentication
 * @param etag of the content that is known
 * @param env environment, for the proxy variables
 * @returns undefined if the content is the one that is known
 * @throws AtlasError E_FETCH if it cannot be read, E_BAD_INPUT if it is too large, E_USAGE for other URLs of http
 */
export async function fetchKeyFile(
  source: string,
  etag = '',
  env: NodeJS.ProcessEnv = process.env,
): Promise<FetchedKeys | undefined> {
  const url = /^https?:/i.test(source) ? parseUrl(source) : null;
  if (url === undefined) throw misuse(`${withoutCredentials(source)} is not a well-formed URL; ${PERCENT_ADVICE}`);
  const authorization = url === null ? '' : takeCredentials(url);
  const name = url?.href ?? source;
  try {
    if (url === null) return { bytes: await readLimited(source), etag: '' };
    if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
      throw misuse(`${name} can be altered on the way; use https, or copy the file and name its path`);
    }
    return await fetchUrl(name, authorization, etag, env);
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw new AtlasError('E_FETCH', `${name} cannot be read: ${messageOf(error)}; check its address`, {
      cause: error,
    });
  }
}

/** Returns a function that takes the pieces of a file of keys, and throws AtlasError E_BAD_INPUT if they are too large. */
function collector(pieces: Uint8Array[], name: string): (piece: Uint8Array) => void {
  let size = 0;
  return (piece) => {
    size += piece.length;
    if (size > MAX_KEY_FILE_BYTES) {
      throw new AtlasError('E_BAD_INPUT', `${name} is larger than ${MAX_KEY_FILE_BYTES} bytes; name another`);
    }
    pieces.push(piece);
  };
}

async function readLimited(path: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  const add = collector(pieces, path);
  for await (const piece of createReadStream(path)) add(piece as Uint8Array);
  return Buffer.concat(pieces);
}

async function fetchUrl(
  url: string,
  authorization: string,
  known: string,
  env: NodeJS.ProcessEnv,
): Promise<FetchedKeys | undefined> {
  const headers = {
    ...(known !== '' && { 'if-none-match': known }),
    ...(authorization !== '' && { authorization }),
  };
  const pieces: Uint8Array[] = [];
  const signal = AbortSignal.timeout(KEY_FILE_TIMEOUT_MS);
  const response = await get(new URL(url), { headers, signal, env }, ({ statusCode: status }) => {
    if (status === 304) return undefined;
    if (status !== 200) throw new AtlasError('E_FETCH', `${url} answers with status ${status}; check its address`);
    return collector(pieces, url);
  });
  return response.statusCode === 304 ? undefined : { bytes: Buffer.concat(pieces), etag: response.headers.etag ?? '' };
}
