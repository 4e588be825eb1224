/**
 * Bundles the compiled command line and the worker thread of `enrich`. Run by "npm run build".
 *
 * Loading a module takes about half a millisecond, and a command has up to eighty. So dist/src/cli/main.js becomes a bundle, split
 * by what the commands share; dependencies stay outside. The command lookup and the commands that process records are one file
 * each, lookup-command.cjs and record-commands.cjs; src/cli/start.cts says why.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const folder = fileURLToPath(new URL('../dist/src/cli', import.meta.url));
const schedule = fileURLToPath(new URL('../dist/src/enrich/schedule', import.meta.url));
const isPackage = (id) => !/^[./]/.test(id) && !id.startsWith('@oxc-project/runtime/');

for (const name of ['lookup-command', 'record-commands']) {
  const commands = await rolldown({
    input: join(folder, `${name}.js`),
    platform: 'node',
    // What few need stays in files of its own: JSON documents, names of logs that users have, and in lookup past days. leven is
    // in the bundle, since CommonJS cannot load ES modules on all versions of Node.
    external: (id) =>
      (isPackage(id) && id !== 'leven') ||
      /\/enrich\/(formats\/document|logs-file)\.js$/.test(id) ||
      (name === 'lookup-command' && id.endsWith('/history/open.js')),
  });
  const file = join(folder, `${name}.cjs`);
  // Names and lines stay, for the stack of an error.
  const minify = { compress: true, mangle: false, codegen: { removeWhitespace: false } };
  await commands.write({ file, format: 'cjs', codeSplitting: false, comments: false, minify });
  // V8 keeps text beyond Latin-1 in two bytes per character, and takes longer for all of it. What there is, is in literals.
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const code = readFileSync(file, 'utf8').replaceAll(/[^\0-\x7f]/g, escaped);
  // Compiled code that was stored cannot import anything itself; see src/cli/start.cts.
  const imports = 'exports.importModule = (name) => import(name);\n';
  writeFileSync(file, code.replaceAll(/\bimport\(/g, 'exports.importModule(') + imports);
}

const worker = await rolldown({ input: join(schedule, 'worker.js'), platform: 'node', external: isPackage });
await worker.write({ file: join(schedule, 'worker.cjs'), format: 'cjs', comments: false });

const all = await rolldown({
  input: join(folder, 'main.js'),
  platform: 'node',
  external: isPackage,
  // No module is imported for what it does: a command loads of pipeline/index.ts only what it calls.
  treeshake: { moduleSideEffects: false },
});
rmSync(join(folder, 'chunks'), { recursive: true, force: true });
await all.write({
  dir: folder,
  entryFileNames: 'main.js',
  chunkFileNames: 'chunks/[name]-[hash].js',
  comments: false,
});
