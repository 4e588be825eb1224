/** What a pull does without an attacker: it installs releases, refuses them, goes back with the origin, and continues. */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { PULL_MAX_RETRY_AFTER_MS, PULL_RETRIES } from '../../pipeline/distribution/client.js';
import { addRelease } from '../../pipeline/distribution/repository.js';
import { explain } from '../../pipeline/explain/explain.js';
import { redirectTarget } from '../../pipeline/fetching/https.js';
import { lockDataDir } from '../../pipeline/operations/lock.js';
import { rollBack } from '../../pipeline/operations/rollback.js';
import { unpackCompact } from '../../src/database/compact.js';
import { openDatabase } from '../../src/database/database.js';
import { readManifest } from '../../src/database/release.js';
import { dayOf } from '../../src/day.js';
import { openArchive } from '../../src/history/archive.js';
import { encodePacks, isPackName } from '../../src/history/pack.js';
import { addPack } from '../../src/history/write.js';
import { COUNTRIES } from '../../src/rangefile/partitions.js';
import { ipatlas } from '../support/in-process.js';
import { freezeClock } from '../support/killed-writer.js';
import { SMALL_LABELS } from '../support/labels.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { publishBlocks } from '../support/release.js';
import { buildOnce, madeUpWorld, rowsText, writeSources } from '../support/sources.js';
import {
  answerInstead,
  filesRequested,
  Node,
  Origin,
  type StaticServer,
  scratchDir,
  serveStatic,
  world,
} from './support.js';

let dir: string;
let origin: Origin;
let server: StaticServer;
let node: Node;
beforeEach(async () => {
  dir = scratchDir();
  origin = new Origin(dir);
  server = await serveStatic(origin.repo);
  node = new Node(dir);
});

const pull = (options: Parameters<Node['pull']>[2] = {}) => node.pull(server.url, origin.root(), options);
const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

