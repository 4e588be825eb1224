/** Compiles everything into dist/; what does not wait for something else runs at the same time. Run by "npm run build". */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import { $ } from 'zx';

const run = $({ stdio: 'inherit', preferLocal: true });
const compileKernel = (target) => run`asc --config src/enrich/kernel/asconfig.json --target ${target}`;

/** The memory that the kernel imports: its module and name, "memory" (2), and its flags: it has a maximum (1) and is shared (2). */
const SHARED_MEMORY = Buffer.from('\x03env\x06memory\x02\x03', 'latin1');

/** Compiles the kernel for shared memory; that for other memory differs in one byte (WebAssembly, "Limits"). */
async function compileKernels() {
  await compileKernel('shared');
  const [shared, alone] = ['shared', 'alone'].map((name) => `dist/src/enrich/kernel/kernel-${name}.wasm`);
  const kernel = readFileSync(shared);
  const at = kernel.indexOf(SHARED_MEMORY);
  if (at < 0) throw new Error(`${shared} does not import a shared memory as env.memory`);
  kernel[at + SHARED_MEMORY.length - 1] = 1;
  writeFileSync(alone, kernel);
}

/**
 * Compiles SQLite for Node 20, if its package was installed without its install script. The headers beside Node serve where
 * those of the network cannot be had.
 */
async function compileSqlite() {
  const isNeeded = Number.parseInt(process.versions.node, 10) < 22;
  if (!isNeeded || existsSync('node_modules/better-sqlite3/build/Release/better_sqlite3.node')) return;
  const prefix = dirname(dirname(process.execPath));
  const hasHeaders = existsSync(join(prefix, 'include/node/node.h'));
  const env = { ...(hasHeaders && { npm_config_nodedir: prefix }), ...process.env };
  // With the package's own -O3, GCC takes 67 s of processor time for SQLite; with -O1, 20 s, and a build takes some 2 % longer.
  const flags = { JOBS: 'max', CFLAGS: '-O1', CXXFLAGS: '-O1' };
  const compiling = run({ env: { ...flags, ...env } })`npm rebuild better-sqlite3`;
  // It takes longest, and the database waits for it: what else is compiled meanwhile has a lower priority.
  setPriority(Math.min(getPriority() + 5, 19));
  await compiling;
}

async function compileCommands() {
  await run`tsc -p tsconfig.build.json`;
  await Promise.all([
    makeData(),
    run`node scripts/bundle-cli.js`,
    run`node scripts/write-manual.js`,
    run`node scripts/write-memberships.js`,
  ]);
}

async function makeData() {
  await sqlite;
  await run`node scripts/make-seed.js`;
  await run`node scripts/make-lookup.js`;
}

async function makePage() {
  await page;
  await run`node scripts/draw-map.js`;
  await run`node scripts/pack-page.js`;
}

const sqlite = compileSqlite();
const page = compileKernel('page');
await Promise.all([sqlite, page, compileKernels(), compileCommands(), makePage()]);
