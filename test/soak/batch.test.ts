/** The batch jobs of deploy/: a Slurm of two nodes on this machine with tasks that are killed, and the schema of Kubernetes. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { builtRelease } from '../support/built-release.js';
import { temporaryDir } from '../support/release.js';
import { rounds, SEED } from '../support/seed.js';

const install = spawnSync('bash', [packageFile('scripts/ci-packages.sh'), 'slurm-wlm', 'munge'], { encoding: 'utf8' });
if (install.status !== 0)
  process.stderr.write(`SKIPPED: Slurm cannot be installed, and is NOT tested: ${install.stderr}\n`);

it.skipIf(install.status !== 0)(
  'a job array of Slurm writes every file once, as one process does, while tasks are killed and a node is drained',
  { timeout: 3_600_000 },
  async () => {
    const args = [await builtRelease(), Math.max(40, rounds(200)), Math.max(6, rounds(60)), SEED].map(String);
    const script = packageFile('scripts/slurm-kills.js');
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(
      /each once, as one process writes it; \d+ processes killed, \d+ tasks requeued, node2 drained/,
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
  const packages = ['kubernetes-models@5.1.0', 'yaml@2'];
  execFileSync('npm', ['install', '--prefix', cwd, '--silent', '--no-audit', '--no-fund', ...packages]);
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
