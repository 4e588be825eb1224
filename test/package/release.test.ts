/** scripts/release.js in a copy of what it reads, with programs in place of npm and make that record how they are called. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { temporaryDir } from '../support/release.js';

let dir: string;
const PACKED = ['ipatlas-2.0.0.tgz', 'ipatlas-lookup-2.0.0.tgz'];

beforeEach(() => {
  dir = temporaryDir();
  for (const name of ['bin', 'scripts', 'dist/packages']) mkdirSync(join(dir, name), { recursive: true });
  writeFileSync(join(dir, 'package.json'), '{"version":"2.0.0","type":"module"}');
  writeFileSync(join(dir, 'scripts/check-publish.js'), "process.exitCode = Number(process.env.CHECK ?? '0');");
  cpSync(packageFile('scripts/release.js'), join(dir, 'scripts/release.js'));
  for (const name of PACKED) writeFileSync(join(dir, 'dist/packages', name), '');
  for (const name of ['npm', 'make']) {
    writeFileSync(join(dir, 'bin', name), `#!/bin/sh\necho "${name} $*" "$IPATLAS_SEED" >> "${join(dir, 'calls')}"\n`);
    chmodSync(join(dir, 'bin', name), 0o755);
  }
});

/** Runs the script; returns its exit code, what it says, and the commands that it ran. */
function release(heading: string, env: NodeJS.ProcessEnv, ...args: string[]) {
  writeFileSync(join(dir, 'CHANGELOG.md'), `# Changelog\n\n## ${heading}\n\n## 1.0.0, 2026-01-01\n`);
  writeFileSync(join(dir, 'calls'), '');
  const PATH = [join(dir, 'bin'), process.env.PATH].join(delimiter);
  const { status, stderr } = spawnSync(process.execPath, [join(dir, 'scripts/release.js'), ...args], {
    env: { PATH, ...env },
    encoding: 'utf8',
  });
  const calls = readFileSync(join(dir, 'calls'), 'utf8').replaceAll(join(dir, 'dist/packages'), '').split('\n');
  return { status, stderr, calls: calls.map((call) => call.trim()).filter(Boolean) };
}

it('publishes both packages with the data of the day', () => {
  const { status, calls } = release('2.0.0, 2026-12-01', { GITHUB_REF_NAME: 'v2.0.0' }, '--publish');
  expect(status).toBe(0);
  expect(calls.filter((call) => !call.startsWith('npm sbom'))).toEqual([
    'make clean compile living',
    'make pack living',
    ...PACKED.map((name) => `npm publish /${name} --access public --provenance living`),
  ]);
});

it.each<[string, string, NodeJS.ProcessEnv, RegExp]>([
  ['the changelog has no date', '2.0.0, unreleased', { GITHUB_REF_NAME: 'v2.0.0' }, /"2\.0\.0, unreleased"/],
  ['the changelog is of another version', '1.9.0, 2026-12-01', { GITHUB_REF_NAME: 'v2.0.0' }, /"1\.9\.0, /],
  ['the tag is another version', '2.0.0, 2026-12-01', { GITHUB_REF_NAME: 'v1.9.0' }, /tag is v1\.9\.0/],
  ['there is no tag', '2.0.0, 2026-12-01', {}, /tag is undefined/],
  ['the data may not be shipped', '2.0.0, 2026-12-01', { GITHUB_REF_NAME: 'v2.0.0', CHECK: '1' }, /check-publish/],
])('publishes nothing if %s', (_, heading, env, message) => {
  const { status, stderr, calls } = release(heading, env, '--publish');
  expect(status).not.toBe(0);
  expect(stderr).toMatch(message);
  expect(calls.filter((call) => call.startsWith('npm publish'))).toEqual([]);
});

it('a dry run uploads nothing', () => {
  const { status, calls } = release('2.0.0, unreleased', {});
  expect(status).toBe(0);
  const publishes = calls.filter((call) => call.startsWith('npm publish'));
  expect(publishes).toHaveLength(PACKED.length);
  for (const call of publishes) expect(call).toContain(' --dry-run ');
});
