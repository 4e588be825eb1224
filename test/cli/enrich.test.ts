import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { basename, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { MAX_JOBS, MAX_LARGE_CHUNK_JOBS } from '../../src/limits.js';
import { finished, MAIN, shell, start } from '../support/cli.js';
import { dataDir, dir, enrich, file, setUpSmallWorld } from './support.js';

setUpSmallWorld();

function read(name: string): string {
  return readFileSync(join(dir, name), 'utf8');
}
function startEnrich(args: string[]) {
  return start(['enrich', '--data', dataDir, ...args]);
}

/** Runs a line of bash, in which "$NODE" "$MAIN" is ipatlas and "$DATA" its data directory. */
const bash = (line: string, env: NodeJS.ProcessEnv = {}) => shell(line, { DATA: dataDir, ...env });

const US = '"geo":{"country":"United States","country_code":"US","is_eu":false}';
const NL = '"geo":{"country":"Netherlands","country_code":"NL","is_eu":true}';

/** For each format, a few records of the input and the output, and one that is invalid. */
const FORMATS = [
  {
    format: 'jsonl',
    head: '',
    good: '{"ip":"8.8.8.8"}\n',
    bad: '[1]\n',
    tail: '',
    headOut: '',
    goodOut: `{"ip":"8.8.8.8",${US}}\n`,
  },
  {
    format: 'csv',
    head: 'id,ip\n',
    good: '"1",8.8.8.8\n',
    bad: '1\n',
    tail: '',
    headOut: 'id,ip,geo_country,geo_country_code,geo_is_eu\n',
    goodOut: '"1",8.8.8.8,United States,US,false\n',
  },
  {
    format: 'tsv',
    head: 'id\tip\n',
    good: '1\t8.8.8.8\n',
    bad: '1\n',
    tail: '',
    headOut: 'id\tip\tgeo_country\tgeo_country_code\tgeo_is_eu\n',
    goodOut: '1\t8.8.8.8\tUnited States\tUS\tfalse\n',
  },
  {
    format: 'json',
    head: '[\n{},\n',
    good: '{"ip":"8.8.8.8"},\n',
    bad: '[1],\n',
    tail: '{}]\n',
    headOut: '[\n{"geo":null},\n',
    goodOut: `{"ip":"8.8.8.8",${US}},\n`,
  },
];

describe.each(FORMATS)('$format', ({ format, head, good, bad, tail, headOut, goodOut }) => {
  const tailOut = tail.replace('{}', '{"geo":null}');

  it('reads stdin and writes stdout', async () => {
    const input = head + good + good + tail;
    const { code, stdout, stderr } = await enrich(['--format', format], { input });
    expect(stdout).toBe(headOut + goodOut + goodOut + tailOut);
    expect(code).toBe(0);
    // Not a terminal: no progress bar and no escape sequence, only the summary.
    expect(stderr).toMatch(/^\d+ lines, \d+ B in /);
    expect(stderr).toMatch(/\n {2}found +2\n/);
    expect(stderr).not.toContain('\x1b');
    expect(stderr).not.toContain('\r');
  });

  it('reads gzip with one or several members, under any file name', async () => {
    const packed = Buffer.concat([gzipSync(head + good.slice(0, 5)), gzipSync(good.slice(5)), gzipSync(tail)]);
    const expected = headOut + goodOut + tailOut;
    const fromFile = await enrich(['--format', format, file('input.txt', packed)]);
    expect(fromFile.stdout).toBe(expected);
    expect((await enrich(['--format', format], { input: packed })).stdout).toBe(expected);
    const damaged = await enrich(['--format', format, file('damaged.gz', packed.subarray(0, packed.length - 9))]);
    expect(damaged.code).toBe(4);
    expect(damaged.stderr).toContain('damaged.gz');
  });

  it('keeps, drops or fails at an invalid record, and writes it to the rejects', async () => {
    const input = head + good + bad + good + tail;
    const rejects = join(dir, 'rejects');
    const stats = join(dir, 'stats.json');
    const kept = await enrich(['--format', format, '--rejects', rejects, '--stats', stats], { input });
    expect(kept).toMatchObject({ code: 0, stdout: headOut + goodOut + bad + goodOut + tailOut });
    expect(read('rejects')).toBe(bad.replace(',', ''));
    const counts = JSON.parse(read('stats.json'));
    expect(Object.keys(counts)).toEqual([
      'lines',
      'bytes',
      'found',
      'no_country',
      'invalid_address',
      'missing_field',
      'invalid_line',
      'missing_date',
      'damaged_history',
      'seconds',
    ]);
    expect(counts).toMatchObject({ bytes: input.length, found: 2, invalid_line: 1, seconds: expect.any(Number) });

    const dropped = await enrich(['--format', format, '--rejects', rejects, '--on-invalid', 'drop'], { input });
    expect(dropped).toMatchObject({ code: 0, stdout: headOut + goodOut + goodOut + tailOut });
    expect(read('rejects')).toBe(bad.replace(',', ''));

    const path = file('some.input', input);
    const failed = await enrich(['--format', format, '--rejects', rejects, '--on-invalid', 'fail', path]);
    expect(failed.code).toBe(4);
    expect(failed.stderr).toContain('some.input');
    expect(failed.stderr).toContain(`line ${head.split('\n').length + 1}`);
    expect((headOut + goodOut + bad).startsWith(failed.stdout)).toBe(true);
    expect(failed.stdout.startsWith((headOut + goodOut).trimEnd().replace(/,$/, ''))).toBe(true);
    expect(read('rejects')).toBe(bad.replace(',', ''));
  });
});

/** Lines and documents, whose ends are written differently; what needs a process does not depend on the format otherwise. */
const LINES_AND_DOCUMENTS = FORMATS.filter(({ format }) => format === 'jsonl' || format === 'json');

describe.each(LINES_AND_DOCUMENTS)('a process, $format', ({ format, head, good, headOut, goodOut }) => {
  it('exits quietly when the reader closes the pipe', async () => {
    const pipe = `{ printf '%s' "$HEAD"; yes "$GOOD"; } | "$NODE" "$MAIN" enrich --data "$DATA" --format ${format} | head -n 2; echo "\${PIPESTATUS[1]}"`;
    const { stdout, stderr } = await bash(pipe, { HEAD: head, GOOD: good.trimEnd() });
    expect(stdout).toBe(`${(headOut + goodOut + goodOut).split('\n').slice(0, 2).join('\n')}\n0\n`);
    expect(stderr).toBe('');
  });

  it('writes complete lines when interrupted, and exits with 130', async () => {
    const child = startEnrich(['--format', format]);
    const end = finished(child);
    const firstOutput = once(child.stdout!, 'data');
    // The last line is incomplete, and stdin stays open.
    child.stdin!.write(head + good.repeat(3000) + good.slice(0, 7));
    await firstOutput;
    child.kill('SIGINT');
    const { code, stdout, stderr } = await end;
    expect(code).toBe(130);
    expect(stderr).toContain('SIGINT');
    const lines = Math.round((stdout.length - headOut.length) / goodOut.length);
    // The text between two items of a document is written with the second.
    expect(stdout).toBe(
      format === 'json' ? (headOut + goodOut.repeat(lines)).slice(0, stdout.length) : headOut + goodOut.repeat(lines),
    );
    expect(stdout.endsWith(goodOut.trimEnd().replace(/,$/, '')) || stdout.endsWith(goodOut)).toBe(true);
  });
});

describe('a process', () => {
  const { good, bad, goodOut } = FORMATS[0]!;

  it('replaces the output only at the end', async () => {
    const path = file('out', 'old');
    for (const [signal, result] of [
      ['SIGINT', { code: 130, signal: null }],
      ['SIGTERM', { code: null, signal: 'SIGTERM' }],
    ] as const) {
      const child = startEnrich(['-o', path]);
      const end = finished(child);
      child.stdin!.write(good.repeat(3000));
      while (readdirSync(dir).length === 1) await wait(20);
      child.kill(signal);
      expect(await end).toMatchObject(result);
      expect(readdirSync(dir)).toEqual(['out']);
      expect(read('out')).toBe('old');
    }
    const failing = await enrich(['-o', path, '--on-invalid', 'fail'], { input: bad });
    expect(failing.code).toBe(4);
    expect(readdirSync(dir)).toEqual(['out']);
    expect(read('out')).toBe('old');

    const done = await enrich(['-o', path], { input: good });
    expect(done).toMatchObject({ code: 0, stdout: '' });
    expect(read('out')).toBe(goodOut);
    expect(readdirSync(dir)).toEqual(['out']);
  });
});

describe('compressed output', () => {
  it('is a complete file of what precedes a failure', async () => {
    for (const input of ['8.8.8.8\n', '']) {
      const path = file('bad.jsonl', `${input === '' ? '' : '{"ip":"8.8.8.8"}\n'}broken\n`);
      const command = `node ${MAIN} enrich --data ${dataDir} -z gzip --on-invalid fail ${path}`;
      const { stdout } = await shell(`${command} 2> /dev/null | gzip -dc; echo "\${PIPESTATUS[@]}"`);
      expect(stdout.split('\n').at(-2)).toBe('4 0');
      expect(stdout.includes('"country_code":"US"')).toBe(input !== '');
    }
  });
});

describe('files', () => {
  it('are read in order, and never joined to the last line of the one before', async () => {
    const a = file('a', '8.8.8.8');
    const b = file('b', gzipSync('193.0.0.1\n::1'));
    const c = file('c', '');
    const { stdout, stderr } = await enrich(['--format', 'list', a, b, c, '-', a], { input: '10.0.0.1\n' });
    expect(stdout).toBe(
      '8.8.8.8\tUnited States\tUS\tfalse\n193.0.0.1\tNetherlands\tNL\ttrue\n::1\t\t\tfalse\n10.0.0.1\t\t\tfalse\n8.8.8.8\tUnited States\tUS\tfalse',
    );
    const bytes = 7 + statSync(b).size + 9 + 7;
    expect(stderr).toContain(`5 lines, ${bytes} B in `);
  });

  it('can be processed by as many jobs as are allowed', async () => {
    const path = file('a', '{"ip":"8.8.8.8"}\n');
    for (const jobs of [0, MAX_LARGE_CHUNK_JOBS, MAX_LARGE_CHUNK_JOBS + 1, MAX_JOBS]) {
      const run = await enrich(['--jobs', String(jobs), '--rejects', join(dir, 'rejects'), path]);
      expect(run).toMatchObject({ code: 0, stdout: `{"ip":"8.8.8.8",${US}}\n` });
    }
  });

  it('that do not exist are reported before the run starts', async () => {
    const out = join(dir, 'out');
    const { code, stdout, stderr } = await enrich([file('a', '{}\n'), join(dir, 'missing.jsonl'), '-o', out]);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain('missing.jsonl cannot be read: the file does not exist');
    expect(existsSync(out)).toBe(false);
  });
});

describe('-o', () => {
  it('may name the input, keeps permissions and follows a symbolic link', async () => {
    const path = file('list', '8.8.8.8\n');
    chmodSync(path, 0o640);
    symlinkSync('list', join(dir, 'link'));
    expect((await enrich(['--format', 'list', path, '-o', join(dir, 'link')])).code).toBe(0);
    expect(read('list')).toBe('8.8.8.8\tUnited States\tUS\tfalse\n');
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(readlinkSync(join(dir, 'link'))).toBe('list');
  });

  it('writes to a device or a pipe in place', async () => {
    expect((await enrich(['--format', 'list', '-o', '/dev/null'], { input: '8.8.8.8\n' })).code).toBe(0);
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true);
    const piped = bash('"$NODE" "$MAIN" enrich --data "$DATA" --format list -o /dev/stdout <<< ::1 | cat');
    expect((await piped).stdout).toBe('::1\t\t\tfalse\n');
  });

  it.each(['/nowhere/out', '.'])('says that it cannot write to %s', async (path) => {
    const { code, stderr } = await enrich(['-o', path]);
    expect(code).toBe(2);
    expect(stderr).toContain(path);
    expect(stderr).not.toContain('internal error');
  });

  it.skipIf(!existsSync('/dev/full'))('says when the disk is full (needs /dev/full)', async () => {
    const { code, stderr } = await enrich(['--format', 'list', '-o', '/dev/full'], { input: '8.8.8.8\n' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/\/dev\/full cannot be written: no space left on device/);
  });
});

describe('usage', () => {
  it.each([
    [['--format', 'xml'], '--format is "xml"; it can be jsonl, json, json-seq, csv, tsv, '],
    [['--on-invalid', 'ignore'], 'it can be keep, drop, fail'],
    [['--items', 'a'], '--items requires --format json'],
    [['--format', 'json', '--items', 'a..b'], 'empty key'],
    [['--jobs', '257'], '--jobs is "257"; write a whole number from 0 to'],
    [['--add', 'country,planet'], 'choose from country, country_code, is_eu, '],
    [['--field', 'a=x', '--field', 'b=x'], 'two fields would write to "x"'],
    [['--format', 'list', '--field', 'ip'], '--field cannot be used with --format list'],
    [['/'], '/ is a directory'],
  ])('%j is wrong', async (args, message) => {
    const { code, stdout, stderr } = await enrich(args);
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(code).toBe(2);
    expect(stdout).toBe('');
  });

  it.each(['--output', '--rejects', '--stats'])('reports that %s cannot be examined', async (flag) => {
    symlinkSync('loop', join(dir, 'loop'));
    const result = await enrich([flag, join(dir, 'loop')], { input: '{}\n' });
    expect(result).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/loop cannot be written: too many symbolic links/),
    });
  });

  it('does not write two outputs to one file', async () => {
    const input = file('in.jsonl', '{"ip":"8.8.8.8"}\nx\n');
    symlinkSync('there', join(dir, 'link'));
    file('there', 'as it was');
    for (const [one, other] of [
      ['new', './new'],
      ['there', 'link'],
    ]) {
      const args = [input, '-o', join(dir, one!), '--rejects', `${dir}/${other}`];
      expect(await enrich(args)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/--output and --rejects both name/),
      });
    }
    expect(existsSync(join(dir, 'new'))).toBe(false);
    expect(read('there')).toBe('as it was');
    expect(await enrich([input, '-o', '/dev/null', '--rejects', '/dev/null'])).toMatchObject({ code: 0 });
  });

  it('waits for the writer of a named pipe, and ends at Ctrl-C meanwhile', async () => {
    const pipe = join(dir, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const child = startEnrich(['-', pipe]);
    child.stdin?.end('{"ip":"8.8.8.8"}\n');
    await once(child.stdout!, 'data');
    child.kill('SIGINT');
    expect(await finished(child)).toMatchObject({ code: 130 });

    const late = startEnrich([pipe]);
    await wait(300);
    writeFileSync(pipe, '{"ip":"193.0.0.1"}\n');
    expect(await finished(late)).toMatchObject({ code: 0, stdout: `{"ip":"193.0.0.1",${NL}}\n` });
  });

  it.each(['--rejects', '--stats'])('does not overwrite an input (%s)', async (flag) => {
    const path = file('a', '{}\n');
    expect((await enrich([path, flag, join(dir, '..', basename(dir), 'a')])).code).toBe(2);
    expect(read('a')).toBe('{}\n');
  });
});

it('fails if the connection that it reads is reset, after what it has read', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [peer] = (await once(server, 'connection')) as [Socket];
  const args = [MAIN, 'enrich', '--data', dataDir];
  const child = spawn(process.execPath, args, { stdio: [client, 'pipe', 'pipe'] });
  const end = finished(child);
  client.destroy();
  peer.write('{"ip":"8.8.8.8"}\n{"ip"');
  await once(child.stdout!, 'data');
  peer.resetAndDestroy();
  expect(await end).toMatchObject({
    code: 4,
    stdout: `{"ip":"8.8.8.8",${US}}\n`,
    stderr: expect.stringMatching(/standard input cannot be read: read ECONNRESET/),
  });
  server.close();
});
