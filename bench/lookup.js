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

/** Returns the nanoseconds of a look-up by reader: the least of several processes, which alternate. */
function compare(family, dataDir) {
  const least = { ipatlas: Number.POSITIVE_INFINITY, 'mmdb-lib': Number.POSITIVE_INFINITY };
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

  for (const family of ['4', '6']) {
    const { ipatlas, 'mmdb-lib': other } = compare(family, dataDir);
    row(`IPv${family} text: ipatlas`, `${ipatlas.toFixed(0)} ns`);
    row(`IPv${family} text: mmdb-lib`, `${other.toFixed(0)} ns`);
    row(`IPv${family} text: mmdb-lib / ipatlas`, `${(other / ipatlas).toFixed(1)} ×`, '≥ 10 ×', other / ipatlas >= 10);
  }

  const line = join(dataDir, 'one-line.jsonl');
  writeFileSync(line, '{"ip":"8.8.8.8"}\n');
  const [bare, lookup, enrich] = medianStarts(
    25,
    ['-e', '0'],
    [CLI, 'lookup', '8.8.8.8', '--data', dataDir],
    [CLI, 'enrich', line, '--data', dataDir],
  );
  row('node -e 0', `${bare.toFixed(0)} ms`);
  row('ipatlas lookup from cold', `${lookup.toFixed(0)} ms`);
  row('cold start: lookup / node -e 0', `${(lookup / bare).toFixed(2)} ×`, '≤ 2 ×', lookup / bare <= 2);
  row('cold start: enrich one line / node -e 0', `${(enrich / bare).toFixed(2)} ×`, '≤ 2 ×', enrich / bare <= 2);
}
