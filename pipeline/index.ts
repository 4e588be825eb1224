/** The only module of the pipeline that the command line imports. */
export { type BuildOptions, type BuildResult, build } from './build.js';
export { ROLES, type Role } from './distribution/keys.js';
export {
  addRelease,
  initRepository,
  type RepositoryOptions,
  type RepositorySummary,
  refreshRepository,
  rotateKeys,
  type Threshold,
} from './distribution/repository.js';
export { type ExplainedRow, type Explanation, explain, type Step } from './explain/explain.js';
export { rollBack } from './operations/rollback.js';
export { runOnSchedule } from './operations/schedule.js';
export { type PullOptions, type PullResult, pull } from './pull.js';
