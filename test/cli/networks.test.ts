/** `filter --asn` and `summarize --by asn|network|continent`, compared with lookups of fields. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { ipatlas } from '../support/in-process.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

const ADDRESSES = [
  ...['8.8.8.8', '8.8.8.9', '8.8.9.1', '8.128.0.1', '80.1.1.1', '81.1.1.1', '90.0.0.1', '10.0.0.1', '193.0.0.1', '::1'],
  ...[
    '2001:4860::8888',
    '2a00:1::1',
    '2a00:1:0:1::42',
    '2a00:5::1',
    '::ffff:8.8.8.8',
    '2002:808:808::1',
    '64:ff9b::808:808',
  ],
  ...['2001:0:1::f7f7:f7f7', '8.8.8.200', '90.0.255.255', '255.255.255.255'],
];

const dir = temporaryDir();
const data = join(dir, 'data');
const without = join(dir, 'without');
await publishBlocks(data, SMALL_WORLD, undefined, 0, SMALL_NETWORKS);
await publishBlocks(without, SMALL_WORLD);
const database = openDatabase(data);
const input = join(dir, 'addresses.txt');
writeFileSync(input, `${ADDRESSES.join('\n')}\nno address\n`);
afterAll(() => {
  database.close();
});

const run = (...args: string[]) => ipatlas(['--data', data, ...args, '--format', 'list', '--jobs', '1', input]);

describe('filter --asn', () => {
  it.each<[list: string, args: string[], isSelected: (asn: number | null, code: string | null) => boolean]>([
    ['15169', [], (asn) => asn === 15169],
    ['AS3356,as4294967295', [], (asn) => asn === 3356 || asn === 4294967295],
    ['1', [], () => false],
    ['15169', ['--country', 'FR'], (asn, code) => asn === 15169 || code === 'FR'],
  ])('%s %j passes on what lookups find there, and with --not the others', async (list, args, isSelected) => {
    const find = database.fields(['asn', 'country_code']);
    const selected = ADDRESSES.filter((ip) => {
      const { asn, country_code } = find(ip)!;
      return isSelected(asn!, country_code!);
    });
    const others = [...ADDRESSES.filter((ip) => !selected.includes(ip)), 'no address'];
    const lines = (list: string[]): string => list.map((line) => `${line}\n`).join('');
    expect((await run('filter', '--asn', list, ...args)).stdout).toBe(lines(selected));
    expect((await run('filter', '--asn', list, ...args, '--not')).stdout).toBe(lines(others));
  });

  it.each(['', 'x', '0', '4294967296', '1,,2', 'AS'])('refuses %j', async (list) => {
    expect(await run('filter', '--asn', list)).toMatchObject({ code: 2, stderr: expect.stringContaining('--asn has') });
  });
});

describe('summarize --by', () => {
  it.each(['asn', 'network'] as const)('%s counts as lookups do', async (by) => {
    const { stdout } = await run('summarize', '--by', by, '--json');
    const summary = JSON.parse(stdout) as { networks: Record<string, unknown>[]; no_network: number };
    const find = database.fields(['asn', 'as_name', 'network']);
    const counts = new Map<string, number>();
    let none = 0;
    for (const ip of ADDRESSES) {
      // An address that embeds an IPv4 address counts for the block of that one.
      const inside = /^(2002:|64:ff9b:|2001:0:|::ffff:)/.test(ip) ? '8.8.8.8' : ip;
      const { asn, as_name, network } = find(inside)!;
      const key = JSON.stringify(by === 'asn' ? { asn, as_name } : { network, asn, as_name });
      if (asn === null) none++;
      else counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const found = new Map(summary.networks.map(({ count, ...group }) => [JSON.stringify(group), count]));
    expect(found).toEqual(counts);
    expect(summary.no_network).toBe(none);
    const order = summary.networks.map(({ count }) => count as number);
    expect(order).toEqual([...order].sort((a, b) => b - a));
  });

  it('continent counts the continents of countries', async () => {
    const { stdout } = await run('summarize', '--by', 'continent', '--json');
    const { continents } = JSON.parse(stdout) as { continents: { continent: string; count: number }[] };
    const find = database.fields(['continent']);
    const all = ADDRESSES.map((ip) => find(ip)!.continent);
    for (const { continent, count } of continents) expect(count).toBe(all.filter((one) => one === continent).length);
    expect(continents.map(({ continent }) => continent)).toEqual(['NA', 'EU', 'AF']);
  });

  it('shows the most frequent only with --top, and what is left', async () => {
    const { stdout } = await run('summarize', '--by', 'asn', '--top', '1', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      by: 'asn',
      networks: [{ asn: 15169, as_name: 'Google LLC', count: 8 }],
      others: 8,
      no_network: 5,
      invalid_address: 1,
    });
    const table = (await run('summarize', '--by', 'asn', '--top', '1')).stdout;
    expect(table).toMatch(/^number +name +lines +share\nAS15169 +Google LLC +8 /);
    expect(table).toMatch(/\n +4 more +8 .*\n +no network +5 .*\n +invalid address +1 /);
    expect(await run('summarize', '--top', '0')).toMatchObject({ code: 2 });
  });
});

describe('without networks', () => {
  it.each([
    ['filter', '--asn', '1'],
    ['filter', '--asn', '1', '--not'],
    ['summarize', '--by', 'asn'],
    ['summarize', '--by', 'network'],
  ])('%s %s %s ends with exit code 5', async (...args) => {
    const result = await ipatlas(['--data', without, ...args, '--format', 'list', input]);
    expect(result).toMatchObject({ code: 5, stdout: '', stderr: expect.stringContaining('has no networks') });
  });

  it('enrich says why they are null', async () => {
    const { code, stderr } = await ipatlas(['--data', without, 'enrich', '--add', 'asn', '--format', 'list', input]);
    expect([code, stderr]).toEqual([0, expect.stringContaining('has no networks, so asn and as_name are null')]);
  });
});
