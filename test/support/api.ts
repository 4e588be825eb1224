/** An app to inject requests into, over a small real release. */

import { type AppDeps, buildApp } from '../../src/api/app.js';
import { TrustedProxies } from '../../src/api/caller.js';
import type { ActiveKey } from '../../src/api/key-ring.js';
import type { Log, LogFields } from '../../src/api/log.js';
import { MemoryRateStore, RateLimiter } from '../../src/api/rate-limit.js';
import { ServedRelease } from '../../src/api/served-release.js';
import { openDatabase } from '../../src/database/database.js';

export type AppChanges = Partial<AppDeps>;

export const KEY = 'ipa_key-of-the-tests';
export const OTHER_KEY = 'ipa_another-key-of-the-tests';

/** A log that is kept. */
export function keptLog(): Log & { lines: [LogFields, string][] } {
  const lines: [LogFields, string][] = [];
  const keep = (fields: LogFields, message: string): void => {
    lines.push([fields, message]);
  };
  return { lines, info: keep, warn: keep, error: keep };
}

/** Keys by their text. */
export function fixedKeys(keys: Record<string, ActiveKey>) {
  return { find: (presented: string) => (Object.hasOwn(keys, presented) ? keys[presented] : undefined) };
}

/** Deps over the current release of a data directory. */
export function appDeps(dataDir: string, changes: AppChanges = {}): AppDeps {
  const served = new ServedRelease(openDatabase(dataDir));
  return {
    release: () => served,
    keys: fixedKeys({ [KEY]: { id: 'one', rate: null }, [OTHER_KEY]: { id: 'two', rate: null } }),
    limiter: new RateLimiter(new MemoryRateStore()),
    defaultRate: 1_000_000,
    proxies: new TrustedProxies(),
    log: keptLog(),
    ...changes,
  };
}

export function testApp(dataDir: string, changes: AppChanges = {}) {
  return buildApp(appDeps(dataDir, changes));
}
