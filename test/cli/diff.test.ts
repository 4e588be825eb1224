import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ipatlas } from '../support/in-process.js';
import { type LabelBlock, SMALL_LABELS } from '../support/labels.js';
import { type NetworkBlock, SMALL_NETWORKS } from '../support/networks.js';
import { type Block, country, publishBlocks, reason, SMALL_WORLD, temporaryDir } from '../support/release.js';

/** The small world after each kind of change, in both families. */
const LATER: Block[] = [
  ...SMALL_WORLD.filter(([cidr]) => !['90.0.0.0/16', '2a00:1::/48'].includes(cidr)).map(
    ([cidr, record]): Block =>
      record.kind === 'country' && record.code === 'GB' ? [cidr, country('GB', 'Britain')] : [cidr, record],
  ),
  ['80.1.0.0/24', country('FR', 'France', true)],
  ['80.1.2.0/23', country('FR', 'France', true)],
  ['80.0.0.5/32', reason('private')],
  ['99.0.0.0/30', country('NL', 'Netherlands', true)],
  ['2a00:2::/33', country('FR', 'France', true)],
];

/** All changes: family, first, last, from and to. */
const RANGES = [
  [4, '80.0.0.5', '80.0.0.5', '1', 'DE', 'private', '80.0.0.5/32'],
  [4, '80.1.0.0', '80.1.0.255', '256', 'DE', 'FR', '80.1.0.0/24'],
  [4, '80.1.2.0', '80.1.3.255', '512', 'DE', 'FR', '80.1.2.0/23'],
  [4, '90.0.0.0', '90.0.255.255', '65536', 'CI', 'unallocated', '90.0.0.0/16'],
  [4, '99.0.0.0', '99.0.0.3', '4', 'unallocated', 'NL', '99.0.0.0/30'],
  [6, '2a00:1::', '2a00:1:0:1::41', '18446744073709551682', 'FR', 'DE'],
  [6, '2a00:1:0:1::43', '2a00:1:0:ffff:ffff:ffff:ffff:ffff', '1208907372870555465154493', 'FR', 'DE'],
  [6, '2a00:2::', '2a00:2:7fff:ffff:ffff:ffff:ffff:ffff', String(2n ** 95n), 'DE', 'FR', '2a00:2::/33'],
] as const;

const PAIRS = [
  [4, 'CI', 'unallocated', '65536', 1],
  [4, 'DE', 'FR', '768', 2],
  [4, 'unallocated', 'NL', '4', 1],
  [4, 'DE', 'private', '1', 1],
  [6, 'DE', 'FR', String(2n ** 95n), 1],
  [6, 'FR', 'DE', String(2n ** 80n - 1n), 2],
] as const;

const dataDir = temporaryDir();
const before = await publishBlocks(dataDir, SMALL_WORLD);
const after = await publishBlocks(dataDir, LATER);

const diff = (...args: string[]) => ipatlas(['diff', ...args, '--data', dataDir]);

describe('ipatlas diff', () => {
  it('prints everything as JSON', async () => {
    const { code, stdout, stderr } = await diff(before, 'current', '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const found = JSON.parse(stdout);
    expect(found).toMatchObject({ before: { release: before, as_of: '2026-01-01' }, after: { release: after } });
    expect(found.countries).toEqual([{ code: 'GB', name: ['United Kingdom', 'Britain'], is_eu: [false, false] }]);
    expect(found.pairs.map(Object.values)).toEqual(PAIRS);
    const rows = found.ranges.map(({ cidrs, ...facts }: { cidrs: string[] }) => [
      ...Object.values(facts),
      ...(cidrs.length === 1 ? cidrs : []),
    ]);
    expect(rows).toEqual(RANGES);
  });

  it('prints ranges and pairs as CSV', async () => {
    const ranges = (await diff(before, after, '--csv')).stdout.trimEnd().split('\n');
    expect(ranges[0]).toBe('family,first,last,addresses,from,to,cidrs');
    expect(ranges.slice(1).map((line) => line.split(',').slice(0, 6))).toEqual(
      RANGES.map((row) => row.slice(0, 6).map(String)),
    );
    expect(ranges[1]).toBe('4,80.0.0.5,80.0.0.5,1,DE,private,80.0.0.5/32');
    const pairs = (await diff(before, after, '--csv', '--by', 'pair')).stdout;
    expect(pairs).toBe(['family,from,to,addresses,ranges', ...PAIRS.map((row) => row.join()), ''].join('\n'));
  });

  it('prints a table for people', async () => {
    const { code, stdout } = await diff(before, after);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^from {2}\S+, as of 2026-01-01\nto {4}\S+, as of 2026-01-01\n\nGB is now called Britain, was United Kingdom\n/,
    );
    expect(stdout).toMatch(/^IPv4: 66,309 addresses in 5 ranges have another answer$/m);
    expect(stdout).toMatch(/^DE +FR +768 +2$/m);
    expect(stdout).toMatch(
      /^largest blocks:\n {2}90\.0\.0\.0\/16 +CI +→ +unallocated\n {2}80\.1\.2\.0\/23 +DE +→ +FR\n/m,
    );
    expect(stdout).toMatch(/^DE +FR +32,768 +1$/m);
  });

  it('finds no difference between equal releases', async () => {
    expect((await diff(after, 'current')).stdout).toMatch(/IPv4: no difference\n\nIPv6: no difference\n$/);
    expect(JSON.parse((await diff(after, 'current', '--json')).stdout)).toMatchObject({
      countries: [],
      ranges: [],
      pairs: [],
    });
    expect((await diff(after, 'current', '--csv')).stdout).toBe('family,first,last,addresses,from,to,cidrs\n');
  });

  it('accepts ids, "current" and directories', async () => {
    const { stdout } = await diff(before, after);
    expect((await diff(join(dataDir, 'releases', before), dataDir)).stdout).toBe(stdout);
  });

  it.each([
    [['x'], 2, /an argument is missing/],
    [['current', 'x'], 5, /there is no release "x"; "ipatlas releases --data .*" lists those/],
    [['2020-01-01-0123456789ab', 'current'], 5, /there is no release "2020-01-01-0123456789ab"/],
    [['current', '/'], 5, /no release in \//],
    [['current', 'current', '--by', 'day'], 2, /--by is "day"; it can be range, pair/],
    [['current', 'current', '--csv', '--json'], 2, /--json or --csv, not both/],
  ])('refuses %j', async (args, code, message) => {
    expect(await diff(...args)).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) });
  });
});

