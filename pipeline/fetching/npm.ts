/** Takes files from npm packages that are installed with ipatlas. Nothing is fetched from a registry. */
import { createReadStream, existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { NpmLocation } from '../config/sources.js';
import type { FetchedFile } from '../stage.js';
import { storeObject } from './cache.js';
import { listed } from './unpack.js';

/** A package that is installed together with ipatlas. */
export interface BundledPackage {
  directory: string;
  version: string;
}

/**
 * Finds the copy of a package that is installed with ipatlas: in `node_modules` of the package's root or of a directory
 * above it, which is where npm installs dependencies, both in this repository and in a project that depends on ipatlas.
 *
 * @param location a spec with an exact version matches only that version
 * @param root directory in which the search starts
 * @returns undefined if there is no matching copy
 */
export async function findBundled(location: NpmLocation, root: string): Promise<BundledPackage | undefined> {
  const { name, selector } = splitSpec(location.spec);
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
export async function takeFromBundled(
  dataDir: string,
  bundled: BundledPackage,
  requested: readonly string[],
): Promise<FetchedFile[]> {
  const missing = requested.filter((name) => !existsSync(path.join(bundled.directory, name)));
  if (missing.length > 0) throw new Error(`there is no file ${listed(missing)} in it`);
  const files: FetchedFile[] = [];
  for (const name of requested) {
    files.push(await storeObject(dataDir, name, () => [createReadStream(path.join(bundled.directory, name))]));
  }
  return files;
}
