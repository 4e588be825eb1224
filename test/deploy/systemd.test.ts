import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allFlags } from '../../src/cli/command-line.js';
import { loadCommands } from '../../src/cli/commands.js';
import { packageFile } from '../../src/package-root.js';
import { temporaryDir } from '../support/release.js';

const FOLDER = packageFile('deploy/systemd');
const units = readdirSync(FOLDER).filter((name) => /\.(service|timer)$/.test(name));

/** Returns the complaints of `systemd-analyze verify`; it exits with 0 for most of them, so its output counts. */
function verify(files: string[]): string {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...files], {
    encoding: 'utf8',
  });
  // Units of the system, which are loaded as well, are ignored.
  const ours = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('ipatlas'));
  return ours.join('\n') + (status === 0 ? '' : `exit ${status}`);
}

function isInstalled(): boolean {
  return spawnSync('systemd-analyze', ['--version']).error === undefined;
}

describe('the systemd units', () => {
  it('exist', () => {
    expect(units.sort()).toEqual([
      ...['ipatlas-build.service', 'ipatlas-build.timer', 'ipatlas-gdnsd.service', 'ipatlas-gdnsd.timer'],
      ...['ipatlas-keys-export.service', 'ipatlas-keys-import.service', 'ipatlas-pull.service'],
      ...['ipatlas-repo.service', 'ipatlas-repo.timer', 'ipatlas-stream@.service', 'ipatlas.service'],
    ]);
  });

  it('pass systemd-analyze verify, which refuses a wrong one', ({ skip }) => {
    if (!isInstalled())
      skip('SKIPPED: systemd-analyze is not installed here; the units in deploy/systemd are not verified');
    expect(verify(units.map((name) => join(FOLDER, name)))).toBe('');
    const dir = temporaryDir();
    const broken = readFileSync(join(FOLDER, 'ipatlas.service'), 'utf8').replace('ProtectSystem=', 'ProtectSistem=');
    writeFileSync(join(dir, 'ipatlas.service'), broken);
    expect(verify([join(dir, 'ipatlas.service')])).toMatch(/ProtectSistem/);
  });

  it('have an exposure below 2 of 10 in systemd-analyze security', ({ skip }) => {
    if (!isInstalled())
      skip('SKIPPED: systemd-analyze is not installed here; the hardening of the units is not judged');
    for (const name of units.filter((unit) => unit.endsWith('.service'))) {
      const report = execFileSync('systemd-analyze', ['security', '--offline=yes', '--no-pager', join(FOLDER, name)]);
      const [, level] = /exposure level for \S+: ([\d.]+)/.exec(report.toString())!;
      expect(Number(level)).toBeLessThan(2);
    }
  });

  it('name the port of a worker by its instance, so that there can be more than nine', () => {
    const unit = readFileSync(join(FOLDER, 'ipatlas-stream@.service'), 'utf8');
    expect(unit).toContain(' --metrics-port %i\n');
  });

  it('call commands and flags that exist', async () => {
    const commands = new Map((await loadCommands()).map(({ name, command }) => [name, command]));
    for (const name of units.filter((unit) => unit.endsWith('.service'))) {
      const text = readFileSync(join(FOLDER, name), 'utf8');
      const calls = [...text.matchAll(/^#? *ExecStart(?:Post)?=\/usr\/bin\/env ipatlas (\w+)(.*)$/gm)];
      expect(calls.length, name).toBeGreaterThan(0);
      for (const [call, command, rest] of calls) {
        const known = Object.keys(allFlags(commands.get(command!)!));
        for (const [, flag] of rest!.matchAll(/--([a-z-]+)/g)) expect(known, call).toContain(flag);
      }
    }
  });
});
