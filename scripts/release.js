/**
 * Packs both packages, ipatlas and @ipatlas/lookup, with a list of all that ipatlas depends on (SBOM, CycloneDX), into
 * dist/packages, and publishes them. The release workflow calls it.
 *
 *   node scripts/release.js              a dry run: all of it but the upload, with the seed of the clone
 *   node scripts/release.js --publish    compiles with the data of today, checks that they may be shipped, and publishes
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { publish: { type: 'boolean', default: false } } });
const root = fileURLToPath(new URL('..', import.meta.url));
const read = (name) => readFileSync(join(root, name), 'utf8');
const { version } = JSON.parse(read('package.json'));

const run = (command, ...args) => execFileSync(command, args, { cwd: root, stdio: 'inherit' });

/** @throws Error if the tag or the changelog says something else than package.json */
function checkVersion() {
  const tag = process.env.GITHUB_REF_NAME;
  if (tag !== `v${version}`) throw new Error(`the tag is ${tag}, and package.json has version ${version}`);
  const [, heading] = /^## (.*)$/m.exec(read('CHANGELOG.md'));
  const [released, date] = heading.split(', ');
  if (released !== version || !/^\d{4}-\d{2}-\d{2}$/.test(date))
    throw new Error(`CHANGELOG.md begins with "${heading}"; it must be "${version}, YYYY-MM-DD"`);
}

/** Writes the SBOM of what is installed with ipatlas; @ipatlas/lookup depends on nothing. */
function writeSbom(folder) {
  const omitted = ['dev', 'optional', 'peer'].flatMap((kind) => ['--omit', kind]);
  const text = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', ...omitted], {
    cwd: root,
  });
  writeFileSync(join(folder, `ipatlas-${version}.cdx.json`), text);
}

if (values.publish) {
  checkVersion();
  process.env.IPATLAS_SEED = 'living';
  run('make', 'clean', 'compile');
  run('node', 'scripts/check-publish.js');
}
run('make', 'pack');
const folder = join(root, 'dist/packages');
writeSbom(folder);
const flags = values.publish ? ['--provenance'] : ['--dry-run', '--loglevel', 'error'];
for (const name of readdirSync(folder).filter((name) => name.endsWith('.tgz')))
  run('npm', 'publish', join(folder, name), '--access', 'public', ...flags);
