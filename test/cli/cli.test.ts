import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { factLines } from '../../src/cli/command.js';
import { packageFile } from '../../src/package-root.js';
import { counted, table } from '../../src/text-table.js';
import { finished, ipatlas as ipatlasProcess, jsonLines, MAIN, start, terminal } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

const dataDir = temporaryDir();
const release = await publishBlocks(dataDir, SMALL_WORLD);

const withData = (...args: string[]) => ipatlas([...args, '--data', dataDir]);

describe('ipatlas', () => {
  it('prints its version', async () => {
    const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string };
    expect(await ipatlas(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
    for (const args of [['version'], ['-v']])
      expect(await ipatlas(args)).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it.each([
    [[], /Usage: ipatlas COMMAND/],
    [['frobnicate'], /unknown command "frobnicate"; see "ipatlas --help"/],
    [['constructor'], /unknown command "constructor"; see/],
    [['lokup', '8.8.8.8'], /unknown command "lokup" \(did you mean "lookup"\?\); see "ipatlas --help"/],
    [['help', 'bild'], /unknown command "bild" \(did you mean "build"\?\)/],
    [['completion', 'fissh'], /unknown shell "fissh" \(did you mean "fish"\?\); see "ipatlas completion --help"/],
    [['lookup', '--frob', '8.8.8.8'], /unknown option "--frob"; see "ipatlas lookup --help"/],
    [
      ['lookup', '--reasn', '8.8.8.8'],
      /unknown option "--reasn" \(did you mean "--reason"\?\); see "ipatlas lookup --help"/,
    ],
    [['lookup', '-x', '8.8.8.8'], /unknown option "-x"; see "ipatlas lookup --help"/],
    [['lookup', '8.8.8.8', '--engine'], /--engine needs a value; see "ipatlas lookup --help"/],
    [
      ['lookup', '--engine', '--json', '8.8.8.8'],
      /--engine needs a value; write --engine=--json if "--json" is the value/,
    ],
    [['lookup', '--json=yes', '8.8.8.8'], /--json takes no value/],
    [['info', 'extra'], /unexpected argument "extra"/],
    [['lookup', '8.8.8.8', '--engine', 'quantum'], /--engine is "quantum"; it can be binary, sqlite/],
    [['build', '--only', ''], /--only "" has an empty id/],
    [['build', '--as-of', '2026-02-30'], /--as-of "2026-02-30" is not a date/],
    [['info', '--data', ''], /--data \(or IPATLAS_DATA\) is empty/],
  ])('refuses %j with exit code 2', async (args, message) => {
    const result = await ipatlas(args as string[]);
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toMatch(message as RegExp);
  });

  it('takes the data directory from the flag, the environment, ./data, or the XDG data directory', async () => {
    expect((await ipatlas(['--data', dataDir, 'info', '--json'])).code).toBe(0);
    expect((await ipatlas(['info', '--json'], { env: { IPATLAS_DATA: dataDir } })).code).toBe(0);
    const empty = temporaryDir();
    const env = { IPATLAS_DATA: undefined, HOME: join(empty, 'home'), XDG_DATA_HOME: undefined };
    const noRelease = async (more: NodeJS.ProcessEnv, directory: string) => {
      const result = await ipatlas(['verify'], { cwd: empty, env: { ...env, ...more } });
      expect(result).toMatchObject({ code: 5, stdout: '' });
      expect(result.stderr).toContain(
        `no release in ${directory}; make one with "ipatlas build --offline --data ${directory}"`,
      );
    };
    await noRelease({}, join(empty, 'home', '.local', 'share', 'ipatlas'));
    await noRelease({ XDG_DATA_HOME: 'relative' }, join(empty, 'home', '.local', 'share', 'ipatlas'));
    await noRelease({ XDG_DATA_HOME: join(empty, 'xdg') }, join(empty, 'xdg', 'ipatlas'));
    mkdirSync(join(empty, 'data'));
    await noRelease({ XDG_DATA_HOME: join(empty, 'xdg') }, 'data');
    await noRelease({ IPATLAS_DATA: 'elsewhere' }, 'elsewhere');
  });
});

describe('what strangers type', () => {
  /** Returns a folder with a file. */
  function folderWith(path: string): string {
    const folder = temporaryDir();
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), '8.8.8.8\n');
    return folder;
  }

  it.each<[line: string, code: number, stdout: string, stderr: string]>([
    ['8.8.8.0/24', 2, '', '"ipatlas history 8.8.8.0/24"'],
    ['example.com', 2, '', '"getent ahosts example.com"'],
    ['--hlep', 2, '', 'did you mean "--help"?'],
    ['-V', 0, '0.1.0', ''],
    ['lookup ips.txt', 4, 'invalid ip', '"ipatlas lookup - < ips.txt"'],
    ['lookup --add country_code --add is_eu 8.8.8.8', 0, '{"ip":"8.8.8.8","country_code":"US","is_eu":false}', ''],
    ['diff RELEASE current', 0, 'IPv4: no difference', ''],
    ['diff 2 current', 5, '', 'there is no release "2"'],
  ])('%s', async (line, code, stdout, stderr) => {
    const cwd = folderWith('ips.txt');
    const args = line.replace('RELEASE', basename(release).slice(0, -1)).split(' ');
    const result = await ipatlas(args, { cwd, env: { IPATLAS_DATA: dataDir } });
    expect(result.code, result.stderr).toBe(code);
    expect(result.stdout).toContain(stdout);
    expect(result.stderr).toContain(stderr);
  });

  it('lookup without arguments reads standard input', async () => {
    const { stdout } = await ipatlas(['lookup', '--data', dataDir], { input: '8.8.8.8\n' });
    expect(stdout).toContain('"country_code":"US"');
  });

  it('a key before the first build makes the default directory, which is not a ./data of others', async () => {
    const cwd = folderWith('data/x.csv');
    const own = join(cwd, 'xdg', 'ipatlas');
    const env = { IPATLAS_DATA: undefined, XDG_DATA_HOME: join(cwd, 'xdg') };
    const { code, stderr } = await ipatlas(['keys', 'create'], { cwd, env });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(`./data has no files of ipatlas; the data directory is ${own}`);
    expect(existsSync(join(own, 'keys.sqlite'))).toBe(true);
  });
});

describe('ipatlas lookup', () => {
  it('prints one result per line', async () => {
    const { code, stdout, stderr } = await withData('lookup', '8.8.8.8', '2a00:1::', '10.0.0.1', '::ffff:193.0.6.139');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(
      [
        '{"ip":"8.8.8.8","country":"United States","country_code":"US","is_eu":false}',
        '{"ip":"2a00:0001:0000:0000:0000:0000:0000:0000","country":"France","country_code":"FR","is_eu":true}',
        '{"ip":"10.0.0.1","country":null,"country_code":null,"is_eu":false}',
        '{"ip":"193.0.6.139","country":"Netherlands","country_code":"NL","is_eu":true}',
        '',
      ].join('\n'),
    );
  });

  it('is the default for addresses, also after options', async () => {
    for (const args of [
      ['8.8.8.8', '2a00:1::', '--reason'],
      ['--reason', '--data', dataDir, '8.8.8.8', '2a00:1::'],
    ]) {
      const result = await withData(...args);
      expect(result).toMatchObject({ code: 0, stderr: '' });
      expect(result).toEqual(await withData('lookup', '--reason', '8.8.8.8', '2a00:1::'));
    }
    expect(await withData('8.8.8.888')).toMatchObject({ code: 4, stdout: '{"ip":"8.8.8.888","error":"invalid ip"}\n' });
  });

  it('prints the other results and exits with 4 if an address is not valid', async () => {
    const { code, stdout, stderr } = await withData('lookup', 'fe80::1%eth0', '80.0.0.1', '--reason', '10.0.0.1');
    expect(code).toBe(4);
    expect(
      stdout
        .split('\n')
        .slice(0, 3)
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { ip: 'fe80::1%eth0', error: 'invalid ip' },
      { ip: '80.0.0.1', country: 'Germany', country_code: 'DE', is_eu: true, reason: null },
      { ip: '10.0.0.1', country: null, country_code: null, is_eu: false, reason: 'private' },
    ]);
    expect(stderr).toMatch(/1 of the addresses given is not valid/);
  });

  it.each(['binary', 'sqlite'])('reads addresses from stdin, with the %s engine', async (engine) => {
    const { code, stdout } = await ipatlas(['lookup', '-', '--engine', engine, '--data', dataDir], {
      input: '8.8.8.8\r\n\n::1\n80.1.1.1',
    });
    expect(code).toBe(0);
    expect(jsonLines(stdout).map((each) => each.country_code)).toEqual(['US', null, 'DE']);
  });

  it('exits quietly when its reader closes the pipe', async () => {
    const child = start(['lookup', '-', '--data', dataDir]);
    const end = finished(child);
    child.stdin!.on('error', () => {});
    child.stdout!.once('data', () => child.stdout!.destroy());
    // Far more than fits into the pipes between the two.
    for (let i = 0; i < 40; i++) child.stdin!.write('8.8.8.8\n'.repeat(10_000));
    child.stdin!.end();
    expect(await end).toMatchObject({ code: 0, stderr: '' });
  });

  it('reaches a slow reader whose pipe another process made non-blocking', async () => {
    const list = join(dataDir, 'addresses');
    writeFileSync(list, '8.8.8.8\n'.repeat(3000));
    // The other process makes it non-blocking as long as it lives. It says when.
    const other = `process.stdout.write(''); require('node:fs').writeFileSync(process.argv[1], '\\n'); setInterval(() => {}, 1000)`;
    const command = `mkfifo "$4"; { "$0" -e "$5" "$4" & read line < "$4"; "$0" "$1" lookup - --data "$2" < "$3"; echo "$?"; kill "$!"; } |
      { head -c 1; sleep 0.3; cat; }`;
    const shell = spawn('sh', ['-c', command, process.execPath, MAIN, dataDir, list, join(dataDir, 'fifo'), other]);
    const { stdout, stderr } = await finished(shell);
    const line = '{"ip":"8.8.8.8","country":"United States","country_code":"US","is_eu":false}\n';
    expect([stderr, stdout === `${line.repeat(3000)}0\n`]).toEqual(['', true]);
  });
});

