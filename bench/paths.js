// Where the benchmarks find what they measure.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const packages = join(root, 'node_modules', '@ip-location-db');

export const CLI = join(root, 'dist', 'src', 'cli', 'start.cjs');
/** The files of some packages, one for each family. */
const filesOf = (...names) =>
  names.flatMap((name) => ['ipv4', 'ipv6'].map((family) => join(packages, name, `${name}-${family}.csv`)));
export const CSV_FILES = filesOf('geo-whois-asn-country', 'asn-country');
/** All files that a build without network reads. */
export const BUILD_FILES = [...CSV_FILES, ...filesOf('dbip-country', 'asn')];
/** The IPv4 ranges of the default source, addresses as numbers. */
export const CSV_NUMBERS = join(packages, 'geo-whois-asn-country', 'geo-whois-asn-country-ipv4-num.csv');
/** The IPv6 ranges of the default source. */
export const CSV_IPV6 = join(packages, 'geo-whois-asn-country', 'geo-whois-asn-country-ipv6.csv');
export const MMDB = join(packages, 'geo-whois-asn-country-mmdb', 'geo-whois-asn-country.mmdb');

const made = new Map();

/** A data directory with a release of the default sources, or of some of them, made once a run. */
export function dataDirectory(only = '') {
  if (!made.has(only)) {
    if (!existsSync(CLI)) throw new Error('not compiled; run "make compile"');
    const dir = mkdtempSync(join(tmpdir(), 'ipatlas-bench-'));
    process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
    // A part of the sources may be wrong about sentinels.
    const limit = only === '' ? [] : ['--only', only, '--force'];
    execFileSync(process.execPath, [CLI, 'build', '--offline', '--data', dir, ...limit], { stdio: 'pipe' });
    made.set(only, dir);
  }
  return made.get(only);
}
