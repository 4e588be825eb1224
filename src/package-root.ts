/** Finds the files of the package itself, such as schemas and reference data. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { AtlasError } from './errors.js';

/**
 * Returns the root directory of the package that contains a module: the nearest parent directory with a package.json. It is
 * searched for, because the same code runs as `src/*.ts` and as `dist/src/*.js`.
 *
 * @param moduleUrl `import.meta.url` of a module in the package; by default of this one
 * @returns an absolute path
 * @throws AtlasError E_FAULT if no parent directory has a package.json: the installation is incomplete
 */
export function packageRoot(moduleUrl: string = import.meta.url): string {
  const start = path.dirname(fileURLToPath(moduleUrl));
  for (let directory = start; ; directory = path.dirname(directory)) {
    if (existsSync(path.join(directory, 'package.json'))) return directory;
    if (directory === path.dirname(directory)) {
      throw new AtlasError('E_FAULT', `no package.json in ${start} or above; install ipatlas again`);
    }
  }
}

let root: string | undefined;

/** Returns the absolute path of a file of the package, given relative to its root. */
export function packageFile(relative: string): string {
  root ??= packageRoot();
  return path.join(root, relative);
}
