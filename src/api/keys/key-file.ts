/**
 * The signed file that carries the keys of one data directory to other servers: hashes of keys, never keys or labels.
 *
 * The first line has the Ed25519 signature (RFC 8032) of all that follows, which is JSON by
 * schemas/keys-file.schema.json:
 *
 *     ipatlas-keys ed25519 <signature in hexadecimal>
 *     {"version":1763800000,"expires":"2026-11-24T05:10:30.000Z","keys":[
 *     {"id":"a79dfb58","hash":"…","rate":null,"origins":null,"self_issued":false,"created":"2026-11-22T05:10:27.835Z","expires":null}
 *     ]}
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { AtlasError, causedError } from '../../errors.js';
import { packageFile } from '../../package-root.js';

/** A valid key, as other servers need it. */
export interface SharedKey {
  id: string;
  /** SHA-256 of the key's text, hexadecimal. */
  hash: string;
  /** Addresses a minute; null for the server's rate. */
  rate: number | null;
  origins: string[] | null;
  self_issued: boolean;
  /** ISO 8601, UTC. */
  created: string;
  /** ISO 8601, UTC; null if it never expires. */
  expires: string | null;
}

export interface KeySet {
  /** Grows with each file. */
  version: number;
  /** When the file must have been replaced by a newer one; ISO 8601, UTC. */
  expires: string;
  keys: SharedKey[];
}

/** Begins what is signed, so that no signature of something else is valid for a file of keys. */
const CONTEXT = 'ipatlas-keys\n';
const FIRST_LINE = /^ipatlas-keys ed25519 ([0-9a-f]{128})$/;
/** Longest first line in bytes. */
const FIRST_LINE_BYTES = 160;

/** Most bytes of a file besides its keys. */
export const KEY_FILE_FRAME_BYTES = 256;

function signedBytes(payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(CONTEXT), payload]);
}

function ed25519(key: KeyObject, path: string): KeyObject {
  if (key.asymmetricKeyType === 'ed25519') return key;
  throw new AtlasError('E_USAGE', `${path} is not an Ed25519 key; make one with "openssl genpkey -algorithm ed25519"`);
}

function readKey(path: string, what: string, parse: (pem: Buffer) => KeyObject): KeyObject {
  try {
    return ed25519(parse(readFileSync(path)), path);
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    // The message of the parser never quotes the file.
    throw causedError('E_USAGE', `${path} cannot be read as ${what} in PEM`, error, 'name another file');
  }
}

/** Reads a private Ed25519 key (PKCS #8, PEM). Throws AtlasError E_USAGE if it is not one. */
export function readSigningKey(path: string): KeyObject {
  return readKey(path, 'a private key', (pem) => createPrivateKey(pem));
}

/** Reads a public Ed25519 key (SPKI, PEM). Throws AtlasError E_USAGE if it is not one. */
export function readVerifyingKey(path: string): KeyObject {
  return readKey(path, 'a public key', (pem) => createPublicKey(pem));
}

/** Returns the lines that list keys; the same for the same keys. */
export function keyLines(keys: readonly SharedKey[]): string {
  return keys
    .map(({ id, hash, rate, origins, self_issued, created, expires }) =>
      JSON.stringify({ id, hash, rate, origins, self_issued, created, expires }),
    )
    .join(',\n');
}

/** Returns a signed file. */
export function writeKeyFile({ version, expires, keys }: KeySet, key: KeyObject): Buffer {
  const payload = Buffer.from(`{"version":${version},"expires":"${expires}","keys":[\n${keyLines(keys)}\n]}\n`);
  const signature = sign(null, signedBytes(payload), key).toString('hex');
  return Buffer.concat([Buffer.from(`ipatlas-keys ed25519 ${signature}\n`), payload]);
}

/**
 * Reads a signed file.
 *
 * @param publicKeys one of them must have signed it
 * @throws AtlasError E_REFUSED if none of them did; E_BAD_INPUT if the bytes are not such a file
 */
export function readKeyFile(bytes: Buffer, publicKeys: readonly KeyObject[]): KeySet {
  const end = bytes.subarray(0, FIRST_LINE_BYTES).indexOf('\n');
  const match = FIRST_LINE.exec(bytes.toString('latin1', 0, Math.max(0, end)));
  if (match === null)
    throw new AtlasError('E_BAD_INPUT', 'this is not a file of keys; "ipatlas keys export" writes one');
  const payload = bytes.subarray(end + 1);
  const [signed, signature] = [signedBytes(payload), Buffer.from(match[1]!, 'hex')];
  if (!publicKeys.some((key) => verify(null, signed, key, signature))) {
    throw new AtlasError(
      'E_REFUSED',
      'the file of keys is not signed by the given key; the keys stay as they are; check --verify-key',
    );
  }
  return parsePayload(payload);
}

/** Returns the error for a file that is no file of keys. @param what is wrong */
function badFile(what: string): AtlasError {
  return new AtlasError('E_BAD_INPUT', `the file of keys ${what}; repeat "ipatlas keys export"`);
}

/** Parses what was signed. The signer may still have made a mistake. */
function parsePayload(payload: Buffer): KeySet {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch (error) {
    throw causedError('E_BAD_INPUT', 'the file of keys is not JSON', error, 'repeat "ipatlas keys export"');
  }
  const ajv = new Ajv2020({ allowUnionTypes: true });
  const isValid = ajv.compile<KeySet>(JSON.parse(readFileSync(packageFile('schemas/keys-file.schema.json'), 'utf8')));
  if (!isValid(value)) {
    throw badFile(`is not valid: ${ajv.errorsText(isValid.errors, { dataVar: '' })}`);
  }
  // A time that is not one would never pass.
  if (Number.isNaN(Date.parse(value.expires))) throw badFile(`expires at ${value.expires}, which is not a time`);
  for (const column of ['id', 'hash'] as const) {
    if (new Set(value.keys.map((key) => key[column])).size < value.keys.length) {
      throw badFile(`has two keys with the same ${column}`);
    }
  }
  return value;
}
