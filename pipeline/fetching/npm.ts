/**
 * Fetches npm packages: npm resolves and downloads, and the files are taken from the checked tarball. npm itself is used
 * and not `pacote`, because only npm reads the user's `.npmrc` (registry, proxy, credentials) as the user expects.
 */
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { extract } from 'tar';
import { $, type ProcessOutput } from 'zx';
import type { NpmPlace } from '../config/sources.js';
import type { FetchedFile } from '../stage.js';
import { hashFile, storeObject } from './cache.js';
import { listed } from './unpack.js';

/** How npm is run. */
export interface NpmContext {
  /** Working directory, empty: npm reads the `.npmrc` of the directories above it, but no package's files. */
  workDir: string;
  env: NodeJS.ProcessEnv;
  timeoutMs: number;
}

/** A package as the registry describes it. */
export interface ResolvedPackage {
  name: string;
  version: string;
  /** Subresource Integrity of its tarball. */
  integrity: string;
  /** When the registry received it, ISO 8601; empty if the registry does not say. */
  publishedAt: string;
}

/**
 * Asks the registry for the package of a spec.
 *
 * @param spec `name`, `name@tag` or `name@version`; of several matching versions, the newest
 * @throws Error with npm's reason
 */
export async function resolvePackage(spec: string, context: NpmContext): Promise<ResolvedPackage> {
  const answer: unknown = JSON.parse(await runNpm(['view', '--json', '--', spec], context));
  const found = newest((Array.isArray(answer) ? answer : [answer]) as PackageView[]);
  if (typeof found?.name !== 'string' || typeof found.version !== 'string') {
    throw new Error('npm view does not report its name and version');
  }
  if (typeof found.dist?.integrity !== 'string') throw new Error('the registry gives no integrity for it');
  const publishedAt = found.time?.[found.version];
  return {
    ...{ name: found.name, version: found.version, integrity: found.dist.integrity },
    publishedAt: typeof publishedAt === 'string' ? publishedAt : '',
  };
}

/** What `npm view --json` prints for a version, as far as it is used. All of it is untrusted. */
interface PackageView {
  name?: unknown;
  version?: unknown;
  dist?: { integrity?: unknown };
  time?: Record<string, unknown>;
}

/** Returns the highest version; npm lists several in no defined order. */
function newest(views: PackageView[]): PackageView | undefined {
  const order = new Intl.Collator('en', { numeric: true });
  return views.toSorted((a, b) => order.compare(String(a.version), String(b.version))).at(-1);
}

/**
 * Downloads a package and checks its integrity.
 *
 * @returns path of the tarball
 * @throws Error with the reason
 */
export async function packPackage(
  { name, version, integrity }: ResolvedPackage,
  context: NpmContext,
  maxBytes: number,
): Promise<string> {
  const { workDir } = context;
  await runNpm(
    ['pack', '--json', '--ignore-scripts', '--pack-destination', workDir, '--', `${name}@${version}`],
    context,
  );
  const fileName = (await readdir(workDir)).find((entry) => entry.endsWith('.tgz'));
  if (fileName === undefined) throw new Error('npm pack made no tarball');
  const tarball = path.join(workDir, fileName);
  const { size } = await stat(tarball);
  if (size > maxBytes) throw new Error(`its tarball has ${size} bytes, more than ${maxBytes}`);
  // npm checks the integrity it got while packing; this is the one that was got while resolving.
  const sha512 = await hashFile(tarball, 'sha512', 'base64');
  if (!integrity.split(/\s+/).includes(`sha512-${sha512}`)) {
    throw new Error(`its tarball is not the one the registry described: expected ${integrity}, got sha512-${sha512}`);
  }
  return tarball;
}

/** Runs npm and returns its output. Warnings go to stderr, which is read only for the reason of a failure. */
async function runNpm(args: string[], { workDir, env, timeoutMs }: NpmContext): Promise<string> {
  // `exec` replaces the shell by npm, so that a signal to the child reaches npm; the timeout of zx needs the tool `ps`.
  const run = $({
    cwd: workDir,
    env,
    nothrow: true,
    quiet: true,
  })`exec npm --loglevel=error --no-update-notifier ${args}`;
  const timer = setTimeout(() => run.child?.kill(), timeoutMs);
  const result = await run.finally(() => clearTimeout(timer));
  if (result.exitCode === 0) return result.stdout;
  throw new Error(npmReason(result, timeoutMs));
}

function npmReason(result: ProcessOutput, timeoutMs: number): string {
  if (result.exitCode === 127) return 'npm is not on the PATH';
  if (result.signal !== null) return `npm was ended by ${result.signal}; its limit is ${timeoutMs / 1000} s`;
  const summary = errorSummary(result.stdout);
  if (summary !== undefined) return summary;
  const lines = result.stderr.split('\n').flatMap((line) => /^npm (?:error|ERR!) (.+)/.exec(line)?.[1] ?? []);
  return lines.slice(0, 2).join(': ') || `npm failed with exit code ${result.exitCode}`;
}

