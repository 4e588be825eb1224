/**
 * Packs ipatlas, installs the package as a user would, and runs its commands end to end: build, lookup, enrich, export,
 * serve. Each pair of a Node version and a package manager gets an empty project of its own.
 *
 *   node scripts/test-package.js [--node 20.19,22,24,26] [--with npm@10,npm@12,pnpm@10] [--readme]
 *
 * It needs Node, npm and the npm registry. The Node binaries and the package managers come from npm. For Node 20, npm
 * downloads or compiles SQLite's native module (a compiler, make and Python); later versions of Node need neither.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { $ } from 'zx';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** Longest time in milliseconds that the server may take to start, answer and stop. */
const PATIENCE_MS = 60_000;

const { values } = parseArgs({
  options: {
    node: { type: 'string', default: '20.19,22,24,26' },
    with: { type: 'string', default: 'npm@10,npm@12,pnpm@10' },
    readme: { type: 'boolean', default: false },
  },
});

/** Pairs that their makers do not support: npm 12 needs Node 22. */
const unsupported = (nodeVersion, manager) => manager === 'npm@12' && nodeVersion.startsWith('20');

/** Installs one package into a folder of its own and returns the folder of the package. */
async function install(tools, name, version) {
  const folder = join(tools, `${name}-${version}`);
  mkdirSync(folder, { recursive: true });
  await $`npm install --prefix ${folder} --no-audit --no-fund --ignore-scripts ${name}@${version}`.quiet();
  return join(folder, 'node_modules', name);
}

/** Returns the commands that install the tarball into an empty project. */
function installCommands(manager, nodeVersion, tarball) {
  // --engine-strict: no dependency may ask for a newer Node than ipatlas does.
  if (manager.startsWith('npm@')) return [['npm', 'install', '--engine-strict', '--no-audit', '--no-fund', tarball]];
  return [['pnpm', 'add', tarball], ...(nodeVersion.startsWith('20') ? [['pnpm', 'rebuild', 'better-sqlite3']] : [])];
}

/** What a project on Node 20 has to tell pnpm, which does not choose versions by Node and blocks install scripts. */
const PNPM_ON_NODE_20 = 'overrides:\n  better-sqlite3: ^12.11.1\nonlyBuiltDependencies:\n  - better-sqlite3\n';

/** Starts the server on a free port, asks it once with a key, and stops it. */
async function serve(run, project, env) {
  const key = (await run`${project}/node_modules/.bin/ipatlas keys create`).stdout.trim();
  const server = spawn(join(project, 'node_modules/.bin/ipatlas'), ['serve', '--host', '127.0.0.1', '--port', '0'], {
    cwd: project,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const closed = once(server, 'close');
  const limit = setTimeout(() => server.kill('SIGKILL'), PATIENCE_MS);
  let log = '';
  let answer;
  try {
    for await (const line of createInterface({ input: server.stderr })) {
      log += `${line}\n`;
      const url = /"url":"([^"]+)".*"listening"/.exec(line)?.[1];
      if (url === undefined) continue;
      const response = await fetch(`${url}/api/lookup/193.0.6.139`, { headers: { 'x-api-key': key } });
      answer = { status: response.status, body: await response.json() };
      server.kill('SIGTERM');
    }
  } finally {
    server.kill('SIGTERM');
    clearTimeout(limit);
  }
  assert.deepEqual(await closed, [0, null], log);
  assert.equal(answer?.status, 200, log);
  assert.equal(answer.body.country_code, 'NL');
}

async function endToEnd(run, project, env) {
  const ipatlas = join(project, 'node_modules/.bin/ipatlas');
  // The data of the package.
  await run`${ipatlas} build --offline`;
  await run`${ipatlas} verify`;
  for (const engine of ['binary', 'sqlite']) {
    const { stdout } = await run`${ipatlas} lookup --engine ${engine} 193.0.6.139`;
    assert.deepEqual(JSON.parse(stdout), {
      ip: '193.0.6.139',
      country: 'Netherlands',
      country_code: 'NL',
      is_eu: true,
    });
  }
  const enriched = await run({ input: '{"ip":"193.0.6.139"}\n' })`${ipatlas} enrich`;
  assert.equal(
    enriched.stdout,
    '{"ip":"193.0.6.139","geo":{"country":"Netherlands","country_code":"NL","is_eu":true}}\n',
  );
  await run`${ipatlas} export mmdb -o ${join(project, 'country.mmdb')}`;
  const library =
    "import { openDatabase } from 'ipatlas'; console.log(openDatabase('data').lookup('8.8.8.8').country_code)";
  assert.equal((await run`node --input-type=module -e ${library}`).stdout, 'US\n');
  await serve(run, project, env);
}

