import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { recognizeFormat } from '../../pipeline/source-formats/recognize.js';
import { packageFile } from '../../src/package-root.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { type Block, country, publishBlocks } from '../support/release.js';

giveFolders();

function write(name: string, text: string): string {
  const path = join(dir, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const run = (...args: string[]) => ipatlas([...args, '--data', dataDir]);

/** Returns what an address had on a day, as `CODE is_eu`; or the exit code. */
async function answer(ip: string, day: string): Promise<string> {
  const { code, stdout } = await run('lookup', ip, '--json', '--at', day);
  if (code !== 0 && stdout === '') return `exit ${code}`;
  const { country_code, is_eu } = JSON.parse(stdout) as { country_code: string; is_eu: boolean };
  return `${country_code} ${is_eu}`;
}

describe('the format of a table', () => {
  const fixtures = packageFile('test/pipeline/fixtures/ingest');
  /** Formats of their own that read nothing but what their files tell, quoted rows, and lists without a country. */
  const others = [
    'aws-ip-ranges',
    'azure-service-tags',
    'cidr-list',
    'google-cloud',
    'laces-csv',
    'oracle-cloud',
    'origin-asn',
  ];
  it.each(readdirSync(fixtures).filter((format) => !others.includes(format)))('%s is recognized', (format) => {
    const files = readdirSync(join(fixtures, format)).sort();
    const heads = files.map((name) => ({ name, head: readFileSync(join(fixtures, format, name), 'latin1') }));
    // Rows of DB-IP without quotes are as those of ip-location-db.
    const expected = format === 'dbip-lite' ? 'ip-location-db' : format;
    expect(recognizeFormat(heads)).toBe(expected);
  });

  it.each([
    ['"1.0.0.0","1.0.0.255","AU"', 'dbip-lite'],
    ['"2001:200::","2001:200:ffff:ffff:ffff:ffff:ffff:ffff","JP"', 'dbip-lite'],
    ['prefix,country,region,city,postal\n1.0.0.0/24,AU,,,', 'geofeed'],
    ['2|apnic|20200101|1|19850701|20191231|+1000', 'rir-delegated-extended'],
    ['apnic|JP|ipv4|1.0.16.0|4096|20110412|allocated', 'rir-delegated-extended'],
    ['::,1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,ZZ', 'ip-location-db'],
    ['', 'ip-location-db'],
  ])('%s: %s', (head, format) => {
    expect(recognizeFormat([{ name: 'table.csv', head }])).toBe(format);
  });
});

describe('ipatlas history import', () => {
  it('answers from tables by their dates, with the membership of each day', async () => {
    const years = join(dir, 'years');
    write('years/world-2020-01-01.csv', '193.0.0.0,193.0.7.255,GB\n8.8.8.0,8.8.8.255,US\n');
    write('years/20210601/ipv4.csv', '193.0.0.0,193.0.7.255,DE\n');
    write('years/20210601/ipv6.csv', '2a00::,2a00:ffff:ffff:ffff:ffff:ffff:ffff:ffff,FR\n');
    const { code, stderr } = await run('history', 'import', years);
    expect(code).toBe(0);
    expect(stderr.replaceAll(/\d+ IPv/g, 'N IPv')).toBe(
      '2020-01-01: N IPv4 and N IPv6 ranges, world-2020-01-01.csv\n2021-06-01: N IPv4 and N IPv6 ranges, ipv4.csv, ipv6.csv\n',
    );
    expect(await answer('193.0.0.1', '2019-12-31')).toBe('exit 2');
    expect(await answer('193.0.0.1', '2020-01-31')).toBe('GB true');
    expect(await answer('193.0.0.1', '2020-02-01')).toBe('GB false');
    expect(await answer('2a00::1', '2021-05-31')).toBe('null false');
    expect(await answer('193.0.0.1', '2021-06-01')).toBe('DE true');
    expect(await answer('2a00::1', '2021-06-01')).toBe('FR true');
  });

  it('takes releases and compact forms, before what was published', async () => {
    const other = join(dir, 'other');
    const old = await publishBlocks(other, [['193.0.0.0/21', country('GB', 'United Kingdom')]], '2020-01-01');
    const compact = join(dir, 'copy-2021-01-01.ipc');
    expect(await ipatlas(['export', 'compact', '-o', compact, '--data', other])).toMatchObject({ code: 0 });
    await publishBlocks(dataDir, [['193.0.0.0/21', country('DE', 'Germany', true)]], '2026-01-01', 730);
    const release = join(other, 'releases', old);
    expect(await run('history', 'import', release, compact)).toMatchObject({ code: 0 });
    expect(await answer('193.0.0.1', '2020-01-31')).toBe('GB true');
    expect(await answer('193.0.0.1', '2021-01-01')).toBe('GB false');
    expect(await answer('193.0.0.1', new Date().toISOString().slice(0, 10))).toBe('DE true');
    const today = await run('history', 'import', '--date', new Date().toISOString().slice(0, 10), compact);
    expect(today).toMatchObject({ code: 2, stderr: expect.stringMatching(/releases have been published since/) });
  });

  it('removes what was imported, and nothing else', async () => {
    const table = write('table.csv', '193.0.0.0,193.0.7.255,GB\n');
    const other = write('other.csv', '193.0.0.0,193.0.7.255,DE\n');
    await run('history', 'import', '--date', '2020-01-01', table);
    await run('history', 'import', '--date', '2021-01-01', other);
    await run('history', 'import', '--date', '2022-01-01', table);
    const removed = await run('history', 'remove', '--from', '2020-02-01', '--to', '2021-12-31');
    expect(removed).toMatchObject({ code: 0, stderr: '2021-01-01 is removed\n' });
    const days = ['2020-01-01', '2021-01-01', '2022-01-01'];
    expect(await Promise.all(days.map((day) => answer('193.0.0.1', day)))).toEqual(['GB true', 'GB false', 'GB false']);
    const again = await run('history', 'remove', '--from', '2020-02-01', '--to', '2021-12-31');
    expect(again.stderr).toBe('nothing was imported for the days from 2020-02-01 to 2021-12-31\n');
    expect(await run('verify')).toMatchObject({ stderr: expect.not.stringMatching(/history/) });
  });

  it('takes networks, from tables and from releases', async () => {
    const table = write('asn-2020-01-01.csv', '193.0.0.0,193.0.7.255,3333,RIPE NCC\n');
    const imported = await run('history', 'import', '--format', 'origin-asn', table);
    expect(imported.stderr).toMatch(/^2020-01-01: \d+ IPv4 and \d+ IPv6 ranges of networks, asn-2020-01-01.csv\n$/);
    await run('history', 'import', '--date', '2020-01-01', write('table.csv', '193.0.0.0,193.0.7.255,GB\n'));
    const other = join(dir, 'other');
    const blocks: Block[] = [['193.0.0.0/21', country('GB', 'United Kingdom')]];
    const id = await publishBlocks(other, blocks, '2021-01-01', 0, [['193.0.0.0/22', 64496, 'Other']]);
    const compact = join(dir, 'copy-2022-01-01.ipc');
    await ipatlas(['export', 'compact', '--with', 'networks', '-o', compact, '--data', other]);
    await run('history', 'import', join(other, 'releases', id), compact);
    const find = async (day: string) => {
      const { stdout } = await run('lookup', '193.0.0.1', '--at', day, '--add', 'country_code,asn,network');
      return JSON.parse(stdout);
    };
    expect(await find('2020-12-31')).toMatchObject({ country_code: 'GB', asn: 3333, network: '193.0.0.0/21' });
    expect(await find('2021-01-01')).toMatchObject({ country_code: 'GB', asn: 64496, network: '193.0.0.0/22' });
    expect(await find('2022-01-01')).toMatchObject({ country_code: 'GB', asn: 64496 });
    await run('history', 'remove', '--from', '2021-01-01', '--to', '2022-01-01');
    expect(await find('2022-01-01')).toMatchObject({ asn: 3333 });
  });

  it('imports nothing if a day cannot be imported', async () => {
    const table = write('table.csv', '193.0.0.0,193.0.7.255,GB\n');
    await run('history', 'import', '--date', '2021-01-01', table);
    const years = join(dir, 'years');
    write('years/2020-01-01.csv', '193.0.0.0,193.0.7.255,GB\n');
    write('years/2021-01-01.csv', '193.0.0.0,193.0.7.255,GB\n');
    const { code, stderr } = await run('history', 'import', years);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/2021-01-01 is imported already/) });
    expect(await answer('193.0.0.1', '2020-06-01')).toBe('exit 2');
  });

  it.each<[string, string[], number, RegExp]>([
    ['table.csv', [], 2, /the name of .*table\.csv has no date/],
    ['table.csv', ['--date', '2021-02-30'], 2, /--date "2021-02-30" is not a date/],
    ['table.csv', ['--date', '2021-01-01', '--format', 'nonsense'], 2, /format "nonsense" is unknown/],
    ['table.csv', ['--date', '2021-01-01', '--format', 'ip2location-lite'], 4, /rows cannot be read/],
    ['table.csv', ['--date', '2021-01-01', '--from', '2021-01-01'], 2, /--from does not go with "history import"/],
    ['text-2020-01-01.csv', [], 4, /rows cannot be read/],
    ['broken-2020-01-01.ipc', [], 5, /broken-2020-01-01\.ipc/],
    ['missing-2020-01-01.csv', [], 2, /there is no file/],
  ])('%s %j exits with %d', async (name, flags, exit, message) => {
    write('table.csv', '193.0.0.0,193.0.7.255,GB\n');
    write('text-2020-01-01.csv', 'no table at all\nin two lines\n');
    write('broken-2020-01-01.ipc', 'no compact form');
    const { code, stderr } = await run('history', 'import', join(dir, name), ...flags);
    expect({ code, stderr }).toEqual({ code: exit, stderr: expect.stringMatching(message) });
    expect(await answer('193.0.0.1', '2021-01-01')).toBe('exit 2');
  });
});
