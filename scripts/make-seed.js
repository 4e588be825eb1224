/**
 * Makes dist/seed.ipc, the release that comes with the package: the pipeline's release of the CSV packages in node_modules, in
 * the compact form with Brotli. The same packages and the same code give the same release. Run by "npm run build".
 *
 * For a package that is published, IPATLAS_SEED=living takes the data that the publishers have today instead.
 *
 * It takes ten seconds, so the file is kept in node_modules/.cache and made again only if something that determines it has
 * changed: a package, the reference data, or the code that reads, merges and encodes.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The sources of the seed. Their npm packages are what the pipeline falls back to without network. */
const SOURCES = ['user-country', 'rir-delegations'];
const PACKAGES = ['@ip-location-db/geo-whois-asn-country', '@ip-location-db/asn-country'];

const isLiving = process.env.IPATLAS_SEED === 'living';
const asOf = isLiving ? new Date().toISOString().slice(0, 10) : dateOfPackages();

/** Everything that determines the seed. */
const INPUTS = [
  ...PACKAGES.map((name) => `node_modules/${name}/package.json`),
  'package.json',
  'data/reference',
  'data/sources.json',
  'scripts/make-seed.js',
  'dist/pipeline',
  ...['address', 'compact', 'country', 'database', 'mirror', 'range', 'rangefile'].map((name) => `dist/src/${name}`),
];

/** Returns the paths of a file, or of all files in a folder. */
function filesIn(path) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name) => filesIn(join(path, name)));
}

function hashOfInputs() {
  const hash = createHash('sha256').update(`${isLiving} ${asOf}\n`);
  for (const path of INPUTS.flatMap(filesIn)) {
    if (path.endsWith('.d.ts')) continue;
    const content = readFileSync(join(root, path));
    hash.update(`${path} ${content.length}\n`).update(content);
  }
  return hash.digest('hex').slice(0, 16);
}

/** Returns the date in the version of the packages, such as 2.3.2026061719: builds on any day give the same release. */
function dateOfPackages() {
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules', PACKAGES[0], 'package.json'), 'utf8'));
  const [, year, month, day] = /\.(\d{4})(\d{2})(\d{2})\d{2}$/.exec(version);
  return `${year}-${month}-${day}`;
}

/** Builds the release, and writes its compact form. */
async function makeSeed(path) {
  const { build } = await import('../dist/pipeline/build.js');
  const { packRelease } = await import('../dist/pipeline/compact-release.js');
  const { compressCompact } = await import('../dist/src/database/compact.js');
  const { readManifest, releaseDir } = await import('../dist/src/database/release.js');
  const { replaceFile } = await import('../dist/src/files.js');
  const dataDir = mkdtempSync(join(tmpdir(), 'ipatlas-seed-'));
  try {
    await build({
      ...{ dataDir, sourcesFile: join(root, 'data/sources.json'), only: SOURCES, asOf },
      ...{ offline: !isLiving, force: false, note: () => {} },
    });
    const dir = releaseDir(dataDir);
    const manifest = {
      ...readManifest(dir),
      ...(!isLiving && {
        not_for_publication: 'made of CSV packages from before June 2026, for clones and tests of ipatlas',
      }),
    };
    replaceFile(path, [compressCompact(packRelease(dir, manifest), 'brotli')]);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

const cached = join(root, 'node_modules/.cache/ipatlas', `seed-${hashOfInputs()}.ipc`);
if (!existsSync(cached)) {
  rmSync(dirname(cached), { recursive: true, force: true });
  mkdirSync(dirname(cached), { recursive: true });
  await makeSeed(cached);
}
copyFileSync(cached, join(root, 'dist/seed.ipc'));
