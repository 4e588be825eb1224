/**
 * A signed repository of releases: TUF metadata (The Update Framework, specification 1.0.31) with consistent snapshots, as
 * files that any static web server can serve.
 *
 *     root.json                               the newest root metadata, for new nodes
 *     metadata/<version>.<role>.json          root, targets and snapshot
 *     metadata/timestamp.json
 *     targets/<sha256>.current.json           names the release that nodes follow, and what it has
 *     targets/<id>/<sha256>.release.ipc       the pull form: all of a release in the compact form, with Brotli; its labels
 *                                             only with `repo add --labels`
 *     targets/history/<sha256>.2026-11.pack   the history of a month, and that of its networks below history/networks;
 *                                             current.json names these targets
 *
 * Every file is replaced atomically. Files come first, then targets, snapshot and timestamp. A client follows the
 * timestamp, so until the last of these steps it sees the old state, and a process that is killed leaves a valid repository.
 */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Metadata, MetadataKind, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp } from '@tufjs/models';
import { compressCompact } from '../../src/database/compact.js';
import { type Manifest, MIRROR_FILE, publishedManifest } from '../../src/database/release.js';
import { verifyRelease } from '../../src/database/verify.js';
import { DAY_MS } from '../../src/day.js';
import { AtlasError, causedError, misuse, orThrow, RESTORE, systemErrorCode, writeError } from '../../src/errors.js';
import { flush, makeFolder, rename, replaceFile } from '../../src/files.js';
import { openArchive } from '../../src/history/archive.js';
import { encodePacks } from '../../src/history/pack.js';
import { REPOSITORY_RELEASES, SIGNATURE_DAYS, SIGNATURE_RENEW_SHARE } from '../../src/limits.js';
import { archivedPartitions, PARTITIONS } from '../../src/rangefile/partitions.js';
import { packRelease } from '../compact-release.js';
import { lockDirectory } from '../operations/lock.js';
import { createKey, type KeyRing, ROLES, type Role, readKeys } from './keys.js';

/** Version of the TUF specification that the metadata follows. */
const SPEC_VERSION = '1.0.31';

/** Names of targets. */
export const CURRENT_TARGET = 'current.json';
export const PULL_FORM = 'release.ipc';

/** Version of what a repository offers, so that a node that is too old for it says so. Format 1 had the files of a release, too. */
export const REPOSITORY_FORMAT = 2;

/** The content of `current.json`. */
export interface CurrentTarget {
  format: typeof REPOSITORY_FORMAT;
  /** Id of the release that nodes follow. */
  release: string;
  /** What it has; see {@link signedOutputs}. */
  outputs: string[];
  /** The targets of the packs of history. */
  history: string[];
}

/** Returns the files of a release with their hashes, but for the mirror, which each machine writes itself. */
export function signedOutputs({ outputs }: Manifest): string[] {
  return outputs.flatMap(({ name, sha256: hash }) => (name === MIRROR_FILE ? [] : [`${name} ${hash}`])).sort();
}

/** Folders of a repository. */
export const METADATA_DIR = 'metadata';
export const TARGETS_DIR = 'targets';

export interface RepositoryOptions {
  dir: string;
  /** Directories with private keys; new keys are written to the first. */
  keyDirs: readonly string[];
  /** Days for which new signatures are valid, where they differ from the default. */
  days?: Partial<Record<Role, number>> | undefined;
  /** How long to wait for another command that holds the lock. */
  waitMs?: number | undefined;
  /** The time of the signatures; default: now. */
  now?: Date;
  /** Reports what the operator should know; one line without a line end. */
  note: (line: string) => void;
}

/** How many keys a role has, and how many of them must sign. */
export interface Threshold {
  keys: number;
  threshold: number;
}

/** What a repository offers. */
export interface RepositorySummary {
  /** The release that nodes follow; null before the first one. */
  release: string | null;
  /** By role: version, and the time until which the signature is valid (ISO 8601, UTC). */
  roles: Record<Role, { version: number; expires: string }>;
}

