/** The only module of the pipeline that the command line imports. What takes long to load is loaded when it is called. */
import type { Manifest } from '../src/database/release.js';
import { withPackages } from '../src/optional-packages.js';
import type { BuildOptions, BuildResult } from './build.js';
import type { DeepCheck } from './checking/check-stage.js';
import type { Explanation } from './explain/explain.js';
import type { AfterOptions } from './operations/after.js';
import type { ImportOptions } from './operations/import-history.js';
import type { PullOptions, PullResult } from './pull.js';

export type { BuildOptions, BuildResult } from './build.js';
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
export type { ExplainedRow, Explanation, Step } from './explain/explain.js';
export type { ExplainedKinds } from './explain/kinds.js';
export type { ExplainedLabels } from './explain/labels.js';
export type { ExplainedNetwork } from './explain/network.js';
export type { RefusedOutcome } from './gates/refusal.js';
export { rollBack } from './operations/rollback.js';
export { localTime, runOnSchedule } from './operations/schedule.js';
export type { PullOptions, PullResult } from './pull.js';

/** As `build` of build.ts. */
export async function build(options: BuildOptions): Promise<BuildResult> {
  const loaded = await import('./build.js');
  return loaded.build(options);
}

/** As `runAfter` of operations/after.ts. */
export async function runAfter(options: AfterOptions): Promise<number> {
  const loaded = await import('./operations/after.js');
  return loaded.runAfter(options);
}

/** As `checkStoredRelease` of checking/check-stage.ts. */
export async function checkStoredRelease(dataDir: string, dir: string): Promise<DeepCheck> {
  const loaded = await import('./checking/check-stage.js');
  return loaded.checkStoredRelease(dataDir, dir);
}

/** As `checkInputHash` of checking/check-stage.ts. */
export async function checkInputHash(dataDir: string, manifest: Manifest): Promise<boolean | undefined> {
  const loaded = await import('./checking/check-stage.js');
  return loaded.checkInputHash(dataDir, manifest);
}

/** As `explain` of explain/explain.ts. */
export async function explain(dataDir: string, dir: string, text: string): Promise<Explanation> {
  const loaded = await import('./explain/explain.js');
  return loaded.explain(dataDir, dir, text);
}

/** As `pull` of pull.ts. */
export async function pull(options: PullOptions): Promise<PullResult> {
  const loaded = await withPackages('pull', () => import('./pull.js'));
  return loaded.pull(options);
}

/** As `importHistory` of operations/import-history.ts. */
export async function importHistory(dataDir: string, options: ImportOptions): Promise<string[]> {
  const loaded = await import('./operations/import-history.js');
  return loaded.importHistory(dataDir, options);
}

/** As `repairHistory` of operations/history.ts. */
export async function repairHistory(dataDir: string): Promise<string[]> {
  const loaded = await import('./operations/history.js');
  return loaded.repairHistory(dataDir);
}

/** As `removeHistory` of operations/import-history.ts. */
export async function removeHistory(dataDir: string, from: string, to: string): Promise<string[]> {
  const loaded = await import('./operations/import-history.js');
  return loaded.removeHistory(dataDir, from, to);
}
