import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/soak/**'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // Enough for the two cores of a usual CI machine. More would make servers and browsers wait for each other.
    maxWorkers: 2,
    globalSetup: ['test/support/shared-folder.ts'],
    setupFiles: ['test/support/processor-time.ts'],
    reporters: process.env.FAIL_ON_SKIP ? ['default', './test/support/fail-on-skip.ts'] : ['default'],
  },
});