type Signed = Root | Targets | Snapshot | Timestamp;

/** The newest metadata of each role. */
interface State {
  root: Metadata<Root>;
  targets: Metadata<Targets>;
  snapshot: Metadata<Snapshot>;
  timestamp: Metadata<Timestamp>;
}

/** Returns the file of a role's metadata, below the folder for metadata. */
function metadataName(role: Role, version: number): string {
  return role === 'timestamp' ? 'timestamp.json' : `${version}.${role}.json`;
}

/** Returns the content of a metadata file. Hashes of it are in other metadata, so it must always be the same. */
function metadataBytes(metadata: Metadata<Signed>): Buffer {
  return Buffer.from(`${JSON.stringify(metadata.toJSON(), null, 2)}\n`);
}

function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Returns the path of a target's file below the folder for targets (TUF specification §6.2, consistent snapshots). */
function targetPath({ path, hashes }: TargetFile): string {
  const directory = dirname(path);
  const name = `${hashes.sha256}.${path.slice(path.lastIndexOf('/') + 1)}`;
  return directory === '.' ? name : join(directory, name);
}

/** Signs metadata for a repository in one directory. */
class Signer {
  readonly #keys: KeyRing;
  readonly #now: Date;
  readonly #days: Record<Role, number>;

  constructor(keys: KeyRing, { days, now = new Date() }: RepositoryOptions) {
    this.#keys = keys;
    this.#now = now;
    this.#days = { ...SIGNATURE_DAYS, ...days };
  }

