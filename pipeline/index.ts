/** The only module of the pipeline that the command line imports. */
import type { PullOptions, PullResult } from './pull.js';

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
export type { PullOptions, PullResult } from './pull.js';

/** As `pull` of pull.ts, which is loaded only now: the other commands need not wait for the TUF library, a tenth of a second. */
export async function pull(options: PullOptions): Promise<PullResult> {
  const loaded = await import('./pull.js');
  return loaded.pull(options);
}
