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

/** What the page never calls: it hides no addresses, adds no members and counts no networks. */
const UNCALLED = /\/(package-root|address-cipher|redaction|inline|rows|country\/(continents|memberships))\.js$/;

/** Files of the commands that read the package's files, and what the page has in their place; what it never calls is empty. */
const replaced = {
  name: 'replaced',
  resolveId(id) {
    if (id === 'node:string_decoder') return { id, external: true };
    if (/\/(?:known-logs|kernel\/module)\.js$/.test(id)) return join(source, 'package.ts');
    return /^node:/.test(id) || UNCALLED.test(id) ? { id: `\0uncalled ${id}`, moduleSideEffects: false } : undefined;
  },
  load(id) {
    if (!id.startsWith('\0uncalled ')) return undefined;
    const unused = [
      'readFileSync',
      'endianness',
      'packageFile',
      'addressCipher',
      'asNumbers',
      'bracketTemplate',
      'columnValues',
      'continentTable',
      'countedNetworks',
      'inlineFormat',
      'isInEea',
      'membershipDays',
      'parseTemplate',
      'readMemberships',
    ];
    const constants = unused.map((name) => `${name} = undefined`).join(', ');
    return `export const ${constants}; export function parseRedaction() {}; export function placeRows() {}`;
  },
};

/** Contents of the files, by their names in the folder. */
const files = new Map();

/**
 * Packs a script with all that it imports, in a file; what it imports when it runs is in files of its own. The data of @ipatlas/lookup
 * stays outside: the server has newer data.
 */
async function pack(name) {
  const bundle = await rolldown({
    input: join(source, `${name}.ts`),
    platform: 'browser',
    external: /\/data\.js$/,
    plugins: [replaced, slimLogs],
    transform: { inject: { Buffer: [join(source, 'buffer.ts'), 'Buffer'] } },
  });
  const { output } = await bundle.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    minify: true,
    comments: false,
  });
  await bundle.close();
  for (const { fileName, code } of output) files.set(fileName, Buffer.from(code));
}

for (const name of ['lookup', 'worker', 'developers']) await pack(name);
for (const name of ['page.css', 'no-script.css', 'icon.svg']) files.set(name, readFileSync(join(source, name)));
files.set('world.svg', readFileSync(join(root, 'dist/page/world.svg')));
files.set('kernel.wasm', readFileSync(join(root, 'dist/src/enrich/kernel/kernel-page.wasm')));

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
