/** Where the package itself lies: its schemas and reference data are files beside the code. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { AtlasError } from './errors.js';

let root: string | undefined;

/**
 * The root directory of this package: the nearest directory upward with a package.json. It is searched rather than
 * counted in `..`, because the same code runs as `src/*.ts` and as `dist/src/*.js`.
 *
 * @returns an absolute path
 * @throws AtlasError E_FAULT where there is no package.json upward: the installation is not whole
 */
export function packageRoot(): string {
  root ??= findPackageRoot(path.dirname(fileURLToPath(import.meta.url)));
  return root;
}

function findPackageRoot(start: string): string {
  for (let directory = start; ; directory = path.dirname(directory)) {
    if (existsSync(path.join(directory, 'package.json'))) return directory;
    if (directory === path.dirname(directory)) {
      throw new AtlasError('E_FAULT', `no package.json in ${start} or above; install ipatlas again`);
    }
  }
}

/** The absolute path of a file of the package, given relative to its root. */
export function packageFile(relative: string): string {
  return path.join(packageRoot(), relative);
}
