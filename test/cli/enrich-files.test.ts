import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { finished, shell, start, terminal } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, enrich, file, setUpSmallWorld } from './support.js';

setUpSmallWorld();

/** Runs a line of bash, in which "$NODE" "$MAIN" is ipatlas, "$DATA" its data directory, and "$DIR" the test's folder. */
const bash = (line: string) => shell(line, { DATA: dataDir, DIR: dir });

const LINE = '{"ip":"8.8.8.8"}\n';
const ENRICHED = '{"ip":"8.8.8.8","geo":{"country":"United States","country_code":"US","is_eu":false}}\n';

describe('the output', () => {
  it('is never readable by more users than the file that it replaces', async () => {
    const path = file('out', 'old');
    chmodSync(path, 0o600);
    const child = start(['enrich', '--data', dataDir, '-o', path]);
    const end = finished(child);
    while (readdirSync(dir).length === 1) await wait(5);
    for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o777, name).toBe(0o600);
    child.stdin!.end(LINE);
    expect((await end).code).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe(ENRICHED);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('of a run that was killed is the old one, and leaves no temporary file after the next run', async () => {
    const path = file('out', 'old');
    const child = start(['enrich', '--data', dataDir, '-o', path]);
    const end = finished(child);
    child.stdin!.write(LINE.repeat(3000));
    while (readdirSync(dir).length === 1) await wait(5);
    child.kill('SIGKILL');
    expect((await end).signal).toBe('SIGKILL');
    expect(readdirSync(dir).length).toBe(2);
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect((await enrich(['-o', path], { input: LINE })).code).toBe(0);
    expect(readdirSync(dir)).toEqual(['out']);
  });

  it('is standard output for "-"', async () => {
    const result = await enrich(['-o', '-'], { input: LINE, cwd: dir });
    expect(result).toMatchObject({ code: 0, stdout: ENRICHED });
    expect(readdirSync(dir)).toEqual([]);
  });

  it.each(['--output', '--rejects', '--stats'])('refuses an empty name (%s)', async (flag) => {
    const result = await enrich([flag, ''], { input: LINE });
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(`${flag} is empty`) });
  });

  it.each([
    ['"$DIR/f"', '>>', LINE],
    ['- < "$DIR/f"', '>>', LINE],
    ['< "$DIR/f"', '>', ''],
  ])('is not an input (%s %s)', async (input, redirection, left) => {
    file('f', LINE);
    const result = await bash(`"$NODE" "$MAIN" enrich --data "$DATA" ${input} ${redirection} "$DIR/f"`);
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining('is also the output') });
    expect(readFileSync(join(dir, 'f'), 'utf8')).toBe(left);
  });
});

describe('a reader that closes the pipe', () => {
  /** Runs enrich with a closed standard output. */
  function withClosedOutput(args: string[], input: string) {
    const child = start(['enrich', '--data', dataDir, ...args]);
    const end = finished(child);
    child.stdout!.destroy();
    child.stdin!.end(input);
    return end;
  }

  it('of the rejects or the statistics does not stop the output', async () => {
    for (const flag of ['--rejects', '--stats']) {
      const end = await withClosedOutput(['-o', join(dir, 'out'), flag, '-'], `bad\n${LINE}`.repeat(1000));
      expect(end).toMatchObject({ code: 0, stderr: expect.stringMatching(/found +1,000\n/) });
      expect(readFileSync(join(dir, 'out'), 'utf8')).toBe(`bad\n${ENRICHED}`.repeat(1000));
    }
  });

  it('of standard output ends the run, and of a named pipe is an error', async () => {
    expect(await withClosedOutput([], LINE)).toMatchObject({ code: 0, stderr: '' });
    execFileSync('mkfifo', [join(dir, 'pipe')]);
    file('in.jsonl', LINE.repeat(100_000));
    const line =
      'head -c1 "$DIR/pipe" > /dev/null & "$NODE" "$MAIN" enrich --data "$DATA" -o "$DIR/pipe" "$DIR/in.jsonl"';
    expect(await bash(line)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('cannot be written: broken pipe'),
    });
  });
});

it('a signal ends a run that waits for the reader of a named pipe', async () => {
  execFileSync('mkfifo', [join(dir, 'pipe')]);
  const child = start(['enrich', '--data', dataDir, '-o', join(dir, 'pipe')]);
  const end = finished(child);
  const timer = setInterval(() => child.kill('SIGINT'), 100);
  expect(await end).toMatchObject({ code: null, signal: 'SIGINT' });
  clearInterval(timer);
});