  /** Returns when metadata that is signed now expires: ISO 8601 in UTC, without fractions (TUF specification §4.2.1). */
  expiry(role: Role): string {
    return new Date(this.#now.getTime() + this.#days[role] * DAY_MS).toISOString().replace(/\.\d+Z$/, 'Z');
  }

  /** Returns whether metadata must be signed again: it expires soon, or not enough of the root's current keys signed it. */
  isDue(role: Role, metadata: Metadata<Signed>, root: Metadata<Root>): boolean {
    const left = Date.parse(metadata.signed.expires) - this.#now.getTime();
    return left < SIGNATURE_RENEW_SHARE * this.#days[role] * DAY_MS || !isSigned(role, metadata, root);
  }

  /** Returns whether enough keys of a role are at hand. */
  canSign(role: Role, root: Metadata<Root>): boolean {
    const { keyIDs, threshold } = root.signed.roles[role]!;
    return keyIDs.filter((id) => this.#keys.has(id)).length >= threshold;
  }

  /** @throws AtlasError E_CONFIG if not enough keys of a role are at hand */
  requireKeys(role: Role, root: Metadata<Root>): void {
    if (this.canSign(role, root)) return;
    const { keyIDs, threshold } = root.signed.roles[role]!;
    const names = keyIDs.map((id) => `${role}-${id.slice(0, 8)}.pem`).join(', ');
    throw new AtlasError(
      'E_CONFIG',
      `signing ${role} needs ${threshold} of the keys ${names}; name their directories with --keys`,
    );
  }

  /**
   * Signs metadata with all keys of its role that are at hand.
   *
   * @param root names the keys, of which enough must be at hand
   * @param before if the keys change, the root before: its keys sign as well, so that both roots accept the metadata
   * @throws AtlasError E_CONFIG if keys are missing
   */
  sign<Content extends Signed>(
    role: Role,
    content: Content,
    root: Metadata<Root>,
    before?: Metadata<Root>,
  ): Metadata<Content> {
    this.requireKeys(role, root);
    const metadata = new Metadata(content);
    const roots = before === undefined ? [root] : [root, before];
    const ids = roots.flatMap((each) => each.signed.roles[role]!.keyIDs);
    for (const id of new Set(ids)) {
      const key = this.#keys.get(id);
      if (key !== undefined) metadata.sign(key.sign);
    }
    return metadata;
  }
}

/** Returns whether enough of a root's keys signed metadata. */
function isSigned(role: Role, metadata: Metadata<Signed>, root: Metadata<Root>): boolean {
  try {
    root.verifyDelegate(role, metadata);
    return true;
  } catch {
    return false; // the library reports a missing signature as an error
  }
}

function readJson(path: string) {
  return orThrow(() => JSON.parse(readFileSync(path, 'utf8')), 'E_DAMAGED', `${path} cannot be read`, RESTORE);
}

/** Returns the number of the newest root metadata; 0 if there is none. */
function newestRoot(dir: string): number {
  const metadata = join(dir, METADATA_DIR);
  if (statSync(metadata, { throwIfNoEntry: false }) === undefined) return 0;
  const versions = readdirSync(metadata).map((name) => Number(/^(\d+)\.root\.json$/.exec(name)?.[1] ?? 0));
  return Math.max(0, ...versions);
}

function noRepository(dir: string): AtlasError {
  return misuse(`there is no repository in ${dir}; make one with "ipatlas repo init ${dir}"`);
}

/**
 * Reads the newest metadata of each role.
 *
 * @throws AtlasError E_USAGE if there is no repository, E_DAMAGED if its metadata cannot be read
 */
function readState(dir: string): State {
  const version = newestRoot(dir);
  if (version === 0) throw noRepository(dir);
  const pathOf = (role: Role, at: number): string => join(dir, METADATA_DIR, metadataName(role, at));
  try {
    const root = Metadata.fromJSON(MetadataKind.Root, readJson(pathOf('root', version)));
    const timestamp = Metadata.fromJSON(MetadataKind.Timestamp, readJson(pathOf('timestamp', 0)));
    const snapshotVersion = timestamp.signed.snapshotMeta.version;
    const snapshot = Metadata.fromJSON(MetadataKind.Snapshot, readJson(pathOf('snapshot', snapshotVersion)));
    const targetsVersion = snapshot.signed.meta['targets.json']!.version;
    const targets = Metadata.fromJSON(MetadataKind.Targets, readJson(pathOf('targets', targetsVersion)));
    return { root, targets, snapshot, timestamp };
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw causedError('E_DAMAGED', `the metadata in ${dir} is damaged`, error, RESTORE);
  }
}

/** Returns what snapshot and timestamp say about a metadata file. */
function metaFile(metadata: Metadata<Targets> | Metadata<Snapshot>): MetaFile {
  const content = metadataBytes(metadata);
  return new MetaFile({
    version: metadata.signed.version,
    length: content.length,
    hashes: { sha256: sha256(content) },
  });
}

/**
 * Returns the next metadata: a new timestamp, and new targets and snapshot if they changed or must be signed again, or if there are
 * none yet.
 *
 * @param targets the targets, if they changed
 * @param renew further roles to sign again
 * @param before the root before, if keys change
 */
function nextState(
  state: Pick<State, 'root'> & Partial<State>,
  signer: Signer,
  targets: Record<string, TargetFile> | undefined,
  renew: readonly Role[],
  before?: Metadata<Root>,
): State {
  const { root } = state;
  const facts = (role: Role) => ({
    specVersion: SPEC_VERSION,
    version: (state[role]?.signed.version ?? 0) + 1,
    expires: signer.expiry(role),
  });
  let { targets: list, snapshot } = state;
  if (list === undefined || targets !== undefined || renew.includes('targets')) {
    const content = new Targets({ ...facts('targets'), targets: targets ?? list?.signed.targets ?? {} });
    list = signer.sign('targets', content, root, before);
  }
  if (snapshot === undefined || list !== state.targets || renew.includes('snapshot')) {
    const content = new Snapshot({ ...facts('snapshot'), meta: { 'targets.json': metaFile(list) } });
    snapshot = signer.sign('snapshot', content, root, before);
  }
  const content = new Timestamp({ ...facts('timestamp'), snapshotMeta: metaFile(snapshot) });
  return { root, targets: list, snapshot, timestamp: signer.sign('timestamp', content, root, before) };
}

/** Writes one metadata file, flushed to the disk before the next one is written. */
function writeMetadata(dir: string, role: Role, metadata: Metadata<Signed>): void {
  const folder = join(dir, METADATA_DIR);
  replaceFile(join(folder, metadataName(role, metadata.signed.version)), [metadataBytes(metadata)]);
  flush(folder);
  if (role === 'root') replaceFile(join(dir, 'root.json'), [metadataBytes(metadata)]);
}

/** Writes the metadata that changed, in the order in which a client may see it. */
function writeState(dir: string, before: State | undefined, next: State): void {
  for (const role of ['targets', 'snapshot', 'timestamp'] as const) {
    if (next[role] !== before?.[role]) writeMetadata(dir, role, next[role]);
  }
}

/** Returns the files below a folder, relative to it. */
function filesBelow(folder: string): string[] {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(folder, name)).isFile(),
  );
}

