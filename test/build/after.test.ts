/** The steps after a publication: exports and commands, each done or done again. */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runAfter } from '../../pipeline/operations/after.js';
import { packageFile } from '../../src/package-root.js';
import { missingProgram, testWith } from '../export/tools.js';
import { ipatlas } from '../support/in-process.js';
import { freezeClock, killedAt, stepsToKill } from '../support/killed-writer.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { freePort } from '../support/ports.js';
import { writeSources } from '../support/sources.js';

giveFolders();

/** Builds with steps in the sources file. `country` is that of 8.8.8.0/24. */
async function build(after: object[], country = 'DE', env: Record<string, string> = {}) {
  const file = writeSources(dir, { a: [`8.8.8.0,8.8.8.255,${country}`, '9.0.0.0,9.255.255.255,FR'] }, { after });
  Object.assign(process.env, env);
  return ipatlas(['build', '--offline', '--force', '--sources', file, '--data', dataDir]);
}

const GEO = { export: 'nginx', output: 'geo.conf' };
const appendTo = (name: string, text = '$IPATLAS_RELEASE $IPATLAS_PREVIOUS'): object => ({
  run: ['bash', '-c', `echo "${text}" >> ${name}`],
});
const read = (name: string): string => (existsSync(join(dir, name)) ? readFileSync(join(dir, name), 'utf8') : '');
const state = () => JSON.parse(readFileSync(join(dataDir, 'after.json'), 'utf8'));

/** Stands in for "ipatlas export": writes the name of the release, and fails if the file "broken" is there. */
const PROGRAM = ['bash', '-c', 'test ! -e broken && printf %s "$IPATLAS_RELEASE" > "$4"', 'ipatlas'];

it('are done, or done again, after a kill at any moment', async () => {
  freezeClock();
  const path = join(dir, 'steps.json');
  const steps = [
    GEO,
    appendTo('reloads', '$(cat geo.conf)'),
    { export: 'haproxy', output: 'map' },
    appendTo('last', 'x'),
  ];
  writeFileSync(path, JSON.stringify(steps));
  const releases = join(dataDir, 'releases');
  /** Makes a release the current one that nothing but its name is needed of. */
  const publish = (id: string): void => {
    mkdirSync(join(releases, id), { recursive: true });
    rmSync(join(dataDir, 'current'), { force: true });
    symlinkSync(join('releases', id), join(dataDir, 'current'));
  };
  const id = (number: number): string => `2026-01-01-${number.toString(16).padStart(12, '0')}`;
  const run = () => runAfter({ dataDir, file: { path, kind: 'list' }, note: () => {}, program: PROGRAM });
  publish(id(0));
  const kills = await stepsToKill(Number(process.env.FUZZ_RUNS === undefined ? 3 : 1), run);
  for (const [number, kill] of kills.entries()) {
    publish(id(number + 1));
    await killedAt(kill, run);
    // Never half a file.
    expect([id(number), id(number + 1)]).toContain(read('geo.conf'));
    await run();
    expect([read('geo.conf'), read('map')]).toEqual([id(number + 1), id(number + 1)]);
    expect(read('reloads')).toContain(id(number + 1));
    expect(state()).toMatchObject({ release: id(number + 1), previous: id(number), done: 4 });
  }
});

