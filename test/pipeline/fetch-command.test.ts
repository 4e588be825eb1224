/** Sources whose file is what a command prints. */
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { loadSources } from '../../pipeline/config/sources.js';
import type { FetchOptions } from '../../pipeline/stages/fetch.js';
import { buildOnce, manifestOf } from '../support/sources.js';
import { atlasError, runFetch, scratchDir, source, textsOf } from './fetch-support.js';

const NODE = process.execPath;
/** More than a pipe holds, so that a reader in between would be noticed. */
const ROWS = '9.0.0.0,9.0.0.255,DE\n'.repeat(20_000);
const LIMITS = { retries: 1 };

/** Returns a source that runs a command in a folder. */
const from = (dir: string, command: string[], timeout?: string) =>
  source({ kind: 'command', command, file: 'ranges.csv', files: [], baseDir: dir, timeout });

/** Returns a source that runs a script, with arguments. */
const script = (dir: string, code: string, timeout?: string, ...args: string[]) =>
  from(dir, [NODE, '-e', code, '--', ...args], timeout);

const good = `process.stdout.write(${JSON.stringify(ROWS.slice(0, 21))}.repeat(20_000))`;

it('takes the output as the file, packed or not, with arguments and environment as they are', async () => {
  const dir = scratchDir();
  const hostile = [
    '$(touch hacked)',
    '`touch hacked`',
    '; touch hacked',
    '"\'\\',
    'a\nb',
    '*',
    '$HOME',
    '-n',
    '&&',
    '\u00e9\t',
  ];
  const echo = 'process.stdout.write(JSON.stringify([process.argv.slice(1), process.env.TEAM, process.cwd()]))';
  const env = { ...process.env, TEAM: 'a b' };
  const echoed = await runFetch([script(dir, echo, undefined, ...hostile)], dir, { env });
  expect(JSON.parse(textsOf(echoed.output[0])['ranges.csv']!)).toEqual([hostile, 'a b', dir]);
  expect(existsSync(path.join(dir, 'hacked'))).toBe(false);

  const zipped = `process.stdout.write(require('zlib').gzipSync(${JSON.stringify(ROWS)}))`;
  writeFileSync(path.join(dir, 'zip.js'), zipped);
  for (const each of [script(dir, good), from(dir, [NODE, './zip.js'])]) {
    const { output, counts } = await runFetch([each], dir);
    expect(textsOf(output[0])).toEqual({ 'ranges.csv': ROWS });
    expect(counts).toMatchObject({ network: 1 });
  }
});

it.each<[string, string[], FetchOptions & { timeout?: string }, RegExp, number]>([
  [
    'hangs',
    ['bash', '-c', 'sleep 600 & sleep 600'],
    { timeout: '300ms' },
    /ended by SIGKILL after \d+ s \(the limit is 0.3 s\)/,
    1,
  ],
  ['writes too much', ['yes'], { limits: { maxDownloadBytes: 100_000 } }, /it wrote more than 100000 bytes/, 0],
  [
    'fails after half of the data',
    [NODE, '-e', `${good}; console.error('gone'); process.exitCode = 1`],
    {},
    /its exit code is 1; its last lines:\n {4}gone\n/,
    1,
  ],
  [
    'prints a secret',
    ['bash', '-c', 'echo "no entry for $MY_TOKEN" >&2; exit 4'],
    { env: { ...process.env, MY_TOKEN: 'hunter2' } },
    /its exit code is 4; its last lines:\n {4}no entry for \*\*\*\n/,
    1,
  ],
  [
    'is missing',
    ['no-such-program-here', 'secret-argument'],
    {},
    /ranges\.csv from no-such-program-here: it was not found/,
    0,
  ],
])(
  'keeps the cached copy if a command %s, or says what is wrong',
  async (_what, command, { timeout, ...options }, message, retries) => {
    const dir = scratchDir();
    const bad = from(dir, command, timeout);
    const limits = { ...LIMITS, ...options.limits };
    const error = await atlasError(runFetch([bad], dir, { ...options, limits }));
    expect([error.code, error.message]).toEqual(['E_FETCH', expect.stringMatching(message)]);
    expect(error.message).not.toMatch(/hunter2|secret-argument/);
    expect(existsSync(path.join(dir, 'cache'))).toBe(false);

    // The same command gave something the last time.
    writeFileSync(path.join(dir, 'flag'), '');
    const once = [
      'bash',
      '-c',
      `test -e flag && { rm flag; ${'echo 9.0.0.0,9.0.0.255,DE;'} exit 0; }; exec "$0" "$@"`,
      ...command,
    ];
    const run = () => runFetch([from(dir, once, timeout)], dir, { ...options, limits });
    await run();
    const { output, notes, waits } = await run();
    expect([textsOf(output[0]), output[0]!.from]).toEqual([{ 'ranges.csv': '9.0.0.0,9.0.0.255,DE\n' }, 'cache']);
    expect(notes.join('\n')).toMatch(/using the copy fetched on/);
    expect(notes.join('\n')).not.toContain('hunter2');
    expect(waits.length).toBe(retries);
    expect((await runFetch([from(dir, once, timeout)], dir, { offline: true })).output[0]!.from).toBe('cache');
  },
);

