// Compares results with an independent reader of the same data: the MMDB twin of the source, read with `maxmind`, at a
// million random addresses per family, both ends of every row, and the neighbors of these. A documented rule must explain
// every difference; all others are printed.
import maxmind from 'maxmind';
import { openDatabase } from '../dist/src/index.js';
import { openRangeFile } from '../dist/src/rangefile/reader.js';
import { compareWithTwin } from '../test/support/mmdb-twin.js';
import { row, section } from './measure.js';
import { CSV_FILES, dataDirectory, MMDB } from './paths.js';

const RANDOM_ADDRESSES = 1_000_000;

export async function run() {
  section('Agreement with the MMDB twin of the first source (read with maxmind)');
  const dataDir = dataDirectory('user-country');
  const database = openDatabase(dataDir);
  const file = openRangeFile(`${database.dir}/ranges.ipr`);
  const twin = await maxmind.open(MMDB);
  const csvFiles = CSV_FILES.slice(0, 2);
  const result = compareWithTwin({ database, file, twin, csvFiles, random: RANDOM_ADDRESSES, everyRow: 1 });
  row('addresses compared', result.compared.toLocaleString('en'));
  for (const [rule, count] of Object.entries(result.explained))
    row(`  differ by rule: ${rule}`, count.toLocaleString('en'));
  row('  differ without a rule', String(result.unexplained.length), '0', result.unexplained.length === 0);
  for (const line of result.unexplained.slice(0, 10)) console.log(`    ${line}`);
  database.close();
}
