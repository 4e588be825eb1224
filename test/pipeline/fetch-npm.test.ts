/** npm sources against a small registry on this machine, and the pinned copies. npm itself is real. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { create } from 'tar';
import { describe, expect, it } from 'vitest';
import { objectPath } from '../../pipeline/fetching/cache.js';
import {
  findPinned,
  type NpmContext,
  packPackage,
  resolvePackage,
  takeFromTarball,
} from '../../pipeline/fetching/npm.js';
import { atlasError, makeTarball, runFetch, scratchDir, serve, source, textsOf } from './fetch-support.js';

const NAME = '@test/data';
const npm = (spec: string, files = ['a.csv']) => source({ kind: 'npm', spec, files });
const integrityOf = (tarball: Buffer) => `sha512-${createHash('sha512').update(tarball).digest('base64')}`;

interface Published {
  version: string;
  tarball: Buffer;
  /** What the registry says instead of the true value; empty for nothing. */
  integrity?: string;
}

/** A registry with versions of one package, the last of them `latest`. It can be changed while it serves. */
async function registry(versions: Published[]) {
  const { url, requests } = await serve((request, response) => {
    const wanted = versions.find(({ version }) => request.url === `/${version}.tgz`);
    if (wanted !== undefined) return response.end(wanted.tarball);
    if (request.url?.toLowerCase() !== `/${NAME.replace('/', '%2f')}`) return response.writeHead(404).end('{}');
    const described = versions.map(({ version, tarball, integrity = integrityOf(tarball) }) => {
      const dist = { tarball: `${url}/${version}.tgz`, ...(integrity !== '' && { integrity }) };
      return [version, { name: NAME, version, dist }];
    });
    const latest = versions.at(-1)?.version;
    const packument = { name: NAME, 'dist-tags': { latest }, versions: Object.fromEntries(described) };
    return response.setHeader('content-type', 'application/json').end(JSON.stringify(packument));
  });
  const tarballs = () => requests.filter((request) => request.url?.endsWith('.tgz')).length;
  return { env: npmEnv(url), tarballs };
}

async function npmContext(versions: Published[]): Promise<NpmContext> {
  return { workDir: scratchDir(), env: (await registry(versions)).env, timeoutMs: 60_000 };
}

/** Returns an environment in which npm uses only this registry, and none of the machine's settings. */
function npmEnv(registryUrl: string): NodeJS.ProcessEnv {
  const directory = scratchDir();
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_config_/i.test(name)));
  writeFileSync(path.join(directory, 'npmrc'), 'some-unknown-setting=1\nnodedir=/usr\n');
  return {
    ...env,
    npm_config_registry: registryUrl,
    npm_config_cache: path.join(directory, 'cache'),
    // The unknown settings make npm warn on stderr, as it does on many real machines.
    npm_config_userconfig: path.join(directory, 'npmrc'),
    npm_config_fetch_retries: '0',
    NO_PROXY: '127.0.0.1',
  };
}

/** Creates a directory with `node_modules/@test/data`. */
function installed(version: string, files: Record<string, string>, root = scratchDir()): string {
  const directory = path.join(root, 'node_modules', NAME);
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ name: NAME, version }));
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(directory, name), content);
  return root;
}