/** Returns npm's description of a failure, which it prints to stdout with `--json`. */
function errorSummary(stdout: string): string | undefined {
  try {
    const { error } = JSON.parse(stdout) as { error?: { code?: string; summary?: string } };
    return error?.summary === undefined ? undefined : `npm: ${error.code ?? 'error'}: ${error.summary.split('\n')[0]}`;
  } catch {
    return undefined;
  }
}

/**
 * Stores the named files of a package's tarball in the cache.
 *
 * @param dataDir the data directory
 * @param tarball path of the tarball, whose integrity has been checked
 * @param wanted paths within the package
 * @param workDir a folder to unpack it in
 * @throws Error if a file is missing, or the files are too large
 */
export async function takeFromTarball(
  dataDir: string,
  tarball: string,
  wanted: readonly string[],
  workDir: string,
  maxUnpackedBytes: number,
): Promise<FetchedFile[]> {
  const directory = path.join(workDir, 'unpacked');
  await mkdir(directory);
  const inPackage: string[] = [];
  let bytes = 0;
  await extract({
    file: tarball,
    cwd: directory,
    strict: true,
    // The first part of every path is a folder, usually `package`, which npm removes as well.
    strip: 1,
    filter: (entryPath, entry) => {
      // Only regular files: a link could lead outside.
      if (!('type' in entry) || !['File', 'OldFile', 'ContiguousFile'].includes(entry.type)) return false;
      const name = entryPath.slice(entryPath.indexOf('/') + 1);
      inPackage.push(name);
      if (!wanted.includes(name)) return false;
      bytes += entry.size;
      return bytes <= maxUnpackedBytes;
    },
  });
  if (bytes > maxUnpackedBytes) throw new Error(`it unpacks to more than ${maxUnpackedBytes} bytes`);
  checkPresent(wanted, (name) => inPackage.includes(name), inPackage);
  return storeAll(dataDir, directory, wanted);
}

function checkPresent(wanted: readonly string[], isThere: (name: string) => boolean, inPackage: string[]): void {
  const missing = wanted.filter((name) => !isThere(name));
  if (missing.length === 0) return;
  const contents = inPackage.length > 0 ? `; the package contains ${listed(inPackage)}` : '';
  throw new Error(`there is no file ${listed(missing)} in it${contents}`);
}

async function storeAll(dataDir: string, directory: string, names: readonly string[]): Promise<FetchedFile[]> {
  const files: FetchedFile[] = [];
  for (const name of names) {
    files.push(await storeObject(dataDir, name, () => [createReadStream(path.join(directory, name))]));
  }
  return files;
}

/** A package that is installed together with ipatlas. */
export interface PinnedPackage {
  directory: string;
  version: string;
}

/**
 * Finds the copy of a package that is installed with ipatlas: in `node_modules` of the package's root or of a directory
 * above it, which is where npm installs dependencies, both in this repository and in a project that depends on ipatlas.
 *
 * @param place a spec with an exact version matches only that version; one with a range matches nothing
 * @param root directory in which the search starts
 * @returns undefined if there is no matching copy
 */
export async function findPinned(place: NpmPlace, root: string): Promise<PinnedPackage | undefined> {
  const { name, selector } = splitSpec(place.spec);
  const directory = searchUpward(root, path.join('node_modules', name));
  if (directory === undefined) return undefined;
  const manifest = JSON.parse(await readFile(path.join(directory, 'package.json'), 'utf8')) as { version?: unknown };
  const version = String(manifest.version ?? '');
  // npm reads `v1.2.3` as a version. Any other word is a tag, which the installed copy may have had.
  const isTag = /^[a-z]/i.test(selector) && !/^v\d/i.test(selector);
  return isTag || selector === version ? { directory, version } : undefined;
}

/** Splits `name@selector`; the default selector is `latest`. */
function splitSpec(spec: string): { name: string; selector: string } {
  const at = spec.indexOf('@', 1);
  return at < 0 ? { name: spec, selector: 'latest' } : { name: spec.slice(0, at), selector: spec.slice(at + 1) };
}

/** Returns the package at the relative path in the nearest directory upward; undefined if there is none. */
function searchUpward(start: string, relative: string): string | undefined {
  for (let directory = path.resolve(start); ; directory = path.dirname(directory)) {
    const candidate = path.join(directory, relative);
    if (existsSync(path.join(candidate, 'package.json'))) return candidate;
    if (directory === path.dirname(directory)) return undefined;
  }
}

/**
 * Stores the named files of an installed package in the cache.
 *
 * @throws Error if a file is missing
 */
export async function takeFromPinned(
  dataDir: string,
  pinned: PinnedPackage,
  wanted: readonly string[],
): Promise<FetchedFile[]> {
  checkPresent(wanted, (name) => existsSync(path.join(pinned.directory, name)), []);
  return storeAll(dataDir, pinned.directory, wanted);
}
