/** Recognition through the command: what it says, pipes, garbage, and that it changes nothing that flags say. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { knownLogs } from '../../src/enrich/known-logs.js';
import { finished, jsonLines, start } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, enrich, file, setUpSmallWorld } from './support.js';

setUpSmallWorld();

const NOTHING =
  /no addresses were found in the first 64 KiB or 100 lines as .*; .* say where with --format and --field/;

it('recognize prints objects, takes names of logs from a file, and says what was looked for', async () => {
  const own = { ...knownLogs().iptables, fields: ['peer'], line: '^own ' };
  const logs = file('logs.json', JSON.stringify({ logs: { own } }));
  const files = [
    file('own.log', 'own peer=8.8.8.8\n'),
    file('table.csv', '# of today\nid;src;dst\n1;8.8.8.8;9.9.9.9\n'),
    file('versions.csv', 'name,version\na,1.2.3.4\n'),
  ];
  const csv = "--format csv --delimiter ';' --field src";
  const { code, stdout } = await ipatlas(['recognize', '--json', '--logs', logs, ...files]);
  expect({ code, objects: stdout.split('\n') }).toEqual({
    code: 4,
    objects: [
      `{"file":"${files[0]}","format":"logfmt","log":"own","names":["own"],"fields":["peer"],"others":[],"command":"ipatlas enrich --log own"}`,
      `{"file":"${files[1]}","format":"csv","log":null,"names":[],"fields":["src"],"others":["dst"],"command":"ipatlas enrich ${csv}"}`,
      `{"file":"${files[2]}","format":null,"log":null,"names":[],"fields":[],"others":[],"command":null}`,
      '',
    ],
  });
  const said = await ipatlas(['recognize', ...files.slice(1), '-'], { input: '' });
  expect(said).toMatchObject({ code: 4, stdout: expect.stringMatching(NOTHING) });
  expect(said.stdout).toMatch(/^standard input: /m);
  expect(said.stdout).toContain(`table.csv: CSV, column src (also dst has addresses); the same with: ${csv}\n`);
});

/** Texts, with the flags that say what they are. */
const TEXTS: [text: string, ...flags: string[]][] = [
  ['# x\nid,src\n1,8.8.8.8\n', '--format', 'csv', '--field', 'src'],
  ['1\t8.8.8.8\n2\t"9.9.9.9"\n', '--format', 'tsv', '--no-header', '--field', '2'],
  ['{"a":{"client":"8.8.8.8:1"}}\n', '--format', 'jsonl', '--field', 'a.client', '--lenient'],
  ['{"message":"from 8.8.8.8 ok"}\n{"ip":null}\n', '--log', 'syslog-json', '--field', 'message'],
  ['[{"ip":"x","src":"8.8.8.8"},\n{}]', '--format', 'json', '--field', 'src'],
  ['a=1 src=8.8.8.8\n', '--format', 'logfmt', '--field', 'src'],
  ['8.8.8.8 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5\n', '--format', 'combined'],
  ['8.8.8.8\n::1', '--format', 'list'],
];

it.each(TEXTS)('%j without flags is as with %s %s …, and other flags are never changed', async (text, ...flags) => {
  const run = async (...args: string[]) => {
    const { code, stdout } = await enrich(args, { input: text });
    return [code, stdout];
  };
  const expected = await run(...flags, '--no-guess');
  expect([await run(), expected[0]]).toEqual([expected, 0]);
  for (const [, ...others] of TEXTS)
    expect([others, await run(...others)]).toEqual([others, await run(...others, '--no-guess')]);
});

it('a column that is not there is never said to be found', async () => {
  const { code, stderr } = await enrich(['--field', 'client.ip'], { input: 'created,b\n2026-01-01,8.8.8.8\n' });
  expect([code, stderr]).toEqual([2, expect.stringContaining('has no column "client.ip"')]);
  expect(stderr).not.toContain('CSV, column');
});

it('a row or an item that is longer than the sample is read to its end', async () => {
  const texts = [
    `Report\n\nid,note,src\n1,"${'a, b\n'.repeat(20_000)}",8.8.8.8\n2,,9.9.9.9\n`,
    `id|note|src\n1|${'x '.repeat(50_000)}|8.8.8.8\n`,
    `[\n{"note":"${'x'.repeat(100_000)}",\n"src":"8.8.8.8"}\n]\n`,
    `{\n"meta":[\n${'"x",\n'.repeat(20_000)}1],\n"rows":[{"src":"8.8.8.8"}]}\n`,
  ];
  const files = texts.map((text, at) => file(`long-${at}`, text));
  const { stdout } = await ipatlas(['recognize', '--json', ...files]);
  const found = jsonLines(stdout);
  expect(found.map(({ format, fields }) => [format, ...fields])).toEqual(
    ['csv', 'csv', 'json', 'json'].map((format) => [format, 'src']),
  );
});

it('garbage is passed on or refused with a clear word, and no byte is lost', async () => {
  const REFUSED = /is (?:compressed|encoded|a table|a tar|JSON)|header of a table|carriage return/;
  async function check(bytes: Uint8Array | string, word: RegExp): Promise<void> {
    const input = Buffer.from(bytes as string);
    const out = file('out', '');
    const { code, stderr } = await enrich(['-o', out], { input });
    expect([0, 4]).toContain(code);
    expect(stderr).toMatch(REFUSED.test(stderr) ? /^ipatlas: / : word);
    const output = readFileSync(out, 'latin1').split('\n');
    const lines = REFUSED.test(stderr) ? [] : input.toString('latin1').split('\n');
    for (const [at, line] of lines.entries())
      expect(output[at]?.startsWith(line.replace(/\}?\r?$/, '')), line).toBe(true);
  }
  const bytes = fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: 'binary' }));
  const runs = { numRuns: Number(process.env.FUZZ_RUNS ?? 60) };
  await fc.assert(
    fc.asyncProperty(bytes, (garbage) => check(garbage, /invalid lines/)),
    runs,
  );
  await check(readFileSync(process.execPath).subarray(0, 100_000), NOTHING);
  await check('', /^0 lines/m);
  for (const line of ['8.8.8.8', '{"src":"8.8.8.8"}', 'from 8.8.8.8', 'a, sentence, with\ncommas, no, address'])
    await check(line, /^\d lines?,/m);
});

it('a pipe whose first line decides is answered while it is open', async () => {
  const child = start(['enrich', '--data', dataDir, '--add', 'country_code']);
  const end = finished(child);
  for (const [line, answer] of Object.entries({ 'from 8.8.8.8': 'US', 'no address': '', 'from 193.0.0.1': 'NL' })) {
    child.stdin!.write(`${line}\n`);
    expect(String((await once(child.stdout!, 'data'))[0])).toBe(`${line}\t${answer}\n`);
  }
  child.stdin!.end();
  expect((await end).stderr).toContain('standard input: text; the same with: --format text');
});

it('a pipe whose first line is awaited ends with Ctrl-C', async () => {
  const child = start(['enrich', '--data', dataDir, '-o', join(dir, 'out')]);
  const end = finished(child);
  // The output is opened after signals are heard.
  while (readdirSync(dir).length === 0) await wait(5);
  child.kill('SIGINT');
  expect(await end).toMatchObject({ code: 130, stderr: expect.stringContaining('stopped by SIGINT before the end') });
});