/**
 * Removes the files that neither the new nor the previous metadata names: those of old releases, and what killed processes
 * left. The previous ones stay, because a client may be reading them.
 */
function removeUnused(dir: string, before: State, next: State): void {
  const metadata = new Set(['timestamp.json']);
  const targets = new Set<string>();
  for (const state of [before, next]) {
    for (const role of ['targets', 'snapshot'] as const) {
      metadata.add(metadataName(role, state[role].signed.version));
    }
    for (const target of Object.values(state.targets.signed.targets)) targets.add(targetPath(target));
  }
  for (const name of filesBelow(join(dir, METADATA_DIR))) {
    if (!metadata.has(name) && !/^\d+\.root\.json$/.test(name)) rmSync(join(dir, METADATA_DIR, name));
  }
  for (const name of filesBelow(join(dir, TARGETS_DIR))) {
    if (!targets.has(name)) rmSync(join(dir, TARGETS_DIR, name));
  }
  for (const entry of readdirSync(join(dir, TARGETS_DIR), { withFileTypes: true })) {
    const folder = join(dir, TARGETS_DIR, entry.name);
    if (entry.isDirectory() && readdirSync(folder).length === 0) rmdirSync(folder);
  }
}

/** Returns the id of the release that nodes follow, from the content of its target. */
function currentRelease(dir: string, { targets }: State): string | null {
  const target = targets.signed.targets[CURRENT_TARGET];
  return target === undefined ? null : (readJson(join(dir, TARGETS_DIR, targetPath(target))).release as string);
}

function summary(dir: string, state: State): RepositorySummary {
  const facts = ROLES.map((role) => {
    const { version, expires } = state[role].signed;
    return [role, { version, expires }];
  });
  return { release: currentRelease(dir, state), roles: Object.fromEntries(facts) };
}

/** Returns a path with symbolic links resolved; the last names may not exist yet. */
function realPath(path: string): string {
  const parent = dirname(path);
  if (parent === path || existsSync(path)) return realpathSync(path);
  return join(realPath(parent), basename(path));
}

/** Returns whether a path is that of a directory or of something in it. */
function isInside(path: string, dir: string): boolean {
  const [inner, outer] = [realPath(resolve(path)), realPath(resolve(dir))];
  return inner === outer || inner.startsWith(join(outer, '/'));
}

/**
 * Runs an action under the lock of a repository.
 *
 * @throws AtlasError E_USAGE if there is no such directory, or the keys would be served together with it
 */
