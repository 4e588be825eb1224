import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take long, of which some are small. */
const LONG = [
  ...['page/browser', 'docs/console', 'build/schedule', 'stream/operations', 'api/serve', 'routing/routing'],
  ...['build/fortnight', 'stream/failures', 'lookup/lookup', 'distribution/kills', 'distribution/cli'],
];

/** Begins with {@link LONG}, lest one worker runs one of them when the others are done: on a clone, vitest knows sizes only. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      LONG.some((name) => moduleId.endsWith(`/test/${name}.test.ts`));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

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
    // Two more than the two cores of a usual CI machine: many tests wait for servers, browsers, and the next second.
    maxWorkers: 4,
    sequence: { sequencer: LongFirst },
    globalSetup: ['test/support/shared-folder.ts'],
    setupFiles: ['processor-time', 'remove-folders', 'seed', 'few-checked-rows'].map(
      (name) => `test/support/${name}.ts`,
    ),
    reporters: process.env.FAIL_ON_SKIP ? ['default', './test/support/fail-on-skip.ts'] : ['default'],
  },
});
