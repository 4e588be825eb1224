import { mkdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lockDataDir } from '../../pipeline/operations/lock.js';
import { rollBack } from '../../pipeline/operations/rollback.js';
import { openDatabase } from '../../src/database/database.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { buildOnce, manifestOf, writeSources } from '../support/sources.js';

giveFolders();

const current = (): string => readlinkSync(join(dataDir, 'current')).replace('releases/', '');
const sources = (code: string): string =>
  writeSources(dir, {
    one: `20.0.0.0,20.255.255.255,US\n30.0.0.0,30.0.0.255,${code}\n31.0.0.0,31.0.0.255,DE\n31.0.1.0,31.0.1.255,FR\n31.0.2.0,31.0.2.255,IT\n`,
  });
const build = (code: string, force = false) => buildOnce(dataDir, sources(code), { force });
const rollback = (...args: string[]) => ipatlas(['rollback', ...args, '--data', dataDir]);
const answer = (): string | null | undefined => openDatabase(dataDir).lookup('30.0.0.1')?.country_code;

describe('ipatlas rollback', () => {
  it('goes back one release, and another one', async () => {
    const ids = [];
    for (const code of ['DE', 'FR', 'IT']) ids.push((await build(code)).id!);
    expect(await rollback()).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(`${ids[1]} is now current instead of ${ids[2]}`),
    });
    expect([current(), answer()]).toEqual([ids[1], 'FR']);
    const { stdout } = await rollback('--json');
    expect(JSON.parse(stdout)).toEqual({ from: ids[1], to: ids[0] });
    expect([current(), answer()]).toEqual([ids[0], 'DE']);
    expect(await rollback()).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(`no release .* made before .* ${ids[0]}`),
    });
    expect(current()).toBe(ids[0]);
  });

  it('goes to the named release, also forward; the current one is accepted', async () => {
    const ids = [];
    for (const code of ['DE', 'FR', 'IT']) ids.push((await build(code)).id!);
    expect((await rollback(ids[0]!)).code).toBe(0);
    expect(current()).toBe(ids[0]);
    expect((await rollback(ids[2]!)).code).toBe(0);
    expect(current()).toBe(ids[2]);
    expect(await rollback(ids[2]!)).toMatchObject({ code: 0, stderr: expect.stringMatching(/is already current/) });
  });

  it('works if current is missing', async () => {
    const { id } = await build('DE');
    rmSync(join(dataDir, 'current'));
    expect(rollBack(dataDir, undefined)).toEqual({ from: undefined, to: id, isIncomplete: false });
    expect(current()).toBe(id);
  });

  it('goes from a damaged release to a whole one, never to a damaged one', async () => {
    const [first, second, third] = [await build('DE'), await build('FR'), await build('IT')].map(({ id }) => id!);
    truncateSync(join(dataDir, 'releases', second!, 'ranges.ipr'), 1000);
    expect(await rollback()).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/ranges\.ipr has 1000 bytes.*; name another one with "ipatlas rollback ID --data/),
    });
    expect(current()).toBe(third);
    writeFileSync(join(dataDir, 'releases', third!, 'manifest.json'), 'rubbish');
    expect((await rollback(first!)).code).toBe(0);
    expect([current(), answer()]).toEqual([first, 'DE']);
    // The list shows everything that can be read.
    const listed = await ipatlas(['releases', '--json', '--data', dataDir]);
    expect(
      JSON.parse(listed.stdout)
        .map(({ id }: { id: string }) => id)
        .sort(),
    ).toEqual([first, second].sort());
    expect(listed.stderr).toMatch(`release ${third} is damaged`);
  });

  it.each([
    ['2020-01-01-0123456789ab', /there is no release 2020-01-01-0123456789ab in .*"ipatlas releases --data/],
    ['../../etc', /there is no release \.\.\/\.\.\/etc/],
    ['refused', /there is no release refused/],
  ])('gives exit code 5 for the unknown release %s', async (id, message) => {
    await build('DE');
    mkdirSync(join(dataDir, 'releases/refused'), { recursive: true });
    const before = current();
    expect(await rollback(id)).toMatchObject({ code: 5, stdout: '', stderr: expect.stringMatching(message) });
    expect(current()).toBe(before);
  });

  it('creates no data directory, and does not wait for a build, which waits as long as --wait says', async () => {
    expect(await rollback()).toMatchObject({ code: 5, stderr: expect.stringMatching(/no data directory/) });
    await build('DE');
    await build('FR');
    const unlock = lockDataDir(dataDir);
    expect(await rollback()).toMatchObject({
      code: 8,
      stderr: expect.stringMatching(/another build or pull is running/),
    });
    const begun = performance.now();
    const args = ['build', '--sources', sources('IT'), '--data', dataDir];
    expect((await ipatlas([...args, '--wait', '1'])).code).toBe(8);
    expect(performance.now() - begun).toBeGreaterThan(950);
    unlock();
    expect((await ipatlas([...args, '--wait', '1'])).code).toBe(0);
    expect((await rollback()).code).toBe(0);
  });
});

describe('the build after a rollback', () => {
  it('does not publish the same inputs again unless forced', async () => {
    const [first, second] = [await build('DE'), await build('FR')].map(({ id }) => id!);
    rollBack(dataDir, undefined);
    for (let night = 0; night < 2; night++) {
      const refused = await build('FR');
      expect(refused).toMatchObject({ outcome: 'E_REFUSED', exit: 3 });
      expect(refused.message).toMatch(`those of release ${second}, which`);
      expect(refused.message).toMatch(`release ${first} stays current`);
      expect(current()).toBe(first);
    }
    expect(await build('FR', true)).toMatchObject({ outcome: 'published', id: second });
    expect([current(), answer()]).toEqual([second, 'FR']);
    expect(manifestOf(dataDir).forced?.refusals).toMatchObject([{ gate: 'rolledBack' }]);
    expect((await ipatlas(['verify', '--data', dataDir])).code).toBe(0);
    // After one forced build, the next one is like any other.
    expect(await build('FR')).toMatchObject({ outcome: 'unchanged' });
    await build('IT');
    expect(await build('FR')).toMatchObject({ outcome: 'published' });
  });

  it('finds nothing changed if the sources are those of the release that is current again', async () => {
    await build('DE');
    await build('FR');
    const { to } = rollBack(dataDir, undefined);
    expect(await build('DE')).toMatchObject({ outcome: 'unchanged', id: to });
  });

  it('publishes other sources, and compares them with the release that is current again', async () => {
    const first = await build('DE');
    await build('FR');
    rollBack(dataDir, undefined);
    const result = await build('IT');
    expect(result).toMatchObject({ outcome: 'published' });
    expect(result.notes.join('\n')).toMatch(`compared with ${first.id}`);
    // The record of the rollback is kept.
    expect(await build('FR')).toMatchObject({ outcome: 'E_REFUSED' });
  });

  it('publishes the same inputs again after the rollback was undone', async () => {
    const [first, second] = [await build('DE'), await build('FR')].map(({ id }) => id!);
    rollBack(dataDir, undefined);
    rollBack(dataDir, second);
    expect(await build('FR')).toMatchObject({ outcome: 'unchanged' });
    // Now the first release is the one that was rolled back from.
    expect((await build('DE')).message).toMatch(`those of release ${first}`);
  });

  it('says what to do if the record of rollbacks is damaged', async () => {
    await build('DE');
    writeFileSync(join(dataDir, 'rolled-back.json'), '{');
    expect(await build('FR')).toMatchObject({
      outcome: 'E_CONFIG',
      message: expect.stringMatching(/rolled-back\.json cannot be read: .*; remove it/),
    });
  });
});