describe('a pull', () => {
  it('publishes the release of the repository, with the same range file, mirror and manifest', async () => {
    const id = await origin.add(world('AA'), {}, SMALL_NETWORKS);
    expect(await pull()).toMatchObject({ outcome: 'published', exit: 0 });
    expect(node.current()).toBe(id);
    for (const name of ['ranges.ipr', 'networks.ipr', 'ranges.sqlite', 'manifest.json']) {
      const [here, there] = [node.dataDir, origin.dataDir].map((data) => join(data, 'releases', id, name));
      expect(sha256(here!), name).toBe(sha256(there!));
    }
    expect(filesRequested(server)).toEqual(['release.ipc']);
  });

  it('has no labels, unless the operator of the repository says so', async () => {
    const id = await origin.add(world('AA'), {}, SMALL_NETWORKS, SMALL_LABELS);
    const published = readdirSync(origin.repo, { recursive: true, encoding: 'utf8' }).map((name) =>
      join(origin.repo, name),
    );
    for (const path of published.filter((name) => statSync(name).isFile())) {
      const content = path.endsWith('.release.ipc')
        ? Buffer.from(unpackCompact(readFileSync(path), path))
        : readFileSync(path);
      for (const word of ['labels', 'Berlin', 'owner']) expect(content.includes(word), `${path}: ${word}`).toBe(false);
    }
    expect(await pull()).toMatchObject({ outcome: 'published' });
    expect(readManifest(join(node.dataDir, 'current')).labels).toBeUndefined();
    expect(node.current()).toBe(id);
    // A node that has the release gets what is added to it, and loses what is taken out again.
    for (const force of [false, true]) {
      addRelease(origin.options(), join(origin.dataDir, 'current'), undefined, true);
      expect(await pull({ force })).toMatchObject({ outcome: 'published' });
      expect(node.current()).toBe(id);
      using labeled = openDatabase(node.dataDir);
      expect(labeled.fields(['site', 'owner'])('10.1.2.3')).toMatchObject(SMALL_LABELS[1]![1]);
      expect(await ipatlas(['verify', '--data', node.dataDir])).toMatchObject({ code: 0 });
      expect(await pull()).toMatchObject({ outcome: 'unchanged' });
      addRelease(origin.options(), join(origin.dataDir, 'current'));
      expect(await pull({ force })).toMatchObject({ outcome: 'published' });
      expect(existsSync(join(node.dataDir, 'current', 'labels.ipr'))).toBe(false);
      expect(await ipatlas(['verify', '--data', node.dataDir])).toMatchObject({ code: 0 });
    }
    addRelease(origin.options(), join(origin.dataDir, 'current'), undefined, true);
    const other = new Node(dir, 'other');
    expect(await other.pull(server.url, origin.root())).toMatchObject({ outcome: 'published' });
    expect(other.current()).toBe(id);
    const files = ['labels.ipr', 'ranges.sqlite', 'manifest.json'];
    for (const name of files) {
      expect(sha256(join(other.dataDir, 'current', name)), name).toBe(sha256(join(origin.dataDir, 'current', name)));
    }
  });

  it('requests only the newer root, the timestamp and the current release if nothing changed', async () => {
    await origin.add(world('AA'));
    await pull();
    server.requests.length = 0;
    expect(await pull()).toMatchObject({ outcome: 'unchanged' });
    expect(server.requests.map((path) => path.replace(/[0-9a-f]{64}/, '…'))).toEqual([
      '/metadata/2.root.json',
      '/metadata/timestamp.json',
      '/targets/….current.json',
    ]);
  });

  it('fails before the first release, and follows afterwards', async () => {
    expect(await pull()).toMatchObject({ outcome: 'E_UNTRUSTED', message: expect.stringMatching(/no target current/) });
    expect(node.current()).toBeUndefined();
    await origin.add(world('AA'));
    expect(await pull()).toMatchObject({ outcome: 'published' });
  });

  it('follows the origin back to an older release', async () => {
    const first = await origin.add(world('AA'));
    await pull();
    const second = await origin.add(world('BB'));
    await pull();
    expect(node.current()).toBe(second);
    rollBack(origin.dataDir, undefined);
    addRelease(origin.options(), join(origin.dataDir, 'current'));
    server.requests.length = 0;
    expect(await pull()).toMatchObject({ outcome: 'published' });
    expect(node.current()).toBe(first);
    expect(openDatabase(node.dataDir).lookup('80.0.0.1')?.country_code).toBe('AA');
    expect(filesRequested(server)).toEqual(['release.ipc']);
  });

  it('replaces a release that was damaged on this machine', async () => {
    const id = await origin.add(world('AA'));
    await pull();
    truncateSync(join(node.dataDir, 'releases', id, 'ranges.ipr'), 1000);
    expect(await pull()).toMatchObject({
      outcome: 'published',
      notes: expect.arrayContaining([expect.stringMatching(/is damaged and will be pulled again/)]),
    });
    expect(node.current()).toBe(id);
  });

  it('keeps a release that a person rolled back to on this machine', async () => {
    const first = await origin.add(world('AA'));
    await pull();
    await origin.add(world('BB'));
    await pull();
    rollBack(node.dataDir, undefined);
    expect(await pull()).toMatchObject({
      outcome: 'E_REFUSED',
      exit: 3,
      message: expect.stringMatching(/rolled back/),
    });
    expect(node.current()).toBe(first);
    expect(await pull({ force: true })).toMatchObject({ outcome: 'published' });
    expect(await pull()).toMatchObject({ outcome: 'unchanged' });
  });

  it('does not run together with a build', async () => {
    await origin.add(world('AA'));
    mkdirSync(node.dataDir);
    const unlock = lockDataDir(node.dataDir);
    expect(await pull()).toMatchObject({ outcome: 'E_BUSY', exit: 8 });
    unlock();
    expect(await pull()).toMatchObject({ outcome: 'published' });
  });

  it('continues with the root metadata of --root if the stored one is damaged', async () => {
    await origin.add(world('AA'));
    await pull();
    origin.rotate(['root']);
    await pull();
    const [folder] = readdirSync(join(node.dataDir, 'pull')).filter((name) => name.startsWith('metadata-'));
    for (const rubbish of ['', '{', '{"signed":{"version":1,"expires":"2030-01-01T00:00:00Z"}}']) {
      for (const name of ['root', 'timestamp', 'snapshot', 'targets']) {
        writeFileSync(join(node.dataDir, 'pull', folder!, `${name}.json`), rubbish);
      }
      expect(await pull(), JSON.stringify(rubbish)).toMatchObject({ outcome: 'unchanged' });
    }
  });

  it.each(['rubbish', '{"signed":{}}'])('refuses %j as root metadata', async (text) => {
    await origin.add(world('AA'));
    expect(await node.pull(server.url, Buffer.from(text))).toMatchObject({ outcome: 'E_CONFIG', exit: 2 });
  });

  it.each(['rubbish', '{"signed":{"_type":"timestamp"},"signatures":[]}', '\0'.repeat(100)])(
    'refuses %j instead of any metadata',
    async (text) => {
      await origin.add(world('AA'));
      for (const name of ['2.root.json', 'timestamp.json', '2.snapshot.json', '2.targets.json']) {
        answerInstead(server, name, (response) => void response.end(text));
        expect(await pull(), name).toMatchObject({ outcome: 'E_UNTRUSTED', exit: 6 });
      }
      server.interfere = () => false;
      expect(await pull()).toMatchObject({ outcome: 'published' });
    },
  );

  it.each([403, 500, 301])('reports that the server answers %d', async (status) => {
    await origin.add(world('AA'));
    await pull();
    await origin.add(world('BB'));
    server.interfere = (_request, response, path) => {
      if (path.endsWith('root.json')) return false;
      response.writeHead(status).end();
      return true;
    };
    const before = node.current();
    expect(await pull()).toMatchObject({
      outcome: 'E_FETCH',
      exit: 6,
      message: expect.stringContaining(String(status)),
    });
    expect(node.current()).toBe(before);
  });

  it('treats a 403 as the end of the root versions, because object stores send it', async () => {
    await origin.add(world('AA'));
    answerInstead(server, '2.root.json', (response) => void response.writeHead(403).end());
    expect(await pull()).toMatchObject({ outcome: 'published' });
  });

  it('names the file for which a server sends a page', async () => {
    await origin.add(world('AA'));
    for (const name of ['2.root.json', 'timestamp.json', '2.snapshot.json', '2.targets.json']) {
      answerInstead(server, name, (response) => void response.end('<!doctype html>\u001b[2J'));
      const { outcome, message } = await pull();
      expect([outcome, message]).toEqual(['E_UNTRUSTED', expect.stringContaining(name)]);
      expect(message).toContain('it begins with "<!doctype html>');
      expect(message).not.toContain('\u001b');
    }
  });

  it('follows redirects of plain HTTP, since everything is signed', async () => {
    const id = await origin.add(world('AA'));
    const mirror = await serveStatic(origin.repo);
    // The same server by an address that is not known as that of this machine.
    const plain = mirror.url.replace('127.0.0.1', '[::ffff:127.0.0.1]');
    expect(() => redirectTarget(plain, new URL(server.url))).toThrow(/expected an https/);
    server.interfere = (_request, response, path) => {
      response.writeHead(302, { location: `${plain}${path}` }).end();
      return true;
    };
    expect(await pull()).toMatchObject({ outcome: 'published' });
    expect(node.current()).toBe(id);
  });

  it('does not wait for as long as a server asks', async () => {
    await origin.add(world('AA'));
    let asked = 0;
    server.interfere = (_request, response) => {
      asked++;
      response.writeHead(503, { 'retry-after': '99999' }).end();
      return true;
    };
    const limits = { retries: PULL_RETRIES, maxRetryAfterMs: 20 };
    expect(await pull({ limits })).toMatchObject({ outcome: 'E_FETCH' });
    expect(asked).toBe(PULL_RETRIES + 1);
    expect(PULL_MAX_RETRY_AFTER_MS * PULL_RETRIES).toBeLessThanOrEqual(10_000);
  });

  it('records what it found, without the password of the address', async () => {
    await origin.add(world('AA'));
    const url = server.url.replace('http://', 'http://user:secret@');
    expect(await node.pull(url, origin.root())).toMatchObject({ outcome: 'published' });
    const state = readFileSync(join(node.dataDir, 'pull', 'state.json'), 'utf8');
    expect(JSON.parse(state)).toMatchObject({ problem: null, expires: { timestamp: expect.any(String) } });
    expect(state).not.toContain('secret');
    server.interfere = (_request, response) => {
      response.writeHead(500).end();
      return true;
    };
    const failed = await node.pull(url, origin.root());
    expect(failed).toMatchObject({ outcome: 'E_FETCH' });
    expect(JSON.stringify(failed) + readFileSync(join(node.dataDir, 'pull', 'state.json'), 'utf8')).not.toContain(
      'secret',
    );
  });
});

