// The same as history.js for networks: imports three dated copies of the npm package @ip-location-db/asn (RouteViews and DB-IP,
// CC BY 4.0), and compares the networks of their days with the copies. `npm run build` first, then
// `node truth/history-networks.js [DIR]`; the copies are fetched into DIR. It prints bytes, seconds and differences.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importHistory } from '../dist/pipeline/index.js';
import { parseAddress } from '../dist/src/address/parse.js';
import { openArchive } from '../dist/src/history/archive.js';
import { partitionAt } from '../dist/src/history/day.js';
import { memberPeriodsOf } from '../dist/src/history/periods.js';
import { NETWORKS } from '../dist/src/rangefile/partitions.js';
import { findIPv4, findIPv6 } from '../dist/src/rangefile/search.js';
import { random, seriesDir } from './series.js';
import { isSpecial } from './special.js';

const VERSIONS = ['2.3.2025040218', '2.3.2025041118', '2.3.2026061719'];
const QUESTIONS = 50_000;
const dateOf = (version) => version.replace(/^2\.3\.(\d{4})(\d\d)(\d\d)\d\d$/, '$1-$2-$3');

/** Fetches a copy if it is not there; returns its two tables. */
function tablesOf(version) {
  const dir = join(seriesDir, `asn-${version}`);
  if (!existsSync(dir)) {
    mkdirSync(dir, { recursive: true });
    execFileSync('npm', ['pack', '--silent', `@ip-location-db/asn@${version}`], { cwd: dir, stdio: 'ignore' });
    execFileSync('tar', ['xzf', `ip-location-db-asn-${version}.tgz`], { cwd: dir });
  }
  return ['asn-ipv4.csv', 'asn-ipv6.csv'].map((name) => join(dir, 'package', name));
}

/** Returns rows of a table: first address, last address, number, name. */
function rowsOf(file) {
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [, first, last, asn, quoted, plain] = /^([^,]*),([^,]*),(\d+),(?:"(.*)"|(.*))$/.exec(line);
      return { first, last, asn: Number(asn), name: (quoted ?? plain).replaceAll('""', '"') };
    });
}

const spaces = (text) => text.replaceAll(/\s+/g, ' ').trim();
const next = random(28);
const dataDir = mkdtempSync(join(tmpdir(), 'ipatlas-networks-'));
try {
  const begun = performance.now();
  for (const version of VERSIONS) {
    const day = dateOf(version);
    await importHistory(dataDir, { paths: tablesOf(version), day, format: 'origin-asn', note: () => {} });
  }
  const seconds = ((performance.now() - begun) / 1000).toFixed(0);
  const archive = openArchive(dataDir, NETWORKS);
  const entries = archive.entries.map(({ kind, bytes }) => `${kind} ${(bytes / 1e6).toFixed(2)} MB`);
  console.log(`${VERSIONS.length} copies imported in ${seconds} s: ${entries.join(', ')}`);
  const words = new Uint32Array(4);
  for (const version of VERSIONS) {
    const day = dateOf(version);
    const started = process.cpuUsage();
    const networks = partitionAt(dataDir, day, NETWORKS);
    const { user, system } = process.cpuUsage(started);
    const different = new Map();
    const tables = tablesOf(version).map(rowsOf);
    for (let count = 0; count < QUESTIONS; count++) {
      const rows = tables[count % 2];
      const row = rows[Math.floor(next() * rows.length)];
      const ip = next() < 0.5 ? row.first : row.last;
      parseAddress(ip, words);
      const record = isIPv4(ip)
        ? networks.record4[findIPv4(networks, words[0] | 0)]
        : networks.record6[findIPv6(networks, words)];
      const found = networks.records[record];
      const isSame = isSpecial(ip, row)
        ? found.kind !== 'network'
        : found.kind === 'network' && found.asn === row.asn && spaces(found.name) === spaces(row.name);
      if (!isSame) different.set(ip, `${JSON.stringify(found)} instead of ${row.asn} ${row.name}`);
    }
    console.log(
      `${day} opens in ${((user + system) / 1000).toFixed(0)} ms; ${QUESTIONS} questions: ${different.size} differences`,
    );
    for (const [ip, what] of [...different].slice(0, 20)) console.log(`  ${ip}: ${what}`);
  }
  const periods = memberPeriodsOf(archive, { family: 4, words: Uint32Array.of(0x01010101) }, NETWORKS);
  console.log(`1.1.1.1: ${JSON.stringify(periods)}`);
} finally {
  rmSync(dataDir, { recursive: true });
}