describe('servers', () => {
  testWith(missingProgram('nginx', 'nginx', ['-v']), 'nginx answers by the new release after the steps', async () => {
    const port = await freePort();
    const main = join(dir, 'nginx.conf');
    writeFileSync(
      main,
      `pid ${dir}/nginx.pid; error_log stderr; events {}
      http { access_log off; client_body_temp_path ${dir}; proxy_temp_path ${dir}; fastcgi_temp_path ${dir};
      uwsgi_temp_path ${dir}; scgi_temp_path ${dir}; geo $arg_ip $country { default -; include ${dir}/geo.conf; }
      server { listen 127.0.0.1:${port}; location / { return 200 $country; } } }`,
    );
    const nginx = (...args: string[]) => ['nginx', '-e', 'stderr', '-c', main, ...args];
    // Starts it the first time, and reloads it later.
    const reload = `if test -s nginx.pid; then ${nginx('-s', 'reload').join(' ')}; else ${nginx().join(' ')}; fi`;
    // Those of the guide, with the files and the nginx of this test.
    const guide = readFileSync(packageFile('docs/rebuild.md'), 'utf8');
    const [, json] = /^```json\n(\[\n {2}\{ "export": "nginx"[\s\S]*?\n\])/m.exec(guide)!;
    const steps = (JSON.parse(json!) as { export?: string; run: string[] }[]).map(({ run, ...step }) => {
      if (step.export !== undefined) return GEO;
      return { ...step, run: run.includes('reload') ? ['bash', '-c', reload] : nginx(...run.slice(1)) };
    });
    expect(steps).toEqual([GEO, { run: nginx('-t') }, { run: ['bash', '-c', reload], timeout: '30s' }]);
    const answer = async () => (await fetch(`http://127.0.0.1:${port}/?ip=8.8.8.8`)).text();
    try {
      expect((await build(steps)).stderr).toContain('after: nginx -e stderr');
      await expect.poll(answer, { timeout: 10_000 }).toBe('DE');
      await build(steps, 'FR');
      await expect.poll(answer, { timeout: 10_000 }).toBe('FR');
      // A configuration that nginx refuses stops the list before the reload.
      const { code, stderr } = await build(
        [{ ...GEO, flags: ['--countries', 'DE'] }, { run: nginx('-t', '-g', 'nonsense;') }, steps[2]!],
        'DE',
      );
      expect([code, stderr]).toEqual([7, expect.stringMatching(/unknown directive "nonsense"/)]);
      expect(await answer()).toBe('FR');
    } finally {
      if (existsSync(join(dir, 'nginx.pid'))) process.kill(Number(read('nginx.pid')), 'SIGQUIT');
    }
  });

  testWith(
    missingProgram('haproxy', 'haproxy', ['-v']),
    'HAProxy is checked and started with the new map',
    async () => {
      const port = await freePort();
      const main = join(dir, 'haproxy.cfg');
      writeFileSync(
        main,
        `global\n  daemon\n  pidfile ${dir}/haproxy.pid\ndefaults\n  mode http\n  timeout client 5s\n  timeout server 5s\n  timeout connect 5s\n` +
          `frontend f\n  bind 127.0.0.1:${port}\n  http-request return status 200 content-type text/plain lf-string "%[url_param(ip),map_ip(${dir}/map,-)]"\n`,
      );
      const start = `haproxy -f haproxy.cfg $(test -s haproxy.pid && echo -sf $(cat haproxy.pid))`;
      const steps = [
        { export: 'haproxy', output: 'map' },
        { run: ['haproxy', '-c', '-f', main] },
        { run: ['bash', '-c', start] },
      ];
      const answer = async () => (await fetch(`http://127.0.0.1:${port}/?ip=8.8.8.8`)).text();
      try {
        await build(steps);
        await expect.poll(answer, { timeout: 10_000 }).toBe('DE');
        await build(steps, 'FR');
        await expect.poll(answer, { timeout: 10_000 }).toBe('FR');
      } finally {
        for (const pid of read('haproxy.pid').split('\n').filter(Boolean)) process.kill(Number(pid));
      }
    },
  );
});

