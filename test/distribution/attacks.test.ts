/**
 * Attacks on the way from a signed repository to a node, as the TUF specification names them. The attacker controls the web
 * server, and in some tests keys. Each attack is right in every other respect, so that only one check stops it.
 */
import { createHash } from 'node:crypto';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Metadata, MetadataKind } from '@tufjs/models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packRelease } from '../../pipeline/compact-release.js';
import { createKey, type Role, readKeys, type SigningKey } from '../../pipeline/distribution/keys.js';
import type { Threshold } from '../../pipeline/distribution/repository.js';
import { Container } from '../../src/compact/container.js';
import { compressCompact, unpackCompact } from '../../src/database/compact.js';
import { MAX_ROOT_VERSIONS } from '../../src/limits.js';
import { replaceSection } from '../support/compact.js';
import { temporaryDir } from '../support/release.js';
import {
  answerInstead,
  Node,
  ONE_OF_ONE,
  Origin,
  put,
  type StaticServer,
  scratchDir,
  serveStatic,
  world,
} from './support.js';

const DAY_MS = 86_400_000;
const daysAgo = (days: number): Date => new Date(Date.now() - days * DAY_MS);

/** Metadata as JSON, as far as attacks change it. */
interface MetadataJson {
  signed: {
    version: number;
    expires: string;
    keys: Record<string, object>;
    roles: Record<Role, { keyids: string[]; threshold: number }>;
    meta: Record<string, { version: number; length: number; hashes: { sha256: string } }>;
    targets: Record<string, { length: number; hashes: { sha256: string } }>;
  };
  signatures: { keyid: string; sig: string }[];
}

const KINDS = {
  root: MetadataKind.Root,
  targets: MetadataKind.Targets,
  snapshot: MetadataKind.Snapshot,
  timestamp: MetadataKind.Timestamp,
} as const;

/** Returns changed metadata, signed with the given keys. */
function forge(
  role: Role,
  original: Buffer,
  change: (signed: MetadataJson['signed']) => void,
  keys: readonly SigningKey[],
): Buffer {
  const json = JSON.parse(original.toString('utf8')) as MetadataJson;
  change(json.signed);
  const metadata = Metadata.fromJSON(KINDS[role] as MetadataKind.Root, { ...json, signatures: [] } as never);
  for (const { sign } of keys) metadata.sign(sign);
  return Buffer.from(JSON.stringify(metadata.toJSON()));
}

/** What metadata says about a file of the snapshot or of the targets. */
function metaOf(content: Buffer, version: number) {
  return { version, length: content.length, hashes: { sha256: createHash('sha256').update(content).digest('hex') } };
}

/** The folder of a scene as it was at some moment, of which tests get copies. */
interface Snapshot {
  dir: string;
  ids: readonly string[];
}

class Scene {
  readonly dir: string;
  readonly origin: Origin;
  readonly node: Node;
  readonly server: StaticServer;
  /** The releases that were added, the oldest first. */
  readonly ids: string[];

  constructor(
    dir: string,
    ids: readonly string[],
    server: StaticServer,
    thresholds: Partial<Record<Role, Threshold>> | 'made' = {},
  ) {
    this.dir = dir;
    this.ids = [...ids];
    this.server = server;
    this.origin = new Origin(dir, thresholds);
    this.node = new Node(dir);
    this.serveOrigin();
  }

  /** A repository of one release, which the node has pulled. */
  static async start(thresholds?: Partial<Record<Role, Threshold>>): Promise<Scene> {
    if (thresholds === undefined) return Scene.#copyOf(pulled);
    const dir = scratchDir();
    const scene = new Scene(dir, [], await serveStatic(dir), thresholds);
    await scene.begin();
    return scene;
  }

  /** The same, and a second release, which the node has not pulled yet. */
  static async withUpdate(): Promise<Scene> {
    return Scene.#copyOf(updated);
  }

