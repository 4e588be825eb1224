/** How the command line starts: the commands that process records are one file, with the code that V8 compiled from it. */
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AtlasError } from '../../src/errors.js';
import { packageFile } from '../../src/package-root.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

const START = 'dist/src/cli/start.cjs';
const RECORD_COMMANDS = 'dist/src/cli/record-commands.cjs';

describe('the file of the commands that process records', () => {
  const code = readFileSync(packageFile(RECORD_COMMANDS), 'utf8');

  it('requires no package when it is loaded, and modules of Node only when they are used', () => {
    const required = [...code.matchAll(/^.*\brequire\("([^"]+)"\).*$/gm)];
    expect(required.length).toBeGreaterThan(5);
    for (const [line, name] of required) {
      // Used in a function, or the module for it: const node_fs = () => node_fs_ ??= require("node:fs");
      expect(line).toMatch(/^const \w+ = \(\) => \(?\w+ \?\?= |^\t|^function /);
      expect(name).toMatch(/^(node:\w+|url)$/);
    }
  });

  it('has no dynamic import of a package, which compiled code cannot have', () => {
    expect(code.match(/\bimport\(.*/g)?.filter((call) => !call.includes('/formats/json')) ?? []).toEqual([]);
  });
});

describe('the compiled code', () => {
  let root: string;
  let dataDir: string;
  /** Makes a copy of the package, whose compiled code the tests change. */
  beforeAll(async () => {
    root = temporaryDir();
    dataDir = join(root, 'data');
    await publishBlocks(dataDir, SMALL_WORLD);
    cpSync(packageFile('package.json'), join(root, 'package.json'));
    for (const name of ['schemas', 'node_modules']) symlinkSync(packageFile(name), join(root, name));
    for (const part of ['src', 'pipeline'])
      cpSync(packageFile(join('dist', part)), join(root, 'dist', part), { recursive: true });
  });
  afterAll(() => rmSync(root, { recursive: true }));

  function enrich(): { status: number | null; stdout: string; stderr: string } {
    return spawnSync(process.execPath, [join(root, START), 'enrich', '--data', dataDir], {
      input: '{"ip":"193.0.0.1"}\n',
      encoding: 'utf8',
    });
  }
  const ENRICHED = '{"ip":"193.0.0.1","geo":{"country":"Netherlands","country_code":"NL","is_eu":true}}\n';

  /** Evaluates an expression over the exports of start.cjs in a process of its own. */
  function evaluate(expression: string): string {
    const script = `const start = require(${JSON.stringify(join(root, START))}); console.log(${expression});`;
    return spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' }).stdout.trim();
  }

  it('is accepted by the Node that built the package', () => {
    const load = "start.loadRecordCommands(require('node:fs').readFileSync(start.compiledCodePath()))";
    expect(evaluate(`${load}.script.cachedDataRejected`)).toBe('false');
    expect(enrich()).toMatchObject({ status: 0, stdout: ENRICHED });
  });

  it('is used by the very same binary of Node only', () => {
    const other = join(root, 'node');
    cpSync(process.execPath, other);
    utimesSync(other, 1, 1);
    const path = evaluate('start.compiledCodePath()');
    const script = `console.log(require(${JSON.stringify(join(root, START))}).compiledCodePath())`;
    const { stdout } = spawnSync(other, ['-e', script], { encoding: 'utf8' });
    expect(stdout.trim()).toMatch(/record-commands-v[\d.]+-\d+-1000\.compiled$/);
    expect(stdout.trim()).not.toBe(path);
  });

  it('may be made under other flags, damaged at its start, or missing', () => {
    const path = evaluate('start.compiledCodePath()');
    for (const content of [Buffer.alloc(0), Buffer.from('garbage'), Buffer.alloc(100_000, 1)]) {
      writeFileSync(path, content);
      expect(enrich()).toMatchObject({ status: 0, stdout: ENRICHED });
    }
    rmSync(path);
    expect(enrich()).toMatchObject({ status: 0, stdout: ENRICHED });
  });
});

describe('an error of another copy of the program', () => {
  it('is recognized', () => {
    class Copy extends Error {
      override readonly name = 'AtlasError';
    }
    expect(new Copy()).toBeInstanceOf(AtlasError);
    expect(new AtlasError('E_USAGE', 'text')).toBeInstanceOf(AtlasError);
    for (const other of [new Error('AtlasError'), { name: 'AtlasError' }, undefined, 'AtlasError']) {
      expect(other instanceof AtlasError).toBe(false);
    }
  });
});
