/**
 * The package @ipatlas/lookup at every boundary of a real release, in each runtime and after each bundler. The runtimes
 * have a package.json of their own, in runtimes/; `make soak` installs them.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { releaseDir } from '../../src/database/release.js';
import { packageFile, packageRoot } from '../../src/package-root.js';
import { boundaries } from '../support/boundaries.js';
import { seedSourcesRelease } from '../support/built-release.js';
import { checkInChromium } from '../support/chromium-lookups.js';
import { freePort } from '../support/ports.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';

const RUNTIMES = fileURLToPath(new URL('runtimes', import.meta.url));
const CHECK = fileURLToPath(new URL('../support/check-lookups.js', import.meta.url));
const PACKAGE = packageFile('dist/lookup');
const tool = (name: string): string => join(RUNTIMES, 'node_modules/.bin', name);

let dir: string;
let list: string;
let right: { count: number; wrong: string[] };
beforeAll(async () => {
  const lines = [...boundaries(releaseDir(await seedSourcesRelease()))];
  list = lines.join('\n');
  right = { count: lines.length, wrong: [] };
  dir = temporaryDir();
  cpSync(PACKAGE, join(dir, 'node_modules/@ipatlas/lookup'), { recursive: true });
  cpSync(CHECK, join(dir, 'check-lookups.js'));
  writeFileSync(join(dir, 'package.json'), '{"type":"module","private":true}');
  writeFileSync(join(dir, 'boundaries.txt'), list);
  writeFileSync(join(dir, 'entry.js'), "export { load } from '@ipatlas/lookup';\n");
  const read = "import { readFileSync } from 'node:fs';\nimport { checkLookups } from './check-lookups.js';\n";
  const check = "console.log(JSON.stringify(checkLookups(await load(), readFileSync('boundaries.txt', 'utf8'))));\n";
  writeFileSync(join(dir, 'module.mjs'), `${read}import { load } from '@ipatlas/lookup';\n${check}`);
  const required =
    "import { createRequire } from 'node:module';\nconst { load } = createRequire(import.meta.url)('@ipatlas/lookup');\n";
  writeFileSync(join(dir, 'required.mjs'), `${read}${required}${check}`);
}, 600_000);

const run = (file: string, args: string[]): string =>
  execFileSync(file, args, { cwd: dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

describe('@ipatlas/lookup in', () => {
  it.each<[string, string, string[]]>([
    ['Node.js', process.execPath, ['module.mjs']],
    ['Node.js, required', process.execPath, ['required.mjs']],
    ['Deno', tool('deno'), ['run', '--no-prompt', '--allow-all', '--node-modules-dir=manual', 'module.mjs']],
    ['Bun', tool('bun'), ['module.mjs']],
    ['Bun, required', tool('bun'), ['required.mjs']],
  ])('%s gives the results of the SQLite mirror', (_, file, args) => {
    expect(JSON.parse(run(file, args))).toEqual(right);
  });

  it('workerd gives the results of the SQLite mirror', async () => {
    const port = await freePort();
    const worker =
      "import { load } from './index.js';\nimport { checkLookups } from './check-lookups.js';\nimport list from './boundaries.txt';\n" +
      'export default { fetch: async () => Response.json(checkLookups(await load(), list)) };\n';
    writeFileSync(join(dir, 'worker.js'), worker);
    const modules = ['worker.js', 'index.js', 'data.js', 'check-lookups.js'].map((name) => {
      const path = ['index.js', 'data.js'].includes(name) ? `node_modules/@ipatlas/lookup/${name}` : name;
      return `(name = "${name}", esModule = embed "${path}")`;
    });
    modules.push('(name = "boundaries.txt", text = embed "boundaries.txt")');
    const config =
      'using Workerd = import "/workerd/workerd.capnp";\n' +
      `const config :Workerd.Config = (services = [(name = "main", worker = .worker)], sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]);\n` +
      `const worker :Workerd.Worker = (modules = [${modules.join(', ')}], compatibilityDate = "2025-09-01");\n`;
    writeFileSync(join(dir, 'config.capnp'), config);
    const server = spawn(tool('workerd'), ['serve', 'config.capnp'], { cwd: dir, stdio: 'inherit' });
    try {
      const answer = async () => {
        const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
        return response === undefined ? undefined : await response.text();
      };
      await until(async () => (await answer()) !== undefined, 'an answer of workerd');
      expect(JSON.parse((await answer())!)).toEqual(right);
    } finally {
      server.kill();
      await once(server, 'exit');
    }
  });

  it('Chromium gives the results of the SQLite mirror', async () => {
    expect(await checkInChromium(PACKAGE, 'index.js', list)).toMatchObject({ ...right, shared: true, problems: [] });
  });
});

describe('@ipatlas/lookup, bundled for browsers by', () => {
  it.each<[string, (out: string) => string[]]>([
    ['esbuild', (out) => ['entry.js', '--bundle', '--format=esm', '--splitting', '--minify', `--outdir=${out}`]],
    ['esbuild', (out) => ['entry.js', '--bundle', '--format=esm', `--outfile=${out}/entry.js`]],
    ['rollup', (out) => ['--config', 'rollup.config.js', '--dir', out]],
    ['vite', (out) => ['build', '--config', 'vite.config.js', '--outDir', out, '--logLevel', 'warn']],
    ['webpack', () => []],
  ])('%s, gives the results of the SQLite mirror', async (name, args) => {
    const out = join(dir, 'out', String(Math.random()).slice(2));
    mkdirSync(out, { recursive: true });
    // Rollup resolves nothing but paths by itself.
    const resolve = `{ name: 'resolve', resolveId: (id) => id === '@ipatlas/lookup' ? ${JSON.stringify(join(dir, 'node_modules/@ipatlas/lookup/index.js'))} : null }`;
    writeFileSync(
      join(dir, 'rollup.config.js'),
      `export default { input: 'entry.js', plugins: [${resolve}], output: { format: 'es' } };\n`,
    );
    const library = "{ entry: 'entry.js', formats: ['es'], fileName: () => 'entry.js' }";
    writeFileSync(join(dir, 'vite.config.js'), `export default { build: { lib: ${library} } };\n`);
    writeFileSync(
      join(dir, 'webpack.config.js'),
      "export default { mode: 'production', entry: './entry.js', experiments: { outputModule: true }, performance: { hints: false }, output: { module: true, filename: 'entry.js', publicPath: '/', library: { type: 'module' } } };\n",
    );
    if (name === 'webpack') bundleWithWebpack(out);
    else run(tool(name), args(out));
    expect(await checkInChromium(out, 'entry.js', list)).toMatchObject({ ...right, shared: true, problems: [] });
  });
});

/** Webpack has no command of its own. */
function bundleWithWebpack(out: string): void {
  const script = `
    import { createRequire } from 'node:module';
    const webpack = createRequire(${JSON.stringify(join(RUNTIMES, 'package.json'))})('webpack');
    const { default: config } = await import(${JSON.stringify(join(dir, 'webpack.config.js'))});
    webpack({ ...config, context: ${JSON.stringify(dir)}, output: { ...config.output, path: ${JSON.stringify(out)} } }, (error, stats) => {
      if (error || stats.hasErrors()) { console.error(error ?? stats.toString()); process.exitCode = 1; }
    });`;
  run(process.execPath, ['--input-type=module', '-e', script]);
}

