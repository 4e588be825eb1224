import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

let project: string;
let dataDir: string;
beforeAll(async () => {
  project = temporaryDir();
  dataDir = join(project, 'data');
  await publishBlocks(dataDir, SMALL_WORLD);
  // The package as it is compiled. It is copied, because TypeScript and Node resolve the target of a link.
  const installed = join(project, 'node_modules', 'ipatlas');
  mkdirSync(installed, { recursive: true });
  for (const name of ['package.json', 'dist', 'schemas', 'data/reference']) {
    cpSync(packageFile(name), join(installed, name), { recursive: true });
  }
  symlinkSync(packageFile('node_modules'), join(installed, 'node_modules'));
  writeFileSync(join(project, 'package.json'), '{"name":"user","private":true}');
});
afterAll(() => rmSync(project, { recursive: true }));

describe('a CommonJS project', () => {
  it('can require the library and the client', () => {
    const script = `
      const { openDatabase } = require('ipatlas');
      const { Client } = require('ipatlas/client');
      console.log(openDatabase(${JSON.stringify(dataDir)}).lookup('8.8.8.8').country_code, typeof Client);`;
    expect(execFileSync(process.execPath, ['-e', script], { cwd: project, encoding: 'utf8' })).toBe('US function\n');
  });

  it.each(['node16', 'nodenext'])('has types under module %s', (module) => {
    const code = [
      "import { openDatabase, type LookupResult, type Reason } from 'ipatlas';",
      "import { Client } from 'ipatlas/client';",
      "export const result: LookupResult | undefined = openDatabase('data', { watch: true }).lookup('8.8.8.8');",
      "export const reason: Reason | null | undefined = openDatabase('data').lookupWithReason('10.0.0.1')?.reason;",
      "export const answer: Promise<LookupResult> = new Client('key').lookup('8.8.8.8');",
      "export const isPrivate = reason === 'private';",
      "export const isNonsense = reason === 'nonsense';",
    ];
    writeFileSync(join(project, 'use.ts'), code.join('\n'));
    const types = ['--typeRoots', packageFile('node_modules/@types'), '--types', 'node'];
    const tsc = packageFile('node_modules/typescript/bin/tsc');
    const args = [tsc, '--noEmit', '--strict', '--target', 'es2022', '--module', module, ...types, 'use.ts'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8' });
    // The only error is the comparison with a text that is not a reason.
    expect(stdout.trim().split('\n')).toEqual([expect.stringMatching(/^use\.ts\(7,\d+\): error TS2367/)]);
  });
});