describe('an interrupted download', () => {
  /** Cuts the connection after half of the pull form. */
  const cut = (): void => {
    answerInstead(server, '.release.ipc', (response, path) => {
      const content = readFileSync(join(server.dir, path));
      response.writeHead(200, { 'content-length': content.length });
      response.write(content.subarray(0, content.length >> 1), () => setTimeout(() => response.destroy(), 50));
    });
  };
  const partOf = (): string => {
    const folder = join(node.dataDir, 'pull', 'downloads');
    return join(folder, readdirSync(folder)[0]!);
  };

  it('is continued by the next pull', async () => {
    await origin.add(world('AA'));
    cut();
    expect(await pull()).toMatchObject({ outcome: 'E_FETCH' });
    const { length } = readFileSync(partOf());
    expect(length).toBeGreaterThan(0);
    server.interfere = () => false;
    server.ranges.length = 0;
    expect(await pull()).toMatchObject({ outcome: 'published' });
    expect(server.ranges.filter((range) => range !== undefined)).toEqual([`bytes=${length}-`]);
    expect(existsSync(join(node.dataDir, 'pull', 'downloads'))).toBe(false);
  });

  it('is continued within a pull', async () => {
    await origin.add(world('AA'));
    cut();
    const interfere = server.interfere;
    let cuts = 0;
    server.interfere = (request, response, path) =>
      path.endsWith('.release.ipc') && cuts++ === 0 ? interfere(request, response, path) : false;
    expect(await pull({ limits: { retries: 1, backoffMs: 1 } })).toMatchObject({ outcome: 'published' });
    expect(filesRequested(server)).toEqual(['release.ipc', 'release.ipc']);
    expect(server.ranges.filter((range) => range !== undefined)).toHaveLength(1);
  });

  it('survives an answer that has an error instead of the rest', async () => {
    await origin.add(world('AA'));
    cut();
    await pull();
    const { length } = readFileSync(partOf());
    answerInstead(server, '.release.ipc', (response) => void response.writeHead(503).end());
    expect(await pull()).toMatchObject({ outcome: 'E_FETCH' });
    expect(readFileSync(partOf())).toHaveLength(length);
  });

  it.each<[string, (part: Buffer) => Buffer]>([
    ['wrong', (part) => Buffer.alloc(part.length, 1)],
    ['longer than the file', (part) => Buffer.concat([part, part, part])],
    ['as long as the file, but wrong', (part) => Buffer.alloc(2 * part.length, 1)],
  ])('whose part is %s begins again', async (_name, change) => {
    await origin.add(world('AA'));
    cut();
    await pull();
    const path = partOf();
    writeFileSync(path, change(readFileSync(path)));
    server.interfere = () => false;
    expect(await pull()).toMatchObject({ outcome: 'published' });
  });

  it('begins again if the server knows no ranges, or answers with another one', async () => {
    for (const range of [undefined, 'bytes 0-9/10']) {
      await origin.add(world(range === undefined ? 'AA' : 'BB'));
      cut();
      expect(await pull()).toMatchObject({ outcome: 'E_FETCH' });
      server.interfere = (request, response, path) => {
        if (!path.endsWith('.release.ipc')) return false;
        if (range !== undefined && request.headers.range !== undefined) {
          response.writeHead(206, { 'content-range': range }).end('0123456789');
        } else response.end(readFileSync(join(server.dir, path)));
        return true;
      };
      expect(await pull({ limits: { retries: 1, backoffMs: 1 } })).toMatchObject({ outcome: 'published' });
    }
  });
});

