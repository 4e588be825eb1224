/** Where the package's own files are: the same code runs as src/*.ts under a test and as dist/src/*.js when installed. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

let root: string | undefined;

/** The directory that holds ipatlas's package.json. */
export function packageRoot(): string {
  if (root === undefined) {
    let dir = dirname(fileURLToPath(import.meta.url));
    while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir);
    root = dir;
  }
  return root;
}

/** The path of a file that ships with the package, such as `schemas/mirror.sql`. */
export function packageFile(relative: string): string {
  return join(packageRoot(), relative);
}