function locked<Result>({ dir, keyDirs, waitMs }: RepositoryOptions, action: () => Result): Result {
  const served = keyDirs.find((each) => isInside(each, dir));
  if (served !== undefined) {
    throw misuse(`the keys must not be in the repository, which is public; move ${served} to another place`);
  }
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) throw noRepository(dir);
  let unlock: (() => void) | undefined;
  try {
    unlock = lockDirectory(dir, `another "ipatlas repo" command is running in ${dir}; wait until it ends`, waitMs);
    return action();
  } catch (error) {
    if (systemErrorCode(error) === undefined) throw error;
    throw writeError(`the repository ${dir}`, error);
  } finally {
    unlock?.();
  }
}

/** Returns the JSON of a root's role and the keys in it. */
function newRole(dir: string, role: Role, { keys, threshold }: Threshold) {
  const created = Array.from({ length: keys }, () => createKey(dir, role).key);
  return {
    keys: Object.fromEntries(created.map((key) => [key.keyID, key.toJSON()])),
    role: { keyids: created.map(({ keyID }) => keyID), threshold },
  };
}

/**
 * Makes a repository without releases, and its keys. If an earlier run was killed, this one ends what that one began, or begins again.
 *
 * @param thresholds by role
 * @throws AtlasError E_USAGE if there is a repository already, E_OUTPUT or E_DISK if it cannot be written
 */
export function initRepository(
  options: RepositoryOptions,
  thresholds: Readonly<Record<Role, Threshold>>,
): RepositorySummary {
  const { dir, keyDirs } = options;
  try {
    for (const folder of [METADATA_DIR, TARGETS_DIR]) makeFolder(join(dir, folder));
  } catch (error) {
    throw writeError(`the repository ${dir}`, error);
  }
  return locked(options, () => {
    // New keys are in a folder of their own until the root names them, so that a killed run leaves none behind.
    const staging = join(keyDirs[0]!, `.init-${sha256(Buffer.from(realPath(resolve(dir)))).slice(0, 8)}`);
    const finish = (state: State): RepositorySummary => {
      writeMetadata(dir, 'root', state.root);
      for (const name of readdirSync(staging)) rename(join(staging, name), join(keyDirs[0]!, name));
      rmdirSync(staging);
      return summary(dir, state);
    };
    if (newestRoot(dir) > 0) {
      if (existsSync(staging)) return finish(readState(dir));
      throw misuse(`there is a repository in ${dir} already; use "ipatlas repo add"`);
    }
    rmSync(staging, { recursive: true, force: true });
    const created = ROLES.map((role) => [role, newRole(staging, role, thresholds[role])] as const);
    const signer = new Signer(readKeys([staging, ...keyDirs]), options);
    const rootContent = Root.fromJSON({
      spec_version: SPEC_VERSION,
      version: 1,
      expires: signer.expiry('root'),
      consistent_snapshot: true,
      keys: Object.assign({}, ...created.map(([, { keys }]) => keys)),
      roles: Object.fromEntries(created.map(([name, { role }]) => [name, role])),
    });
    const root = signer.sign('root', rootContent, new Metadata(rootContent));
    const state = nextState({ root }, signer, undefined, []);
    writeState(dir, undefined, state);
    // The root is last: without it there is no repository.
    return finish(state);
  });
}

/** Writes the file of a target, unless it is there, and returns the target. */
function addFile(dir: string, path: string, content: Uint8Array): TargetFile {
  const target = new TargetFile({ path, length: content.length, hashes: { sha256: sha256(content) } });
  const file = join(dir, TARGETS_DIR, targetPath(target));
  makeFolder(dirname(file));
  if (statSync(file, { throwIfNoEntry: false })?.size !== content.length || !readFileSync(file).equals(content)) {
    replaceFile(file, [content]);
    flush(dirname(file));
    flush(join(dir, TARGETS_DIR));
  }
  return target;
}

