// Builds of up to ten times as many ranges as the default sources have: processor time, peak memory, and where the time goes. The
// ranges are synthetic: bounds by lot, neighbors of different countries, half of them IPv6.
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatIPv4, formatIPv6 } from '../dist/src/address/format.js';
import { PRINT_PEAK, printedPeak, randomWords, row, section } from './measure.js';
import { CLI } from './paths.js';

const FACTORS = [1, 2, 5, 10];
/** Ranges of one family at factor 1, about as many as a release of the default sources has. */
const RANGES = 400_000;
const CODES = ['DE', 'US', 'FR', 'JP', 'BR', 'ZA', 'IN', 'AU'];
/** Makes a program print its seconds of processor time. */
const PRINT_CPU = [
  '--import',
  'data:text/javascript,process.on("exit",()=>{const{user,system}=process.cpuUsage();console.error("cpu",(user+system)/1e6)})',
];

/** Writes a CSV file of so many ranges of one family: each begins within a share of its own of 1.0.0.0/8 to 223.0.0.0/8, or 2000::/3. */
function writeRanges(path, count, isIPv6, random) {
  const file = openSync(path, 'w');
  const [first, size] = isIPv6 ? [0x2000_0000, 0x2000_0000] : [0x0100_0000, 0xde00_0000];
  const step = size / count;
  const address = (word) => (isIPv6 ? formatIPv6(word, 0, 0, 0) : formatIPv4(word));
  const last = (word) => (isIPv6 ? formatIPv6(word, 0xffff_ffff, 0xffff_ffff, 0xffff_ffff) : formatIPv4(word));
  let from = first;
  let lines = [];
  for (let index = 1; index <= count; index++) {
    const next = index === count ? first + size : Math.floor(first + step * (index + random() / 2 ** 33));
    lines.push(`${address(from >>> 0)},${last((next - 1) >>> 0)},${CODES[index % CODES.length]}`);
    from = next;
    if (lines.length === 10_000 || index === count) {
      writeSync(file, `${lines.join('\n')}\n`);
      lines = [];
    }
  }
  closeSync(file);
}

export function run() {
  section('Builds of more ranges');
  const dir = mkdtempSync(join(tmpdir(), 'ipatlas-bench-build-'));
  try {
    for (const factor of FACTORS) {
      const random = randomWords(10);
      const files = ['four.csv', 'six.csv'];
      for (const file of files) writeRanges(join(dir, file), factor * RANGES, file === 'six.csv', random);
      const sources = [{ id: 'many', license: 'CC0-1.0', fetch: { file: '*.csv' }, format: 'ip-location-db' }];
      writeFileSync(join(dir, 'sources.json'), JSON.stringify({ sources }));
      const data = join(dir, `data-${factor}`);
      const args = ['build', '--offline', '--force', '--sources', join(dir, 'sources.json'), '--data', data];
      const child = spawnSync(process.execPath, [...PRINT_PEAK, ...PRINT_CPU, CLI, ...args], { encoding: 'utf8' });
      if (child.status !== 0) throw new Error(child.stderr);
      const current = realpathSync(join(data, 'current'));
      const { stages } = JSON.parse(readFileSync(join(current, 'report.json'), 'utf8'));
      const total = stages.reduce((sum, { seconds }) => sum + seconds, 0);
      const longest = stages.sort((a, b) => b.seconds - a.seconds).slice(0, 3);
      const name = `build × ${factor}`;
      row(`${name}: ranges`, (2 * factor * RANGES).toLocaleString('en-US'));
      row(`${name}: processor time`, `${Number(/^cpu (\S+)$/m.exec(child.stderr)[1]).toFixed(1)} s`);
      row(`${name}: peak memory`, `${printedPeak(child.stderr).toFixed(0)} MB`);
      const shares = longest.map(({ stage, seconds }) => `${stage} ${((100 * seconds) / total).toFixed(0)} %`);
      row(`${name}: stages`, shares.join(', '));
      row(`${name}: range file`, `${(statSync(join(current, 'ranges.ipr')).size / 1e6).toFixed(1)} MB`);
      rmSync(data, { recursive: true });
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
}
