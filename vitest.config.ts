import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/soak/**'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // A busy machine may need longer than the second that is the default.
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    // The files that one worker runs share what they import: loading it anew for each takes a quarter of the time.
    isolate: false,
    // One more than the two cores of a usual CI machine: some tests wait for servers and browsers.
    maxWorkers: 3,
    globalSetup: ['test/support/shared-folder.ts'],
    setupFiles: ['test/support/processor-time.ts'],
    reporters: process.env.FAIL_ON_SKIP ? ['default', './test/support/fail-on-skip.ts'] : ['default'],
  },
});