/** Returns the targets with a release added as the current one, and without the oldest releases. */
function withRelease(targets: Readonly<Record<string, TargetFile>>, added: TargetFile[], id: string) {
  const replaced = ['.', ...archivedPartitions().map(({ history }) => history!), id];
  const others = Object.values(targets).filter(({ path }) => !replaced.includes(dirname(path)));
  // A release that is added again becomes the newest: members of JSON objects keep their order.
  const kept = [...new Set(others.map(({ path }) => dirname(path)))].slice(1 - REPOSITORY_RELEASES);
  const list = [...others.filter(({ path }) => kept.includes(dirname(path))), ...added];
  return Object.fromEntries(list.map((target) => [target.path, target]));
}

/**
 * Signs again what expires soon or is not signed by the current keys, as far as the keys are at hand.
 *
 * @returns the roles besides the timestamp, which is always signed again
 */
function dueRoles(state: State, signer: Signer, note: RepositoryOptions['note']): Role[] {
  const due: Role[] = [];
  for (const role of ['targets', 'snapshot'] as const) {
    if (!signer.isDue(role, state[role], state.root)) continue;
    if (signer.canSign(role, state.root)) due.push(role);
    else note(`${role} expires on ${state[role].signed.expires} and must be signed again with its key; see --keys`);
  }
  return due;
}

/** Root metadata as JSON, as far as it is changed here (TUF specification §4.3). */
interface RootJson {
  keys: Record<string, object>;
  roles: Record<Role, { keyids: string[]; threshold: number }>;
}

/** Returns the next version of the root metadata, with new keys for some roles. */
function changedRoot(
  { signed }: Metadata<Root>,
  expires: string,
  changed: readonly (readonly [Role, ReturnType<typeof newRole>])[],
): Root {
  const before = signed.toJSON() as unknown as RootJson;
  const roles = { ...before.roles, ...Object.fromEntries(changed.map(([name, { role }]) => [name, role])) };
  const keys = { ...before.keys, ...Object.assign({}, ...changed.map(([, created]) => created.keys)) };
  const used = new Set(ROLES.flatMap((role) => roles[role].keyids));
  const after = {
    ...signed.toJSON(),
    version: signed.version + 1,
    expires,
    keys: Object.fromEntries(Object.entries(keys).filter(([id]) => used.has(id))),
    roles,
  };
  return Root.fromJSON(after as Parameters<typeof Root.fromJSON>[0]);
}

/** Signs a new version of the root, with the keys before and those that it names (TUF specification §5.3.4). */
function signRoot(content: Root, before: Metadata<Root>, signer: Signer): Metadata<Root> {
  signer.requireKeys('root', before);
  return signer.sign('root', content, new Metadata(content), before);
}

/**
 * Signs the timestamp again, and every other role that is due and whose keys are at hand. To be called regularly.
 *
 * @throws AtlasError E_USAGE if there is no repository, E_CONFIG if the key of the timestamp is missing
 */
export function refreshRepository(options: RepositoryOptions): RepositorySummary {
  const { dir, keyDirs, note } = options;
  return locked(options, () => {
    const before = readState(dir);
    const signer = new Signer(readKeys(keyDirs), options);
    const state = { ...before };
    if (signer.isDue('root', state.root, state.root)) {
      if (signer.canSign('root', state.root)) {
        state.root = signRoot(changedRoot(state.root, signer.expiry('root'), []), before.root, signer);
        writeMetadata(dir, 'root', state.root);
      } else note(`root expires on ${state.root.signed.expires}; run "ipatlas repo refresh" with its keys before`);
    }
    const next = nextState(state, signer, undefined, dueRoles(state, signer, note));
    writeState(dir, state, next);
    removeUnused(dir, before, next);
    return summary(dir, next);
  });
}

/**
 * Adds a release and makes it the one that nodes follow. An older release than before is a new version of the metadata, too.
 *
 * @param releaseDir directory of the release
 * @param dataDir whose history is added; none by default
 * @param withLabels whether nodes get the labels of the release, too
 * @throws AtlasError E_USAGE if there is no repository, E_CONFIG if keys are missing, E_DAMAGED if the release is damaged
 */