describe('the gates of a node', () => {
  /** Builds at the origin, without its gates, and adds the release. */
  async function buildAndAdd(rows: string[], gates: object = {}): Promise<string> {
    const sources = writeSources(join(dir, 'sources'), { one: rows }, { gates });
    const built = await buildOnce(origin.dataDir, sources, { force: true });
    expect(built).toMatchObject({ outcome: 'published' });
    addRelease(origin.options(), join(origin.dataDir, 'current'));
    return built.id!;
  }

  it('refuse a release that changes too much, and keep it for inspection; --force publishes it', async () => {
    const strict = new Node(dir, 'strict', {});
    const rows = madeUpWorld();
    const first = await buildAndAdd(rowsText(rows));
    expect(await strict.pull(server.url, origin.root())).toMatchObject({ outcome: 'published' });
    const moved = rows.map((row) => (/^[5-9]\d\./.test(row.first) ? { ...row, code: 'LU' } : row));
    const second = await buildAndAdd(rowsText(moved));
    const refused = await strict.pull(server.url, origin.root());
    expect(refused).toMatchObject({
      outcome: 'E_REFUSED',
      exit: 3,
      message: expect.stringMatching(/pull again with --force/),
    });
    expect(strict.current()).toBe(first);
    expect(readdirSync(join(strict.dataDir, 'releases', 'refused'))).toEqual([second]);
    // The next pull of the schedule does not do it all again.
    server.requests.length = 0;
    const again = await strict.pull(server.url, origin.root());
    expect([again.outcome, again.exit, again.message]).toEqual(['E_REFUSED', 3, refused.message]);
    expect(again.notes).toContain('this release was refused before, and nothing has changed since');
    expect(filesRequested(server)).toEqual([]);
    // Other limits are another question.
    const sources = readFileSync(strict.sourcesFile, 'utf8');
    writeSources(
      join(dir, 'strict-config'),
      { unused: '1.0.0.0,1.0.0.0,US\n' },
      { gates: { maxVanishedCountries: 300 } },
    );
    expect(await strict.pull(server.url, origin.root())).toMatchObject({ outcome: 'E_REFUSED' });
    expect(filesRequested(server)).toEqual(['release.ipc']);
    writeFileSync(strict.sourcesFile, sources);
    expect(await strict.pull(server.url, origin.root(), { force: true })).toMatchObject({ outcome: 'published' });
    expect(strict.current()).toBe(second);
    expect(readManifest(join(strict.dataDir, 'current')).forced?.refusals.length).toBeGreaterThan(0);
  });

  it('explain prints what the mirror has, and which rows are not on this machine', async () => {
    await buildAndAdd(rowsText(madeUpWorld()));
    await pull();
    const explanation = await explain(node.dataDir, join(node.dataDir, 'current'), '100.0.0.1');
    expect(explanation.result.country_code).toBe('MT');
    expect(explanation.steps[0]!.range.sources).toEqual(['one']);
    expect(explanation.notes.join()).toMatch(/the rows of its sources stayed at the origin/);
    expect(openDatabase(join(node.dataDir, 'current'), { engine: 'sqlite' }).lookup('100.0.0.1')?.country_code).toBe(
      'MT',
    );
  });
});