describe('steps after a publication', () => {
  it('write exports, and tell others only if they changed', async () => {
    const steps = [GEO, appendTo('reloads'), { ...appendTo('always', 'x'), always: true }];
    expect((await build(steps)).code).toBe(0);
    const first = state().release;
    expect(read('geo.conf')).toContain('8.8.8.0/24 DE;');
    expect([read('reloads'), read('always')]).toEqual([`${first} \n`, 'x\n']);

    const again = await build(steps, 'FR');
    expect(read('geo.conf')).toContain('8.8.8.0/24 FR;');
    expect(again.stderr).toContain('after: geo.conf is written');
    expect(read('reloads')).toBe(`${first} \n${state().release} ${first}\n`);

    // Another name of the same answer: the release changes, the export does not.
    writeFileSync(join(dir, 'b'), '');
    const same = await build([GEO, appendTo('reloads'), { ...appendTo('always', 'y'), always: true }], 'FR');
    expect(same.stderr).toContain('after: geo.conf is as it was');
    expect(read('reloads').split('\n').length).toBe(3);
    expect(read('always')).toBe('x\nx\ny\n');
  });

  it('end with exit code 7 at one that fails, and go on from there', async () => {
    const steps = [GEO, { run: ['bash', '-c', 'echo started; echo the reason >&2; exit 3'] }, appendTo('last', 'x')];
    const failed = await build(steps);
    expect(failed.code).toBe(7);
    expect(failed.stderr).toMatch(
      /^ipatlas: release \S+ is published, but step 2 of "after" failed: bash -c .*: its exit code is 3; its last lines:\n {4}started\n {4}the reason\nfix it, then "ipatlas after"/m,
    );
    expect(read('last')).toBe('');
    expect((await ipatlas(['after', '--data', dataDir])).code).toBe(7);

    // Nothing new is published, and the rest is tried all the same; the export before it still counts as changed.
    const path = join(dir, 'steps.json');
    writeFileSync(path, JSON.stringify([GEO, appendTo('mended', 'x'), appendTo('last', 'x')]));
    const { code, stderr } = await ipatlas(['after', '--after', path, '--data', dataDir]);
    expect([code, stderr]).toEqual([0, expect.stringContaining('all 3 steps are done')]);
  });

  it('run after a rollback, too', async () => {
    const steps = [GEO, appendTo('reloads')];
    await build(steps);
    const [first] = read('reloads').split(' ');
    await build(steps, 'FR');
    expect((await ipatlas(['rollback', '--data', dataDir])).code).toBe(0);
    expect(read('geo.conf')).toContain('8.8.8.0/24 DE;');
    expect(read('reloads').trim().split('\n').at(-1)).toMatch(new RegExp(`^${first} \\S+$`));
  });

  it('give arguments as they are, and hide secrets', async () => {
    const hostile = ['$(touch hacked)', '`touch hacked`', '; touch hacked', '"\'\\', 'a\nb', '*', '$HOME', '-n', ''];
    const script = "const fs=require('fs');fs.writeFileSync('args',JSON.stringify(process.argv.slice(1)))";
    const args = hostile.filter((each) => each !== '');
    expect((await build([{ run: [process.execPath, '-e', script, '--', ...args] }])).code).toBe(0);
    expect([JSON.parse(read('args')), existsSync(join(dir, 'hacked'))]).toEqual([args, false]);

    const secret = { run: ['bash', '-c', 'echo "denied for $MY_API_KEY"; exit 1'] };
    const { stderr } = await build([secret], 'FR', { MY_API_KEY: 'hunter2hunter2' });
    expect(stderr).toContain('denied for ***');
    expect(stderr).not.toContain('hunter2');
  });

  it.each<[string, object, RegExp]>([
    [
      'takes too long',
      { run: ['sleep', '600'], timeout: '300ms' },
      /sleep 600: it was ended by SIGKILL after \d+ s \(the limit is 0.3 s\)/,
    ],
    ['does not exist', { run: ['no-such-program-here'] }, /no-such-program-here: it was not found/],
    [
      'is an export that cannot be written',
      { export: 'nginx', output: '/proc/none/geo.conf' },
      /cannot be written|ENOENT/,
    ],
    [
      'is no export',
      { export: 'nonsense', output: 'x' },
      /step 1 of "after" failed: export nonsense: its exit code is 2/,
    ],
  ])('say what a step has that %s', async (_what, step, message) => {
    const { code, stderr } = await build([step]);
    expect([code, stderr]).toEqual([
      expect.toSatisfy((each) => each === 7 || each === 2),
      expect.stringMatching(message),
    ]);
  });

  it('are not taken from a file that others can write', async () => {
    await build([]);
    const path = join(dir, 'steps.json');
    writeFileSync(path, JSON.stringify([appendTo('done')]));
    chmodSync(path, 0o666);
    const { code, stderr } = await ipatlas(['after', '--after', path, '--data', dataDir]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('has commands, but can be written by other users')]);
    expect(read('done')).toBe('');
  });
});
