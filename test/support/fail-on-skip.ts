/** Makes a run fail in which a test was skipped, for machines that must have all programs. Used if FAIL_ON_SKIP is set. */
import type { Reporter, TestModule } from 'vitest/node';

export default class FailOnSkip implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')]);
    for (const { fullName, module } of skipped)
      console.error(`skipped, which must not happen here: ${module.moduleId} > ${fullName}`);
    if (skipped.length > 0) process.exitCode = 1;
  }
}