it('a pipe is read where sockets take no descriptor, as in Bun', async () => {
  const code = "Object.defineProperty(process, 'versions', { value: { ...process.versions, bun: '1.4.5' } })";
  const env = { DATA: dataDir, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
  const piped = await shell(`cat <<< '${LINE.trim()}' | "$NODE" "$MAIN" enrich --data "$DATA"`, env);
  expect(piped).toMatchObject({ code: 0, stdout: ENRICHED });
});

it('standard input can be named once', async () => {
  for (const command of ['enrich', 'filter --eu', 'summarize', 'lookup']) {
    const result = await ipatlas([...command.split(' '), '-', '-', '--data', dataDir], { input: LINE });
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('is named twice') });
  }
});

describe('on a terminal', () => {
  const CLEAR_LINE = '\x1b[K';

  it('the progress is shown only if the records are not', async () => {
    file('in.jsonl', LINE);
    const command = (args: string) => terminal(`"$NODE" "$MAIN" enrich --data '${dataDir}' '${dir}/in.jsonl' ${args}`);
    expect((await command('')).stdout).not.toContain(CLEAR_LINE);
    expect((await command(`-o '${dir}/out' --rejects -`)).stdout).not.toContain(CLEAR_LINE);
    expect((await command(`-o '${dir}/out'`)).stdout).toContain(CLEAR_LINE);
  });

  it('says that input is awaited', async () => {
    const { code, stdout } = await terminal(`"$NODE" "$MAIN" enrich --data '${dataDir}'`, [[/Ctrl-D/, `${LINE}\x04`]]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('"country_code":"US"') });
  });
});

describe('--stats -', () => {
  it('is standard output if the output is a file', async () => {
    const { code, stdout } = await enrich(['-o', join(dir, 'out'), '--stats', '-'], { input: LINE });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ lines: 1, found: 1 });
  });

  it('is refused if the output is standard output', async () => {
    for (const args of [[], ['-o', '-']]) {
      const result = await enrich(['--stats', '-', ...args], { input: LINE });
      expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('--stats') });
    }
    const both = await enrich(['--stats', '-', '--rejects', '-', '-o', join(dir, 'out')], { input: LINE });
    expect(both).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('a warning', () => {
  const NO_ADDRESS = 'no address was found: ip is never an address; is the field right (--field)?';
  it.each([
    ['all lines are invalid', 'x\ny\n', [], 'all lines are invalid'],
    ['the field is missing', '{"address":"8.8.8.8"}\n', ['--no-guess'], 'no address was found: ip is missing'],
    ['no value is an address', '{"ip":"x"}\n', [], 'no address was found: ip is never an address'],
    ['no address has a country', '{"ip":"10.0.0.1"}\n', [], 'no country was found'],
    [
      'an address has a port',
      '{"ip":"8.8.8.8:53"}\n',
      ['--no-guess'],
      `${NO_ADDRESS} With a port or in a list, an address needs --lenient.`,
    ],
    ['in text', 'nothing\n', ['--format', 'text'], 'no address was found; is the format right (--format)?'],
  ])('is given if %s', async (_what, input, args, warning) => {
    const stats = join(dir, 'stats');
    const { code, stderr } = await enrich([...args, '--stats', stats], { input });
    expect(code).toBe(warning.startsWith('no country') ? 0 : 4);
    expect(stderr).toContain(`ipatlas: warning: ${warning}`);
    expect(JSON.parse(readFileSync(stats, 'utf8')).warning).toContain(warning);
  });

  it('is not given if a country was found or nothing was read', async () => {
    for (const input of ['', '\n\n', `x\n${LINE}`]) {
      const stats = join(dir, 'stats');
      const { stderr } = await enrich(['--stats', stats], { input });
      expect(stderr).not.toContain('warning');
      expect(JSON.parse(readFileSync(stats, 'utf8'))).not.toHaveProperty('warning');
    }
  });
});