export function addRelease(
  options: RepositoryOptions,
  releaseDir: string,
  dataDir?: string,
  withLabels = false,
): RepositorySummary {
  const { dir, keyDirs, note } = options;
  const { manifest } = verifyRelease(releaseDir);
  const { id } = manifest;
  const packs = (dataDir === undefined ? [] : archivedPartitions()).flatMap((partition) => {
    const { entries, problems } = openArchive(dataDir!, partition);
    if (problems.length === 0) return [...encodePacks(partition.history!, entries)];
    // The nodes keep what they have; without the lost entries, others would seem to hold in their place.
    note(`the history is not added, because a part of it is lost here: ${problems[0]}`);
    return [];
  });
  const published = publishedManifest(
    manifest,
    PARTITIONS.filter(({ isPrivate }) => withLabels || !isPrivate),
  );
  const current: CurrentTarget = {
    format: REPOSITORY_FORMAT,
    release: id,
    outputs: signedOutputs(published),
    history: packs.map(([path]) => path),
  };
  return locked(options, () => {
    const state = readState(dir);
    const signer = new Signer(readKeys(keyDirs), options);
    const add = (path: string, content: Uint8Array): TargetFile => addFile(dir, path, content);
    const added = [
      add(`${id}/${PULL_FORM}`, compressCompact(packRelease(releaseDir, published), 'brotli')),
      ...packs.map(([path, content]) => add(path, content)),
      add(CURRENT_TARGET, Buffer.from(`${JSON.stringify(current)}\n`)),
    ];
    const { targets } = state.targets.signed;
    const isUnchanged = added.every((target) => targets[target.path]?.equals(target) === true);
    const changed = isUnchanged ? undefined : withRelease(targets, added, id);
    const next = nextState(state, signer, changed, dueRoles(state, signer, note));
    writeState(dir, state, next);
    removeUnused(dir, state, next);
    return summary(dir, next);
  });
}

/**
 * Replaces the keys of some roles by new ones, in one new version of the root metadata.
 *
 * The metadata of such a role is first published with the signatures of the old and of the new keys, which both versions of
 * the root accept. If an old key is lost, this is not possible: then the new root is published first, and clients refuse the
 * old metadata for the moment between the two steps.
 *
 * @throws AtlasError E_USAGE if there is no repository, E_CONFIG if keys of root, or of the roles to sign again, are missing
 */
export function rotateKeys(options: RepositoryOptions, roles: readonly Role[]): RepositorySummary {
  const { dir, keyDirs } = options;
  return locked(options, () => {
    const state = readState(dir);
    const before = state.root;
    const early = new Signer(readKeys(keyDirs), options);
    // A role's metadata names that of the role before it, so every role from the first changed one on is signed again.
    const renew = ROLES.slice(Math.min(...roles.filter((role) => role !== 'root').map((role) => ROLES.indexOf(role))));
    for (const role of ['root', ...renew] as const) {
      // Checked before any key is made: a role that keeps its keys needs them now.
      if (role === 'root' || !roles.includes(role)) early.requireKeys(role, before);
    }
    const changed = roles.map((role) => {
      const { keyIDs, threshold } = before.signed.roles[role]!;
      return [role, newRole(keyDirs[0]!, role, { keys: keyIDs.length, threshold })] as const;
    });
    const signer = new Signer(readKeys(keyDirs), options);
    const root = signRoot(changedRoot(before, signer.expiry('root'), changed), before, signer);
    const withRoot = { ...state, root };
    if (renew.length === 0) {
      writeMetadata(dir, 'root', root);
      return summary(dir, withRoot);
    }
    const next = nextState(withRoot, signer, undefined, renew, before);
    const isContinuous = renew.every((role) => isSigned(role, next[role], before));
    if (!isContinuous) writeMetadata(dir, 'root', root);
    writeState(dir, withRoot, next);
    if (isContinuous) writeMetadata(dir, 'root', root);
    removeUnused(dir, state, next);
    return summary(dir, next);
  });
}
