/**
 * Makes the package @ipatlas/lookup in dist/lookup: the code as one ES module and its CommonJS twin, the types, and the
 * countries of the seed. Run by "npm run build".
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { writeContainer } from '../dist/src/compact/container.js';
import { REASONS } from '../dist/src/country/assignment.js';
import { compressCompact, manifestOf } from '../dist/src/database/compact.js';
import { readSeed } from '../dist/src/database/seed.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, 'dist/lookup');
const { compact, path } = readSeed();
const manifest = manifestOf(compact, path);
const { version, homepage, repository, bugs, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** The sections that a lookup reads. */
const SECTIONS = ['about', 'country', 'country4', 'country6'];

/** Writes the code. The data stays a module of its own, which `load` imports. */
async function writeCode() {
  const bundle = await rolldown({
    input: join(root, 'dist/src/lookup/index.js'),
    platform: 'neutral',
    external: './data.js',
  });
  const options = { minify: true, comments: false };
  await bundle.write({ ...options, file: join(folder, 'index.js'), format: 'esm' });
  await bundle.write({ ...options, file: join(folder, 'index.cjs'), format: 'cjs' });
}

/** Joins the declarations of the files that define the interface; only the package's own names are left. */
function writeTypes() {
  const reasons = Object.keys(REASONS).map((reason) => `'${reason}'`);
  const text = ['database/results', 'lookup/database', 'lookup/index']
    .map((name) => readFileSync(join(root, `dist/src/${name}.d.ts`), 'utf8'))
    .join('\n')
    .replaceAll(/^(import|export) type \{.*\} from .*\n/gm, '')
    .replaceAll(/^export \{\};\n/gm, '');
  const types = `${text}\n/** Why an address has no country. */\nexport type Reason = ${reasons.join(' | ')};\n`;
  if (/\bfrom '/.test(types))
    throw new Error(`the types of @ipatlas/lookup import a file that is not part of it:\n${types}`);
  writeFileSync(join(folder, 'index.d.ts'), types);
  writeFileSync(join(folder, 'index.d.cts'), types);
}

function writeData() {
  const sections = new Map(SECTIONS.map((name) => [name, compact.container.section(name)]));
  const data = compressCompact(writeContainer(sections), 'gzip').toString('base64');
  writeFileSync(join(folder, 'data.js'), `export default '${data}';\n`);
}

function writePackage() {
  const content = {
    name: '@ipatlas/lookup',
    version,
    description:
      'The country of any IPv4 or IPv6 address, exact, in half a megabyte: browsers, workers, Node.js, Deno, Bun.',
    keywords: ['ip', 'ipv4', 'ipv6', 'geolocation', 'country', 'geoip', 'browser', 'worker', 'edge'],
    license,
    homepage,
    repository,
    bugs,
    type: 'module',
    sideEffects: false,
    exports: {
      '.': {
        require: { types: './index.d.cts', default: './index.cjs' },
        types: './index.d.ts',
        default: './index.js',
      },
      './package.json': './package.json',
    },
    files: ['*.js', '*.cjs', '*.d.ts', '*.d.cts', 'LICENSES', 'NOTICE'],
    // npm does not publish a private package: a seed of a clone must not be shipped.
    ...(manifest.not_for_publication !== undefined && { private: true }),
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(content, null, 2)}\n`);
  mkdirSync(join(folder, 'LICENSES'));
  for (const name of ['LICENSE', 'NOTICE', 'LICENSES/CC-BY-4.0.txt'])
    copyFileSync(join(root, name), join(folder, name));
  copyFileSync(join(root, 'src/lookup/README.md'), join(folder, 'README.md'));
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
await writeCode();
writeTypes();
writeData();
writePackage();