describe('a file for each input', () => {
  const run = (...args: string[]) => enrich(args, { cwd: dir });
  const names = (folder = '.') => readdirSync(join(dir, folder)).sort();

  it('is named after it, compressed as it, and passed over by --resume', async () => {
    file('a.log', LINE);
    file('b.log.gz', gzipSync(LINE));
    const args = ['--suffix', '.geo', '--output-dir', 'new/out', 'a.log', 'b.log.gz'];
    const whole = await run('--quiet', '--stats', '-', ...args);
    expect(whole).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(whole.stdout)).toMatchObject({ lines: 2, found: 2 });
    expect(names('new/out')).toEqual(['a.log.geo', 'b.log.geo.gz']);
    expect(readFileSync(join(dir, 'new/out/a.log.geo'), 'utf8')).toBe(ENRICHED);
    expect(gunzipSync(readFileSync(join(dir, 'new/out/b.log.geo.gz'))).toString()).toBe(ENRICHED);
    writeFileSync(join(dir, 'new/out/a.log.geo'), 'mine');
    const resumed = await run('--resume', '-z', 'gzip', ...args);
    expect(resumed.stderr).toContain('1 input passed over');
    expect(names('new/out')).toEqual(['a.log.geo', 'a.log.geo.gz', 'b.log.geo.gz']);
  });

  it('exists only when it is complete', async () => {
    file('a.log', LINE);
    file('b.log', `${LINE}x\n`);
    const { code } = await run('--on-invalid', 'fail', '--no-guess', '--suffix=-geo', 'a.log', 'b.log');
    expect(code).toBe(4);
    expect(names()).toEqual(['a.log', 'a.log-geo', 'b.log']);
  });

  it.each([
    [['--output-dir', '.', 'a.log'], 'a.log would replace the input a.log'],
    [['--suffix', '.x', 'a.log', 'a.log.x'], 'a.log.x would replace the input a.log.x'],
    [['--output-dir', 'o', 'a.log', 'a.log'], 'the file for a.log and the file for a.log both name o/a.log'],
    [['--output-dir', 'o', '--rejects', 'o/a.log', 'a.log'], 'the file for a.log and --rejects both name o/a.log'],
    [['--output-dir', 'o'], 'standard input has no name'],
    [['--output-dir', 'o', '-o', 'x', 'a.log'], '--output does not go with'],
    [['--suffix', '/x', 'a.log'], 'has a slash'],
    [['--suffix', '', 'a.log'], 'name a folder'],
    [['--resume', 'a.log'], '--resume goes with'],
  ])('is refused: %j', async (args, message) => {
    file('a.log', LINE);
    file('a.log.x', LINE);
    const result = await run(...args);
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(names()).toEqual(['a.log', 'a.log.x']);
  });
});

describe('an input of another kind than expected', () => {
  const TABLE = 'id,ip\n1,8.8.8.8\n';
  it.each<[what: string, input: string | Buffer, args: string[], message: string]>([
    ['bzip2', Buffer.from('425a6839314159265359', 'hex'), [], 'is compressed with bzip2'],
    ['xz', Buffer.from('fd377a585a000004', 'hex'), [], 'is compressed with xz'],
    ['zip', Buffer.from('504b030414000000', 'hex'), [], 'is compressed with zip'],
    ['gzip twice', gzipSync(gzipSync(LINE)), [], 'is compressed twice'],
    ['zstd in gzip', gzipSync(Buffer.from('28b52ffd0400', 'hex')), [], 'twice, the second time with zstd'],
    ['a table as JSON lines', TABLE, ['--no-guess'], '--format csv'],
    ['a table with tabs as JSON lines', TABLE.replaceAll(',', '\t'), ['--no-guess'], '--format tsv'],
    [
      'a table without the field, with a comma in quotes',
      TABLE.replace('ip', 'address').replace('\n1,', '\n"1,",'),
      ['--no-guess'],
      '--format csv',
    ],
    ['a packed table as JSON lines', gzipSync(TABLE), ['--no-guess'], '--format csv'],
    ['UTF-16', Buffer.from(`\ufeff${TABLE}`, 'utf16le'), ['--format', 'csv'], 'is encoded in UTF-16'],
    ['UTF-16, big-endian', Buffer.from(`\ufeff${TABLE}`, 'utf16le').swap16(), ['--format', 'csv'], 'UTF-16'],
    ['UTF-16 without a mark', Buffer.from(TABLE, 'utf16le'), ['--format', 'csv'], 'is encoded in UTF-16'],
    ['UTF-16 as JSON lines', Buffer.from(LINE, 'utf16le'), [], 'is encoded in UTF-16'],
    ['lines that end in CR', TABLE.replaceAll('\n', '\r'), ['--format', 'csv'], 'carriage return'],
    ['a list of such lines', '8.8.8.8\r::1\r', ['--format', 'list'], 'carriage return'],
  ])('%s is refused by name', async (_, input, args, message) => {
    for (const [source, result] of [
      ['standard input', await enrich(args, { input })],
      ['input', await enrich([...args, file('input', input)])],
    ] as const) {
      expect(result).toMatchObject({ code: 4, stdout: '', stderr: expect.stringContaining(message) });
      expect(result.stderr).toContain(source);
    }
  });

  it.each<[what: string, input: string | Buffer, args: string[]]>([
    ['JSON with carriage returns as white space', '{\r"ip":"8.8.8.8"\r}', []],
    ['a first invalid line', `ip\n${LINE}`, []],
    ['a list that ends in CR', '8.8.8.8\r', ['--format', 'list']],
    ['CRLF', '8.8.8.8\r\n::1\r\n', ['--format', 'list']],
  ])('%s is accepted', async (_, input, args) => {
    expect((await enrich(args, { input })).code).toBe(0);
  });

  it('of zstd is refused if this version of Node does not support it, and read otherwise', async () => {
    // A frame as RFC 8878 describes it: magic number, descriptor, content size, and one raw block.
    const header = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, LINE.length, (LINE.length << 3) | 1, 0, 0]);
    const frame = Buffer.concat([header, Buffer.from(LINE)]);
    const result = await enrich([file('in.zst', Buffer.concat([frame, frame]))]);
    if (!('createZstdDecompress' in (await import('node:zlib')))) {
      expect(result).toMatchObject({ code: 4, stdout: '', stderr: expect.stringContaining('use Node 22.15') });
      return;
    }
    expect(result).toMatchObject({ code: 0, stdout: ENRICHED.repeat(2) });
    for (const [more, message] of [
      [frame.subarray(0, 20), 'unexpected end of file'],
      [Buffer.from('garbage'), 'followed by bytes that are not zstd'],
    ] as const) {
      const damaged = await enrich([file('damaged.zst', Buffer.concat([frame, more]))]);
      expect(damaged).toMatchObject({ code: 4, stdout: ENRICHED, stderr: expect.stringContaining(message) });
    }
  });
});