describe('fetch from npm', () => {
  it('takes the named files, and downloads each version once', async () => {
    const dataDir = scratchDir();
    const versions = [{ version: '2.3.9', tarball: await makeTarball({ 'a.csv': 'a1', 'in/b.csv': 'b1', c: 'c1' }) }];
    const { env, tarballs } = await registry(versions);
    const get = async () => {
      const { output } = await runFetch([npm(`${NAME}@latest`, ['a.csv', 'in/b.csv'])], dataDir, { env });
      return { ...output[0], texts: textsOf(output[0]) };
    };
    const first = { version: '2.3.9', texts: { 'a.csv': 'a1', 'in/b.csv': 'b1' } };
    expect(await get()).toMatchObject({ ...first, from: 'network' });
    expect(await get()).toMatchObject({ ...first, from: 'cache' });
    expect(tarballs()).toBe(1);
    versions.push({ version: '2.3.10', tarball: await makeTarball({ 'a.csv': 'a2', 'in/b.csv': 'b2' }) });
    expect(await get()).toMatchObject({
      version: '2.3.10',
      texts: { 'a.csv': 'a2', 'in/b.csv': 'b2' },
      from: 'network',
    });
  });

  it('resolves a range to the newest version, compared by number', async () => {
    const tarball = Buffer.from('x');
    const versions = ['2.3.10', '2.3.9', '3.0.0'].map((version) => ({ version, tarball }));
    const context = await npmContext(versions);
    const resolved = await resolvePackage(`${NAME}@^2.3.0`, context);
    expect(resolved).toEqual({ name: NAME, version: '2.3.10', integrity: integrityOf(tarball), publishedAt: '' });
  });

  it('refuses a tarball that differs from the resolved one or is too large', async () => {
    const tarball = await makeTarball({ 'a.csv': 'text' });
    const context = await npmContext([{ version: '1.0.0', tarball }]);
    const other = integrityOf(Buffer.from('other'));
    const pack = (integrity: string, maxBytes: number) =>
      packPackage({ name: NAME, version: '1.0.0', integrity, publishedAt: '' }, context, maxBytes);
    // npm accepts it: the registry changed between the request of ipatlas and that of npm.
    const message = `its tarball is not the one the registry described: expected ${other}, got ${integrityOf(tarball)}`;
    await expect(pack(other, tarball.length)).rejects.toThrow(message);
    await expect(pack(integrityOf(tarball), tarball.length - 1)).rejects.toThrow(`more than ${tarball.length - 1}`);
    expect(readFileSync(await pack(`sha1-x ${integrityOf(tarball)}`, tarball.length))).toEqual(tarball);
  });

  it('refuses a tarball that npm refuses', async () => {
    const tarball = await makeTarball({ 'a.csv': 'text' });
    const { env } = await registry([{ version: '1.0.0', tarball, integrity: integrityOf(Buffer.from('x')) }]);
    const error = await atlasError(runFetch([npm(NAME)], scratchDir(), { env }));
    expect(error.message).toMatch(/cannot get @test\/data: npm: EINTEGRITY: .*The current release stays current$/);
  });

  it('refuses a package without integrity', async () => {
    const tarball = await makeTarball({ 'a.csv': 'text' });
    const { env } = await registry([{ version: '1.0.0', tarball, integrity: '' }]);
    const error = await atlasError(runFetch([npm(NAME)], scratchDir(), { env }));
    expect(error.message).toContain('the registry gives no integrity for it');
  });

  it('reports the reason of npm for a missing package', async () => {
    const { env } = await registry([]);
    const error = await atlasError(runFetch([npm('@test/absent')], scratchDir(), { env }));
    expect(error).toMatchObject({ code: 'E_FETCH', exitCode: 6 });
    expect(error.message).toMatch(/^source "test": cannot get @test\/absent: npm: E404: /);
  });

  it('reports that npm is missing or does not end', async () => {
    const bin = scratchDir();
    symlinkSync('/bin/sh', path.join(bin, 'sh'));
    const missing = await atlasError(runFetch([npm(NAME)], scratchDir(), { env: { PATH: bin } }));
    expect(missing.message).toContain('npm is not on the PATH');
    const { url } = await serve(() => {});
    const limits = { npmTimeoutMs: 800 };
    const endless = await atlasError(runFetch([npm(NAME)], scratchDir(), { env: npmEnv(url), limits }));
    expect(endless.message).toContain('npm was ended by SIGTERM; its limit is 0.8 s');
  });
});

describe('takeFromTarball', () => {
  /** Unpacks files of a tarball; returns text by name. */
  async function take(tarball: Buffer, wanted: string[], max = 1_000_000, directory = scratchDir()) {
    const file = path.join(directory, 'x.tgz');
    writeFileSync(file, tarball);
    return textsOf({ files: await takeFromTarball(directory, file, wanted, directory, max) });
  }

  it('lists the content of a package if a file is missing, and refuses links', async () => {
    const tarball = await makeTarball({ 'b.csv': 'text', 'in/c.csv': '' }, (directory) => {
      symlinkSync('/etc/hostname', path.join(directory, 'a.csv'));
    });
    expect(await take(tarball, ['b.csv'])).toEqual({ 'b.csv': 'text' });
    const message = /no file "a\.csv", "d" in it; the package contains "b\.csv", "in\/c\.csv"$/;
    await expect(take(tarball, ['a.csv', 'b.csv', 'd'])).rejects.toThrow(message);
  });

  it('takes nothing from outside the package', async () => {
    const directory = scratchDir();
    mkdirSync(path.join(directory, 'in'));
    writeFileSync(path.join(directory, 'evil.csv'), 'evil');
    const file = path.join(directory, 'evil.tgz');
    await create({ file, cwd: path.join(directory, 'in'), gzip: true, preservePaths: true }, [
      '../evil.csv',
      '../in/../evil.csv',
    ]);
    const tarball = readFileSync(file);
    // The first part of a path is removed, as npm does; a wanted name with `..` matches nothing.
    await expect(take(tarball, ['in/../evil.csv'])).rejects.toThrow();
    expect(await take(tarball, ['evil.csv'])).toEqual({ 'evil.csv': 'evil' });
  });

  it('limits the unpacked size of all wanted files together', async () => {
    const content = { 'a.csv': 'x'.repeat(600), 'b.csv': 'x'.repeat(600), 'c.csv': 'x'.repeat(600) };
    const tarball = await makeTarball(content);
    expect(Object.keys(await take(tarball, ['a.csv', 'b.csv'], 1200))).toEqual(['a.csv', 'b.csv']);
    const directory = scratchDir();
    await expect(take(tarball, ['a.csv', 'b.csv'], 1199, directory)).rejects.toThrow(
      'it unpacks to more than 1199 bytes',
    );
    // Content above the limit is not written at all.
    expect(readdirSync(path.join(directory, 'unpacked'))).toEqual(['a.csv']);
  });

  it.each([
    ['random text', Buffer.from('no tarball at all, though long enough to be one '.repeat(30))],
    ['nothing', Buffer.alloc(0)],
  ])('refuses %s', async (_what, tarball) => {
    await expect(take(tarball, ['a.csv'])).rejects.toThrow();
  });
});

