/** The workflows of the repository, and the scripts that they run, as far as they can be checked without a release. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { packageFile } from '../../src/package-root.js';
import { sqliteMismatch } from '../../src/sqlite.js';

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, string>;
}
interface Job {
  strategy?: { matrix: { node?: string[] } };
  permissions?: Record<string, string>;
  steps: Step[];
}
interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

const FOLDER = packageFile('.github/workflows');
const workflow = (name: string) => parse(readFileSync(join(FOLDER, name), 'utf8')) as Workflow;
const NAMES = readdirSync(FOLDER);

it.each(NAMES)('%s pins every action by commit, and may only read unless a job says more', (name) => {
  const { permissions, jobs } = workflow(name);
  expect(permissions).toEqual({ contents: 'read' });
  const uses = Object.values(jobs).flatMap(({ steps }) => steps.flatMap((step) => step.uses ?? []));
  expect(uses.length).toBeGreaterThan(0);
  for (const action of uses) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
});

it.each(NAMES)('what %s runs is there', (name) => {
  const { scripts } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8'));
  const targets = readFileSync(packageFile('Makefile'), 'utf8');
  const commands = Object.values(workflow(name).jobs).flatMap(({ steps }) => steps.flatMap(({ run = '' }) => run));
  for (const [, runner, called] of commands.join('\n').matchAll(/^(make|npm run|node|bash) ([\w./-]+)/gm)) {
    if (runner === 'make') expect(targets).toMatch(new RegExp(`^${called}:`, 'm'));
    else if (runner === 'npm run') expect(scripts).toHaveProperty([called!]);
    else if (!called!.startsWith('dist/')) expect(existsSync(packageFile(called!)), called).toBe(true);
  }
});

it('the better-sqlite3 that is installed fits each version of Node on which CI runs', async () => {
  const { installCommands } = await import(packageFile('scripts/install.js'));
  const { packages } = JSON.parse(readFileSync(packageFile('package-lock.json'), 'utf8'));
  const jobs = Object.values(workflow('ci.yml').jobs);
  const versions = jobs.flatMap(({ strategy }) => strategy?.matrix.node ?? []);
  expect(versions.length).toBeGreaterThan(3);
  for (const node of versions) {
    const [, newer] = /better-sqlite3@\^?([\d.]+)/.exec(installCommands(node).join()) ?? [];
    const version = newer ?? packages['node_modules/better-sqlite3'].version;
    expect(sqliteMismatch(version, node), `${version} on ${node}`).toBeUndefined();
  }
  // A job that installs by itself does it by that script, as the Makefile does.
  expect(readFileSync(packageFile('Makefile'), 'utf8')).toContain('\tnode scripts/install.js\n');
  const installs = jobs.flatMap(({ steps }) =>
    steps.flatMap(({ run = '' }) => (/npm (ci|i\b|install)/.test(run) ? run : [])),
  );
  expect(installs).toEqual([]);
});

it('the release is published after the tests, with its provenance, by the script that CI tries', () => {
  const { steps, permissions } = workflow('release.yml').jobs.publish!;
  const runs = steps.flatMap(({ run }) => run ?? []);
  expect(runs.slice(0, 2)).toEqual(['make test', 'node scripts/release.js --publish']);
  expect(permissions).toHaveProperty('id-token', 'write');
  const ci = readFileSync(packageFile('.ci/run'), 'utf8').split('\n');
  expect(ci).toContain('node scripts/release.js');
  expect(ci).toContain('FAIL_ON_SKIP=1 make test');
  expect(workflow('ci.yml').jobs.test!.steps.map(({ run }) => run)).toContain('.ci/run');
});