it('takes a table whose first line is blank after a byte order mark', async () => {
  const { code, stdout } = await enrich(['--format', 'csv', '--add', 'is_eu'], { input: '\ufeff\nip\n8.8.8.8\n' });
  expect({ code, stdout }).toEqual({ code: 0, stdout: '\ufeff\nip,geo_is_eu\n8.8.8.8,false\n' });
});

it('enriches the complete lines of gzip data that is followed by garbage, then fails', async () => {
  const input = Buffer.concat([gzipSync(LINE.repeat(1000)), Buffer.from('garbage')]);
  const result = await enrich([file('in.gz', input)]);
  expect(result.code).toBe(4);
  expect(result.stderr).toContain('the gzip data is followed by bytes that are not gzip');
  expect(result.stdout === ENRICHED.repeat(1000)).toBe(true);
});

describe('-z', () => {
  it.each(['jsonl', 'list'])('compresses the output with gzip (%s)', async (format) => {
    const [line, enriched] =
      format === 'jsonl' ? [LINE, ENRICHED] : ['8.8.8.8\n', '8.8.8.8\tUnited States\tUS\tfalse\n'];
    const input = line.repeat(30_000);
    const { code } = await enrich(['--format', format, '-z', 'gzip', '-o', join(dir, 'out.gz')], { input });
    expect(code).toBe(0);
    const packed = readFileSync(join(dir, 'out.gz'));
    expect(gunzipSync(packed).toString() === enriched.repeat(30_000)).toBe(true);
  });

  it('compresses standard output, be it empty', async () => {
    const piped = await bash(`"$NODE" "$MAIN" enrich --data "$DATA" -z gzip /dev/null | gunzip -c`);
    expect(piped).toMatchObject({ code: 0, stdout: '' });
  });

  it('compresses with zstd if this version of Node supports it, and says so otherwise', async () => {
    const zlib = (await import('node:zlib')) as { zstdDecompressSync?: (bytes: Buffer) => Buffer };
    const out = join(dir, 'out.zst');
    const result = await enrich(['-z', 'zstd', '-o', out], { input: LINE });
    if (zlib.zstdDecompressSync === undefined) {
      expect(result).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('does not support zstd; use Node 22.15'),
      });
      expect(readdirSync(dir)).toEqual([]);
    } else {
      expect(zlib.zstdDecompressSync(readFileSync(out)).toString()).toBe(ENRICHED);
    }
  });

  it('refuses other kinds of compression', async () => {
    expect(await enrich(['-z', 'lzw'])).toMatchObject({ code: 2, stderr: expect.stringContaining('gzip, zstd') });
  });
});
