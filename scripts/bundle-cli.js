/**
 * Replaces the compiled command line, dist/src/cli/main.js, with a bundle. Run by "npm run build".
 *
 * Loading a module takes about half a millisecond, and a command has up to eighty. In the bundle, all modules of the commands that
 * process records are one file. The other commands are split by what they share; dependencies stay outside.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const folder = fileURLToPath(new URL('../dist/src/cli', import.meta.url));
const main = join(folder, 'main.js');
const RECORD_COMMANDS = ['lookup', 'enrich', 'filter', 'summarize'];

/** The modules that these commands and the entry itself import statically. */
const recordModules = new Set();

const bundle = await rolldown({
  input: main,
  platform: 'node',
  // All packages, except what the bundler itself adds.
  external: (id) => !/^[./]/.test(id) && !id.startsWith('@oxc-project/runtime/'),
  plugins: [
    {
      name: 'record-modules',
      buildEnd() {
        const visit = (id) => {
          if (recordModules.has(id)) return;
          recordModules.add(id);
          for (const imported of this.getModuleInfo(id)?.importedIds ?? []) visit(imported);
        };
        for (const name of ['main', ...RECORD_COMMANDS]) visit(join(folder, `${name}.js`));
        recordModules.delete(main);
      },
    },
  ],
});
rmSync(join(folder, 'chunks'), { recursive: true, force: true });
await bundle.write({
  dir: folder,
  entryFileNames: 'main.js',
  chunkFileNames: 'chunks/[name]-[hash].js',
  comments: false,
  codeSplitting: { groups: [{ name: 'records', test: (id) => recordModules.has(id) }] },
});
