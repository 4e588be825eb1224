import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { finished, ipatlas, start } from '../support/cli.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

let dataDir: string;
let release: string;
beforeAll(async () => {
  dataDir = temporaryDir();
  release = await publishBlocks(dataDir, SMALL_WORLD);
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const withData = (...args: string[]) => ipatlas([...args, '--data', dataDir]);

describe('ipatlas', () => {
  it('prints its help and its version', async () => {
    const help = await ipatlas(['--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const file of readdirSync(packageFile('src/cli'))) {
      const name = file.replace('.ts', '');
      if (!['main', 'command', 'streams'].includes(name)) expect(help.stdout).toContain(`  ${name} `);
    }
    expect(await ipatlas(['--version'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });

  it('has help on every command, with every flag it takes', async () => {
    const { stdout } = await ipatlas(['--help']);
    const names = [...stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, name]) => name!);
    expect(names.length).toBeGreaterThanOrEqual(5);
    for (const name of names) {
      const { command } = await import(`../../src/cli/${name}.ts`);
      for (const flag of Object.keys(command.options)) expect(command.help).toContain(`--${flag}`);
      expect(command.help).toContain(`Usage: ipatlas ${name}`);
      expect(command.help).toContain('--data DIR');
    }
    expect(await ipatlas(['lookup', '--help'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Usage: ipatlas lookup'),
    });
  });

  it.each([
    [[], /Usage: ipatlas COMMAND/],
    [['frobnicate'], /no command "frobnicate"; see "ipatlas --help"/],
    [['constructor'], /no command "constructor"/],
    [['lookup'], /an argument is missing; see "ipatlas lookup --help"/],
    [['lookup', '--frob', '8.8.8.8'], /Unknown option '--frob'; see "ipatlas lookup --help"/],
    [['info', 'extra'], /"extra" is one too many/],
    [['lookup', '8.8.8.8', '--engine', 'quantum'], /--engine is "quantum"; it can be binary or sqlite/],
    [['build', '--as-of', '2026-02-30'], /--as-of "2026-02-30" is not a date/],
    [['info', '--data', ''], /--data \(or IPATLAS_DATA\) is empty/],
  ])('refuses %j with exit code 2', async (args, message) => {
    const result = await ipatlas(args as string[]);
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toMatch(message as RegExp);
  });

  it('takes the data directory from flag, environment or default', async () => {
    expect((await ipatlas(['--data', dataDir, 'info', '--json'])).code).toBe(0);
    expect((await ipatlas(['info', '--json'], { env: { IPATLAS_DATA: dataDir } })).code).toBe(0);
    const empty = temporaryDir();
    const missing = await ipatlas(['info'], { cwd: empty, env: { IPATLAS_DATA: undefined } });
    expect(missing).toMatchObject({ code: 5, stdout: '' });
    expect(missing.stderr).toMatch(/no release in data; make one with "ipatlas build --offline"/);
    rmSync(empty, { recursive: true });
  });
});

describe('ipatlas lookup', () => {
  it('prints one result a line', async () => {
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

  it('answers the rest and exits 4 where an address is not valid', async () => {
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

  it.each(['binary', 'sqlite'])('reads addresses from stdin, engine %s', async (engine) => {
    const { code, stdout } = await ipatlas(['lookup', '-', '--engine', engine, '--data', dataDir], {
      input: '8.8.8.8\r\n\n::1\n80.1.1.1',
    });
    expect(code).toBe(0);
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).country_code),
    ).toEqual(['US', null, 'DE']);
  });

  it('ends at once when its reader has enough', async () => {
    const child = start(['lookup', '-', '--data', dataDir]);
    const end = finished(child);
    child.stdin!.on('error', () => {});
    child.stdout!.once('data', () => child.stdout!.destroy());
    // Far more than fits into the pipes between the two.
    for (let i = 0; i < 40; i++) child.stdin!.write('8.8.8.8\n'.repeat(10_000));
    child.stdin!.end();
    expect(await end).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('ipatlas info, verify, releases', () => {
  it('tell what there is', async () => {
    const info = await withData('info');
    expect(info.code).toBe(0);
    expect(info.stdout).toContain(release);
    expect(JSON.parse((await withData('info', '--json')).stdout)).toMatchObject({ id: release, as_of: '2026-01-01' });
    expect((await withData('verify')).stdout).toMatch(/is whole: \d+ IPv4 and \d+ IPv6 ranges, mirror equal/);
    expect(JSON.parse((await withData('verify', '--json', join(dataDir, 'releases', release))).stdout)).toMatchObject({
      release,
    });
    expect(JSON.parse((await withData('releases', '--json')).stdout)).toMatchObject([{ id: release, current: true }]);
    expect((await withData('releases')).stdout).toMatch(new RegExp(`\\* +${release}`));
  });
});
