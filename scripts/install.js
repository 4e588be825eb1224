/**
 * Installs the packages of the lock file, and the better-sqlite3 that this version of Node needs: the lock file has 12, for
 * Node 20; later versions take 13, which needs no install script. "npm run build" compiles 12, beside everything else.
 * Run by "make install", and by CI on Windows. It needs no package itself.
 */
import { execSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Returns the commands that install everything for a version of Node, such as `20.19`. */
export function installCommands(nodeVersion) {
  if (Number.parseInt(nodeVersion, 10) < 22) return ['npm ci --ignore-scripts'];
  const { dependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  const newest = dependencies['better-sqlite3'].split(' || ').at(-1);
  return ['npm ci --ignore-scripts', `npm install --no-save --ignore-scripts "better-sqlite3@${newest}"`];
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const command of installCommands(process.versions.node)) execSync(command, { stdio: 'inherit', cwd: root });
