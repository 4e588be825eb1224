/** Odd but valid input for all commands: nothing that they print is an accident of JavaScript. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { COMMANDS, loadCommands } from '../../src/cli/commands.js';
import { shell } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { writeSources } from '../support/sources.js';

const ACCIDENT = /\bNaN\b|\bundefined\b|\[object |internal error|\bInfinity\b/;

let dir: string;
let dataDir: string;
beforeAll(async () => {
  dir = temporaryDir();
  dataDir = join(dir, 'data');
  // A release with a single range, and one without a country.
  for (const rows of ['20.0.0.0,20.0.0.0,US\n', '20.0.0.0,20.0.0.0,??\n2a00::,2a00::,FR\n']) {
    await ipatlas(['build', '--sources', writeSources(dir, { one: rows }), '--data', dataDir, '--force']);
  }
  writeFileSync(join(dir, 'empty'), '');
  writeFileSync(join(dir, 'blank'), '\n\n');
  writeFileSync(join(dir, 'nulls'), '{"ip":null}\n{"ip":[]}\n{}\n');
});

const FILES = ['empty', 'blank', 'nulls'];
const lines = [
  ...['info', 'releases', 'verify', 'report', 'export csv', 'export cidr', 'keys list', 'export compact'],
  ...['diff current current', 'lookup 20.0.0.0', 'lookup ::', 'explain 20.0.0.0', 'explain ::ffff:1.2.3.4'],
  ...['history 20.0.0.0', 'history ::/0', 'history ::ffff:20.0.0.0/120', 'history 0.0.0.0/0', 'rollback'],
  // The list without a network; the default one, of real sources, is docs/rebuild.md's.
  'build --offline --sources sources.json',
  ...['country', 'eu', 'asn', 'network', 'continent'].flatMap((by) =>
    FILES.map((file) => `summarize --by ${by} ${file}`),
  ),
  ...FILES.flatMap((file) => [
    `enrich ${file}`,
    `filter --country DE ${file}`,
    `recognize ${file}`,
    `enrich --format csv ${file}`,
  ]),
];

it('prints no NaN, undefined, [object Object] or internal error', async () => {
  for (const line of lines) {
    for (const json of [false, true]) {
      const args = line.split(' ').map((word) => ([...FILES, 'sources.json'].includes(word) ? join(dir, word) : word));
      const { stdout, stderr, code } = await ipatlas([...args, '--data', dataDir, ...(json ? ['--json'] : [])]);
      expect(`${stdout}${stderr}`, `${line}, exit ${code}`).not.toMatch(ACCIDENT);
      expect(code, line).not.toBe(1);
    }
  }
  for (const { name } of await loadCommands()) {
    const { stdout, stderr } = await ipatlas([name, '--help']);
    expect(`${stdout}${stderr}`, name).not.toMatch(ACCIDENT);
  }
  expect(Object.keys(COMMANDS).length).toBeGreaterThan(20);
});

it('a reader of notes that has gone is no error', async () => {
  const { code } = await shell(
    `"$NODE" "$MAIN" enrich --none-ok --data '${dataDir}' '${join(dir, 'nulls')}' 2> >(true) > /dev/null`,
  );
  expect(code).toBe(0);
});

// nohup(1) opens the null device for writing only in place of a terminal, and bash gives its path to the program.
it.each(['"$NODE" "$MAIN" %s 0> /dev/null', 'nohup "$NODE" "$MAIN" %s < "$MAIN"'])(
  'a program under nohup outlives its terminal: %j',
  async (form) => {
    const command = `build --schedule '0 0 1 1 *' --data '${dataDir}' --sources '${join(dir, 'sources.json')}' 2> '${dir}/log'`;
    const wait = `until grep -q 'next build' '${dir}/log'; do sleep 0.1; done; kill -HUP $!; sleep 0.5; kill -TERM $! && wait $!`;
    expect((await shell(`${form.replace('%s', command)} & ${wait}`)).code).toBe(0);
  },
);
