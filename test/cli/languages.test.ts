/** Names of countries in other languages, `--lang`: those of CLDR, in each command that shows names. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { countryNames } from '../../src/country/names.js';
import { openDatabase } from '../../src/history/open.js';
import { jsonLines } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { country, publishBlocks, temporaryDir } from '../support/release.js';

const LANGUAGES = 'ar bg cs da de el es fi fr hi hu it ja ko pl pt-BR ru sv tr uk zh-Hant'.split(' ');
const { countries } = loadReference();

describe.each(LANGUAGES)('%s', (language) => {
  it('has a name for every country, which is not its code', () => {
    const nameOf = countryNames(language, 'lang');
    const missing = [...countries.keys()].filter((code) => ['', code].includes(nameOf(code, '')));
    expect(missing).toEqual([]);
  });
});

let dir: string;
beforeAll(async () => {
  dir = temporaryDir();
  const blocks = { '1.0.0.0/24': country('DE', 'Germany', true), '2.0.0.0/24': country('HK', 'Hong Kong') };
  await publishBlocks(join(dir, 'data'), Object.entries(blocks), '2026-01-01');
});

const run = (...args: string[]) =>
  ipatlas([...args, '--data', join(dir, 'data')], { input: '1.0.0.1\n2.0.0.1\n3.0.0.1\n' });

it.each<[string, string[]]>([
  ['de', ['Deutschland', 'Hongkong', '']],
  ['pt-BR', ['Alemanha', 'Hong Kong', '']],
  ['ja', ['ドイツ', '香港', '']],
  ['en', ['Germany', 'Hong Kong', '']],
  ['en-GB', ['Germany', 'Hong Kong', '']],
])('--lang %s names countries alike in lookup, enrich, summarize and the library', async (lang, names) => {
  const looked = await run('lookup', '-', '--lang', lang);
  expect(jsonLines(looked.stdout).map((each) => each.country ?? '')).toEqual(names);
  const fields = await run('lookup', '-', '--lang', lang, '--add', 'country');
  expect(jsonLines(fields.stdout).map((each) => each.country ?? '')).toEqual(names);
  const enriched = await run('enrich', '--format', 'list', '--add', 'country', '--lang', lang);
  expect(
    enriched.stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t')[1] ?? ''),
  ).toEqual(names);
  const counted = await run('summarize', '--format', 'list', '--json', '--lang', lang);
  expect(JSON.parse(counted.stdout).countries.map((one: { country: string }) => one.country)).toEqual(
    names.slice(0, 2),
  );
  const database = openDatabase(join(dir, 'data'), { lang });
  expect(database.lookup('1.0.0.1')).toMatchObject({ country: names[0], country_code: 'DE', is_eu: true });
  database.close();
});

it.each(['tlh', 'german', 'd', '', 'de_DE', '../de'])(
  '--lang %j is refused, and the message says what a tag is',
  async (lang) => {
    for (const command of ['lookup', 'enrich', 'summarize']) {
      const { code, stdout, stderr } = await run(command, ...(command === 'lookup' ? ['-'] : []), '--lang', lang);
      expect([command, code, stdout]).toEqual([command, 2, '']);
      expect(stderr).toMatch(/^ipatlas: --lang is .*such as de, pt-BR or zh-Hant/);
    }
  },
);
