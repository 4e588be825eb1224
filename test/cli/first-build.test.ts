import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { terminal } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';

/** An empty working directory, and another home directory. */
let cwd: string;
let home: string;
beforeEach(() => {
  cwd = temporaryDir();
  home = join(cwd, 'home');
  mkdirSync(home);
});
afterEach(() => rmSync(cwd, { recursive: true }));

const env = () => ({ HOME: home, IPATLAS_DATA: undefined, XDG_DATA_HOME: undefined });
const GOOGLE = '{"ip":"8.8.8.8","country":"United States","country_code":"US","is_eu":false}\n';

describe('the first command that needs a database', () => {
  it('builds one with --yes, in the XDG data directory', async () => {
    const { code, stdout, stderr } = await ipatlas(['lookup', '--yes', '8.8.8.8'], { cwd, env: env() });
    expect([code, stdout], stderr).toEqual([0, GOOGLE]);
    // One line on the sources, not two for each.
    expect(stderr).toMatch(
      /^offline: seed of June 2026; 6 live sources skipped \(--verbose has the details\)\nfetch /m,
    );
    expect(stderr).not.toContain('no usable copy');
    expect(existsSync(join(home, '.local/share/ipatlas/current/manifest.json'))).toBe(true);
    expect(existsSync(join(cwd, 'data'))).toBe(false);
    const again = await ipatlas(['enrich'], { cwd, env: env(), input: '{"ip":"8.8.8.8"}\n' });
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('"country_code":"US"') });
  });

  it.each([['lookup', '8.8.8.8'], ['enrich'], ['export', 'csv']])(
    'without --yes and a terminal, says how to build one: %s',
    async (...args) => {
      const { code, stdout, stderr } = await ipatlas(args, { cwd, env: env() });
      expect([code, stdout]).toEqual([5, '']);
      expect(stderr).toMatch(
        /^ipatlas: no release in .*ipatlas; make one with "ipatlas build --offline", or add --yes [^\n]*\n$/,
      );
      expect(existsSync(join(home, '.local'))).toBe(false);
    },
  );

  it('asks on a terminal, and "n" builds nothing', async () => {
    const lookup = `cd '${cwd}'; HOME='${home}'; unset IPATLAS_DATA XDG_DATA_HOME; "$NODE" "$MAIN" lookup 8.8.8.8`;
    const refused = await terminal(lookup, [[/\[Y\/n\]/, 'n\n']]);
    expect(refused).toMatchObject({
      code: 5,
      stdout: expect.stringMatching(/There is no database in .*\. Build it now/),
    });
    expect(existsSync(join(home, '.local'))).toBe(false);
    // The build itself is that of --yes.
    const begun = await terminal(lookup, [
      [/\[Y\/n\]/, '\n'],
      [/^fetch /m, '\x03'],
    ]);
    expect(begun.stdout).toMatch(/^fetch /m);
  });

  it('does not build one if a release with a wrong name was requested', async () => {
    mkdirSync(join(cwd, 'data/releases'), { recursive: true });
    const { code, stderr } = await ipatlas(['export', 'csv', '--yes', '--release', '2026-01-01-000000000000'], {
      cwd,
      env: env(),
    });
    expect(code).toBe(5);
    expect(stderr).toMatch(/there is no release 2026-01-01-000000000000/);
  });
});
