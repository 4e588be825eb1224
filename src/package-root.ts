/** Where the package itself lies: its schemas and reference data are files beside the code. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { AtlasError } from './errors.js';

/**
 * The root directory of the package that a module belongs to: the nearest directory upward with a package.json. It is
 * searched rather than counted in `..`, because the same code runs as `src/*.ts` and as `dist/src/*.js`.
 *
 * @param moduleUrl `import.meta.url` of a module in the package; by default of this one
 * @returns an absolute path
 * @throws AtlasError E_FAULT where there is no package.json upward: the installation is not whole
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

/** The absolute path of a file of the package, given relative to its root. */
export function packageFile(relative: string): string {
  return path.join(packageRoot(), relative);
}
