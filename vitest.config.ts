import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take long although they are small. */
const LONG = [
  ...['docs/console', 'lookup/lookup', 'routing/routing', 'stream/failures'],
  ...['distribution/kills', 'distribution/cli'],
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
    // One more than the two cores of a usual CI machine: some tests wait for servers and browsers.
    maxWorkers: 3,
    sequence: { sequencer: LongFirst },
    globalSetup: ['test/support/shared-folder.ts'],
    setupFiles: ['processor-time', 'remove-folders', 'seed', 'few-checked-rows'].map(
      (name) => `test/support/${name}.ts`,
    ),
    reporters: process.env.FAIL_ON_SKIP ? ['default', './test/support/fail-on-skip.ts'] : ['default'],
  },
});
