import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { CompactCountries } from '../../src/compact/countries.js';
import { FORMATS } from '../../src/export/formats.js';
import { packageFile } from '../../src/package-root.js';
import { finished, MAIN, terminal } from '../support/cli.js';
import { buildRangeFile } from '../support/compact.js';
import { ipatlas } from '../support/in-process.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { largeWorld } from './support.js';

const dir = temporaryDir();
const dataDir = join(dir, 'data');
const older = await publishBlocks(dataDir, SMALL_WORLD, '2025-06-01');
const current = await publishBlocks(dataDir, largeWorld(500));

let out: string;
beforeEach(() => {
  rmSync(join(dir, 'out'), { recursive: true, force: true });
  mkdirSync(join(dir, 'out'));
  out = join(dir, 'out', 'file');
});

const run = (...args: string[]) => ipatlas(['export', ...args, '--data', dataDir]);

it('on a terminal, ipatlas export says which programs read the file', async () => {
  const { stdout } = await terminal(`"$NODE" "$MAIN" export nft --data '${dataDir}' -o '${out}'`);
  expect(stdout).toMatch(/\r\nHow programs read it: \S+\/docs\/programs\.md#nft\r\n$/);
  const page = readFileSync(packageFile('docs/programs.md'), 'utf8');
  const firewalls = ['ipset', 'firewalld', 'pf', 'mikrotik'];
  for (const format of [...Object.keys(FORMATS), 'parquet'])
    if (!firewalls.includes(format)) expect(page).toContain(`\n### ${format}\n`);
});

describe('ipatlas export', () => {
  it('writes the current release to stdout', async () => {
    const { code, stdout, stderr } = await run('nginx');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      new RegExp(`^# Countries of IP addresses, ipatlas release ${current}\n[\\d.]+/\\d+ [A-Z]{2};\n`),
    );
  });

  it.each(['mmdb', 'csv', 'cidr', 'nginx', 'haproxy', 'nft', 'compact'])(
    'writes %s to a file, the same bytes every time',
    async (format) => {
      expect(await run(format, '-o', out)).toMatchObject({
        code: 0,
        stdout: '',
        stderr: expect.stringContaining(`${out}: `),
      });
      const first = readFileSync(out);
      expect(first.length).toBeGreaterThan(1000);
      await run(format, '--output', out);
      expect(readFileSync(out).equals(first)).toBe(true);
      // Standard output gets the same bytes, from a process if they are no text; no other file is left.
      const written = ['mmdb', 'compact'].includes(format)
        ? execFileSync(process.execPath, [MAIN, 'export', format, '--data', dataDir], { maxBuffer: 2 ** 28 })
        : Buffer.from((await run(format)).stdout);
      expect(written.equals(first)).toBe(true);
      expect(readdirSync(join(dir, 'out'))).toEqual(['file']);
    },
  );

  it('exports another release with --release', async () => {
    const { stdout } = await run('cidr', '--release', older, '--family', '4');
    expect(stdout).toContain('193.0.0.0/21,NL,Netherlands,true\n');
    expect(stdout.split('\n').length).toBe(7);
    expect((await run('nginx', '--release', older)).stdout).toContain(
      `# Countries of IP addresses, ipatlas release ${older}\n`,
    );
  });

  it('writes the compact form of the release, with Brotli or gzip', async () => {
    await run('compact', '-o', out);
    const compact = new CompactCountries(brotliDecompressSync(readFileSync(out)), out);
    expect(compact.about).toMatchObject({ release: current, as_of: '2026-01-01' });
    const rangeFile = readFileSync(join(dataDir, 'releases', current, 'ranges.ipr'));
    expect(buildRangeFile(compact).equals(rangeFile)).toBe(true);
    const { stderr } = await run('compact', '--gzip', '--release', older, '-o', out);
    expect(new CompactCountries(gunzipSync(readFileSync(out)), out).about.release).toBe(older);
    expect(stderr).toContain(`ipatlas release ${older}`);
  });

  it('selects countries, in upper or lower case, and the European Union', async () => {
    const codes = async (...args: string[]) => {
      const { stdout } = await run('csv', '--release', older, ...args);
      return [
        ...new Set(
          stdout
            .split('\n')
            .slice(1, -1)
            .map((line) => line.split(',')[2]),
        ),
      ].sort();
    };
    expect(await codes('--countries', 'de, gb')).toEqual(['DE', 'GB']);
    expect(await codes('--eu')).toEqual(['DE', 'FR', 'NL']);
    expect(await codes('--eu', '--countries', 'US')).toEqual(['DE', 'FR', 'NL', 'US']);
    expect((await run('haproxy', '--release', older, '--eu')).stdout).toContain(`${older}, DE FR NL\n`);
  });

  it('names nft’s sets', async () => {
    const sets = async (...args: string[]) =>
      [...(await run('nft', ...args)).stdout.matchAll(/^add set inet ipatlas (\w+)/gm)].map(([, name]) => name);
    expect(await sets()).toEqual(['countries4', 'countries6']);
    expect(await sets('--eu')).toEqual(['eu4', 'eu6']);
    expect(await sets('--eu', '--countries', 'US')).toEqual(['countries4', 'countries6']);
    expect(await sets('--countries', 'US', '--set', 'us', '--family', '6')).toEqual(['us6']);
  });

  it('limits blocks, says what was added, and loses nothing that was asked for', async () => {
    const blocks = (text: string): string[] => text.split('\n').filter((line) => /^[\da-f].*[.:]/.test(line));
    const all = await run('pf', '--eu', '--release', older);
    const few = await run('pf', '--eu', '--release', older, '--max-entries', '2');
    expect(blocks(all.stdout)).toHaveLength(114);
    expect(blocks(few.stdout).filter((line) => line.includes('.'))).toEqual(['80.0.0.0/8', '193.0.0.0/21']);
    expect(blocks(few.stdout).filter((line) => line.includes(':'))).toEqual(['2a00::/16']);
    expect(few.stderr).toBe(
      'IPv4: 2 blocks, with 0 addresses that were not asked for\n' +
        'IPv6: 1 block, with 0 /64 blocks that were not asked for\n',
    );
    const one = await run('cidr', '--countries', 'DE,US', '--family', '4', '--max-entries', '2', '--release', older);
    expect(one.stdout.split('\n').slice(1, -1)).toEqual([
      '8.0.0.0/8,US,United States,false',
      '80.0.0.0/8,DE,Germany,true',
    ]);
    expect(await run('mmdb', '--max-entries', '10', '-o', out)).toMatchObject({ code: 2 });
    expect(await run('pf', '--max-entries', '1')).toMatchObject({ code: 2 });
    expect((await run('firewalld', '--eu')).stderr).toContain('--family 4');
  });

  it('adds or leaves out embedded addresses', async () => {
    const has = async (...args: string[]) => (await run(...args)).stdout.includes('\n2002:c100:');
    expect(await has('nginx')).toBe(true);
    expect(await has('nginx', '--embedded', 'none')).toBe(false);
    expect(await has('csv')).toBe(false);
    expect(await has('csv', '--embedded', 'all')).toBe(true);
    expect(await has('csv', '--embedded', '6to4')).toBe(true);
    expect(await has('csv', '--embedded', 'nat64')).toBe(false);
  });

  it.each([
    [
      ['geojson'],
      2,
      /no format "geojson"; there are mmdb, asn-mmdb, csv, cidr, nginx, haproxy, nft, ipset, firewalld, pf, mikrotik, parquet, compact, gdnsd; see "ipatlas export --help"/,
    ],
    [[], 2, /an argument is missing/],
    [['compact', '--countries', 'DE'], 2, /--countries does not go with compact/],
    [['compact', '--with', 'labels'], 2, /--with is "labels"; it can be confidence, networks, kinds, each once/],
    [['compact', '--with', 'networks'], 5, /has no networks: none of its sources says/],
    [['csv', '--gzip'], 2, /--gzip does not go with csv/],
    [
      ['csv', '--countries', 'DE,UK'],
      2,
      /--countries names "UK", which no range of this release has \(as of 2026-01-01\)/,
    ],
    [['csv', '--countries', ''], 2, /--countries has ""/],
    [['csv', '--embedded', 'maybe'], 2, /--embedded is "maybe"; for csv it can be all, none, or some of 6to4,nat64/],
    [['nft', '--set', 'a b'], 2, /--set is "a b"/],
    [
      ['csv', '--release', '2020-01-01-0123456789ab'],
      5,
      /no release "2020-01-01-0123456789ab"; "ipatlas releases --data .*" lists/,
    ],
    [['csv', '-o', '/nowhere/at/all'], 2, /^ipatlas: \/nowhere\/at\/all cannot be written: no such file or directory/],
  ])('refuses %j with exit code %d', async (args, code, message) => {
    const result = await run(...args);
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toMatch(message);
  });

  it('reports a full disk in one line and with exit code 1', async () => {
    const message = /^ipatlas: [^\n]+ cannot be written: no space left on device[^\n]*\n$/;
    const command = [process.execPath, MAIN, 'export', 'csv', '--data', dataDir];
    const shell = spawn('sh', ['-c', '"$@" > /dev/full', 'sh', ...command]);
    expect(await finished(shell)).toMatchObject({ code: 1, stderr: expect.stringMatching(message) });
    const result = await run('csv', '-o', '/dev/full');
    expect(result).toMatchObject({ code: 1, stderr: expect.stringMatching(message) });
  });

  it('accepts "-" as standard output, and refuses an empty name', async () => {
    const { stdout } = await run('csv');
    expect(await run('csv', '-o', '-')).toMatchObject({ code: 0, stdout });
    expect(readdirSync('.')).not.toContain('-');
    const result = await run('csv', '-o', '');
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/--output is empty/) });
  });
});

describe('the output file', () => {
  it('is not changed if the export fails, and no temporary file stays', async () => {
    writeFileSync(out, 'old');
    expect((await run('csv', '-o', join(out, 'in-a-file'))).code).toBe(2);
    expect((await run('csv', '--release', 'x', '-o', out)).code).toBe(5);
    expect(readFileSync(out, 'utf8')).toBe('old');
    expect(readdirSync(join(dir, 'out'))).toEqual(['file']);
  });
});
