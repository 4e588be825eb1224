/**
 * Bundles the compiled command line and the worker thread of `enrich`. Run by "npm run build".
 *
 * Loading a module takes about half a millisecond, and a command has up to eighty. So dist/src/cli/main.js becomes a bundle, split
 * by what the commands share; dependencies stay outside.
 *
 * The commands that process records are one file, dist/src/cli/record-commands.cjs. It is CommonJS, because that starts 10 ms
 * sooner: Node's loader of ES modules need not start, and an ES module that imports from a module of Node evaluates all its
 * exports, the lazy ones included (node:fs then loads the streams).
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const folder = fileURLToPath(new URL('../dist/src/cli', import.meta.url));
const schedule = fileURLToPath(new URL('../dist/src/enrich/schedule', import.meta.url));
const isPackage = (id) => !/^[./]/.test(id) && !id.startsWith('@oxc-project/runtime/');

/**
 * Makes each `require` of a module of Node happen when it is first used: a run that reads a file never loads the network.
 *
 * @param code of a CommonJS file as rolldown writes it
 */
function requireWhenUsed(code) {
  // By name: the conversion of a module that is imported as a whole.
  const conversions = new Map();
  let lazy = code.replaceAll(/^(node_\w+) = (__toESM)\(\1, 1\);\n/gm, (_, name, convert) => {
    conversions.set(name, convert);
    return '';
  });
  const names = [];
  lazy = lazy.replaceAll(/^let (node_\w+) = (require\("node:[\w/]+"\));$/gm, (_, name, required) => {
    names.push(name);
    const value = conversions.has(name) ? `${conversions.get(name)}(${required}, 1)` : required;
    return `let ${name}_;\nconst ${name} = () => (${name}_ ??= ${value});`;
  });
  for (const name of names) {
    lazy = lazy.replaceAll(new RegExp(`\\bnew ${name}\\.(\\w+)`, 'g'), `new (${name}().$1)`);
    lazy = lazy.replaceAll(new RegExp(`\\b${name}\\.`, 'g'), `${name}().`);
  }
  return lazy;
}

// V8 would take the code of an earlier file of the same length for that of the new one.
for (const name of readdirSync(folder)) if (name.endsWith('.compiled')) rmSync(join(folder, name));

const records = await rolldown({
  input: join(folder, 'record-commands.js'),
  platform: 'node',
  // JSON documents are left to main.js. leven is in the bundle, since CommonJS cannot load ES modules on all versions of Node.
  external: (id) => (isPackage(id) && id !== 'leven') || /\/formats\/json(-items)?\.js$/.test(id),
  plugins: [{ name: 'require-when-used', renderChunk: requireWhenUsed }],
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
