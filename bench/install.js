// What it takes to get the country of an address from an empty folder: `node bench/install.js` installs each package with
// the npm beside this Node, and asks it once. It needs the npm registry or npm's cache; "make pack" makes the tarballs.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { row, seconds, section } from './measure.js';

const file = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const { version } = JSON.parse(readFileSync(file('package.json'), 'utf8'));
const packed = (name) => file(`dist/packages/${name}-${version}.tgz`);
const MMDB = '@ip-location-db/geo-whois-asn-country-mmdb';
const PACKAGES = {
  ipatlas: [[packed('ipatlas')], "(await import('ipatlas')).openDatabase().country(ip)"],
  '@ipatlas/lookup': [[packed('ipatlas-lookup')], "(await (await import('@ipatlas/lookup')).load()).country(ip)"],
  'geoip-country': [['geoip-country'], "(await import('geoip-country')).default.lookup(ip)"],
  'maxmind with an MMDB': [
    ['maxmind', MMDB],
    `(await (await import('maxmind')).default.open('node_modules/${MMDB}/geo-whois-asn-country.mmdb')).get(ip)`,
  ],
};

section(`From an empty folder, Node ${process.versions.node}`);
for (const [name, [packages, answer]] of Object.entries(PACKAGES)) {
  const cwd = mkdtempSync(join(tmpdir(), 'ipatlas-install-'));
  const run = (file, args) => execFileSync(file, args, { cwd, stdio: 'pipe' });
  writeFileSync(join(cwd, 'package.json'), '{"private":true}');
  const installs = await seconds(() => run('npm', ['install', '--no-audit', '--no-fund', ...packages]));
  const { packages: tree } = JSON.parse(readFileSync(join(cwd, 'node_modules/.package-lock.json'), 'utf8'));
  const files = readdirSync(cwd, { recursive: true }).map((path) => statSync(join(cwd, path)));
  const bytes = files.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);
  const code = `const ip = '8.8.8.8'; const found = ${answer}; if (!/US/.test(JSON.stringify(found))) throw found;`;
  const answers = await seconds(() => run(process.execPath, ['--input-type=module', '-e', code]));
  row(`${name}: npm install`, `${installs.toFixed(1)} s`);
  row(`${name}: packages`, `${Object.keys(tree).length}, ${(bytes / 1e6).toFixed(1)} MB`);
  row(`${name}: first answer`, `${answers.toFixed(2)} s`);
  rmSync(cwd, { recursive: true });
}
