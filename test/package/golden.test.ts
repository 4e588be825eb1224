/** What earlier versions wrote gives the same answers (docs/stability.md). scripts/make-golden.js makes the files. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { extract } from 'tar';
import { expect, it, vi } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { scratchDir, serveStatic } from '../distribution/support.js';
import { ipatlas } from '../support/in-process.js';
import { freezeClock } from '../support/killed-writer.js';

const { fromBytes, kindsFromBytes, networksFromBytes }: typeof import('../../src/lookup/index.js') = await import(
  packageFile('dist/lookup/index.js')
);
const FOLDER = packageFile('test/golden');
const VERSIONS = readdirSync(FOLDER).filter((name) => name.endsWith('.tar.gz'));

interface Expected {
  /** When the files were made; the signatures of the repository are valid some days. */
  begun: string;
  answers: [args: string[], stdout: string][];
}

it.each(VERSIONS)('the files of %s are read', async (name) => {
  const dir = scratchDir();
  await extract({ file: join(FOLDER, name), cwd: dir });
  const { begun, answers }: Expected = JSON.parse(readFileSync(join(dir, 'expected.json'), 'utf8'));
  freezeClock();
  vi.setSystemTime(begun);
  const answer = async (args: string[], data: string) => {
    const { code, stdout, stderr } = await ipatlas([...args, '--data', join(dir, data)]);
    return [args, stdout, code, code === 0 ? '' : stderr];
  };

  const data = await answer(['verify'], 'data');
  expect(data).toMatchObject([['verify'], expect.stringContaining('is intact'), 0, '']);
  expect((await answer(['keys', 'list'], 'data'))[1]).toContain('golden');
  for (const [args, stdout] of answers) expect(await answer(args, 'data')).toEqual([args, stdout, 0, '']);

  const { url } = await serveStatic(join(dir, 'repository'));
  expect((await answer(['pull', url, '--root', join(dir, 'repository/root.json')], 'node')).slice(2)).toEqual([0, '']);
  for (const [args, stdout] of answers.filter(([args]) => args.includes('sqlite') || args.includes('--at')))
    expect(await answer(args, 'node')).toEqual([args, stdout, 0, '']);
  expect((await answer(['history', 'import', '--date', '2020-01-01', join(dir, 'brotli.ipc')], 'node'))[2]).toBe(0);
  expect((await answer(['lookup', '--at', '2020-02-01', '25.0.0.1'], 'node'))[1]).toContain('"CH"');

  const compact = readFileSync(join(dir, 'all.ipc'));
  expect((await fromBytes(compact)).country('25.200.0.1')).toMatchObject({ country_code: 'IT' });
  expect((await networksFromBytes(compact)).network('25.0.0.1')).toMatchObject({ asn: 64500 });
  expect((await kindsFromBytes(compact)).kind('25.0.1.1')).toMatchObject({ kind: 'cloud', operator: 'example' });
});
