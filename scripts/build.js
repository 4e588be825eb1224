/** Compiles everything into dist/; what does not wait for something else runs at the same time. Run by "npm run build". */
import { $ } from 'zx';

const run = $({ stdio: 'inherit', preferLocal: true });
const compileKernel = (target) => run`asc --config src/enrich/kernel/asconfig.json --target ${target}`;

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
  await run`node scripts/make-seed.js`;
  await run`node scripts/make-lookup.js`;
}

async function makePage() {
  await run`node scripts/draw-map.js`;
  await run`node scripts/pack-page.js`;
}

await Promise.all([compileKernel('shared'), compileKernel('alone'), compileCommands(), makePage()]);
