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
    const limits = (await import('../src/limits.js')) as unknown as Record<string, number>;
    const bulk = read('docs/bulk.md');
    const api = read('docs/api.md');
    const grouped = (name: string, unit = 1) => (limits[name]! / unit).toLocaleString('en-US');
    const MIB = 2 ** 20;
    expect(bulk).toContain(
      `| line of JSON lines, a list, an access log, logfmt or text | ${grouped('MAX_LINE_BYTES', MIB)} MiB;`,
    );
    expect(bulk).toContain(`| nesting of a line, of an item of a JSON document | ${grouped('MAX_JSON_DEPTH')} levels;`);
    expect(bulk).toContain(`| fields in one run | ${grouped('MAX_FIELDS')};`);
    expect(bulk).toContain(`| ${grouped('MAX_PATH_KEYS')}, ${grouped('MAX_KEY_BYTES')} |`);
    expect(bulk).toContain(`| CSV or TSV record | ${grouped('MAX_CSV_RECORD_BYTES', MIB)} MiB;`);
    expect(bulk).toContain(`| item of a JSON document | ${grouped('MAX_JSON_ITEM_BYTES', MIB)} MiB;`);
    expect(bulk).toContain(`| \`--jobs\` | ${grouped('MAX_JOBS')} |`);
    expect(api).toContain(`| addresses in a batch | ${grouped('MAX_BATCH')} |`);
    expect(api).toContain(`| request body | ${grouped('MAX_BODY_BYTES')} bytes |`);
    expect(api).toContain(`| request line and headers | ${grouped('MAX_HEADER_BYTES')} bytes |`);
    expect(api).toContain(`| ${grouped('HEADERS_TIMEOUT_MS', 1000)} s, ${grouped('REQUEST_TIMEOUT_MS', 1000)} s |`);
    expect(api).toContain(`| idle connection | ${grouped('KEEP_ALIVE_TIMEOUT_MS', 1000)} s |`);
    expect(api).toContain(`| addresses in a batch of the page | ${grouped('MAX_PAGE_BATCH')} |`);
    expect(api).toContain(
      `| addresses in a batch of the page that the browser looks up | ${grouped('MAX_BROWSER_BATCH')} |`,
    );
    expect(api).toContain(`| addresses a minute, by the page, of one network | ${grouped('PAGE_RATE')} |`);
    expect(api).toContain(`| key of the page | valid for ${grouped('PAGE_KEY_MS', 1000)} s |`);
    expect(api).toContain(`| addresses a minute of a self-issued key | ${grouped('SIGN_UP_RATE')} |`);
    expect(api).toContain(
      `a /64, a /56, a /48 | ${[64, 56, 48].map((bits) => Object(limits.SIGN_UPS_PER_NETWORK)[bits]).join(', ')} |`,
    );
    expect(reference).toContain(`| text of an address | ${grouped('MAX_ADDRESS_LENGTH')} characters |`);
    expect(reference).toContain(`| sources in a build | ${grouped('MAX_SOURCES')} |`);
    expect(reference).toContain(`| CSV row of a source | ${grouped('MAX_CSV_ROW_BYTES')} bytes |`);
    expect(reference).toContain(
      `${grouped('MAX_LABEL_COLUMNS')} columns and ${grouped('MAX_LABEL_ROWS')} rows in at most 16 files; ${grouped('MAX_LABEL_LENGTH')} characters a value; ${grouped('MAX_LABEL_TEXT')} characters`,
    );
    expect(reference).toContain(`| records of an MMDB source | ${grouped('MAX_MMDB_STEPS')} `);
    expect(reference).toContain(`| releases in a signed repository | ${grouped('REPOSITORY_RELEASES')} |`);
    expect(reference).toContain(
      `${grouped('MAX_METADATA_BYTES', 1024)} KiB; the timestamp ${grouped('MAX_TIMESTAMP_BYTES', 1024)} KiB |`,
    );
    expect(reference).toContain(
      `${grouped('METADATA_TRY_TIMEOUT_MS', 1000)} s for metadata, ${grouped('PULL_TRY_TIMEOUT_MS', 1000)} s for a file`,
    );
    expect(reference).toContain(`that one pull follows | ${grouped('MAX_ROOT_VERSIONS')} |`);
    expect(reference).toContain(
      `| releases kept | ${grouped('KEPT_RELEASES')}, and ${grouped('KEPT_REFUSED')} refused ones |`,
    );
  });

  it('gives the lifetime of the signatures of each role', async () => {
    const { SIGNATURE_DAYS } = await import('../src/limits.js');
    const distribution = read('docs/distribution.md');
    for (const [role, days] of Object.entries(SIGNATURE_DAYS)) {
      expect(distribution).toMatch(new RegExp(`^\\| ${role} \\|.*\\| ${days} days \\|`, 'm'));
    }
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