describe('the age of the data', () => {
  it('is printed by info, with a warning above a limit', async () => {
    const info = (...args: string[]) => ipatlas(['info', '--data', dataDir, ...args]);
    const { stdout } = await info('--max-age', '1000000');
    expect(stdout).toMatch(
      /^age of the data +\d+ days? old(: about [\d.]+ % of IPv4 addresses have changed country since)?$/m,
    );
    expect(JSON.parse((await info('--json')).stdout).age_seconds).toBeGreaterThanOrEqual(0);
    const later = await publishBlocks(temporaryDirOf(), SMALL_WORLD, '2001-01-01');
    const old = ['info', '--data', temporaryDirOf()];
    expect(await ipatlas(old)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(`warning: the data of release ${later} is \\d+ days old, more than 35`),
    });
    expect(await ipatlas([...old, '--max-age', '1000000'])).toMatchObject({ code: 0, stderr: '' });
    expect(await ipatlas(old, { env: { IPATLAS_MAX_AGE: '1000000' } })).toMatchObject({ code: 0, stderr: '' });
    const wrong = { env: { IPATLAS_MAX_AGE: 'old' } };
    expect(await ipatlas(old, wrong)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/IPATLAS_MAX_AGE is "old"/),
    });
  });
});

/** Returns another data directory, inside the one that is removed. */
function temporaryDirOf(): string {
  return join(dataDir, 'old-data');
}

describe('diff --labels', () => {
  it('compares the labels by name', async () => {
    const dir = temporaryDir();
    const moved = SMALL_LABELS.map(([cidr, { site, owner }]): LabelBlock => {
      return [cidr, { owner: owner!, site: site === 'cloud' ? null : site! }];
    });
    const one = await publishBlocks(dir, SMALL_WORLD, '2026-01-01', 0, [], SMALL_LABELS);
    const two = await publishBlocks(dir, SMALL_WORLD, '2026-01-01', 0, [], moved);
    const three = await publishBlocks(dir, SMALL_WORLD);
    const run = (...args: string[]) => ipatlas(['diff', ...args, '--labels', '--data', dir]);
    const [from, to] = ['{"owner":"a\\\\b","site":"cloud"}', '{"owner":"a\\\\b"}'];
    const change = { family: 4, from, to, addresses: '512', ranges: 1 };
    expect(JSON.parse((await run(one, two, '--json')).stdout)).toMatchObject({ pairs: [change], countries: [] });
    const quoted = [from, to].map((text) => `"${text!.replaceAll('"', '""')}"`);
    expect((await run(one, two, '--csv')).stdout).toBe(
      `family,first,last,addresses,from,to,cidrs\n4,8.8.8.0,8.8.9.255,512,${quoted.join()},8.8.8.0/23\n`,
    );
    expect((await run(one, two)).stdout).toMatch(/"cloud"\} +\{"owner":"a\\\\b"\} +512 +1/);
    expect(await run(two, three)).toMatchObject({ code: 5, stderr: expect.stringContaining('has no labels') });
    for (const wrong of [['--html', 'x'], ['--networks']])
      expect(await run(one, two, ...wrong)).toMatchObject({ code: 2 });
    expect(await run('2026-01-01', two)).toMatchObject({ code: 2 });
  });
});

describe('diff --networks', () => {
  it('compares who announces the addresses', async () => {
    const dir = temporaryDir();
    const moved = SMALL_NETWORKS.map(([cidr, asn, name]): NetworkBlock => [cidr, asn === 3356 ? 13335 : asn, name]);
    const one = await publishBlocks(dir, SMALL_WORLD, '2026-01-01', 0, SMALL_NETWORKS);
    const two = await publishBlocks(dir, SMALL_WORLD, '2026-01-01', 0, moved);
    const three = await publishBlocks(dir, SMALL_WORLD);
    const run = (...args: string[]) => ipatlas(['diff', ...args, '--networks', '--data', dir]);
    const { pairs, countries } = JSON.parse((await run(one, two, '--json')).stdout);
    expect([pairs, countries]).toEqual([
      [{ family: 4, from: 'AS3356', to: 'AS13335', addresses: String(2 ** 23 - 256), ranges: 2 }],
      [],
    ]);
    expect((await run(one, two)).stdout).toMatch(/AS3356 +AS13335 +8,388,352 +2/);
    expect(await run(two, three)).toMatchObject({ code: 5, stderr: expect.stringContaining('has no networks') });
    expect(await run(one, two, '--html', 'x')).toMatchObject({ code: 2 });
  });
});