it('counts are in the singular or the plural', async () => {
  expect([counted(1, 'key'), counted(0, 'key'), counted(1000, 'key')]).toEqual(['1 key', '0 keys', '1,000 keys']);
  const { stderr } = await ipatlas(['enrich', '--data', dataDir], { input: '{}\n' });
  expect(stderr).toMatch(/^1 line, /);
});

it('a long argument does not widen the table of lookup', async () => {
  const { stdout } = await terminal(`"$NODE" "$MAIN" lookup --data '${dataDir}' 8.8.8.8 ${'x'.repeat(3000)}`);
  const lines = stdout.split('\r\n');
  expect(lines[1]).toMatch(/^8\.8\.8\.8 {41}United States +US +no$/);
  expect(lines[2]).toMatch(/^x{45}… {2}invalid ip$/);
});

describe('ipatlas info, verify, releases', () => {
  it('print the state of the data directory', async () => {
    const info = await withData('info');
    expect(info.code).toBe(0);
    expect(info.stdout).toContain(release);
    expect(JSON.parse((await withData('info', '--json')).stdout)).toMatchObject({ id: release, as_of: '2026-01-01' });
    expect((await withData('verify')).stdout).toMatch(/is intact: \d+ IPv4 and \d+ IPv6 ranges, mirror equal/);
    expect(JSON.parse((await withData('verify', '--json', join(dataDir, 'releases', release))).stdout)).toMatchObject({
      release,
    });
    expect(JSON.parse((await withData('releases', '--json')).stdout)).toMatchObject([{ id: release, current: true }]);
    expect((await withData('releases')).stdout).toMatch(new RegExp(`\\* +${release}`));
  });
});

