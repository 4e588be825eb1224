/** The long tests: `make soak`. SEED repeats a run, SOAK_SCALE makes it longer or shorter (1 is the whole of it). */
import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const seed = process.env.SEED ?? String(randomInt(2 ** 31));
const scale = Number(process.env.SOAK_SCALE ?? 1);
console.log(`SEED=${seed} SOAK_SCALE=${scale} make soak repeats this run`);

/** The properties that "make test" tries on a few hundred inputs: they take their number from FUZZ_RUNS. */
const properties = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((name) => join('test', name))
  .filter((path) => path.endsWith('.test.ts') && readFileSync(path, 'utf8').includes('env.FUZZ_RUNS'));

export default defineConfig({
  test: {
    // The worker's test has a list of odd headers.
    include: ['test/soak/**/*.test.ts', 'test/stream/worker.test.ts', ...properties],
    env: { SEED: seed, SOAK_SCALE: String(scale), FUZZ_RUNS: String(Math.ceil(5_000 * scale)) },
    testTimeout: 3_600_000,
    hookTimeout: 600_000,
    // A busy machine may need longer than the second that is the default.
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    maxWorkers: 2,
    globalSetup: ['test/support/shared-folder.ts'],
    setupFiles: ['test/support/remove-folders.ts', 'test/support/seed.ts'],
    reporters: process.env.FAIL_ON_SKIP ? ['default', './test/support/fail-on-skip.ts'] : ['default'],
  },
});
