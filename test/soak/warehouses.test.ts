/**
 * The joins of docs/warehouses.md as they are printed there, in DuckDB (of bench/, which `make soak` installs) and in PostgreSQL if
 * it is installed, compared with `ipatlas enrich` for many addresses of a real release.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { randomWords } from '../../bench/measure.js';
import { formatIPv4, formatIPv6 } from '../../src/address/format.js';
import { parseAddress } from '../../src/address/parse.js';
import { openDatabase } from '../../src/database/database.js';
import { PartitionFinder } from '../../src/database/finder.js';
import { RANGE_FILE, releaseDir } from '../../src/database/release.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { packageFile } from '../../src/package-root.js';
import { openRangeFile } from '../../src/rangefile/reader.js';
import { boundaries } from '../support/boundaries.js';
import { builtRelease } from '../support/built-release.js';
import { ipatlas } from '../support/cli.js';
import { temporaryDir } from '../support/release.js';

const ADDRESSES = Math.max(20_000, 1_000_000 * Number(process.env.SOAK_SCALE ?? 1));

/** Returns the blocks of SQL under a heading of the page. */
function sqlOf(heading: string): string[] {
  const page = readFileSync(packageFile('docs/warehouses.md'), 'utf8');
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`))!;
  return [...section.matchAll(/```sql\n(.*?)```/gs)].map(([, sql]) => sql!);
}

let dir: string;
let addresses: string[];
/** Address, country code; the same with number and name of the network. */
let expected: string[];
let withNetworks: string[];
beforeAll(async () => {
  dir = temporaryDir();
  const dataDir = await builtRelease();
  const random = randomWords(20_261_123);
  const bounds = [...boundaries(releaseDir(dataDir))].map((line) => line.split(' ')[0]!);
  const drawn = Array.from({ length: ADDRESSES }, (_, index) => {
    const kind = index % 4;
    if (kind < 2) return formatIPv4(random());
    if (kind === 2) return formatIPv6((0x2000_0000 | (random() >>> 3)) >>> 0, random(), random(), random());
    return bounds[random() % bounds.length]!;
  });
  // The last addresses of the ranges of IPv6 are in there, too.
  const finder = new PartitionFinder(openRangeFile(join(releaseDir(dataDir), RANGE_FILE)), false);
  const words = new Uint32Array(4);
  // As documented, the joins do not know parts of 6to4, NAT64 and Teredo that have a country of their own.
  const isPart = (ip: string): boolean => {
    if (!/^(2002:|64:ff9b::|2001:0:|2001::)/.test(ip) || parseAddress(ip, words) === 4) return false;
    finder.findIPv6(words);
    return finder.scheme === null;
  };
  addresses = [...new Set(drawn)].filter((ip) => !isPart(ip));
  const database = openDatabase(dataDir);
  const enricher = createBlockEnricher(database, { format: 'list', add: ['country_code', 'asn', 'as_name'] });
  const output = Buffer.from(enricher.enrichBlock(Buffer.from(addresses.join('\n')))).toString();
  withNetworks = output.split('\n').sort();
  expected = withNetworks.map((line) => line.split('\t').slice(0, 2).join('\t')).sort();
  database.close();
  for (const [format, file] of [
    ['parquet', 'ranges.parquet'],
    ['cidr', 'networks.csv'],
  ] as const) {
    const options = format === 'cidr' ? ['--embedded', 'all'] : ['--with', 'networks'];
    const { code, stderr } = await ipatlas(['--data', dataDir, 'export', format, ...options, '-o', join(dir, file)]);
    expect(code, stderr).toBe(0);
  }
  writeFileSync(join(dir, 'visits.csv'), `ip\n${addresses.join('\n')}\n`);
}, 600_000);

/** Compares without printing a million lines. */
function expectEqual(actual: string[], wanted: readonly string[]): void {
  actual.sort();
  expect(actual.length).toBe(wanted.length);
  const wrong = actual.flatMap((line, index) => (line === wanted[index] ? [] : [[line, wanted[index]]]));
  expect(wrong.slice(0, 10)).toEqual([]);
}

/** As `enrich` writes a cell. */
const quoted = (cell: string): string => (cell.includes('"') ? `"${cell.replaceAll('"', '""')}"` : cell);

/** What the test uses of @duckdb/node-api, which is not installed for the other tests. */
interface DuckDB {
  DuckDBInstance: {
    create(
      path: string,
      options: Record<string, string>,
    ): Promise<{
      connect(): Promise<{ run(sql: string): Promise<{ getRows(): Promise<unknown[][]> }>; closeSync(): void }>;
    }>;
  };
}

it('DuckDB answers as enrich', { timeout: 600_000 }, async () => {
  const { DuckDBInstance } = createRequire(packageFile('bench/package.json'))('@duckdb/node-api') as DuckDB;
  const connection = await (await DuckDBInstance.create(':memory:', { threads: '2' })).connect();
  await connection.run('SET asof_loop_join_threshold = 0');
  await connection.run(`CREATE TABLE visits AS SELECT * FROM read_csv('${dir}/visits.csv', all_varchar = true)`);
  const [countries, networks] = sqlOf('DuckDB');
  const sql = countries!.replace("'ranges.parquet'", `'${dir}/ranges.parquet'`);
  const rows = await (await connection.run(sql)).getRows();
  expectEqual(
    rows.map(([ip, code]) => `${ip}\t${code ?? ''}`),
    expected,
  );
  const more = await (await connection.run(networks!)).getRows();
  expectEqual(
    more.map((row) => row.map((cell) => quoted(String(cell ?? ''))).join('\t')),
    withNetworks,
  );
  // More than a handful must have a number.
  expect(withNetworks.filter((line) => /\t\d+\t/.test(line)).length).toBeGreaterThan(ADDRESSES / 4);
  connection.closeSync();
});

const POSTGRESQL = '/usr/lib/postgresql';
const versions = existsSync(POSTGRESQL) ? readdirSync(POSTGRESQL) : [];

it.skipIf(versions.length === 0)(
  'PostgreSQL answers as enrich, except for Teredo and IPv4-mapped addresses',
  { timeout: 900_000 },
  async () => {
    const program = (name: string): string => join(POSTGRESQL, versions[0]!, 'bin', name);
    // It refuses to run as root, and its user must be able to read the files.
    const asUser = process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--'] : [];
    const home = join(dir, 'postgresql');
    chmodSync(dir, 0o777);
    chmodSync(dirname(dir), 0o711);
    const run = (...command: string[]): string => {
      const [file, ...args] = [...asUser, ...command];
      return execFileSync(file!, args, { encoding: 'utf8', maxBuffer: 2 ** 30, stdio: ['ignore', 'pipe', 'pipe'] });
    };
    run(program('initdb'), '-D', home, '-A', 'trust', '-U', 'postgres');
    const [file, ...args] = [...asUser, program('postgres'), '-D', home, '-k', home, '-h', ''];
    const server = spawn(file!, args, { stdio: 'ignore' });
    const exited = once(server, 'exit');
    try {
      const psql = (...options: string[]) =>
        run(program('psql'), '-h', home, '-U', 'postgres', '-Atq', '-F', '\t', ...options);
      await expect.poll(() => psqlAnswers(psql), { timeout: 30_000 }).toBe(true);
      psql(
        '-c',
        'CREATE TABLE visits (ip inet)',
        '-c',
        `COPY visits FROM '${dir}/visits.csv' WITH (FORMAT csv, HEADER)`,
      );
      const output = psql('-c', sqlOf('PostgreSQL').join('\n').replace('/tmp/networks.csv', join(dir, 'networks.csv')));
      // A cell of type inet has the text of RFC 5952, as the addresses have.
      const isOther = (line: string): boolean => /^2001:(0:|:)|^::ffff:/.test(line);
      const answers = output
        .trimEnd()
        .split('\n')
        .filter((line) => !isOther(line))
        .sort();
      const wanted = expected.filter((line) => !isOther(line));
      expect(answers.length).toBe(wanted.length);
      expect(answers.filter((line, index) => line !== wanted[index]).slice(0, 10)).toEqual([]);
    } finally {
      run(program('pg_ctl'), 'stop', '-D', home, '-m', 'immediate');
      await exited;
    }
  },
);

function psqlAnswers(psql: (...options: string[]) => string): boolean {
  try {
    return psql('-c', 'SELECT 1') === '1\n';
  } catch {
    return false; // It is still starting.
  }
}