describe('what is published', () => {
  it('gives the same files, byte for byte, with confidence', async () => {
    const rows = rowsText(madeUpWorld());
    const sources = { one: rows, two: rows.map((row) => row.replace(/,MT$/, ',CY')), three: rows };
    const path = writeSources(join(dir, 'sources'), sources, { merge: 'evidence' });
    const config = JSON.parse(readFileSync(path, 'utf8'));
    const routing = { id: 'routing', kind: 'routing', fetch: { file: 'routing.csv' }, format: 'origin-asn' };
    writeFileSync(join(dir, 'sources', 'routing.csv'), '20.0.0.0,20.0.0.255,64496,"A, B"\n2a10::,2a10::ff,64497,\n');
    writeFileSync(
      path,
      JSON.stringify({ ...config, sources: [...config.sources, { license: 'CC0-1.0', ...routing }] }),
    );
    expect(await buildOnce(origin.dataDir, path, { force: true })).toMatchObject({ outcome: 'published' });
    const release = join(origin.dataDir, 'current');
    addRelease(origin.options(), release);
    expect(await pull()).toMatchObject({ outcome: 'published' });
    for (const name of ['ranges.ipr', 'networks.ipr', 'ranges.sqlite', 'manifest.json']) {
      expect(sha256(join(node.dataDir, 'current', name)), name).toBe(sha256(join(release, name)));
    }
    const { steps } = await explain(node.dataDir, join(node.dataDir, 'current'), '100.0.0.1');
    expect(steps[0]!.range.confidence).toBeLessThan(100);
  });

  it('has only members of the manifest that are allowed: not who forced the release, nor why a source is missing', async () => {
    await origin.add(world('AA'));
    const path = join(origin.dataDir, 'current', 'manifest.json');
    const manifest = {
      ...readManifest(join(origin.dataDir, 'current')),
      forced: { by: 'joe', at: '2026-01-01T00:00:00Z', refusals: [{ gate: 'rolledBack', message: 'no' }] },
      missing: [{ id: 'azure', reason: 'connect ECONNREFUSED proxy.example:3128' }],
    };
    writeFileSync(path, JSON.stringify(manifest));
    addRelease(origin.options(), join(origin.dataDir, 'current'));
    expect(await pull({ force: true })).toMatchObject({ outcome: 'published' });
    const text = readFileSync(join(node.dataDir, 'current', 'manifest.json'), 'utf8');
    expect(text).not.toMatch(/joe|proxy/);
    const { refusals, at } = manifest.forced;
    expect(JSON.parse(text)).toMatchObject({ forced: { at, refusals }, missing: [{ id: 'azure' }] });
  });
});

