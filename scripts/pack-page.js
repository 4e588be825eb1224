/**
 * Packs the files of the pages into dist/page/assets/<hash>/, each compressed with gzip. Run by "npm run build".
 *
 * The folder is named by a hash of its content, so that browsers can keep the files forever.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = join(root, 'src/page');

/** What the page does not need of the table of logs: where each log is documented, and where its time is. */
const UNUSED = new Set(['$schema', 'page', 'version', 'time']);
const slimLogs = {
  name: 'slim-logs',
  load(id) {
    if (!id.endsWith('/data/logs.json')) return undefined;
    const table = JSON.parse(readFileSync(id, 'utf8'), (key, value) => (UNUSED.has(key) ? undefined : value));
    return { code: JSON.stringify(table), moduleType: 'json' };
  },
};

/** Returns a script with all that it imports. The data of @ipatlas/lookup stays outside: the server has newer data. */
async function bundled(name) {
  const input = join(source, `${name}.ts`);
  const bundle = await rolldown({ input, platform: 'browser', external: /\/data\.js$/, plugins: [slimLogs] });
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false, minify: true, comments: false });
  await bundle.close();
  return Buffer.from(output[0].code);
}

/** Contents of the files, by their names in the folder. */
const files = new Map();
for (const name of ['lookup', 'worker', 'developers']) files.set(`${name}.js`, await bundled(name));
for (const name of ['page.css', 'no-script.css', 'icon.svg']) files.set(name, readFileSync(join(source, name)));
files.set('world.svg', readFileSync(join(root, 'dist/page/world.svg')));

const hash = createHash('sha256');
const names = [...files.keys()].sort();
for (const name of names) hash.update(`${name}\0`).update(files.get(name)).update('\0');

const assets = join(root, 'dist/page/assets');
rmSync(assets, { recursive: true, force: true });
const folder = join(assets, hash.digest('hex').slice(0, 16));
mkdirSync(folder, { recursive: true });
for (const name of names) {
  writeFileSync(join(folder, `${name}.gz`), gzipSync(files.get(name), { level: 9 }));
}
