/**
 * Runs the programs of entries/ with the exports and configurations that docs/programs.md prints, and compares what they answer
 * with `ipatlas lookup`, before and after a newer release replaced the older one.
 *
 * Usage: node programs/run.js OLD NEW [NAME…] [--write], with two data directories whose answers differ, as root. It prints one JSON
 * line for each program; --write also writes results.json and docs/programs.md. The exit code is 1 if an answer differs.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { PROGRAMS } from './entries/entries.js';
import { textHash, writePage } from './page.js';

const RESULTS = fileURLToPath(new URL('results.json', import.meta.url));
const REPOSITORY = fileURLToPath(new URL('..', import.meta.url));

/** How many addresses a program is asked for that does not say it, and how long it may take to start or to notice a release. */
const ADDRESSES = 1_200;
const PATIENCE_MS = 60_000;

/** Starts this script on a copy of the file system, and takes over what it found. */
function startInside({ positionals: [older, newer, ...names], values }) {
  if (newer === undefined) throw new Error('usage: node programs/run.js OLD NEW [NAME…] [--write]');
  if (process.getuid() !== 0) throw new Error('needs root: it starts servers in namespaces of their own');
  const folder = mkdtempSync('/dev/shm/ipatlas-programs-');
  try {
    const { status, stdout } = spawnSync(
      join(REPOSITORY, 'programs/inside.sh'),
      [folder, REPOSITORY, older, newer, process.execPath, '/srv/ipatlas/programs/run.js', '--inside', ...names],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 2 ** 26 },
    );
    if (status !== 0) throw new Error(`the run ended with exit code ${status}`);
    const lines = stdout.split('\n').slice(0, -1);
    console.log(lines.join('\n'));
    const results = lines.map((line) => JSON.parse(line));
    if (values.write) writeResults(results);
    process.exitCode = results.some(({ failure }) => failure !== undefined) ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Writes results.json, with the earlier results of the programs that did not run now, and the page. */
function writeResults(results) {
  const earlier = existsSync(RESULTS) ? JSON.parse(readFileSync(RESULTS, 'utf8')).programs : [];
  const programs = PROGRAMS.map(({ name }) => [...results, ...earlier].find((result) => result.name === name));
  const system = `Debian ${readFileSync('/etc/debian_version', 'utf8').trim()}`;
  const day = new Date().toISOString().slice(0, 10);
  writeFileSync(RESULTS, `${JSON.stringify({ day, system, programs: programs.filter(Boolean) }, null, 2)}\n`);
  writePage();
}

/**
 * Runs a shell script to its end; returns what it printed. Its text is what the page prints, so a failing line ends it. A pipe of
 * Node.js is a socket, for which bash would read the startup file of remote shells.
 */
function shell(script, options = {}) {
  return execFileSync('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...options,
  });
}

/** The processes of this namespace that are not this one. Ended ones whose parent ended earlier stay as zombies. */
const others = () =>
  readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid || name === '1') return false;
    try {
      return !/^State:\tZ/m.test(readFileSync(`/proc/${name}/status`, 'utf8'));
    } catch {
      return false; // It ended meanwhile.
    }
  });

async function stopOthers() {
  for (let tries = 0; others().length > 0; tries++) {
    for (const id of others()) {
      try {
        process.kill(Number(id), tries < 40 ? 'SIGTERM' : 'SIGKILL');
      } catch {} // It ended by itself.
    }
    await sleep(50);
  }
}

/** Returns the memory of all programs that run, in bytes: what several share is counted once. */
function memory() {
  let kilobytes = 0;
  for (const id of others()) {
    try {
      kilobytes += Number(/^Pss: *(\d+)/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {} // It ended meanwhile.
  }
  return kilobytes * 1024;
}

/** Yields numbers from 0 to 2^32 - 1, the same in every run (xorshift32). */
function* randomWords(state) {
  for (;;) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    yield state >>> 0;
  }
}

/** Runs ipatlas with a release. */
function ipatlas(data, script, input) {
  return shell(script, { input, env: { ...process.env, IPATLAS_DATA: data } });
}

/** Returns the countries of addresses by `ipatlas lookup`; an empty text for none. */
function lookup(data, addresses) {
  const lines = ipatlas(data, 'ipatlas lookup - --json', addresses.join('\n')).trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line).country_code ?? '');
}

