/** The batch jobs of deploy/: Slurm and ClickHouse, of two nodes each on this machine, and the schema of Kubernetes. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { builtRelease } from '../support/built-release.js';
import { temporaryDir } from '../support/release.js';
import { rounds, SEED } from '../support/seed.js';

const packages = (...names: string[]): string | undefined => {
  const { status, stderr } = spawnSync('bash', [packageFile('scripts/ci-packages.sh'), ...names], { encoding: 'utf8' });
  if (status === 0) return undefined;
  process.stderr.write(
    `SKIPPED: ${names.join(', ')} cannot be installed, and what needs it is NOT tested: ${stderr}\n`,
  );
  return stderr;
};
const noSlurm = packages('slurm-wlm', 'munge');
const noClickHouse = packages('clickhouse-server', 'clickhouse-client');

/** Runs a script with a release of the default sources, and returns its output. */
async function run(script: string, ...args: number[]): Promise<string> {
  const command = [packageFile(`scripts/${script}`), await builtRelease(), ...args.map(String)];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  return stdout;
}

it.skipIf(noSlurm)(
  'a job array of Slurm writes every file once, while tasks are killed and a node is drained',
  async () => {
    const output = await run('slurm-kills.js', Math.max(40, rounds(200)), Math.max(6, rounds(60)), SEED);
    expect(output).toMatch(
      /each once, as one process writes it; \d+ processes killed, \d+ tasks requeued, node2 drained/,
    );
  },
);

it.skipIf(noClickHouse)(
  'two shards of ClickHouse, each with the dictionaries of both families, answer as enrich',
  async () => {
    expect(await run('clickhouse-shards.js', Math.max(20_000, rounds(1_000_000)), SEED)).toContain(
      'as enrich has them',
    );
  },
);

/** Reads jobs from stdin, and checks them by the schema. */
const CHECK = `
import { readFileSync } from 'node:fs';
import { Job } from 'kubernetes-models/batch/v1';
import { parse } from 'yaml';
for (const text of JSON.parse(readFileSync(0, 'utf8'))) new Job(parse(text)).validate();`;

it('the Indexed Job is one by the schema of Kubernetes, and counts as many shares as it has', () => {
  const cwd = temporaryDir();
  execFileSync('npm', [
    'install',
    '--prefix',
    cwd,
    '--silent',
    '--no-audit',
    '--no-fund',
    'kubernetes-models@5.1.0',
    'yaml@2',
  ]);
  const validate = (...jobs: string[]) =>
    spawnSync(process.execPath, ['--input-type=module', '--eval', CHECK], {
      ...{ cwd, encoding: 'utf8', input: JSON.stringify(jobs) },
    });
  const job = readFileSync(packageFile('deploy/kubernetes/enrich.yaml'), 'utf8');
  expect(validate(job)).toMatchObject({ status: 0, stderr: '' });
  expect(validate(job.replace('parallelism: 20', 'parallelism: many')).stderr).toContain('parallelism must be integer');
  const [, completions] = /^ {2}completions: (\d+)$/m.exec(job)!;
  expect(job).toContain(`"$JOB_COMPLETION_INDEX" ${completions} `);
  rmSync(cwd, { recursive: true });
});
