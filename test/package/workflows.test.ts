/** The workflows of the repository, as far as they can be checked without running them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';

const FOLDER = packageFile('.github/workflows');

it.each(readdirSync(FOLDER))('%s pins every action by commit, and gives it no more than it needs', (name) => {
  const text = readFileSync(join(FOLDER, name), 'utf8');
  const uses = [...text.matchAll(/^ *- uses: (.*)$/gm)].map(([, action]) => action);
  expect(uses.length).toBeGreaterThan(0);
  for (const action of uses) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  expect(text).toMatch(/^permissions:\n {2}contents: read\n/m);
});

it('the release is published with its provenance, after the tests', () => {
  const text = readFileSync(join(FOLDER, 'release.yml'), 'utf8');
  expect(text).toContain('npm publish --provenance');
  expect(text).toContain('id-token: write');
  expect(text.indexOf('make test')).toBeLessThan(text.indexOf('npm publish'));
  // The seed is made again before it is checked and before it is packed, each time from the data named here.
  expect(text).toContain('IPATLAS_SEED: living');
  const { scripts } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8'));
  expect(scripts).toMatchObject({
    prepack: 'npm run build',
    prepublishOnly: 'npm run build && node scripts/check-publish.js',
  });
});

it('CI fails if a test is skipped', () => {
  expect(readFileSync(packageFile('.ci/run'), 'utf8')).toContain('FAIL_ON_SKIP=1 make test\n');
  expect(readFileSync(join(FOLDER, 'ci.yml'), 'utf8')).toContain('- run: .ci/run\n');
});