  static #copyOf({ dir, ids }: Snapshot): Scene {
    const copy = scratchDir();
    cpSync(dir, copy, { recursive: true, verbatimSymlinks: true });
    server.requests.length = 0;
    return new Scene(copy, ids, server, 'made');
  }

  /** Adds the first release and lets the node pull it. */
  async begin(): Promise<void> {
    await this.add('AA');
    expect(await this.pull()).toMatchObject({ outcome: 'published' });
  }

  async add(code: string): Promise<string> {
    const id = await this.origin.add(world(code));
    this.ids.push(id);
    return id;
  }

  pull(options: Parameters<Node['pull']>[2] = {}) {
    return this.node.pull(this.server.url, this.origin.root(), options);
  }

  /** Lets the attacker serve a copy of the repository, with some files changed. */
  serveCopy(name: string, files: Record<string, Buffer> = {}): void {
    const copy = join(this.dir, name);
    cpSync(this.origin.repo, copy, { recursive: true });
    for (const [path, content] of Object.entries(files)) put(copy, path, content);
    this.server.dir = copy;
  }

  /** Ends the attack. */
  serveOrigin(): void {
    this.server.dir = this.origin.repo;
    this.server.interfere = () => false;
  }

  metadata(name: string): Buffer {
    return readFileSync(this.origin.metadataPath(name));
  }

  /** The keys of a role. */
  keys(role: Role, version = 1): SigningKey[] {
    const { roles } = (JSON.parse(this.origin.root(version).toString('utf8')) as MetadataJson).signed;
    const all = readKeys([this.origin.keys]);
    return roles[role].keyids.map((id) => all.get(id)!);
  }

  /** A timestamp of a version that names a snapshot, signed with the stolen key. */
  timestamp(version: number, snapshot: Buffer, snapshotVersion: number, keys = this.keys('timestamp')): Buffer {
    const change = (signed: MetadataJson['signed']): void => {
      signed.version = version;
      signed.meta = { 'snapshot.json': metaOf(snapshot, snapshotVersion) };
    };
    return forge('timestamp', this.metadata('timestamp.json'), change, keys);
  }

  /** A snapshot of a version that names targets, signed with the stolen key. */
  snapshot(version: number, targets: Buffer, targetsVersion: number, keys = this.keys('snapshot')): Buffer {
    const change = (signed: MetadataJson['signed']): void => {
      signed.version = version;
      signed.meta = { 'targets.json': metaOf(targets, targetsVersion) };
    };
    return forge('snapshot', this.metadata('2.snapshot.json'), change, keys);
  }

  /** Expects that a pull fails as given, that the node keeps its release, and that the next honest pull works. */
  async expectRefused(code: string, message: RegExp, options: Parameters<Scene['pull']>[0] = {}): Promise<void> {
    const before = this.node.current();
    expect(await this.pull(options)).toMatchObject({ outcome: code, exit: 6, message: expect.stringMatching(message) });
    expect(this.node.current()).toBe(before);
    this.serveOrigin();
    expect(await this.pull()).toMatchObject({ exit: 0 });
    expect(this.node.current()).toBe(this.ids.at(-1));
  }
}

/** Scenes are made once; since a node's memory is by address, all copies have the same server. */
let server: StaticServer;
let pulled: Snapshot;
let updated: Snapshot;
const ended: (() => unknown)[] = [];
beforeAll(async () => {
  const dir = temporaryDir();
  ended.push(() => rmSync(dir, { recursive: true }));
  server = await serveStatic(dir, (close) => ended.push(close));
  const scene = new Scene(join(dir, 'scene'), [], server);
  const snapshot = (name: string): Snapshot => {
    cpSync(scene.dir, join(dir, name), { recursive: true, verbatimSymlinks: true });
    return { dir: join(dir, name), ids: [...scene.ids] };
  };
  await scene.begin();
  pulled = snapshot('pulled');
  await scene.add('BB');
  updated = snapshot('updated');
}, 120_000);
afterAll(async () => {
  for (const end of ended) await end();
});

