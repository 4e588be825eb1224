// Dated copies of one table of the world: npm package geoip-country, with GeoLite2's data by MaxMind. The first series has
// forty-one copies over two years, of versions that name their day; the second one those of 2020 to 2025, whose days are those
// of the commits in the package's repository that released them (old-series.csv). They may be fetched and measured; they must not
// be committed or shipped.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGE = 'geoip-country';
/** The folder of the copies. */
export const seriesDir = process.argv[2] ?? new URL('node_modules/.series', import.meta.url).pathname;

/** Days of the second series, by version. */
const oldDates = new Map(
  readFileSync(new URL('old-series.csv', import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(',').reverse()),
);

/** Fetches the copies of a series that are not there yet; returns their versions in order. */
export function fetchCopies(old = false) {
  mkdirSync(seriesDir, { recursive: true });
  const view = old ? undefined : execFileSync('npm', ['view', PACKAGE, 'versions', '--json'], { encoding: 'utf8' });
  const versions = old ? [...oldDates.keys()] : JSON.parse(view).filter((version) => /^5\.0\.20\d{10}$/.test(version));
  for (const version of versions) {
    if (existsSync(join(seriesDir, `${PACKAGE}-${version}.tgz`))) continue;
    execFileSync('npm', ['pack', '--silent', `${PACKAGE}@${version}`], { cwd: seriesDir, stdio: 'ignore' });
  }
  return versions.sort((a, b) => (dateOf(a) < dateOf(b) ? -1 : 1));
}

/** Returns the day of a version, `YYYY-MM-DD`. */
export const dateOf = (version) => oldDates.get(version) ?? version.replace(/^5\.0\.(\d{4})(\d\d)(\d\d).*/, '$1-$2-$3');

/**
 * Returns the rows of one family of a copy, in order: first and last address and the country code, which may be no code. The
 * addresses of IPv6 are their upper halves.
 */
export function* rowsOfCopy(version, family) {
  const half = family === 4 ? 4 : oldDates.has(version) ? 16 : 8;
  const name = `package/data/geoip-country${family === 4 ? '' : '6'}.dat`;
  const archive = join(seriesDir, `${PACKAGE}-${version}.tgz`);
  const content = execFileSync('tar', ['xzOf', archive, name], { maxBuffer: 1 << 28 });
  for (let offset = 0; offset < content.length; offset += 2 * half + 2) {
    const [first, last] = [offset, offset + half].map((at) =>
      family === 4 ? BigInt(content.readUInt32BE(at)) : content.readBigUInt64BE(at),
    );
    yield { first, last, code: content.toString('latin1', offset + 2 * half, offset + 2 * half + 2) };
  }
}

/** Returns a generator of numbers from 0 to 1, always the same ones (mulberry32). */
export function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
