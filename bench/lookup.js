// Opening a release, look-ups of text against mmdb-lib on the same data, and a look-up from cold.
import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { openDatabase } from '../dist/src/index.js';
import { leastSeconds, row, section } from './measure.js';
import { CLI, dataDirectory } from './paths.js';

const CHILD = fileURLToPath(new URL('lookup-child.js', import.meta.url));
const ROUNDS = 5;

/** Nanoseconds a look-up, the least of some processes of each reader, which take turns. */
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

  const [opening] = await leastSeconds(21, () => openDatabase(dataDir).close());
  row('opening a release', `${(1000 * opening).toFixed(2)} ms`, '< 10 ms', opening < 0.01);

  for (const family of ['4', '6']) {
    const { ipatlas, 'mmdb-lib': other } = compare(family, dataDir);
    row(`IPv${family} text: ipatlas`, `${ipatlas.toFixed(0)} ns`);
    row(`IPv${family} text: mmdb-lib`, `${other.toFixed(0)} ns`);
    row(`IPv${family} text: mmdb-lib / ipatlas`, `${(other / ipatlas).toFixed(1)} ×`, '≥ 10 ×', other / ipatlas >= 10);
  }

  const [bare, cold] = await leastSeconds(
    21,
    () => spawnSync(process.execPath, ['-e', '0']),
    () => spawnSync(process.execPath, [CLI, 'lookup', '8.8.8.8', '--data', dataDir]),
  );
  row('node -e 0', `${(1000 * bare).toFixed(0)} ms`);
  row('ipatlas lookup from cold', `${(1000 * cold).toFixed(0)} ms`);
  row('ipatlas lookup / node -e 0', `${(cold / bare).toFixed(2)} ×`, '≤ 2 ×', cold / bare <= 2);
}
