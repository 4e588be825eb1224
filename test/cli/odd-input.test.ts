/** Odd but valid input for all commands: nothing that they print is an accident of JavaScript. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { choicesOf, type Flag } from '../../src/cli/command.js';
import { allFlags } from '../../src/cli/command-line.js';
import { loadCommands } from '../../src/cli/commands.js';
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

/** Commands that stay, or wait for a server. */
const STAY = ['serve', 'stream', 'pull'];
/** Flags that stay, that wait, or that the test gives. */
const OWN_FLAGS = ['schedule', 'wait', 'data', 'sources'];
/** Values and operands: most mean something to some command. */
const WORDS = [
  ...[
    'empty',
    'blank',
    'nulls',
    'sources.json',
    'out',
    '-',
    '',
    '0',
    '1',
    '7',
    '1e9',
    'ip',
    'a.b[]',
    '0.0.0.0/0',
    '::/0',
  ],
  ...[
    '20.0.0.0',
    '2a00::',
    '::ffff:20.0.0.0',
    '::ffff:20.0.0.0/120',
    '255.255.255.255',
    'current',
    '2026-01-01',
    '9999-12-31',
  ],
  ...['DE', 'EU', 'XX', 'AS0', '4294967295', 'csv', 'json', 'text', 'nginx', 'country', 'asn', 'network', 'eu', 'line'],
];

it('no command prints NaN, undefined, [object Object] or internal error, whatever flags and words it gets', async () => {
  const commands = (await loadCommands()).filter(({ name }) => !STAY.includes(name));
  expect(commands.length).toBeGreaterThan(20);
  const word = fc.constantFrom(...WORDS);
  const line = fc.constantFrom(...commands).chain(({ name, command }) => {
    const flags = Object.entries(allFlags(command)).filter(([flag]) => !OWN_FLAGS.includes(flag));
    const actions = Object.keys(command.actions ?? command.words ?? {}).filter((action) => action !== '');
    const flag = fc.constantFrom(...flags).chain(([key, { value, ...facts }]) => {
      const values = [...(choicesOf(facts as Flag) ?? []), ...(facts.common?.().slice(0, 8) ?? [])];
      const given = values.length === 0 ? word : fc.oneof(fc.constantFrom(...values), word);
      return value === undefined ? fc.constant(`--${key}`) : given.map((text) => `--${key}=${text}`);
    });
    const first = actions.length === 0 ? fc.constant([]) : fc.constantFrom(...actions).map((action) => [action]);
    return fc
      .record({ first, flags: fc.array(flag, { maxLength: 3 }), operands: fc.array(word, { maxLength: 2 }) })
      .map((parts) => {
        // Without sources of its own, a build would fetch those of the world.
        const own = 'sources' in allFlags(command) ? ['--sources=sources.json'] : [];
        return [name, ...parts.first, ...own, ...parts.flags, ...parts.operands];
      });
  });
  await fc.assert(
    fc.asyncProperty(line, async (args) => {
      const { stdout, stderr, code } = await ipatlas([...args, `--data=${dataDir}`], { cwd: dir });
      expect(`${stdout}${stderr}`).not.toMatch(ACCIDENT);
      expect(code).not.toBe(1);
    }),
    { numRuns: Number(process.env.FUZZ_RUNS ?? 200) },
  );
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
    // A log of its own: in that of another run, "next build" would be there before the program is.
    const log = join(dir, `log-${form.length}`);
    const command = `build --schedule '0 0 1 1 *' --data '${dataDir}' --sources '${join(dir, 'sources.json')}' 2> '${log}'`;
    const wait = `until grep -qs 'next build' '${log}'; do sleep 0.1; done; kill -HUP $!; sleep 0.5; kill -TERM $! && wait $!`;
    expect((await shell(`${form.replace('%s', command)} & ${wait}`)).code).toBe(0);
  },
);