describe('rollback', () => {
  it('an older repository is refused', async () => {
    const scene = await Scene.start();
    scene.serveCopy('old');
    const old = scene.server.dir;
    scene.serveOrigin();
    await scene.add('BB');
    expect(await scene.pull()).toMatchObject({ outcome: 'published' });
    scene.server.dir = old;
    await scene.expectRefused('E_UNTRUSTED', /timestamp version 2 is less than current version 3/);
  });

  it('a newer timestamp that names an older snapshot is refused', async () => {
    const scene = await Scene.withUpdate();
    expect(await scene.pull()).toMatchObject({ outcome: 'published' });
    const timestamp = scene.timestamp(9, scene.metadata('2.snapshot.json'), 2);
    scene.serveCopy('attack', { 'metadata/timestamp.json': timestamp });
    await scene.expectRefused('E_UNTRUSTED', /snapshot version 2 is less than current version 3/);
  });

  it('a newer snapshot that names older targets is refused', async () => {
    const scene = await Scene.withUpdate();
    expect(await scene.pull()).toMatchObject({ outcome: 'published' });
    const snapshot = scene.snapshot(9, scene.metadata('2.targets.json'), 2);
    const before = scene.node.current();
    scene.serveCopy('attack', {
      'metadata/9.snapshot.json': snapshot,
      'metadata/timestamp.json': scene.timestamp(4, snapshot, 9),
    });
    expect(await scene.pull()).toMatchObject({
      outcome: 'E_UNTRUSTED',
      message: expect.stringMatching(/2 of targets\.json is less than current version 3/),
    });
    expect(scene.node.current()).toBe(before);
  });
});

describe('freeze', () => {
  it.each<[Role, number]>([
    ['timestamp', 3],
    ['snapshot', 8],
    ['targets', 91],
    ['root', 366],
  ])('an expired %s is refused, and the current release stays', async (role, days) => {
    const scene = await Scene.withUpdate();
    // Signs the role as if it were long ago, and those that name it as of today.
    const lifetimes = { root: 1000, targets: 1000, snapshot: 1000, timestamp: 1000, [role]: days - 1 };
    if (role === 'root') scene.origin.rotate(['root'], { now: daysAgo(days), days: lifetimes });
    else scene.origin.rotate([role], { now: daysAgo(days), days: lifetimes });
    const before = scene.node.current();
    expect(await scene.pull()).toMatchObject({
      outcome: 'E_EXPIRED',
      exit: 6,
      message: expect.stringMatching(`the ${role} metadata of .* has expired`),
    });
    expect(scene.node.current()).toBe(before);
    const state = JSON.parse(readFileSync(join(scene.node.dataDir, 'pull', 'state.json'), 'utf8'));
    expect(state.problem.code).toBe('E_EXPIRED');
    expect(Date.parse(state.succeeded)).toBeLessThan(Date.parse(state.checked));
    // The origin signs again what expired, and nodes follow.
    scene.origin.refresh();
    expect(await scene.pull()).toMatchObject({ outcome: 'published' });
  });
});

describe('times that are not times', () => {
  const expiring =
    (expires: string) =>
    (signed: MetadataJson['signed']): void => {
      signed.expires = expires;
    };
  const TIMES = [
    'tomorrow',
    '',
    '2031-01-01',
    '2031-01-01T00:00:00.000Z',
    '2031-01-01T00:00:00+00:00',
    '2031-13-01T00:00:00Z',
  ];

  it.each(TIMES)('a timestamp that expires %j is refused, instead of being valid for ever', async (expires) => {
    const scene = await Scene.withUpdate();
    const original = scene.metadata('timestamp.json');
    const timestamp = forge('timestamp', original, expiring(expires), scene.keys('timestamp'));
    scene.serveCopy('attack', { 'metadata/timestamp.json': timestamp });
    await scene.expectRefused('E_UNTRUSTED', /timestamp\.json expires ".*", which is not a time such as/);
  });

  it('a snapshot, and a root, as well', async () => {
    const scene = await Scene.withUpdate();
    const never = expiring('never');
    const snapshot = forge('snapshot', scene.metadata('3.snapshot.json'), never, scene.keys('snapshot'));
    scene.serveCopy('attack', {
      'metadata/3.snapshot.json': snapshot,
      'metadata/timestamp.json': scene.timestamp(3, snapshot, 3),
    });
    const [before, pulled] = [scene.node.current(), await scene.pull()];
    expect(pulled).toMatchObject({
      outcome: 'E_UNTRUSTED',
      message: expect.stringContaining('3.snapshot.json expires "never"'),
    });
    expect(scene.node.current()).toBe(before);
    const root = forge('root', scene.origin.root(), never, scene.keys('root'));
    expect(await new Node(scene.dir, 'fresh').pull(scene.server.url, root)).toMatchObject({ outcome: 'E_CONFIG' });
  });
});

