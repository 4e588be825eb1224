/** Kills a writer at each of its steps, without a process: from some step on, nothing more reaches the disk. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

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
  const parts: [Functions, readonly string[]][] = [
    [fs as unknown as Functions, SYNCHRONOUS],
    [fs.promises as unknown as Functions, PROMISES],
  ];
  const undo = parts.flatMap(([functions, names]) =>
    names.map((name) => {
      const original = functions[name]!;
      functions[name] = (...args) => {
        if (steps++ >= step) throw new Killed(`killed before ${name}`);
        return original(...args);
      };
      return () => {
        functions[name] = original;
      };
    }),
  );
  syncBuiltinESMExports();
  try {
    await action();
  } catch (error) {
    if (steps <= step) throw error;
  } finally {
    for (const each of undo) each();
    syncBuiltinESMExports();
  }
  return steps > step;
}
