/** What differs between Windows and POSIX systems. Only this file asks which system it is. */
import { renameSync } from 'node:fs';
import { basename } from 'node:path';
import { systemErrorCode } from './errors.js';

/** Which rules hold, and what depends on them. It is a variable so that tests can try the rules of Windows on other systems. */
export const SYSTEM = {
  isWindows: process.platform === 'win32',
  rename: renameSync,
  pause: (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
};

/**
 * Returns the path that Node takes for a device of Windows: it would make a file named `NUL`, which few programs could remove.
 * Other paths stay.
 */
export function devicePath(path: string): string {
  const isDevice = SYSTEM.isWindows && /^(nul|con|prn|aux|com\d|lpt\d)$/i.test(basename(path));
  return isDevice ? `\\\\.\\${basename(path)}` : path;
}

/** Tries with {@link RETRY_MS} between them: 2 s in total, longer than a virus scanner holds a file. */
const MAX_TRIES = 100;
const RETRY_MS = 20;

/** Returns whether an error says, on Windows, that a program has the file open, or a file in the folder. */
export function isHeld(error: unknown): boolean {
  return SYSTEM.isWindows && ['EACCES', 'EBUSY', 'EPERM'].includes(systemErrorCode(error) ?? '');
}

/**
 * Runs an action on files. On Windows, it is tried again while another program, such as a virus scanner, has the file open.
 *
 * @throws the system error; `EACCES`, `EBUSY` and `EPERM` only after the last try
 */
export function whenReleased<T>(action: () => T): T {
  for (let tries = 1; ; tries++) {
    try {
      return action();
    } catch (error) {
      if (!isHeld(error) || tries >= MAX_TRIES) throw error;
      SYSTEM.pause(RETRY_MS);
    }
  }
}
