/** The repository: what its commands write, which keys they need, and what they refuse. */
import { generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Metadata, MetadataKind } from '@tufjs/models';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Role } from '../../pipeline/distribution/keys.js';
import { addRelease, initRepository, type RepositorySummary } from '../../pipeline/distribution/repository.js';
import { lockDirectory } from '../../pipeline/operations/lock.js';
import { AtlasError } from '../../src/errors.js';
import { REPOSITORY_RELEASES, SIGNATURE_DAYS } from '../../src/limits.js';
import { publishBlocks } from '../support/release.js';
import { Node, ONE_OF_ONE, Origin, scratchDir, serveStatic, world } from './support.js';

const DAY_MS = 86_400_000;

let dir: string;
let origin: Origin;
beforeEach(() => {
  dir = scratchDir();
  origin = new Origin(dir);
});

/** The code and message of the AtlasError that an action ends with. */
function failure(action: () => unknown): { code: string; message: string } {
  try {
    action();
  } catch (error) {
    if (error instanceof AtlasError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error('expected an AtlasError');
}

const versions = ({ roles }: RepositorySummary): number[] =>
  (['root', 'targets', 'snapshot', 'timestamp'] as const).map((role) => roles[role].version);

/** All files of the repository but its lock, sorted. */
function filesOf(origin: Origin): string[] {
  return (readdirSync(origin.repo, { recursive: true, encoding: 'utf8' }) as string[])
    .filter((name) => statSync(join(origin.repo, name)).isFile() && name !== 'lock.sqlite')
    .sort();
}

describe('init', () => {
  it('makes keys that only their owner can read, and signs metadata with them', () => {
    const origin = new Origin(scratchDir(), { root: { keys: 3, threshold: 2 }, targets: { keys: 2, threshold: 2 } });
    const names = readdirSync(origin.keys).map((name) => name.replace(/-[0-9a-f]{8}\.pem$/, ''));
    expect(names.sort()).toEqual(['root', 'root', 'root', 'snapshot', 'targets', 'targets', 'timestamp']);
    for (const name of readdirSync(origin.keys)) expect(statSync(join(origin.keys, name)).mode & 0o777).toBe(0o600);
    expect(statSync(origin.keys).mode & 0o777).toBe(0o700);
    const root = Metadata.fromJSON(MetadataKind.Root, JSON.parse(origin.root().toString('utf8')));
    expect(Object.keys(root.signatures)).toHaveLength(3);
    expect(root.signed.roles.root).toMatchObject({ threshold: 2 });
    expect(root.signed.roles.targets).toMatchObject({ threshold: 2 });
    expect(root.signed.consistentSnapshot).toBe(true);
    expect(readFileSync(join(origin.repo, 'root.json'))).toEqual(origin.root());
  });

  it('uses the lifetimes of the roles, or others', () => {
    const now = new Date('2026-03-01T12:34:56.789Z');
    const keyDirs = [join(dir, 'own-keys')];
    const thresholds = { root: ONE_OF_ONE, targets: ONE_OF_ONE, snapshot: ONE_OF_ONE, timestamp: ONE_OF_ONE };
    const options = { dir: join(dir, 'own'), keyDirs, now, days: { timestamp: 30 }, note: () => {} };
    const { roles, release } = initRepository(options, thresholds);
    expect(release).toBeNull();
    for (const [role, days] of Object.entries({ ...SIGNATURE_DAYS, timestamp: 30 })) {
      const { expires } = roles[role as Role];
      expect(expires).toMatch(/^\d{4}-\d\d-\d\dT12:34:56Z$/);
      expect(Date.parse(expires)).toBe(Date.parse('2026-03-01T12:34:56Z') + days * DAY_MS);
    }
  });

  it('refuses to replace a repository', () => {
    expect(failure(() => new Origin(dir))).toMatchObject({ code: 'E_USAGE' });
    expect(readdirSync(origin.keys)).toHaveLength(4);
  });
});

describe('add', () => {
  it('adds a release as a higher version of targets, snapshot and timestamp', async () => {
    const id = await publishBlocks(origin.dataDir, world('AA'));
    const summary = addRelease(origin.options(), join(origin.dataDir, 'current'));
    expect(summary.release).toBe(id);
    expect(versions(summary)).toEqual([1, 2, 2, 2]);
    // The same release again: only the timestamp.
    expect(versions(addRelease(origin.options(), join(origin.dataDir, 'current')))).toEqual([1, 2, 2, 3]);
  });

  it('keeps the newest releases, and the files of the state before', async () => {
    const ids: string[] = [];
    for (const code of ['AA', 'BB', 'CC', 'DD', 'EE', 'FF', 'GG']) ids.push(await origin.add(world(code)));
    const kept = ids.slice(-REPOSITORY_RELEASES);
    const folders = (): string[] => readdirSync(join(origin.repo, 'targets')).filter((name) => !name.endsWith('.json'));
    expect(folders().sort()).toEqual(ids.slice(-REPOSITORY_RELEASES - 1).sort());
    origin.refresh();
    expect(folders().sort()).toEqual([...kept].sort());
    expect(filesOf(origin).filter((name) => name.startsWith('metadata'))).toEqual([
      'metadata/1.root.json',
      'metadata/8.snapshot.json',
      'metadata/8.targets.json',
      'metadata/timestamp.json',
    ]);
    // A release that is added again becomes the newest, so another one goes first.
    addRelease(origin.options(), join(origin.dataDir, 'releases', kept[0]!));
    await origin.add(world('HH'));
    origin.refresh();
    expect(folders()).toContain(kept[0]);
    expect(folders()).not.toContain(kept[1]);
  });

  it('removes what killed processes left', async () => {
    await origin.add(world('AA'));
    origin.refresh();
    const before = filesOf(origin);
    writeFileSync(join(origin.repo, 'targets', '.x.1.0123456789abcdef.part'), 'x');
    mkdirSync(join(origin.repo, 'targets', 'half'));
    writeFileSync(join(origin.repo, 'targets', 'half', 'file'), 'x');
    writeFileSync(join(origin.repo, 'metadata', '99.targets.json'), 'x');
    origin.refresh();
    expect(filesOf(origin)).toEqual(before);
    expect(existsSync(join(origin.repo, 'targets', 'half'))).toBe(false);
  });

  it('refuses a damaged release, and one that does not exist', async () => {
    await publishBlocks(origin.dataDir, world('AA'));
    writeFileSync(join(origin.dataDir, 'current', 'ranges.ipr'), 'rubbish');
    const before = filesOf(origin);
    expect(failure(() => addRelease(origin.options(), join(origin.dataDir, 'current')))).toMatchObject({
      code: 'E_DAMAGED',
    });
    expect(failure(() => addRelease(origin.options(), join(dir, 'nothing')))).toMatchObject({ code: 'E_NO_DATABASE' });
    expect(filesOf(origin)).toEqual(before);
  });
});

describe('refresh', () => {
  it('signs the timestamp again, and the snapshot when it is due', async () => {
    await origin.add(world('AA'));
    expect(versions(origin.refresh())).toEqual([1, 2, 2, 3]);
    const inDays = (days: number) => ({ now: new Date(Date.now() + days * DAY_MS) });
    expect(versions(origin.refresh(inDays(5)))).toEqual([1, 2, 2, 4]);
    expect(versions(origin.refresh(inDays(6)))).toEqual([1, 2, 3, 5]);
    expect(versions(origin.refresh(inDays(80)))).toEqual([1, 3, 4, 6]);
    expect(versions(origin.refresh(inDays(300)))).toEqual([2, 4, 5, 7]);
    const server = await serveStatic(origin.repo);
    expect(await new Node(dir).pull(server.url, origin.root(1))).toMatchObject({ outcome: 'published' });
  });

  it('works with only the online keys, and says what the others must sign', async () => {
    await origin.add(world('AA'));
    const offline = join(dir, 'offline');
    mkdirSync(offline, { mode: 0o700 });
    for (const name of readdirSync(origin.keys).filter((each) => /^(root|targets)/.test(each))) {
      cpSync(join(origin.keys, name), join(offline, name));
      rmSync(join(origin.keys, name));
    }
    const later = new Date(Date.now() + 300 * DAY_MS);
    expect(versions(origin.refresh({ now: later }))).toEqual([1, 2, 3, 3]);
    expect(origin.notes).toEqual([
      expect.stringMatching(/^root expires on .*; run "ipatlas repo refresh" with its keys before/),
      expect.stringMatching(/^targets expires on .* must be signed again with its key/),
    ]);
    expect(versions(origin.refresh({ now: later, keyDirs: [origin.keys, offline] }))).toEqual([2, 3, 4, 4]);
  });

  it('needs the key of the timestamp', async () => {
    for (const name of readdirSync(origin.keys)) if (name.startsWith('timestamp')) rmSync(join(origin.keys, name));
    const before = filesOf(origin);
    expect(failure(() => origin.refresh())).toMatchObject({
      code: 'E_CONFIG',
      message: expect.stringMatching(/signing timestamp needs 1 of the keys timestamp-[0-9a-f]{8}\.pem/),
    });
    expect(filesOf(origin)).toEqual(before);
  });
});

describe('rotate', () => {
  it('keeps the number of keys and the threshold, and leaves nothing signed by the old keys only', async () => {
    const origin = new Origin(scratchDir(), { root: { keys: 3, threshold: 2 }, timestamp: { keys: 2, threshold: 1 } });
    await origin.add(world('AA'));
    const summary = origin.rotate(['root', 'timestamp']);
    expect(versions(summary)).toEqual([2, 2, 2, 3]);
    const roots = [1, 2].map((version) =>
      Metadata.fromJSON(MetadataKind.Root, JSON.parse(origin.root(version).toString('utf8'))),
    );
    for (const role of ['root', 'timestamp']) {
      const [before, after] = roots.map(({ signed }) => signed.roles[role]!);
      expect(after).toMatchObject({ threshold: before!.threshold });
      expect(after!.keyIDs).toHaveLength(before!.keyIDs.length);
      expect(after!.keyIDs.some((id) => before!.keyIDs.includes(id))).toBe(false);
    }
    for (const role of ['targets', 'snapshot'])
      expect(roots[1]!.signed.roles[role]).toEqual(roots[0]!.signed.roles[role]);
    // Only the keys in use are listed.
    expect(Object.keys(roots[1]!.signed.keys)).toHaveLength(7);
    // Both versions of the root accept the timestamp, so there is no moment at which clients refuse it.
    const timestamp = Metadata.fromJSON(
      MetadataKind.Timestamp,
      JSON.parse(readFileSync(origin.metadataPath('timestamp.json'), 'utf8')),
    );
    for (const root of roots) root.verifyDelegate('timestamp', timestamp);
    expect(() => roots[0]!.verifyDelegate('root', roots[1]!)).not.toThrow();
  });

  it('works when the old key of the role is lost', async () => {
    await origin.add(world('AA'));
    for (const name of readdirSync(origin.keys)) if (name.startsWith('targets')) rmSync(join(origin.keys, name));
    await expect(origin.add(world('BB'))).rejects.toMatchObject({ code: 'E_CONFIG' });
    expect(versions(origin.rotate(['targets']))).toEqual([2, 3, 3, 3]);
    const id = await origin.add(world('BB'));
    const server = await serveStatic(origin.repo);
    const node = new Node(dir);
    expect(await node.pull(server.url, origin.root(1))).toMatchObject({ outcome: 'published' });
    expect(node.current()).toBe(id);
  });

  it('makes no keys if those that it needs are missing', async () => {
    const origin = new Origin(scratchDir(), { root: { keys: 3, threshold: 2 } });
    const [, ...others] = readdirSync(origin.keys).filter((name) => name.startsWith('root'));
    for (const name of others) rmSync(join(origin.keys, name));
    const before = [filesOf(origin), readdirSync(origin.keys)];
    expect(failure(() => origin.rotate(['timestamp']))).toMatchObject({
      code: 'E_CONFIG',
      message: expect.stringMatching(/signing root needs 2 of the keys/),
    });
    expect([filesOf(origin), readdirSync(origin.keys)]).toEqual(before);
  });

  it('that was killed between its two steps is completed by refresh', async () => {
    await origin.add(world('AA'));
    const before = join(dir, 'before');
    cpSync(join(origin.repo, 'metadata'), before, { recursive: true });
    for (const name of readdirSync(origin.keys)) if (name.startsWith('timestamp')) rmSync(join(origin.keys, name));
    origin.rotate(['timestamp']);
    // With the old key lost, the root comes first: restore all but the new root.
    const root = origin.root(2);
    rmSync(join(origin.repo, 'metadata'), { recursive: true });
    cpSync(before, join(origin.repo, 'metadata'), { recursive: true });
    writeFileSync(origin.metadataPath('2.root.json'), root);
    const server = await serveStatic(origin.repo);
    const node = new Node(dir);
    expect(await node.pull(server.url, origin.root(1))).toMatchObject({ outcome: 'E_UNTRUSTED' });
    origin.refresh();
    expect(await node.pull(server.url, origin.root(1))).toMatchObject({ outcome: 'published' });
  });
});

describe('keys and metadata that cannot be used', () => {
  it('a key that others can read is refused', () => {
    const [name] = readdirSync(origin.keys);
    chmodSync(join(origin.keys, name!), 0o640);
    expect(failure(() => origin.refresh())).toMatchObject({
      code: 'E_CONFIG',
      message: expect.stringMatching(/chmod 600/),
    });
  });

  it.each<[string, string | Buffer]>([
    ['rubbish', 'rubbish'],
    ['empty', ''],
    [
      'an RSA key',
      generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
    ],
    ['a public key', generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' })],
  ])('a key file that is %s is refused by its name', (_name, content) => {
    writeFileSync(join(origin.keys, 'mine.pem'), content, { mode: 0o600 });
    expect(failure(() => origin.refresh())).toMatchObject({
      code: 'E_CONFIG',
      message: expect.stringMatching(/mine\.pem/),
    });
  });

  it('keys in the repository, which is served, are refused', () => {
    for (const keyDir of [origin.repo, join(origin.repo, 'keys'), join(origin.keys, '..', 'repo', 'metadata')]) {
      expect(failure(() => origin.refresh({ keyDirs: [origin.keys, keyDir] }))).toMatchObject({ code: 'E_USAGE' });
    }
    expect(versions(origin.refresh())).toEqual([1, 1, 1, 2]);
  });

  it.each<[string, (origin: Origin) => string]>([
    ['a name that begins with dots', (origin) => join(origin.repo, '..keys')],
    [
      'a link to it',
      (origin) => {
        mkdirSync(join(origin.repo, 'hidden'));
        symlinkSync(join(origin.repo, 'hidden'), join(dir, 'link'));
        return join(dir, 'link');
      },
    ],
    [
      'a link above it',
      (origin) => {
        symlinkSync(origin.repo, join(dir, 'link'));
        return join(dir, 'link', 'not-yet', 'keys');
      },
    ],
  ])('keys in the repository are refused: %s', (_, place) => {
    const keyDirs = [origin.keys, place(origin)];
    expect(failure(() => origin.refresh({ keyDirs }))).toMatchObject({
      code: 'E_USAGE',
      message: expect.stringMatching(/the keys must not be in the repository/),
    });
  });

  it.each(['pkcs8', 'pkcs1'] as const)(
    'a key with a passphrase is refused, and the message says what to do: %s',
    (type) => {
      const cipher = { type, format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const;
      const pem =
        type === 'pkcs8'
          ? generateKeyPairSync('ed25519').privateKey.export(cipher)
          : generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export(cipher);
      writeFileSync(join(origin.keys, 'more.pem'), pem, { mode: 0o600 });
      expect(failure(() => origin.refresh())).toMatchObject({
        code: 'E_CONFIG',
        message: expect.stringMatching(/more\.pem has a passphrase, which is not supported; .*openssl pkey -in/),
      });
    },
  );

  it('a directory of keys that does not exist is refused', () => {
    expect(failure(() => origin.refresh({ keyDirs: [join(dir, 'nowhere')] }))).toMatchObject({ code: 'E_CONFIG' });
  });

  it('no repository, and one with damaged metadata, are different errors', async () => {
    expect(failure(() => origin.refresh({ dir: origin.keys }))).toMatchObject({ code: 'E_USAGE' });
    for (const text of ['', '{', '{}', 'null', '{"signed":{"_type":"timestamp"},"signatures":[]}']) {
      writeFileSync(origin.metadataPath('timestamp.json'), text);
      expect(
        failure(() => origin.refresh()),
        text,
      ).toMatchObject({ code: 'E_DAMAGED' });
    }
  });

  it('two commands do not run at the same time', () => {
    const unlock = lockDirectory(origin.repo, 'busy');
    expect(failure(() => origin.refresh())).toMatchObject({ code: 'E_BUSY' });
    unlock();
    expect(versions(origin.refresh())).toEqual([1, 1, 1, 2]);
  });
});

it('nodes follow a repository that was restored from a backup after its snapshot and timestamp keys were replaced', async () => {
  await origin.add(world('AA'));
  const backup = join(dir, 'backup');
  cpSync(origin.repo, backup, { recursive: true });
  await origin.add(world('BB'));
  const server = await serveStatic(origin.repo);
  const node = new Node(dir);
  expect(await node.pull(server.url, origin.root(1))).toMatchObject({ outcome: 'published' });
  rmSync(origin.repo, { recursive: true });
  cpSync(backup, origin.repo, { recursive: true });
  expect(await node.pull(server.url, origin.root(1))).toMatchObject({ outcome: 'E_UNTRUSTED' });
  origin.rotate(['snapshot', 'timestamp']);
  const id = await origin.add(world('CC'));
  expect(await node.pull(server.url, origin.root(1))).toMatchObject({ outcome: 'published' });
  expect(node.current()).toBe(id);
});
