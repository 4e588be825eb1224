// Opening a release, look-ups of text against mmdb-lib on the same data, and a look-up from cold.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Reader } from 'mmdb-lib';
import { openDatabase } from '../dist/src/index.js';
import { medianSeconds, randomWords, row, section } from './measure.js';
import { CLI, dataDirectory, MMDB } from './paths.js';

const ADDRESSES = 200_000;

/** Addresses spread over all of the space (IPv4), or over what is assigned (IPv6). */
function addresses(family) {
  const random = randomWords(2463534242);
  return Array.from({ length: ADDRESSES }, () => {
    const [a, b, c, d] = [random(), random(), random(), random()];
    if (family === 4) return `${a >>> 24}.${(a >>> 16) & 255}.${(a >>> 8) & 255}.${a & 255}`;
    const prefix = [0x2001, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2c00, 0x2a02, 0x2603][a % 8];
    return [prefix, b >>> 20, b & 0xffff, c >>> 16, 0, 0, 0, d & 0xffff].map((group) => group.toString(16)).join(':');
  });
}

export async function run() {
  section('Look-ups');
  const dataDir = dataDirectory();

  const opening = await medianSeconds(21, () => openDatabase(dataDir).close());
  row('opening a release', `${(1000 * opening).toFixed(2)} ms`, '< 10 ms', opening < 0.01);

  const database = openDatabase(dataDir);
  const reader = new Reader(readFileSync(MMDB));
  for (const family of [4, 6]) {
    const list = addresses(family);
    let found = 0;
    const ours = await medianSeconds(9, () => {
      for (const ip of list) if (database.lookup(ip).country_code !== null) found++;
    });
    const theirs = await medianSeconds(9, () => {
      for (const ip of list) if (reader.get(ip) !== null) found++;
    });
    const nanoseconds = (s) => ((s / ADDRESSES) * 1e9).toFixed(0);
    row(`IPv${family} text: ipatlas`, `${nanoseconds(ours)} ns`);
    row(`IPv${family} text: mmdb-lib`, `${nanoseconds(theirs)} ns`);
    row(`IPv${family} text: mmdb-lib / ipatlas`, `${(theirs / ours).toFixed(1)} ×`, '≥ 10 ×', theirs / ours >= 10);
    if (found === 0) throw new Error('nothing was found');
  }
  database.close();

  const bare = await medianSeconds(15, () => spawnSync(process.execPath, ['-e', '0']));
  const cold = await medianSeconds(15, () =>
    spawnSync(process.execPath, [CLI, 'lookup', '8.8.8.8', '--data', dataDir]),
  );
  row('node -e 0', `${(1000 * bare).toFixed(0)} ms`);
  row('ipatlas lookup from cold', `${(1000 * cold).toFixed(0)} ms`);
  row('ipatlas lookup / node -e 0', `${(cold / bare).toFixed(2)} ×`, '≤ 2 ×', cold / bare <= 2);
}
