/** Groups of countries, the European Union and the European Economic Area: as members of results, and in lists of countries. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { jsonLines } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { country, publishBlocks, reason, temporaryDir } from '../support/release.js';

const BLOCKS = {
  '1.0.0.0/24': country('DE', 'Germany', true),
  '2.0.0.0/24': country('NO', 'Norway'),
  '3.0.0.0/24': country('GB', 'United Kingdom', true),
  '4.0.0.0/24': country('CH', 'Switzerland'),
  '5.0.0.0/24': country('RO', 'Romania', true),
  '10.0.0.0/8': reason('private'),
};
const ADDRESSES = ['1.0.0.1', '2.0.0.1', '3.0.0.1', '4.0.0.1', '5.0.0.1', '10.0.0.1'];

let dir: string;
let input: string;
beforeAll(async () => {
  dir = temporaryDir();
  input = join(dir, 'addresses.txt');
  writeFileSync(input, `${ADDRESSES.join('\n')}\n`);
  // The last day of the United Kingdom, and a day on which Romania was in the Union and not yet in the Area.
  for (const day of ['2020-01-31', '2007-01-01']) await publishBlocks(join(dir, day), Object.entries(BLOCKS), day);
});

const run = (day: string, ...args: string[]) => ipatlas([...args, '--data', join(dir, day)]);

describe.each([
  ['2020-01-31', [true, true, true, false, true, false]],
  ['2007-01-01', [true, true, true, false, false, false]],
])('is_eea as of %s', (day, expected) => {
  it('of the library, of lookup and of enrich is the same', async () => {
    const database = openDatabase(join(dir, day));
    expect(ADDRESSES.map((ip) => database.fields(['is_eea'])(ip)!.is_eea)).toEqual(expected);
    database.close();
    const looked = await run(day, 'lookup', '--json', '--add', 'is_eea', ...ADDRESSES);
    const enriched = await run(day, 'enrich', '--format', 'list', '--add', 'is_eea', input);
    expect(jsonLines(looked.stdout).map((each) => each.is_eea)).toEqual(expected);
    expect(
      enriched.stdout
        .trim()
        .split('\n')
        .map((line) => line.split('\t')[1] === 'true'),
    ).toEqual(expected);
  });

  it('decides what filter --country EEA passes on', async () => {
    const { stdout } = await run(day, 'filter', '--country', 'EEA', '--format', 'list', input);
    expect(stdout.trim().split('\n')).toEqual(ADDRESSES.filter((_, index) => expected[index]));
  });

  it('decides what export --countries EEA has', async () => {
    const { stdout } = await run(day, 'export', 'cidr', '--countries', 'EEA', '--family', '4');
    for (const [index, ip] of ADDRESSES.entries())
      expect(stdout.includes(ip.replace(/1$/, '0/24')), ip).toBe(expected[index]);
  });
});

it.each<[string[], string[]]>([
  [
    ['--country', 'EU,CH'],
    ['1.0.0.1', '3.0.0.1', '4.0.0.1', '5.0.0.1'],
  ],
  [
    ['--country', 'eea', '--country', 'ch'],
    ['1.0.0.1', '2.0.0.1', '3.0.0.1', '4.0.0.1', '5.0.0.1'],
  ],
  [
    ['--eu', '--country', 'CH'],
    ['1.0.0.1', '3.0.0.1', '4.0.0.1', '5.0.0.1'],
  ],
  [['--not', '--country', 'EU,EEA,CH'], ['10.0.0.1']],
])('filter %j', async (flags, expected) => {
  const { stdout } = await run('2020-01-31', 'filter', ...flags, '--format', 'list', input);
  expect(stdout.trim().split('\n')).toEqual(expected);
});

it('export --eu --countries is both together, as EU in the list is', async () => {
  const [both, listed] = await Promise.all([
    run('2020-01-31', 'export', 'cidr', '--eu', '--countries', 'CH'),
    run('2020-01-31', 'export', 'cidr', '--countries', 'EU,CH'),
  ]);
  expect(both.stdout).toBe(listed.stdout);
  expect(both.stdout.match(/^\d[^#\n]*/gm)).toHaveLength(4);
});

it.each(['DE,,FR', 'EUR', 'D', '12', ''])('a list of countries that is %j is refused', async (list) => {
  for (const command of [
    ['filter', '--country', list, input],
    ['export', 'cidr', '--countries', list],
  ]) {
    const { code, stderr } = await run('2020-01-31', ...command);
    expect(code).toBe(2);
    expect(stderr).toMatch(/EU or EEA/);
  }
});