/**
 * Draws addresses and looks them up in both releases: half of each family, random ones and bounds of ranges, a tenth of them, if
 * there are so many, with answers that differ. Left out are addresses that no server can get a packet from, and those of transition mechanisms.
 */
function drawAddresses(count) {
  const random = randomWords(20_261_126);
  const next = () => random.next().value;
  const ranges = { 4: [], 6: [] };
  for (const line of ipatlas('/srv/new', 'ipatlas export csv').split('\n').slice(1, -1)) {
    const [start, end] = line.split(',', 2);
    ranges[start.includes(':') ? 6 : 4].push(start, end);
  }
  const isAskable = (ip) => !/^(0|127|22[4-9]|2[345]\d)\.|^(2001:0?:|2002:|64:ff9b:|::)/.test(ip);
  const group = () => (next() & 0xffff).toString(16);
  const draw = {
    4: () => [24, 16, 8, 0].map((shift) => (next() >>> shift) & 255).join('.'),
    6: () => [`2${group().padStart(4, '0').slice(1)}`, ...Array.from({ length: 7 }, group)].join(':'),
  };
  return [4, 6].flatMap((family) => {
    const drawn = Array.from({ length: 6 * count }, (_, i) => {
      return i % 3 === 0 ? draw[family]() : ranges[family][next() % ranges[family].length];
    });
    const asked = [...new Set(drawn)].filter(isAskable);
    const [older, newer] = [lookup('/srv/old', asked), lookup('/srv/new', asked)];
    const all = asked.map((ip, i) => ({ ip, older: older[i], newer: newer[i] }));
    const changed = all.filter(({ older, newer }) => older !== newer).slice(0, count / 20);
    const rest = all.filter(({ older, newer }) => older === newer).slice(0, count / 2 - changed.length);
    return [...changed, ...rest];
  });
}

/** Waits until a probe returns true; returns the seconds that it took. */
async function until(probe, what) {
  const start = performance.now();
  for (;;) {
    const problem = await probe();
    const seconds = (performance.now() - start) / 1000;
    if (problem === undefined) return seconds;
    if (seconds * 1000 > PATIENCE_MS) throw new Error(`${what} did not happen: ${problem}`);
    await sleep(20);
  }
}

/** Returns a field of an installed package of Debian; undefined if it is not installed. */
function debianField(name, field) {
  const { stdout } = spawnSync('dpkg-query', ['-s', name], { encoding: 'utf8' });
  if (!/^Status: install ok installed$/m.test(stdout)) return undefined;
  return new RegExp(`^${field}: (.*)$`, 'm').exec(stdout)?.[1];
}

/** Returns which packages of a program are missing; undefined if all are there. */
function missingPackages({ packages = [] }) {
  const missing = packages.filter((name) => debianField(name, 'Status') === undefined);
  return missing.length > 0 ? `not installed: ${missing.join(', ')}` : undefined;
}