describe('npm sources offline', () => {
  it('come from the cache, else from node_modules', async () => {
    const dataDir = scratchDir();
    const { env } = await registry([{ version: '2.0.0', tarball: await makeTarball({ 'a.csv': 'cached' }) }]);
    const packageRoot = installed('1.0.0', { 'a.csv': 'pinned' });
    const run = () => runFetch([npm(`${NAME}@latest`)], dataDir, { offline: true, packageRoot });

    const pinned = await run();
    expect(pinned.output[0]).toMatchObject({ from: 'pinned', version: '1.0.0' });
    expect(textsOf(pinned.output[0])).toEqual({ 'a.csv': 'pinned' });
    // The file is copied into the cache, so that a row can be read again by the hash of its file.
    expect(pinned.output[0]?.files[0]?.path).toBe(objectPath(dataDir, pinned.output[0]?.files[0]?.sha256 ?? ''));

    await runFetch([npm(`${NAME}@latest`)], dataDir, { env });
    const cached = await run();
    expect(cached.output[0]).toMatchObject({ from: 'cache', version: '2.0.0' });
    expect(textsOf(cached.output[0])).toEqual({ 'a.csv': 'cached' });

    writeFileSync(cached.output[0]?.files[0]?.path ?? '', 'damaged');
    const fallback = await run();
    expect(fallback.output[0]?.from).toBe('pinned');
    expect(fallback.notes).toContain('test: the cached copy is damaged, so it is not used');
    expect(fallback.counts).toMatchObject({ pinned: 1, cache: 0, network: 0 });

    const error = await atlasError(runFetch([npm(NAME)], dataDir, { offline: true, packageRoot: scratchDir() }));
    expect(error).toMatchObject({ code: 'E_FETCH', exitCode: 6 });
    expect(error.message).toMatch(/no usable copy in the cache or node_modules; build once without --offline/);
  });

  it('name a file that the pinned copy lacks', async () => {
    const packageRoot = installed('1.0.0', { 'b.csv': '' });
    const error = await atlasError(runFetch([npm(NAME)], scratchDir(), { offline: true, packageRoot }));
    expect(error.message).toContain('there is no file "a.csv" in it');
  });

  it('come from the packages that this repository pins', async () => {
    const spec = '@ip-location-db/asn-country@latest';
    const { output } = await runFetch([npm(spec, ['NRO_LICENSE'])], scratchDir(), { offline: true });
    expect(output[0]).toMatchObject({ from: 'pinned', version: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
  });
});

describe('findPinned', () => {
  const find = async (spec: string, root: string) =>
    (await findPinned({ kind: 'npm', spec, files: [] }, root))?.version;

  it('finds a copy in or above the root: nested, hoisted, or next to it', async () => {
    const project = installed('1.0.0', {});
    const root = path.join(project, 'node_modules', 'ipatlas');
    mkdirSync(root, { recursive: true });
    expect(await find(NAME, project)).toBe('1.0.0');
    expect(await find(NAME, root)).toBe('1.0.0');
    installed('2.0.0', {}, root);
    expect(await find(NAME, root)).toBe('2.0.0');
    expect(await find('@test/other', root)).toBeUndefined();
  });

  it.each([
    ['', true],
    ['@latest', true],
    ['@next', true],
    ['@1.2.3', true],
    ['@1.2.4', false],
    ['@v1.2.4', false],
    ['@^1.2.0', false],
    ['@1', false],
    ['@>=1', false],
  ])('returns the version for the spec "%s": %s', async (selector, found) => {
    const root = installed('1.2.3', {});
    expect(await find(`${NAME}${selector}`, root)).toBe(found ? '1.2.3' : undefined);
  });
});
