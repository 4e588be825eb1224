/** Kills a writer at each of its steps, without a process: from some step on, nothing more reaches the disk. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { onTestFinished, vi } from 'vitest';

/** Functions that change files. SQLite's own writes are not among them; they go to temporary files. */
const SYNCHRONOUS = [
  ...[
    'appendFileSync',
    'copyFileSync',
    'cpSync',
    'fsyncSync',
    'linkSync',
    'mkdirSync',
    'renameSync',
    'rmdirSync',
    'rmSync',
  ],
  ...['symlinkSync', 'truncateSync', 'unlinkSync', 'writeFileSync', 'writeSync'],
] as const;
const PROMISES = ['appendFile', 'copyFile', 'mkdir', 'rename', 'rm', 'unlink', 'writeFile'] as const;

type Functions = Record<string, (...args: unknown[]) => unknown>;

export class Killed extends Error {}

// Node loads what removes folders on first use, and keeps the functions that it finds then.
fs.rmSync('/nonexistent/folder', { recursive: true, force: true });

/** Replaces the functions by ones that call `before` first, with their names; returns what undoes that. */
function watch(before: (name: string) => void): () => void {
  const parts: [Functions, readonly string[]][] = [
    [fs as unknown as Functions, SYNCHRONOUS],
    [fs.promises as unknown as Functions, PROMISES],
  ];
  const undo = parts.flatMap(([functions, names]) =>
    names.map((name) => {
      const original = functions[name]!;
      functions[name] = (...args) => {
        before(name);
        return original(...args);
      };
      return () => {
        functions[name] = original;
      };
    }),
  );
  syncBuiltinESMExports();
  return () => {
    for (const each of undo) each();
    syncBuiltinESMExports();
  };
}

/**
 * Stops the clock until the test ends, so that each run of an action has the same steps. That a release was verified is written into
 * its folder as soon as its files are two seconds old: on a busy machine, that would be in the middle of a test.
 */
export function freezeClock(): void {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
}

/**
 * Runs an action that is killed before a step: this step and all after it throw {@link Killed}, those of its error handlers
 * included, so the disk stays as a kill would leave it.
 *
 * @param step number of the first change of a file that does not happen, from 0
 * @returns false if the action ended before that step
 * @throws what the action throws, if it was not killed
 */
export async function killedAt(step: number, action: () => Promise<unknown>): Promise<boolean> {
  let steps = 0;
  const undo = watch((name) => {
    if (steps++ >= step) throw new Killed(`killed before ${name}`);
  });
  try {
    await action();
  } catch (error) {
    if (steps <= step) throw error;
  } finally {
    undo();
  }
  return steps > step;
}

/**
 * Runs an action to its end, and chooses among its steps those at which a test kills it: the first and the last of each kind,
 * and others at regular distances.
 *
 * @param every the distance; 1 for all steps
 * @returns the numbers of the steps, and then the one after the last
 */
export async function stepsToKill(every: number, action: () => Promise<unknown>): Promise<number[]> {
  const kinds: string[] = [];
  const undo = watch((name) => kinds.push(name));
  try {
    await action();
  } finally {
    undo();
  }
  const isChosen = (kind: string, step: number): boolean =>
    step % every === 0 || kinds.indexOf(kind) === step || kinds.lastIndexOf(kind) === step;
  return [...kinds.keys()].filter((step) => isChosen(kinds[step]!, step)).concat(kinds.length);
}
