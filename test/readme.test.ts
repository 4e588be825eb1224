import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { speedTable } from '../bench/readme.js';
import { scalePage } from '../bench/scale-page.js';
import { programsPage } from '../programs/page.js';
import { allFlags } from '../src/cli/command-line.js';
import { loadCommands } from '../src/cli/commands.js';
import { commandReference } from '../src/cli/manual.js';
import { REASONS } from '../src/country/assignment.js';
import { ERROR_TABLE, EXIT } from '../src/errors.js';
import { packageFile, packageRoot } from '../src/package-root.js';

const read = (path: string): string => readFileSync(packageFile(path), 'utf8');
const DOCS = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(packageFile('docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
const reference = read('docs/reference.md');

function typescriptFiles(folder: string): string[] {
  const files = readdirSync(join(packageRoot(), folder), { recursive: true, encoding: 'utf8' });
  return files.filter((file) => file.endsWith('.ts')).map((file) => `${folder}/${file}`);
}

/** The anchors of a Markdown file, made from its headings as GitHub does. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
}

describe('the documentation', () => {
  it('has every command and every flag, as the help pages have them', async () => {
    const commands = read('docs/commands.md');
    expect(commands, 'run "npm run docs"').toBe(await commandReference());
    for (const { name, command } of await loadCommands()) {
      const section = commands.split(`\n## ipatlas ${name}\n`)[1]?.split('\n## ')[0];
      for (const flag of Object.keys(allFlags(command))) expect(section, `--${flag} of ${name}`).toContain(`--${flag}`);
    }
  });

  it('has the defaults of the gates, and so has the schema', async () => {
    const { guideWithDefaults, schemaWithDefaults } = await import(packageFile('scripts/gate-defaults.js'));
    for (const [name, change] of [
      ['docs/rebuild.md', guideWithDefaults],
      ['schemas/sources.schema.json', schemaWithDefaults],
    ])
      expect(read(name), 'run "npm run docs"').toBe(change(read(name)));
  });

  it('has every error code, exit code and reason', () => {
    for (const [code, { meaning }] of Object.entries(ERROR_TABLE))
      expect(reference).toContain(`| \`${code}\` | ${meaning} |`);
    for (const exit of Object.values(EXIT)) expect(reference).toMatch(new RegExp(`^\\| ${exit} \\|`, 'm'));
    for (const [reason, meaning] of Object.entries(REASONS))
      expect(reference).toContain(`| \`${reason}\` | ${meaning} |`);
  });

  it('has every environment variable that the code reads', () => {
    const names = [...typescriptFiles('src'), ...typescriptFiles('pipeline')].flatMap((file) =>
      [...read(file).matchAll(/\benv\.([A-Z][A-Z_]+)/g)].map(([, name]) => name!),
    );
    expect(names).toContain('IPATLAS_DATA');
    // SUDO_USER only names the user in a manifest.
    for (const name of new Set(names)) if (name !== 'SUDO_USER') expect(reference).toContain(`\`${name}\``);
    for (const name of ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY']) expect(reference).toContain(`\`${name}\``);
  });

  it('has the figures of the last make bench, which also writes them', () => {
    const table = speedTable(JSON.parse(read('bench/results.json')));
    expect(read('README.md'), 'run "node bench/readme.js"').toContain(table);
  });

  it('has the programs as they ran last', () => {
    const page = programsPage(JSON.parse(read('programs/results.json')));
    expect(read('docs/programs.md'), 'run "node programs/page.js"').toBe(page);
  });

  it('has the tables of docs/scale.md that follow from the figures and the assumptions', () => {
    const page = read('docs/scale.md');
    const [results, assumptions] = ['results', 'assumptions'].map((name) => JSON.parse(read(`bench/${name}.json`)));
    expect(scalePage(page, results, assumptions), 'run "node bench/scale-page.js"').toBe(page);
    assumptions.busyShare.value /= 2;
    expect(scalePage(page, results, assumptions)).not.toBe(page);
  });

  it('says what the readers of an export need that do not take the default', () => {
    const exports = read('docs/exports.md');
    const line = (reader: string) => exports.split('\n').find((text) => text.includes(reader));
    expect(line('`GeoIP2::Database::Reader`')).toContain('`ipatlas export mmdb --database-type GeoLite2-Country`');
    expect(line('`geoip2-golang`')).toContain('`ipatlas export mmdb --database-type GeoLite2-Country`');
    expect(line('BIND')).toContain('the file name `GeoIP2-Country.mmdb`');
    const postgres = exports.split('\n## PostgreSQL\n')[1]?.split('\n## ')[0];
    expect(postgres).toContain('Use an SP-GiST index');
    expect(postgres).toContain('USING spgist (network inet_ops)');
  });

  it('has the examples for web servers as they are run', () => {
    for (const name of ['express', 'fastify', 'next-proxy']) {
      const code = read(`examples/${name}.mjs`).replace(/^.*\n/, '');
      expect(read('docs/library.md')).toContain(`\`\`\`js\n${code}\`\`\`\n`);
    }
  });

  it('has every target of the Makefile', () => {
    const targets = [...read('Makefile').matchAll(/^([a-z]+):.*##/gm)].map(([, target]) => target!);
    expect(targets).toEqual(
      expect.arrayContaining(['run', 'test', 'check', 'soak', 'db', 'bench', 'clean', 'distclean']),
    );
    const text = DOCS.map(read).join('\n');
    for (const target of targets)
      if (!['install', 'compile'].includes(target)) expect(text).toContain(`make ${target}`);
  });

  it.each(DOCS)('%s: every link leads to a file and a heading that exist', (file) => {
    for (const [, path, anchor] of read(file).matchAll(/\]\((?!http|mailto)([^)#]*)(?:#([^)]+))?\)/g)) {
      const target = path === '' ? file : join(dirname(file), path!);
      expect(existsSync(packageFile(target)), `${file}: ${path}`).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(read(target)), `${file}: #${anchor}`).toContain(anchor);
    }
  });

  it('gives the limits that the code has', async () => {
    const { FILES_WITH_LIMITS, withLimits } = await import(packageFile('scripts/limit-texts.js'));
    for (const file of FILES_WITH_LIMITS) expect(read(file), 'run "npm run docs"').toBe(withLimits(file, read(file)));
    expect(() => withLimits('docs/bulk.md', 'another text')).toThrow('does not have');
  });

  it('README names the commands of a fresh clone', () => {
    for (const target of ['run', 'test']) expect(read('README.md')).toMatch(new RegExp(`^make ${target} `, 'm'));
  });

  it('README says that npm does not have it yet, until the changelog has the date of a release', () => {
    const [, heading] = /^## (.*)$/m.exec(read('CHANGELOG.md'))!;
    const isReleased = /, \d{4}-\d{2}-\d{2}$/.test(heading!);
    expect(read('README.md').includes('<!-- until the first release -->')).toBe(!isReleased);
  });

  it('README stays short', () => {
    expect(read('README.md').split('\n').length).toBeLessThan(180);
  });
});
