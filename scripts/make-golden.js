/**
 * Writes test/golden/VERSION.tar.gz: a data directory, a signed repository and compact forms of this version, small and of invented
 * data, and what commands answered from them. Later versions must give the same answers (docs/stability.md). Run it once for each
 * release that changes a file format: node scripts/make-golden.js 1.0
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { create } from 'tar';

const root = fileURLToPath(new URL('..', import.meta.url));
const main = join(root, 'dist/src/cli/start.cjs');
const [version] = process.argv.slice(2);
if (!/^\d+\.\d+$/.test(version ?? '')) throw new Error('name the version, such as 1.0');

const dir = mkdtempSync(join(tmpdir(), 'ipatlas-golden-'));
const run = (...args) => execFileSync(process.execPath, [main, ...args], { cwd: dir, encoding: 'utf8' });
const write = (name, content) => writeFileSync(join(dir, name), content);

/** Invented countries and networks of addresses; documentation space would have no country. */
const COUNTRIES = (last) =>
  `25.0.0.0,25.127.255.255,DE\n25.128.0.0,25.255.255.255,${last}\n11.0.0.0,11.255.255.255,US\n2a00::,2a00:ffff:ffff:ffff:ffff:ffff:ffff:ffff,${last}\n`;
const NETWORKS =
  '25.0.0.0,25.0.255.255,64500,Example One\n2a00::,2a00:0:ffff:ffff:ffff:ffff:ffff:ffff,64501,Example Two\n';
const source = (id, format, more) => ({ id, license: 'CC0-1.0', fetch: { file: `${id}.csv` }, format, ...more });
const SOURCES = {
  merge: 'evidence',
  overrides: 'overrides.csv',
  labels: 'labels.csv',
  sources: [
    source('world', 'ip-location-db', { kind: 'geolocation' }),
    source('routes', 'origin-asn', { kind: 'routing' }),
    source('cloud', 'cidr-list', { network: { kind: 'cloud', operator: 'example' } }),
  ],
};
write('sources.json', JSON.stringify(SOURCES));
write('routes.csv', NETWORKS);
write('cloud.csv', '25.0.1.0/24\n');
write('overrides.csv', 'range,country,note,expires\n25.0.0.0/24,CH,invented,\n');
write('labels.csv', 'network,site\n25.0.2.0/24,Berlin\n');

for (const [day, last] of [
  ['2026-01-01', 'FR'],
  ['2026-01-02', 'IT'],
]) {
  write('world.csv', COUNTRIES(last));
  run('build', '--sources', 'sources.json', '--as-of', day, '--force', '--data', 'data');
}
run('keys', 'create', '--label', 'golden', '--data', 'data');
run('repo', 'init', 'repository', '--data', 'data');
run('repo', 'add', 'repository', '--data', 'data');
run('export', 'compact', '-o', 'brotli.ipc', '--data', 'data');
run('export', 'compact', '--gzip', '--with', 'confidence,networks,kinds', '-o', 'all.ipc', '--data', 'data');
rmSync(join(dir, 'data/signing-keys'), { recursive: true });

const ADDRESSES = [
  '25.0.0.1',
  '25.0.1.1',
  '25.0.2.1',
  '25.200.0.1',
  '11.1.1.1',
  '10.0.0.1',
  '2a00::1',
  '2002:1900:1::1',
];
const FIELDS = 'country,country_code,is_eu,asn,as_name,network,anycast,kind,operator,site';
/** What is asked of the data directory. */
const COMMANDS = [
  ['lookup', '--add', FIELDS, ...ADDRESSES],
  ['lookup', '--engine', 'sqlite', ...ADDRESSES],
  ['lookup', '--at', '2026-01-01', ...ADDRESSES],
  ['history', '--json', ...ADDRESSES],
  ['diff', '--json', '2026-01-01', '2026-01-02'],
];
const answers = COMMANDS.map((args) => [args, run(...args, '--data', 'data')]);
const begun = new Date().toISOString();
write('expected.json', JSON.stringify({ begun, answers }, null, 2));

const names = ['data', 'repository', 'brotli.ipc', 'all.ipc', 'expected.json'];
await create({ cwd: dir, file: join(dir, 'golden.tar.gz'), gzip: { level: 9 }, portable: true }, names);
cpSync(join(dir, 'golden.tar.gz'), join(root, 'test/golden', `${version}.tar.gz`));
rmSync(dir, { recursive: true });