describe('another --root', () => {
  it('of the same repository forgets no version', async () => {
    const scene = await Scene.start();
    scene.serveCopy('old');
    const old = scene.server.dir;
    scene.serveOrigin();
    await scene.add('BB');
    scene.origin.rotate(['root']);
    expect(await scene.pull()).toMatchObject({ outcome: 'published' });
    const before = scene.node.current();
    scene.server.dir = old;
    for (const root of [scene.origin.root(2), scene.origin.root(1)]) {
      expect(await scene.node.pull(scene.server.url, root)).toMatchObject({
        outcome: 'E_UNTRUSTED',
        message: expect.stringMatching(/timestamp version 2 is less than current version 3/),
      });
      // Also under another address of the same place.
      const url = `${scene.server.url.replace('http://', 'http://user:password@')}/`;
      expect(await scene.node.pull(url, root)).toMatchObject({ outcome: 'E_UNTRUSTED' });
    }
    expect(scene.node.current()).toBe(before);
  });

  it('of a new repository at the same address is followed from its own beginning', async () => {
    const scene = await Scene.start();
    for (let i = 0; i < 3; i++) scene.origin.refresh();
    await scene.pull();
    const other = new Origin(join(scene.dir, 'other'));
    const id = await other.add(world('CC'));
    scene.server.dir = other.repo;
    expect(await scene.pull()).toMatchObject({ outcome: 'E_UNTRUSTED' });
    expect(await scene.node.pull(scene.server.url, other.root())).toMatchObject({
      outcome: 'published',
      notes: expect.arrayContaining([expect.stringContaining('--root is another one than before')]),
    });
    expect(scene.node.current()).toBe(id);
  });
});

/**
 * Adds a release and signs it again after changing one of its files, as an origin that was taken over, or another version of
 * it, could.
 *
 * @param change returns the new content; undefined if the release shall not have the file
 */
async function withFile(
  name: string,
  change: (original: Buffer, scene: Scene) => Buffer | string | undefined,
): Promise<Scene> {
  const scene = await Scene.withUpdate();
  const id = scene.ids[1]!;
  const { targets } = (JSON.parse(scene.metadata('3.targets.json').toString('utf8')) as MetadataJson).signed;
  const path = name === 'current.json' ? name : `${id}/${name}`;
  const folder = name === 'current.json' ? 'targets' : `targets/${id}`;
  const original = readFileSync(join(scene.origin.repo, folder, `${targets[path]!.hashes.sha256}.${name}`));
  const changed = change(original, scene);
  const content = Buffer.from(changed ?? '');
  const { length, hashes } = metaOf(content, 0);
  const retarget = (signed: MetadataJson['signed']): void => {
    signed.version = 4;
    if (changed === undefined) delete signed.targets[path];
    else signed.targets[path] = { length, hashes };
  };
  const signedTargets = forge('targets', scene.metadata('3.targets.json'), retarget, scene.keys('targets'));
  const snapshot = scene.snapshot(4, signedTargets, 4);
  scene.serveCopy('attack', {
    [`${folder}/${hashes.sha256}.${name}`]: content,
    'metadata/4.targets.json': signedTargets,
    'metadata/4.snapshot.json': snapshot,
    'metadata/timestamp.json': scene.timestamp(4, snapshot, 4),
  });
  return scene;
}

