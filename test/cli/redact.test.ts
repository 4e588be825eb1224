/** `ipatlas enrich --redact` and `ipatlas redact`, as a user runs them. */
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ipatlas as runProcess } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { smallRelease } from '../support/release.js';

const dataDir = await smallRelease();

const file = (name: string): string => join(dataDir, name);
const INPUT = '{"ip":"8.8.8.8","m":"from 193.0.0.1"}\n{"ip":"193.0.0.1"}\nno record of 193.0.0.9\n';
const HIDDEN = /8\.8\.8\.8|193\.0\.0\.\d/;

describe('enrich --redact', () => {
  it('looks the whole addresses up, and leaves none in any output', async () => {
    const enrich = (args: string[]) =>
      ipatlas(['enrich', '--data', dataDir, '--no-guess', '--add', 'country_code', ...args], { input: INPUT });
    const flags = ['--rejects', file('rejects'), '--stats', file('stats'), '-o', file('out')];
    const { code, stderr } = await enrich(['--redact', 'drop', '--redact-all', ...flags]);
    expect(code).toBe(0);
    expect(readFileSync(file('out'), 'utf8')).toBe(
      '{"ip":null,"m":"from [redacted]","geo":{"country_code":"US"}}\n{"ip":null,"geo":{"country_code":"NL"}}\nno record of [redacted]\n',
    );
    expect(readFileSync(file('rejects'), 'utf8')).toBe('no record of [redacted]\n');
    const stats = readFileSync(file('stats'), 'utf8');
    expect(JSON.parse(stats).hidden).toEqual({ addresses: 4, searched_records: 2, records_with_others: 0 });
    expect(`${stderr}${stats}`).not.toMatch(HIDDEN);
    expect(stderr).toContain('4 addresses hidden; none in 2 records searched for others');

    const failed = await enrich(['--redact', 'truncate', '--on-invalid', 'fail']);
    expect(failed).toMatchObject({ code: 4, stdout: expect.stringContaining('"ip":"193.0.0.0"') });
    expect(failed.stderr).not.toMatch(HIDDEN);
    expect((await enrich(['--redact', 'truncate'])).stderr).toContain(
      '3 addresses hidden; of 2 records searched for others, 1 still has text that looks like one; --redact-all hides these, too',
    );
    const threads = runProcess(['enrich', '--data', dataDir, '--no-guess', '--redact', 'truncate', '--jobs', '2'], {
      input: INPUT.repeat(40_000),
    });
    expect((await threads).stdout).not.toMatch(/"ip":"(8\.8\.8\.8|193\.0\.0\.[1-9])"/);
  });

  it.each([
    [['--redact', 'x'], '--redact is "x"; it can be drop, truncate, ipcrypt, ipcrypt-pfx, or truncate:16,32'],
    [['--redact', 'drop', '--add', 'address'], '--redact and --add address exclude each other'],
    [['--redact', 'ipcrypt'], '--redact ipcrypt requires --redact-key'],
    [['--redact-all'], '--redact-all requires --redact'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await ipatlas(['enrich', '--data', dataDir, ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe('redact', () => {
  const redact = (args: string[], input = '') =>
    ipatlas(['redact', ...args], { input, env: { IPATLAS_DATA: '/none' } });

  it('makes keys, encrypts with them and decrypts, in any format that is found', async () => {
    const text = 'Jan 31 10:00:00 host sshd[7]: Failed password for x from 203.0.113.7 port 22\nfrom 203.0.113.8:443\n';
    for (const [how, digits] of [
      ['ipcrypt', 32],
      ['ipcrypt-pfx', 64],
    ] as const) {
      const key = file(how);
      expect(await redact(['--new-key', key, '--redact', how])).toMatchObject({ code: 0, stdout: '' });
      expect(readFileSync(key, 'utf8')).toMatch(new RegExp(`^[0-9a-f]{${digits}}\n$`));
      expect(statSync(key).mode & 0o777).toBe(0o600);
      expect(await redact(['--new-key', key, '--redact', how])).toMatchObject({ code: 2 });
      const flags = ['--redact', how, '--redact-key', key];
      const hidden = await redact(flags, text);
      expect(hidden.stdout).not.toContain('203.0.113');
      if (how === 'ipcrypt') expect(hidden.stdout).toMatch(/ \[[0-9a-f:]+\]:443\n$/);
      expect(await redact([...flags, '--reverse'], hidden.stdout)).toMatchObject({ code: 0, stdout: text });
    }
    chmodSync(file('ipcrypt'), 0o640);
    const open = await redact(['--redact', 'ipcrypt', '--redact-key', file('ipcrypt')], text);
    expect([open.code, open.stderr]).toEqual([2, expect.stringContaining('is accessible to other users')]);
    writeFileSync(file('short'), 'abc', { mode: 0o600 });
    const short = await redact(['--redact', 'ipcrypt', '--redact-key', file('short')], text);
    expect([short.code, short.stderr]).toEqual([2, expect.stringContaining('the key has 3 bytes; ipcrypt takes 16')]);
  });

  it('needs to be told how', async () => {
    expect(await redact([], '8.8.8.8\n')).toMatchObject({ code: 2, stderr: expect.stringContaining('--redact') });
    const stream = await ipatlas(['stream', '--server', 'nats://localhost', '--redact', 'drop']);
    expect([stream.code, stream.stderr]).toEqual([2, expect.stringContaining('--keep-keys')]);
  });
});

describe('enrich --inline', () => {
  const inline = (args: string[], input: string, jobs = '1') =>
    ipatlas(['enrich', '--data', dataDir, '--format', 'text', '--jobs', jobs, ...args], { input });

  it.each<[args: string[], expected: string]>([
    [['--inline'], 'a 8.8.8.8 [US]:53, b 193.0.0.1 [NL]-193.0.0.9 [NL] (10.0.0.1 [-])\nnone\n'],
    [
      ['--inline', '--add', 'country_code,is_eu'],
      'a 8.8.8.8 [US, false]:53, b 193.0.0.1 [NL, true]-193.0.0.9 [NL, true] (10.0.0.1 [-, false])\nnone\n',
    ],
    [
      ['--inline-template', '{country_code}={address}!'],
      'a US=8.8.8.8!:53, b NL=193.0.0.1!-NL=193.0.0.9! (-=10.0.0.1!)\nnone\n',
    ],
    [['--inline-template', '{country_code}'], 'a US:53, b NL-NL (-)\nnone\n'],
  ])('%j', async (args, expected) => {
    const input = 'a 8.8.8.8:53, b 193.0.0.1-193.0.0.9 (10.0.0.1)\nnone\n';
    expect(await inline(args, input)).toMatchObject({ code: 0, stdout: expected });
    // More addresses than get their results together, also in one line.
    const long = `${input.repeat(400)}${'8.8.8.8 '.repeat(5000)}\n`;
    const { stdout, stderr } = await inline(args, long);
    const one = expected.slice(2, expected.indexOf(':'));
    expect(stdout).toBe(`${expected.repeat(400)}${`${one} `.repeat(5000)}\n`);
    expect(stderr).toContain('missing field      400');
  });

  it.each([
    [['--inline-template', 'x'], '--inline-template "x" has no member'],
    [['--inline-template', '{city}'], 'has {city}, which is no member'],
    [['--inline-template', '{asn}', '--add', 'asn'], '--inline-template and --add exclude each other'],
    [['--inline', '--redact', 'drop'], '--inline and --redact exclude each other'],
    [['--inline', '--format', 'jsonl'], '--inline requires --format text'],
  ])('refuses %j', async (args, message) => {
    expect(await inline(args, '')).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
});

describe('extract', () => {
  const extract = async (args: string[], input: string) => (await ipatlas(['extract', ...args], { input })).stdout;
  const INPUT = [
    '{"ip":"8.8.8.8","x":["10.0.0.0/8, 1.2.3.4-1.2.3.9","::1"],"1.1.1.1":2,"y":"\\u0038.8.8.8"}',
    'no record 9.9.9.9/24/x 2001:db8::/32 8.8.8.8:53',
    '',
  ].join('\n');

  it.each<[args: string[], expected: string[]]>([
    [[], ['8.8.8.8', '10.0.0.0/8', '1.2.3.4-1.2.3.9', '::1', '8.8.8.8', '9.9.9.9', '2001:db8::/32', '8.8.8.8']],
    [['--unique'], ['8.8.8.8', '10.0.0.0/8', '1.2.3.4-1.2.3.9', '::1', '9.9.9.9', '2001:db8::/32']],
    [
      ['--count', '--public'],
      ['3\t8.8.8.8', '1\t1.2.3.4-1.2.3.9', '1\t9.9.9.9', '1\t2001:db8::/32'],
    ],
    [
      ['--field', 'ip', '--unique'],
      ['8.8.8.8', '9.9.9.9', '2001:db8::/32'],
    ],
  ])('%j', async (args, expected) => {
    expect(await extract(args, INPUT)).toBe(`${expected.join('\n')}\n`);
  });

  it('prints the lines, in tables and documents, too', async () => {
    expect(await extract(['--with', 'line', '--public'], 'a 8.8.8.8 10.0.0.1\n\nb 9.9.9.9, 1.1.1.1\n')).toBe(
      '8.8.8.8\ta 8.8.8.8 10.0.0.1\n9.9.9.9\tb 9.9.9.9, 1.1.1.1\n1.1.1.1\tb 9.9.9.9, 1.1.1.1\n',
    );
    expect(await extract(['--format', 'csv', '--with', 'line'], 'a,b\n"x\n1.1.1.1",2.2.2.2\n')).toBe(
      '1.1.1.1\t"x 1.1.1.1",2.2.2.2\n2.2.2.2\t"x 1.1.1.1",2.2.2.2\n',
    );
    expect(await extract(['--format', 'json'], '[{"a":"1.1.1.1"},\n"2.2.2.2"]\n')).toBe('1.1.1.1\n2.2.2.2\n');
    expect(await ipatlas(['extract', '--with', 'line', '--count'])).toMatchObject({ code: 2 });
  });
});
