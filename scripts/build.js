/** Compiles everything into dist/; what does not wait for something else runs at the same time. Run by "npm run build". */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { $ } from 'zx';

const run = $({ stdio: 'inherit', preferLocal: true });
const compileKernel = (target) => run`asc --config src/enrich/kernel/asconfig.json --target ${target}`;

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
  await run({ env })`npm rebuild better-sqlite3`;
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
await Promise.all([sqlite, page, compileKernel('alone'), compileKernel('shared'), compileCommands(), makePage()]);