describe('signed names that lead elsewhere', () => {
  it.each(['../../../dev/zero', '/dev/zero', 'ranges.ipr/../x', '', 'A'])('an output %j is refused', async (name) => {
    const scene = await withFile('release.ipc', (form) => {
      const bytes = unpackCompact(form, 'form');
      const manifest = JSON.parse(Buffer.from(new Container(bytes, 'form').section('manifest')).toString());
      manifest.outputs.push({ name, bytes: 0, sha256: '0'.repeat(64) });
      return compressCompact(replaceSection(bytes, 'manifest', JSON.stringify(manifest)), 'brotli');
    });
    const before = scene.node.current();
    expect(await scene.pull()).toMatchObject({
      outcome: 'E_DAMAGED',
      message: expect.stringMatching(/outputs\[2\]\.name/),
    });
    expect(scene.node.current()).toBe(before);
  });

  it.each(['', '{"release":"../../etc"}', '{"release":["2026-01-01-0123456789ab"]}', 'null', '[]', '"x"'])(
    'a current.json of %j is refused',
    async (text) => {
      const scene = await withFile('current.json', () => text);
      const before = scene.node.current();
      expect(await scene.pull()).toMatchObject({
        outcome: 'E_UNTRUSTED',
        message: expect.stringContaining('does not name a release'),
      });
      expect(scene.node.current()).toBe(before);
    },
  );
});

it.each([
  ['a newer', 3, /has the format 3, and this ipatlas reads format 2; update ipatlas here/],
  ['an earlier', undefined, /has the format 1, .*; its operator must update ipatlas, and run "ipatlas repo add"/],
])('%s version of ipatlas made the repository: the node says what to update', async (_, format, message) => {
  const scene = await withFile('current.json', (text) => JSON.stringify({ ...JSON.parse(String(text)), format }));
  expect(await scene.pull()).toMatchObject({ outcome: 'E_DAMAGED', exit: 5, message: expect.stringMatching(message) });
});

describe('a pull form that does not give the signed release', () => {
  /** Changes one section of a pull form. */
  const section = (name: string, content: string) => (form: Buffer) =>
    compressCompact(replaceSection(unpackCompact(form, 'form'), name, content), 'brotli');
  const formOf = (release: string): Buffer => compressCompact(packRelease(release), 'brotli');
  const laterVersion = (form: Buffer): Buffer => {
    const bytes = Buffer.from(unpackCompact(form, 'form'));
    bytes.writeUInt16LE(2, 8);
    return bytes;
  };

  it.each<[string, (form: Buffer, scene: Scene) => Buffer | string | undefined, string, RegExp]>([
    ['is missing', () => undefined, 'E_UNTRUSTED', /has no target .*release\.ipc/],
    ['is not compressed with Brotli', () => 'rubbish', 'E_DAMAGED', /release\.ipc cannot be unpacked/],
    ['is cut off', (form) => form.subarray(0, form.length - 9), 'E_DAMAGED', /release\.ipc cannot be unpacked/],
    [
      'is that of another release',
      (_, { origin, ids }) => formOf(join(origin.dataDir, 'releases', ids[0]!)),
      'E_UNTRUSTED',
      /release\.ipc is that of release/,
    ],
    ['has no layers', section('sources6', ''), 'E_DAMAGED', /release\.ipc: a column is too short/],
    ['has damaged ranges', section('country4', 'rubbish'), 'E_DAMAGED', /release\.ipc: its IPv4 partition/],
    ['has other records', section('country', 'none\tprivate\n'), 'E_DAMAGED', /release\.ipc/],
    ['is of a later version', laterVersion, 'E_DAMAGED', /format version 2/],
  ])('%s: nothing is published', async (_, change, outcome, message) => {
    const scene = await withFile('release.ipc', change);
    const before = scene.node.current();
    expect(await scene.pull()).toMatchObject({ outcome, message: expect.stringMatching(message) });
    expect(scene.node.current()).toBe(before);
  });
});

