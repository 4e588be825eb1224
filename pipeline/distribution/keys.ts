/** Signing keys of a repository: Ed25519 private keys in PEM files (PKCS #8, RFC 8410), which the operator keeps. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Key, Signature } from '@tufjs/models';
import { AtlasError, causedError, orThrow, RESTORE } from '../../src/errors.js';
import { checkPrivate, makeFolder, replaceFile } from '../../src/files.js';

/** The top-level roles of TUF (The Update Framework), in the order in which their metadata is published. */
export const ROLES = ['root', 'targets', 'snapshot', 'timestamp'] as const;
export type Role = (typeof ROLES)[number];

/** A private key with its public part as metadata names it. */
export interface SigningKey {
  key: Key;
  /** Signs the canonical form of metadata. */
  sign(data: Buffer): Signature;
}

/** Private keys by the id of the key. */
export type KeyRing = ReadonlyMap<string, SigningKey>;

/**
 * Returns the public part of a key. Its id is the SHA-256 of its canonical JSON (TUF specification 1.0.31 §4.2): the
 * members in order of their names, without white space.
 */
function publicPart(privateKey: KeyObject): Key {
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  const keyval = { public: Buffer.from(x!, 'base64url').toString('hex') };
  const canonical = JSON.stringify({ keytype: 'ed25519', keyval, scheme: 'ed25519' });
  const keyID = createHash('sha256').update(canonical).digest('hex');
  return new Key({ keyID, keyType: 'ed25519', scheme: 'ed25519', keyVal: keyval });
}

function signingKey(privateKey: KeyObject): SigningKey {
  const key = publicPart(privateKey);
  return {
    key,
    sign: (data) => new Signature({ keyID: key.keyID, sig: sign(null, data, privateKey).toString('hex') }),
  };
}

/**
 * Makes a new key and stores it as `<role>-<start of its id>.pem`, readable by its owner only.
 *
 * @param dir directory of keys; created if it does not exist
 */
export function createKey(dir: string, role: Role): SigningKey {
  makeFolder(dir, 0o700);
  const { privateKey } = generateKeyPairSync('ed25519');
  const created = signingKey(privateKey);
  const path = join(dir, `${role}-${created.key.keyID.slice(0, 8)}.pem`);
  replaceFile(path, [privateKey.export({ type: 'pkcs8', format: 'pem' })], { mode: 0o600 });
  return created;
}

function readKey(path: string): SigningKey {
  checkPrivate(path);
  let privateKey: KeyObject;
  try {
    const pem = readFileSync(path);
    // "BEGIN ENCRYPTED PRIVATE KEY" (RFC 7468 §11), or "Proc-Type: 4,ENCRYPTED" (RFC 1421).
    if (pem.includes('ENCRYPTED')) {
      const advice = `write it without one, "openssl pkey -in ${path} -out FILE", to a disk that is encrypted itself`;
      throw new AtlasError('E_CONFIG', `the key ${path} has a passphrase, which is not supported; ${advice}`);
    }
    privateKey = createPrivateKey(pem);
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw causedError('E_CONFIG', `the key ${path} cannot be read`, error, RESTORE);
  }
  if (privateKey.asymmetricKeyType === 'ed25519') return signingKey(privateKey);
  throw new AtlasError(
    'E_CONFIG',
    `the key ${path} is not an Ed25519 key, but ${privateKey.asymmetricKeyType}; move it out of the directory`,
  );
}

/**
 * Reads all private keys (`*.pem`) of some directories.
 *
 * @throws AtlasError E_CONFIG if a directory or key cannot be read, or other users may read a key
 */
export function readKeys(dirs: readonly string[]): KeyRing {
  const keys = new Map<string, SigningKey>();
  for (const dir of dirs) {
    const what = `the keys in ${dir} cannot be read`;
    const names = orThrow(() => readdirSync(dir), 'E_CONFIG', what, 'name their directory with --keys');
    for (const name of names.filter((each) => each.endsWith('.pem') && !each.startsWith('.'))) {
      const one = readKey(join(dir, name));
      keys.set(one.key.keyID, one);
    }
  }
  return keys;
}
