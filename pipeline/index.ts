/** The build toolchain's public face: everything that the command line uses of it. */
export { type BuildOptions, type BuildResult, build } from './build.js';
export { type ExplainedClaim, type Explanation, explain, type Step } from './explain/explain.js';
export { rollBack } from './operations/rollback.js';
export { runOnSchedule } from './operations/schedule.js';