describe('mix-and-match', () => {
  it('metadata that another version of the snapshot belongs to is refused', async () => {
    const scene = await Scene.withUpdate();
    scene.serveCopy('attack', { 'metadata/3.snapshot.json': scene.metadata('2.snapshot.json') });
    await scene.expectRefused('E_UNTRUSTED', /Expected hash/);
  });

  it('a snapshot of another version than the timestamp says is refused, even with the right hash', async () => {
    const scene = await Scene.withUpdate();
    const old = scene.metadata('2.snapshot.json');
    scene.serveCopy('attack', {
      'metadata/3.snapshot.json': old,
      'metadata/timestamp.json': scene.timestamp(3, old, 3),
    });
    await expect(scene.pull()).resolves.toMatchObject({
      outcome: 'E_UNTRUSTED',
      message: expect.stringMatching(/Snapshot version doesn't match timestamp/),
    });
    expect(scene.node.current()).toBe(scene.ids[0]);
  });

  it('the files of another release are refused', async () => {
    const scene = await Scene.withUpdate();
    const [first, second] = [scene.ids[0]!, scene.ids[1]!];
    const { targets } = (JSON.parse(scene.metadata('3.targets.json').toString('utf8')) as MetadataJson).signed;
    const pathOf = (id: string) => `targets/${id}/${targets[`${id}/release.ipc`]!.hashes.sha256}.release.ipc`;
    const { length } = targets[`${second}/release.ipc`]!;
    const swapped = readFileSync(join(scene.origin.repo, pathOf(first))).subarray(0, length);
    scene.serveCopy('attack', { [pathOf(second)]: swapped });
    await scene.expectRefused('E_UNTRUSTED', /release\.ipc: Expected (hash|length)/);
  });
});

describe('files', () => {
  it('targets of another snapshot are refused', async () => {
    const scene = await Scene.withUpdate();
    scene.serveCopy('attack', { 'metadata/3.targets.json': scene.metadata('2.targets.json') });
    await scene.expectRefused('E_UNTRUSTED', /Expected (hash|length)/);
  });

  const changes: [what: string, (content: Buffer) => Buffer, message: RegExp][] = [
    ['with a changed byte', (content) => content.fill(content[9]! ^ 1, 9, 10), /Expected hash/],
    ['that is too short', (content) => content.subarray(1), /Expected length/],
  ];
  it.each(['current.json', 'release.ipc'].flatMap((name) => changes.map((each) => [name, ...each] as const)))(
    'a %s %s is found',
    async (name, _what, change, message) => {
      const scene = await Scene.withUpdate();
      answerInstead(scene.server, `.${name}`, (response, path) => {
        response.end(change(readFileSync(join(scene.origin.repo, path))));
      });
      await scene.expectRefused('E_UNTRUSTED', message);
    },
  );
});

describe('servers that do not end', () => {
  const NAMES = ['2.root.json', 'timestamp.json', '3.snapshot.json', '3.targets.json', 'current.json', 'release.ipc'];

  it.each(NAMES.map((name) => [name]))('%s without end is aborted', async (name) => {
    const scene = await Scene.withUpdate();
    let sent = 0;
    const chunk = Buffer.alloc(65_536, 'x');
    const pour = (response: ServerResponse): void => {
      while (!response.destroyed) {
        sent += chunk.length;
        if (!response.write(chunk)) {
          response.once('drain', () => pour(response));
          return;
        }
      }
    };
    scene.server.interfere = (_request, response, path) => {
      if (!path.endsWith(name)) return false;
      pour(response);
      return true;
    };
    await scene.expectRefused('E_FETCH', /the download is larger than \d+ bytes/);
    // What the sockets of both sides held when the connection was cut.
    expect(sent).toBeLessThan(64 * 2 ** 20);
  });

  it.each(NAMES.map((name) => [name]))('%s that is sent byte by byte is aborted', async (name) => {
    const scene = await Scene.withUpdate();
    scene.server.interfere = (_request, response, path) => {
      if (!path.endsWith(name)) return false;
      const timer = setInterval(() => response.write(' '), 10);
      response.on('close', () => clearInterval(timer));
      return true;
    };
    const limits = { metadataTryTimeoutMs: 200, tryTimeoutMs: 200, idleTimeoutMs: 60_000 };
    await scene.expectRefused('E_FETCH', /the download was not done for 0\.2 s/, { limits });
  });
});

describe('stolen keys', () => {
  it('the timestamp key alone cannot make a snapshot', async () => {
    const scene = await Scene.withUpdate();
    const snapshot = scene.snapshot(4, scene.metadata('2.targets.json'), 4, scene.keys('timestamp'));
    scene.serveCopy('attack', {
      'metadata/4.snapshot.json': snapshot,
      'metadata/timestamp.json': scene.timestamp(3, snapshot, 4),
    });
    expect(await scene.pull()).toMatchObject({
      outcome: 'E_UNTRUSTED',
      message: expect.stringMatching(/snapshot was signed by 0\/1 keys/),
    });
    expect(scene.node.current()).toBe(scene.ids[0]);
    // The attacker's timestamp names a snapshot that no node accepts. New keys make the nodes forget it.
    scene.serveOrigin();
    scene.origin.rotate(['timestamp']);
    expect(await scene.pull()).toMatchObject({ outcome: 'published' });
    expect(scene.node.current()).toBe(scene.ids[1]);
  });

  it('timestamp and snapshot keys cannot make targets', async () => {
    const scene = await Scene.start();
    const targets = forge(
      'targets',
      scene.metadata('2.targets.json'),
      (signed) => {
        signed.version = 3;
        signed.targets['current.json']!.hashes.sha256 = '0'.repeat(64);
      },
      [...scene.keys('timestamp'), ...scene.keys('snapshot')],
    );
    const snapshot = scene.snapshot(3, targets, 3);
    scene.serveCopy('attack', {
      'metadata/3.targets.json': targets,
      'metadata/3.snapshot.json': snapshot,
      'metadata/timestamp.json': scene.timestamp(3, snapshot, 3),
    });
    expect(await scene.pull()).toMatchObject({
      outcome: 'E_UNTRUSTED',
      message: expect.stringMatching(/targets was signed by 0\/1 keys/),
    });
    expect(scene.node.current()).toBe(scene.ids[0]);
  });

  it('a replaced timestamp key is not accepted any more', async () => {
    const scene = await Scene.start();
    const stolen = scene.keys('timestamp');
    await scene.add('BB');
    scene.origin.rotate(['timestamp']);
    const timestamp = scene.timestamp(99, scene.metadata('3.snapshot.json'), 3, stolen);
    scene.serveCopy('attack', { 'metadata/timestamp.json': timestamp });
    await scene.expectRefused('E_UNTRUSTED', /timestamp was signed by 0\/1 keys/);
  });

  it('nodes recover from fast-forwarded versions when the keys are replaced', async () => {
    const scene = await Scene.start();
    const version = 2_000_000_000;
    const snapshot = scene.snapshot(version, scene.metadata('2.targets.json'), 2);
    const timestamp = scene.timestamp(version, snapshot, version);
    scene.serveCopy('attack', {
      [`metadata/${version}.snapshot.json`]: snapshot,
      'metadata/timestamp.json': timestamp,
    });
    // The stolen keys were valid, so the node cannot know.
    expect(await scene.pull()).toMatchObject({ outcome: 'unchanged' });
    scene.serveOrigin();
    await scene.add('BB');
    expect(await scene.pull()).toMatchObject({
      outcome: 'E_UNTRUSTED',
      message: expect.stringMatching(/less than current version 2000000000/),
    });
    scene.origin.rotate(['snapshot', 'timestamp']);
    expect(await scene.pull()).toMatchObject({ outcome: 'published' });
    expect(scene.node.current()).toBe(scene.ids[1]);
  });
});

describe('signatures', () => {
  it('a signature of other content is refused', async () => {
    const scene = await Scene.withUpdate();
    const json = JSON.parse(scene.metadata('timestamp.json').toString('utf8')) as MetadataJson;
    json.signed.expires = '2999-01-01T00:00:00Z';
    scene.serveCopy('attack', { 'metadata/timestamp.json': Buffer.from(JSON.stringify(json)) });
    await scene.expectRefused('E_UNTRUSTED', /timestamp was signed by 0\/1 keys/);
  });
});

describe('root', () => {
  const rootOf = (scene: Scene, keys: (old: SigningKey[], own: SigningKey) => SigningKey[], version = 2) => {
    const own = createKey(join(scene.dir, 'attacker'), 'root');
    return forge(
      'root',
      scene.origin.root(),
      (signed) => {
        signed.version = version;
        signed.keys[own.key.keyID] = own.key.toJSON();
        signed.roles.root = { keyids: [own.key.keyID], threshold: 1 };
      },
      keys(scene.keys('root'), own),
    );
  };

  it.each<[string, RegExp, Parameters<typeof rootOf>[1]]>([
    ['that only its own key signed', /root was signed by 0\/2 keys/, (_old, own) => [own]],
    ['that too few of the old keys signed', /root was signed by 1\/2 keys/, (old, own) => [old[0]!, own]],
    ['that its own key did not sign', /root was signed by 0\/1 keys/, (old) => old],
  ])('a new version %s is refused', async (_name, message, keys) => {
    const scene = await Scene.start({ root: { keys: 3, threshold: 2 } });
    scene.serveCopy('attack', { 'metadata/2.root.json': rootOf(scene, keys) });
    await scene.expectRefused('E_UNTRUSTED', message);
  });

  it('a version that skips one is refused', async () => {
    const scene = await Scene.start({ root: { keys: 3, threshold: 2 } });
    const forged = rootOf(scene, (old, own) => [...old, own], 3);
    scene.serveCopy('attack', { 'metadata/2.root.json': forged });
    await scene.expectRefused('E_UNTRUSTED', /Expected version 2, got 3/);
  });

  it('a root of another repository is refused from the start', async () => {
    const scene = await Scene.start();
    const other = new Origin(join(scene.dir, 'other'));
    const node = new Node(scene.dir, 'fresh');
    expect(await node.pull(scene.server.url, other.root())).toMatchObject({
      outcome: 'E_UNTRUSTED',
      message: expect.stringMatching(/signed by 0\/1 keys/),
    });
    expect(node.current()).toBeUndefined();
  });

  it('nodes follow several rotations at once, of every role', async () => {
    const scene = await Scene.start({ root: { keys: 3, threshold: 2 }, targets: ONE_OF_ONE });
    for (const roles of [
      ['root'],
      ['timestamp'],
      ['root', 'snapshot'],
      ['targets'],
      ['root', 'targets', 'snapshot', 'timestamp'],
    ]) {
      scene.origin.rotate(roles as Role[]);
    }
    await scene.add('BB');
    expect(await scene.pull()).toMatchObject({ outcome: 'published' });
    expect(scene.server.requests.filter((path) => path.endsWith('.root.json')).slice(-6)).toEqual(
      [2, 3, 4, 5, 6, 7].map((version) => `/metadata/${version}.root.json`),
    );
    // A new node that got any of the versions follows as well.
    for (const version of [1, 4, 6]) {
      const node = new Node(scene.dir, `node-${version}`);
      expect(await node.pull(scene.server.url, scene.origin.root(version))).toMatchObject({ outcome: 'published' });
    }
  });

  it('a pull follows a limited number of versions, and the next one goes on', async () => {
    const scene = await Scene.start();
    // Versions that differ in their number only: rotate would make keys for each.
    const [first, keys] = [scene.origin.root(), scene.keys('root')];
    for (let version = 2; version <= MAX_ROOT_VERSIONS + 2; version++) {
      const change = (signed: MetadataJson['signed']): void => {
        signed.version = version;
      };
      put(scene.origin.repo, `metadata/${version}.root.json`, forge('root', first, change, keys));
    }
    scene.origin.rotate(['timestamp']);
    await scene.add('BB');
    expect(await scene.pull()).toMatchObject({
      outcome: 'E_UNTRUSTED',
      notes: expect.arrayContaining([expect.stringMatching(/may be more versions of the root/)]),
    });
    expect(scene.server.requests.filter((path) => path.endsWith('.root.json'))).toHaveLength(MAX_ROOT_VERSIONS);
    expect(await scene.pull()).toMatchObject({ outcome: 'published' });
  });
});