it('kills all processes of a command that takes too long', async () => {
  const dir = scratchDir();
  const command = ['bash', '-c', '(sleep 1; touch late) & sleep 600'];
  await atlasError(runFetch([from(dir, command, '300ms')], dir, { limits: { retries: 0 } }));
  await new Promise((done) => setTimeout(done, 1500));
  expect(existsSync(path.join(dir, 'late'))).toBe(false);
});

it('is configured in a file that others cannot write, and no argument of it gets into the manifest', async () => {
  const dir = scratchDir();
  const file = path.join(dir, 'sources.json');
  const write = (fetch: object) =>
    writeFileSync(file, JSON.stringify({ sources: [{ id: 'a', license: 'x', format: 'ip-location-db', fetch }] }));
  const command = ['bash', '-c', 'printf "%s\\n" "$@"', '--', '8.8.8.0,8.8.8.255,DE', '9.0.0.0,9.0.0.255,FR'];
  write({ command, file: 'ranges.csv', timeout: '10s' });
  const data = path.join(dir, 'data');
  const built = await buildOnce(data, file, { offline: false, asOf: '2026-01-01', force: true });
  expect(built).toMatchObject({ outcome: 'published' });
  expect(manifestOf(data).inputs[0]).toMatchObject({ place: 'ranges.csv from bash', rows: 2 });
  expect(JSON.stringify(manifestOf(data))).not.toContain('printf');

  chmodSync(file, 0o666);
  expect((await atlasError(loadSources(file))).message).toMatch(/has commands, but can be written by other users/);
  chmodSync(file, 0o600);
  for (const [fetch, message] of [
    [{ command }, /sources\[0\]\.fetch\.file is missing/],
    [{ command: [], file: 'x' }, /sources\[0\]\.fetch\.command is \[\]; expected/],
    [{ command: 'aws s3', file: 'x' }, /sources\[0\]\.fetch\.command is "aws s3"; expected array/],
    [
      { command: ['a\u0000'], file: 'x' },
      /sources\[0\]\.fetch\.command\[0\] is .*; expected text without a null character/,
    ],
    [{ command, file: 'x', https: 'https://a.example/' }, /exactly one of "npm", "https", "command"/],
    [{ command, file: 'x', timeout: 'soon' }, /sources\[0\]\.fetch\.timeout is "soon"; expected a duration/],
    [{ file: 'x', timeout: '5s' }, /sources\[0\]\.fetch\.command is missing/],
  ] as const) {
    write(fetch);
    expect((await atlasError(loadSources(file))).message).toMatch(message);
  }
});
