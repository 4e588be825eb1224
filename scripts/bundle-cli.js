/**
 * Bundles the compiled command line and the worker thread of `enrich`. Run by "npm run build".
 *
 * Loading a module takes about half a millisecond, and a command has up to eighty. So dist/src/cli/main.js becomes a bundle, split
 * by what the commands share; dependencies stay outside. The commands that process records are one file,
 * dist/src/cli/record-commands.cjs; src/cli/start.cts says why.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const folder = fileURLToPath(new URL('../dist/src/cli', import.meta.url));
const schedule = fileURLToPath(new URL('../dist/src/enrich/schedule', import.meta.url));
const isPackage = (id) => !/^[./]/.test(id) && !id.startsWith('@oxc-project/runtime/');

const records = await rolldown({
  input: join(folder, 'record-commands.js'),
  platform: 'node',
  // What needs libraries stays in files of its own: JSON documents, and names of logs that users have. leven is in the bundle,
  // since CommonJS cannot load ES modules on all versions of Node.
  external: (id) => (isPackage(id) && id !== 'leven') || /\/enrich\/(formats\/document|logs-file)\.js$/.test(id),
});
await records.write({
  file: join(folder, 'record-commands.cjs'),
  format: 'cjs',
  codeSplitting: false,
  comments: false,
});

const worker = await rolldown({ input: join(schedule, 'worker.js'), platform: 'node', external: isPackage });
await worker.write({ file: join(schedule, 'worker.cjs'), format: 'cjs', comments: false });

const all = await rolldown({ input: join(folder, 'main.js'), platform: 'node', external: isPackage });
rmSync(join(folder, 'chunks'), { recursive: true, force: true });
await all.write({
  dir: folder,
  entryFileNames: 'main.js',
  chunkFileNames: 'chunks/[name]-[hash].js',
  comments: false,
});
