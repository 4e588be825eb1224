/** What the last pull from a signed repository found, for the metrics of the server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isUnreadable, orElse } from '../errors.js';

/** Folder of the pulls in the data directory, and the file in it with their state. */
export const PULL_DIR = 'pull';
const STATE_FILE = 'state.json';

/** The content of `pull/state.json`. Times are ISO 8601, UTC. */
export interface PullState {
  /** Address of the repository, without credentials. */
  url: string;
  /** Time of the last pull. */
  checked: string;
  /** Time of the last pull that ended with the release of the repository as the current one; null if none did. */
  succeeded: string | null;
  /** Until when the trusted metadata is valid, by role. */
  expires: Record<string, string>;
  /** Why the last pull failed; null if it did not. */
  problem: { code: string; message: string } | null;
}

export function pullStatePath(dataDir: string): string {
  return join(dataDir, PULL_DIR, STATE_FILE);
}

function isState(value: unknown): value is PullState {
  const { checked, succeeded, expires, problem } = (value ?? {}) as Partial<PullState>;
  return (
    typeof checked === 'string' &&
    (succeeded === null || typeof succeeded === 'string') &&
    (problem === null || typeof problem === 'object') &&
    typeof expires === 'object' &&
    expires !== null
  );
}

/** Returns the state of the pulls; undefined if there was none, or the file is damaged. */
export function readPullState(dataDir: string): PullState | undefined {
  const read = (): unknown => JSON.parse(readFileSync(pullStatePath(dataDir), 'utf8'));
  // The next pull writes it again.
  const state = orElse(read, isUnreadable, undefined);
  return isState(state) ? state : undefined;
}

/** Returns the seconds until the first of the trusted signatures expires, negative afterwards; undefined if there is none. */
export function secondsToExpiry({ expires }: PullState, now = Date.now()): number | undefined {
  const times = Object.values(expires).map((text) => Date.parse(text));
  return times.length === 0 ? undefined : (Math.min(...times) - now) / 1000;
}
