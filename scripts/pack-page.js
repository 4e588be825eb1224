/**
 * Packs the files of the page into dist/page/assets/<hash>/, each compressed with gzip. Run by "npm run build".
 *
 * The folder is named by a hash of its content, so that browsers can keep the files forever.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const root = fileURLToPath(new URL('..', import.meta.url));
const compiled = join(root, 'dist/page/compiled');
const source = join(root, 'src/page');

/** Paths of the files, by their names in the folder. */
const files = new Map();
for (const name of readdirSync(compiled, { recursive: true, encoding: 'utf8' })) {
  if (statSync(join(compiled, name)).isFile()) files.set(name, join(compiled, name));
}
for (const name of ['page.css', 'icon.svg', 'docs.js']) files.set(name, join(source, name));
// The documentation of the API; its licenses are in NOTICE.
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js'])
  files.set(`swagger/${name}`, join(root, 'node_modules/@fastify/swagger-ui/static', name));
files.set('world.svg', join(root, 'dist/page/world.svg'));

const hash = createHash('sha256');
const names = [...files.keys()].sort();
for (const name of names)
  hash
    .update(`${name}\0`)
    .update(readFileSync(files.get(name)))
    .update('\0');

const assets = join(root, 'dist/page/assets');
rmSync(assets, { recursive: true, force: true });
const folder = join(assets, hash.digest('hex').slice(0, 16));
for (const name of names) {
  const target = join(folder, name);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(`${target}.gz`, gzipSync(readFileSync(files.get(name)), { level: 9 }));
}
rmSync(compiled, { recursive: true });