async function tryPair(work, tarball, { nodeVersion, nodeDir, manager, managerDir }) {
  const project = join(work, `project-${nodeVersion}-${manager.replace('@', '')}`);
  mkdirSync(project, { recursive: true });
  writeFileSync(join(project, 'package.json'), '{"name":"user","private":true,"type":"module"}\n');
  if (manager.startsWith('pnpm') && nodeVersion.startsWith('20')) {
    writeFileSync(join(project, 'pnpm-workspace.yaml'), PNPM_ON_NODE_20);
  }
  const env = {
    ...process.env,
    PATH: [join(nodeDir, 'bin'), join(dirname(managerDir), '.bin'), process.env.PATH].join(delimiter),
    IPATLAS_DATA: join(project, 'data'), // not the data directory of the user
    // A package manager that finds itself in another project's script takes over its settings.
    npm_config_user_agent: undefined,
  };
  const run = $({ cwd: project, env, quiet: true });
  const start = performance.now();
  for (const command of installCommands(manager, nodeVersion, tarball)) await run`${command}`;
  const installed = performance.now();
  await endToEnd(run, project, env);
  const version = (await run`node --version`).stdout.trim();
  const seconds = (from, to) => `${((to - from) / 1000).toFixed(0)} s`;
  console.log(
    `ok  Node ${version}, ${manager}: installed in ${seconds(start, installed)}, ran in ${seconds(installed, performance.now())}`,
  );
  rmSync(project, { recursive: true, force: true });
}

/** Runs the commands of README that install ipatlas from a clone, as they are there, with an empty home. */
async function tryReadme(work) {
  const [, block] = /```sh\n(make pack [^`]*)```/.exec(readFileSync(join(ROOT, 'README.md'), 'utf8'));
  const home = join(work, 'home');
  mkdirSync(home);
  const { NODE_OPTIONS: _, IPATLAS_DATA: __, ...environment } = process.env;
  const env = {
    ...environment,
    HOME: home,
    npm_config_prefix: home,
    npm_config_userconfig: join(homedir(), '.npmrc'), // the registry, and where the headers of Node are
    PATH: [join(home, 'bin'), process.env.PATH].join(delimiter),
  };
  const commands = block.replace(/^ipatlas build\b/m, 'ipatlas build --offline');
  const { stdout } = await $({ cwd: ROOT, env, quiet: true })`bash -euc ${commands}`;
  assert.match(stdout, /"country_code":"NL"/);
  console.log('ok  README: packed and installed from the clone');
}

const work = realpathSync(mkdtempSync(join(tmpdir(), 'ipatlas-package-')));
try {
  await $({ cwd: ROOT, quiet: true })`npm pack --ignore-scripts --pack-destination ${work}`;
  const tarball = join(
    work,
    readdirSync(work).find((name) => name.endsWith('.tgz')),
  );
  if (values.readme) await tryReadme(work);
  const managers = [];
  for (const manager of values.with.split(',')) {
    managers.push({ manager, managerDir: await install(work, ...manager.split('@')) });
  }
  let failed = 0;
  for (const nodeVersion of values.node.split(',')) {
    // The package `node` picks one of these packages by an install script, which a package manager may block.
    const nodeDir = await install(work, `node-${process.platform}-${process.arch}`, nodeVersion);
    for (const one of managers) {
      if (unsupported(nodeVersion, one.manager)) continue;
      try {
        await tryPair(work, tarball, { nodeVersion, nodeDir, ...one });
      } catch (error) {
        failed++;
        console.log(`FAILED  Node ${nodeVersion}, ${one.manager}: ${error.stack ?? error}\n${error.stdout ?? ''}`);
      }
    }
  }
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
