/** Builds the site: writes the pages, then lets VitePress make HTML of them. Run by `make site`. */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application } from 'typedoc';
import { build } from 'vitepress';
import { openApiDocument } from '../dist/src/api/openapi.js';
import { referenceHtml } from '../dist/src/api/page/reference-html.js';
import { terminalPicture } from './terminal.js';

const site = fileURLToPath(new URL('.', import.meta.url));
const root = join(site, '..');
const pages = join(site, 'pages');
const REPOSITORY = 'https://github.com/ipatlas/ipatlas/blob/main';

const read = (path) => readFileSync(join(root, path), 'utf8');

/** Writes the guides. Links to files that are no guides lead to the repository. */
function writeGuides() {
  for (const name of readdirSync(join(root, 'docs'))) {
    if (!name.endsWith('.md')) copyFileSync(join(root, 'docs', name), join(pages, name));
    else writeFileSync(join(pages, name), read(`docs/${name}`).replaceAll('](../', `](${REPOSITORY}/`));
  }
  const readme = read('README.md')
    .replace(/^# ipatlas$/m, '# Start')
    .replaceAll(/\]\((?!https?:|#)(docs\/)?([^)]+)\)/g, (_, isGuide, path) =>
      isGuide === undefined ? `](${REPOSITORY}/${path})` : `](./${path})`,
    );
  writeFileSync(join(pages, 'start.md'), readme);
}

/** Writes the reference of the API, the same as at /docs of a server. */
function writeApiReference() {
  const document = openApiDocument({});
  writeFileSync(join(pages, 'openapi.json'), JSON.stringify(document, null, 2));
  const body = referenceHtml(document).text.replaceAll('href="openapi.json"', `href="${REPOSITORY}/docs/api.md"`);
  writeFileSync(
    join(pages, 'http-reference.md'),
    `# Reference of the API\n\n<div v-pre class="reference">\n${body.replaceAll(/\n\s*\n/g, '\n')}\n</div>\n`,
  );
}

/** Writes the reference of the library from its types. */
async function writeLibraryReference() {
  const entry = (path) => join(root, path);
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    name: 'Reference of the library',
    entryPoints: ['src/index.ts', 'src/client/client.ts', 'src/lookup/index.ts'].map(entry),
    tsconfig: entry('tsconfig.json'),
    skipErrorChecking: true,
    excludeInternal: true,
    excludePrivate: true,
    disableSources: true,
    readme: 'none',
    hideBreadcrumbs: true,
    hidePageHeader: true,
    entryFileName: 'index',
    logLevel: 'Error',
    // Otherwise it empties docs/, which is its default.
    out: join(pages, 'library-reference'),
    cleanOutputDir: false,
  });
  const project = await application.convert();
  if (project === undefined) throw new Error('typedoc cannot read the sources');
  await application.generateOutputs(project);
}

/** Returns the figures of the last `make bench` as Markdown. */
function benchmarks() {
  const { day, machine, parts } = JSON.parse(read('bench/results.json'));
  const rows = Object.values(parts)
    .flat()
    .filter(({ goal }) => goal !== '')
    .map(({ name, value, goal }) => `| ${name} | ${value} | ${goal} |`);
  if (rows.length === 0) return '';
  return `## How fast\n\n\`make bench\` compares with what you would use instead, in one run on one machine. The last one: ${day}, ${machine}.\n\n| | measured | goal |\n|---|---:|---|\n${rows.join('\n')}\n`;
}

rmSync(pages, { recursive: true, force: true });
mkdirSync(join(pages, 'public'), { recursive: true });
writeGuides();
writeApiReference();
await writeLibraryReference();
writeFileSync(
  join(pages, 'index.md'),
  readFileSync(join(site, 'index.md'), 'utf8').replace('<!-- benchmarks -->', benchmarks()),
);
writeFileSync(join(pages, 'terminal.svg'), terminalPicture(root));
copyFileSync(join(root, 'src/page/icon.svg'), join(pages, 'public/icon.svg'));
await build(site);
// VitePress 1 writes absolute paths: opened as files, or in another folder, the pages have no styles.
const base = process.env.SITE_BASE ?? '/ipatlas/';
console.log(`The site is in site/dist, made for ${base} of a server (SITE_BASE=/other/ make site: for another folder).
To look at it: npx --prefix site vitepress preview site, then open http://localhost:4173${base}`);