describe('errors', () => {
  /** Runs the command line with a module loaded first that breaks something. */
  const broken = (code: string, args: string[], env: NodeJS.ProcessEnv = {}) =>
    ipatlasProcess(args, {
      env: { ...env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` },
    });
  const BUG = "JSON.parse = () => { throw new TypeError('first line\\n  second line') };";

  it('a bug is reported in one line, with the stack only if NODE_DEBUG asks for it', async () => {
    const { code, stdout, stderr } = await broken(BUG, ['version']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^ipatlas: internal error \(bug\): first line second line; please report it[^\n]*\n$/);
    const { stderr: debug } = await broken(BUG, ['version'], { NODE_DEBUG: 'ipatlas' });
    expect(debug).toMatch(/IPATLAS \d+: TypeError: first line[\s\S]*\n {4}at /);
  });

  it('an error outside the promise of the command is also reported in one line', async () => {
    // Throws in a callback once the command has begun, which is when it first asks for a module that few runs need.
    const late = `const { getBuiltinModule } = process;
      process.getBuiltinModule = (name) => {
        setImmediate(() => { throw new TypeError('late'); });
        return getBuiltinModule(name);
      };`;
    const { code, stderr } = await broken(late, ['lookup', '-', '--data', dataDir]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^ipatlas: internal error \(bug\): late;[^\n]*\n$/)]);
  });

  const COMMANDS = [
    ['build', '--offline'],
    ['pull', 'http://127.0.0.1:1', '--root', '/dev/null'],
    ['rollback'],
    ['verify'],
    ['info'],
    ['releases'],
    ['report'],
    ['lookup', '8.8.8.8'],
    ['explain', '8.8.8.8'],
    ['export', 'csv'],
    ['keys', 'create'],
    ['keys', 'list'],
    ['serve', '--port', '0'],
  ];
  it.each(COMMANDS.map((args) => [args]))(
    '%j say what and where if the data directory is a file or cannot be made',
    async (args) => {
      const file = join(dataDir, 'a-file');
      writeFileSync(file, '');
      for (const data of [file, join(file, 'x'), '/proc/x/y']) {
        const { code, stdout, stderr } = await ipatlas([...args, '--data', data]);
        expect([code, stdout]).toEqual([expect.any(Number), '']);
        // There are no releases and no keys: no failure of a command that lists them.
        expect([0, 2, 5]).toContain(code);
        // Neither a bug nor the name of an error or of a system call.
        expect(stderr).toMatch(/^ipatlas: /m);
        expect(stderr).toContain(data === '/proc/x/y' ? '/proc/x' : file);
        expect(stderr).not.toMatch(/\bbug\b|E[A-Z]{4,}|scandir|lstat|mkdir/);
      }
      rmSync(file);
    },
  );

  it('no text on a terminal can have control characters of arguments, files or servers', async () => {
    const hostile = '\x1b[2J\x9b2J\u202e';
    const shown = '\\u001b[2J\\u009b2J\\u202e';
    expect((await ipatlas(['info', '--data', hostile])).stderr).toContain(`no release in ${shown};`);
    const { stdout } = await withData('lookup', hostile);
    expect(stdout).toBe(`{"ip":"${shown}","error":"invalid ip"}\n`);
    expect(JSON.parse(stdout)).toMatchObject({ ip: hostile });
    expect(table([['A'], [hostile]])).toBe(`A\n${shown}\n`);
    expect(factLines([['a', hostile]])).toBe(`a  ${shown}\n`);
  });

  it('a full disk is not called a bug, and is exit code 1', async () => {
    const full = `JSON.parse = () => {
      throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC', errno: -28, syscall: 'write', path: '/somewhere' });
    };`;
    const { code, stdout, stderr } = await broken(full, ['version']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe('ipatlas: /somewhere cannot be used: no space left on device; free space\n');
  });

  it('no command prints a color, with NO_COLOR or without', async () => {
    for (const NO_COLOR of [undefined, '1'])
      for (const args of [['--help'], ['info'], ['releases'], ['frobnicate']]) {
        const { stdout, stderr } = await ipatlas([...args, ...(args[0] === '--help' ? [] : ['--data', dataDir])], {
          env: { NO_COLOR, FORCE_COLOR: '1' },
        });
        expect(stdout + stderr).not.toContain('\u001b');
      }
  });
});