describe('the examples for web servers', () => {
  beforeAll(async () => {
    for (const name of ['express', 'fastify', 'next-proxy'])
      cpSync(packageFile(`examples/${name}.mjs`), join(dir, `${name}.mjs`));
    const installed = (name: string): string => join(RUNTIMES, 'node_modules', name);
    for (const [name, folder] of [
      ['ipatlas', packageRoot()],
      ['fastify', packageFile('node_modules/fastify')],
      ['express', installed('express')],
      ['next', installed('next')],
    ])
      symlinkSync(folder!, join(dir, 'node_modules', name!));
    await publishBlocks(join(dir, 'data'), SMALL_WORLD);
  });

  it.each(['express', 'fastify'])(
    '%s knows the country of the client that a proxy on the machine names',
    async (name) => {
      const port = await freePort();
      const env = { ...process.env, PORT: String(port), IPATLAS_DATA: join(dir, 'data') };
      const server = spawn(process.execPath, [`${name}.mjs`], { cwd: dir, env, stdio: 'inherit' });
      try {
        const countryOf = async (client: string): Promise<object | undefined> => {
          const headers = { 'X-Forwarded-For': client };
          const response = await fetch(`http://127.0.0.1:${port}/`, { headers }).catch(() => undefined);
          return response?.json() as Promise<object | undefined>;
        };
        expect(await until(() => countryOf('8.8.8.8, 193.0.0.1'), `an answer of ${name}`)).toEqual({
          ...{ country: 'Netherlands', country_code: 'NL', is_eu: true },
        });
        expect(await countryOf('10.0.0.1')).toMatchObject({ country_code: null });
      } finally {
        server.kill();
        await once(server, 'exit');
      }
    },
  );

  it('Next.js gives it to its pages', async () => {
    const flags = ['next-proxy.mjs', '--bundle', '--platform=node', '--format=cjs', '--outfile=proxy.cjs'];
    run(tool('esbuild'), flags);
    const call = `
      const { proxy } = require('./proxy.cjs');
      const headers = { 'X-Forwarded-For': '8.8.8.8, 193.0.6.139', 'X-Country': 'XX' };
      proxy(new Request('http://localhost/', { headers })).then((response) =>
        console.log(response.headers.get('x-middleware-request-x-country')));`;
    expect(run(process.execPath, ['-e', call])).toBe('NL\n');
  });
});