/** Runs one program; returns what the page says about it. */
async function runProgram(program, drawn) {
  const { name, files, harness = {}, exports, before = '', load = '', start, reload, ask } = program;
  const skipped = missingPackages(program);
  const text = textHash(program);
  if (skipped !== undefined) return { name, text, skipped };
  const result = { name, text, version: versionOf(program) };
  let output = '';
  let server;
  try {
    for (const [path, text] of Object.entries({ ...harness, ...files })) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    const chosen = drawn.filter(({ ip }) => program.holds?.(ip) ?? true);
    const addresses = chosen.map(({ ip }) => ip);
    const expectation = program.expects ?? ((code) => code);
    const wrong = async (release, some = chosen) => {
      const got = await ask(
        some.map(({ ip }) => ip),
        { shell },
      );
      if (got.length !== some.length) return [`${got.length} answers to ${some.length} addresses`];
      return some.flatMap((one, i) => {
        const right = expectation(one[release], one.ip);
        return got[i] === right ? [] : [`${one.ip}: ${JSON.stringify(got[i])} instead of ${JSON.stringify(right)}`];
      });
    };
    const startServer = () => {
      server = spawn('bash', ['--norc', '-c', start], { stdio: ['ignore', 'pipe', 'pipe'] });
      for (const stream of [server.stdout, server.stderr]) {
        stream.setEncoding('utf8').on('data', (chunk) => {
          output = (output + chunk).slice(-4000);
        });
      }
    };
    const problemOf = async (action) => {
      if (server?.exitCode > 0) throw new Error(`it ended with exit code ${server.exitCode}`);
      try {
        await action();
        return undefined;
      } catch (error) {
        return String(error.stderr ?? error.message).slice(0, 1000);
      }
    };
    const areRight = (release, some) =>
      problemOf(async () => {
        for (const problem of await wrong(release, some)) throw new Error(problem);
      });
    ipatlas('/srv/old', exports + before);
    const begin = performance.now();
    if (start !== undefined) startServer();
    if (program.ready !== undefined) await until(() => problemOf(() => shell(program.ready)), 'the start');
    if (load !== '') shell(load);
    const first = chosen.find(({ older, ip }) => expectation(older, ip) !== expectation('', ip));
    if (start !== undefined) {
      await until(() => areRight('older', [first]), 'the first right answer');
      result.seconds = Number(((performance.now() - begin) / 1000).toFixed(2));
      result.memory = memory();
    }
    const differences = await wrong('older');
    result.answers = addresses.length;

    ipatlas('/srv/new', exports);
    if (reload === 'restart') {
      await stopOthers();
      startServer();
    } else if (reload !== undefined) shell(reload);
    const changed = chosen.filter(({ older, newer, ip }) => expectation(older, ip) !== expectation(newer, ip));
    if (changed.length === 0) throw new Error('no address has another answer in the newer release');
    result.changed = changed.length;
    // Many of them: some programs change over while they answer.
    const some = changed.slice(0, ADDRESSES / 10);
    const noticed = await until(() => areRight('newer', some), 'the answers of the newer release');
    result.noticed = Number(noticed.toFixed(2));
    differences.push(...(await wrong('newer')));
    result.answers += addresses.length;
    result.differences = differences.length;
    if (differences.length > 0) result.failure = differences.slice(0, 5).join('\n');
  } catch (error) {
    result.failure = `${error.message}\n${error.stderr ?? ''}\n${output}`.slice(0, 6000);
  }
  server?.kill();
  await stopOthers();
  // The next program must not find them.
  for (const path of Object.keys({ ...harness, ...files })) rmSync(path, { force: true });
  return result;
}

/** Returns the version of a program as its authors number it. */
function versionOf({ npm, packages }) {
  if (npm !== undefined) return JSON.parse(readFileSync(`/srv/node_modules/${npm}/package.json`, 'utf8')).version;
  return debianField(packages[0], 'Version').replace(/^\d+:|[-+].*$/g, '');
}

/** Runs inside: the programs one after the other. */
async function runAll(names) {
  writeFileSync('/usr/local/bin/ipatlas', '#!/bin/sh\nexec node /srv/ipatlas/dist/src/cli/start.cjs "$@"\n', {
    mode: 0o755,
  });
  process.env.PATH = `/usr/sbin:/usr/local/bin:/usr/bin:/bin:/sbin:${dirname(process.execPath)}`;
  if (!existsSync('/srv/node_modules')) symlinkSync('/srv/ipatlas/node_modules', '/srv/node_modules');
  const drawn = new Map();
  for (const program of PROGRAMS) {
    if (names.length > 0 && !names.includes(program.name)) continue;
    const { count = ADDRESSES } = program;
    if (!drawn.has(count)) drawn.set(count, drawAddresses(count));
    const begin = performance.now();
    const result = await runProgram(program, drawn.get(count));
    console.log(JSON.stringify(result));
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    console.error(`${result.name}: ${result.skipped ?? result.failure ?? `${result.answers} answers`}, ${seconds} s`);
  }
  process.exit(0);
}

const parameters = parseArgs({
  allowPositionals: true,
  options: { inside: { type: 'boolean' }, write: { type: 'boolean' } },
});
if (parameters.values.inside) await runAll(parameters.positionals);
else startInside(parameters);