describe('the history of the repository', () => {
  /** The day of an import in each of two months, and what 80.0.0.1 had then. */
  const IMPORTS = { '2020-01-31': 'GB', '2020-02-01': 'GB', '2024-05-01': 'FR' };

  /** Publishes a world at the origin, and adds it with the history. */
  async function add(code: string): Promise<void> {
    await publishBlocks(origin.dataDir, world(code), undefined, 730);
    const { repo, keys, dataDir } = origin;
    expect(await ipatlas(['repo', 'add', repo, '--keys', keys, '--data', dataDir])).toMatchObject({ code: 0 });
  }

  /** Pulls; returns the outcome, and what is said about the history. */
  async function pull(options = {}, url = server.url, root = origin.root()) {
    const { outcome, notes } = await node.pull(url, root, options);
    return { outcome, problems: notes.filter((note) => note.includes('history')) };
  }

  beforeEach(async () => {
    freezeClock(); // a pack has a month: none of them ends meanwhile
    for (const [day, code] of Object.entries(IMPORTS)) {
      const table = join(dir, `table-${day}.csv`);
      writeFileSync(table, `80.0.0.0,80.127.255.255,${code}\n`);
      expect(await ipatlas(['history', 'import', table, '--data', origin.dataDir])).toMatchObject({ code: 0 });
    }
    await add('AA');
    server.requests.length = 0;
  });

  /** Returns what 80.0.0.1 had on a day, as `CODE is_eu`; undefined if the day is refused. */
  async function answer(day: string): Promise<string | undefined> {
    const { stdout } = await ipatlas(['lookup', '80.0.0.1', '--at', day, '--data', node.dataDir]);
    if (stdout === '') return undefined;
    const { country_code, is_eu } = JSON.parse(stdout);
    return `${country_code} ${is_eu}`;
  }

  const packs = () => filesRequested(server).filter((name) => name.endsWith('.pack'));
  const all = () => [`${dayOf(Date.now()).slice(0, 7)}.pack`, '2024-05.pack', '2020-02.pack', '2020-01.pack'];

  it('answers for the days before the first pull, and each pack is fetched once, but that of the first month', async () => {
    expect(await pull()).toMatchObject({ outcome: 'published', problems: [] });
    expect(packs()).toEqual(all());
    expect(await answer('2020-01-30')).toBeUndefined();
    expect(await answer('2020-01-31')).toBe('GB true');
    expect(await answer('2020-02-01')).toBe('GB false');
    expect(await answer('2025-01-01')).toBe('FR true');
    server.requests.length = 0;
    expect(await pull()).toMatchObject({ outcome: 'unchanged' });
    await add('BB');
    expect(await pull()).toMatchObject({ outcome: 'published' });
    expect(packs()).toEqual(all().slice(0, 1));
    server.requests.length = 0;
    // An import that was added meanwhile, and a pack that was lost.
    const table = join(dir, 'table-2022-03-04.csv');
    writeFileSync(table, '80.0.0.0,80.127.255.255,DE\n');
    await ipatlas(['history', 'import', table, '--data', origin.dataDir]);
    await add('BB');
    rmSync(join(node.dataDir, 'history', '2020-02.pack'));
    expect(await answer('2021-01-01')).toBeUndefined();
    const damaged = await ipatlas(['verify', '--data', node.dataDir]);
    expect(damaged).toMatchObject({ code: 5, stderr: expect.stringMatching(/2020-02\.pack cannot be read/) });
    expect(await pull()).toEqual({ outcome: 'unchanged', problems: [] });
    expect(packs()).toEqual([all()[0], '2024-05.pack', '2022-03.pack', '2020-02.pack']);
    expect(await answer('2021-01-01')).toBe('GB false');
    expect(await answer('2022-03-04')).toBe('DE true');
    expect(await ipatlas(['verify', '--data', node.dataDir])).toMatchObject({ code: 0 });
  });

  it('is carried on by a node that is an origin', async () => {
    await pull();
    const near = node;
    const second = new Origin(join(dir, 'second'));
    const { repo, keys } = second;
    await ipatlas(['repo', 'add', repo, '--keys', keys, '--data', node.dataDir]);
    const far = await serveStatic(repo);
    node = new Node(dir, 'far');
    expect(await pull({}, far.url, second.root())).toMatchObject({ outcome: 'published', problems: [] });
    expect(await answer('2020-01-31')).toBe('GB true');
    // What the node has lost is not covered by what it still has: neither on itself nor on those that pull from it.
    rmSync(join(near.dataDir, 'history', '2020-02.pack'));
    const { stderr } = await ipatlas(['repo', 'add', repo, '--keys', keys, '--data', near.dataDir]);
    expect(stderr).toMatch(/the history is not added, because a part of it is lost here: .*2020-02\.pack/);
    expect(await pull({}, far.url, second.root())).toMatchObject({ outcome: 'unchanged', problems: [] });
    expect(await answer('2021-01-01')).toBe('GB false');
  });

  it.each([
    ['that is cut off', 50],
    ['that has another byte', undefined],
    ['that is missing', 0],
  ])('a pack %s does not stop the pull, is told, and comes with the next one', async (_what, length) => {
    cutPack('2024-05.pack', length);
    expect(await pull()).toEqual({
      outcome: 'published',
      problems: [expect.stringMatching(/^the history of the repository is not complete here: .*2024-05\.pack/)],
    });
    expect(await answer('2025-01-01')).toBeUndefined();
    server.interfere = () => false;
    expect(await pull()).toMatchObject({ outcome: 'unchanged' });
    expect(await answer('2025-01-01')).toBe('FR true');
  });

  /** Serves a part of a pack; another byte at its end if no length is given. */
  function cutPack(name: string, length: number | undefined): void {
    answerInstead(server, `.${name}`, (response, path) => {
      const content = readFileSync(join(origin.repo, path));
      if (length === undefined) content[content.length - 1]! ^= 1;
      response.writeHead(length === 0 ? 404 : 200).end(content.subarray(0, length));
    });
  }

  it('is not taken with --no-history, nor from what the repository only claims to be a pack', async () => {
    expect(await pull({ historyDays: 0 })).toMatchObject({ outcome: 'published', problems: [] });
    expect(packs()).toEqual([]);
    const dir2 = scratchDir();
    const forged = encodePacks(COUNTRIES.history!, openArchive(origin.dataDir).entries).get('history/2024-05.pack')!;
    expect(() => addPack(dir2, '2024-06.pack', forged)).toThrow(/its entry 0 does not belong there/);
    expect(() => addPack(dir2, '2024-05.pack', forged.subarray(0, 100))).toThrow(/100 bytes long/);
    expect(['2024-13.pack', '../x.pack', '2024-05.pack/', ''].filter(isPackName)).toEqual([]);
  });
});
