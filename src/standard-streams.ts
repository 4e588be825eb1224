/** The standard streams, and whether a file descriptor is a terminal. */
import { fstatSync, type Stats, statSync } from 'node:fs';
import { devNull } from 'node:os';
import { tty } from './builtins.js';
import { systemErrorCode } from './errors.js';
import { SYSTEM } from './system.js';

/**
 * The descriptors of standard input, output and error. They are variables so that tests can run commands in their own
 * process, with files in the place of the standard streams.
 */
export const STANDARD_FD = { input: 0, output: 1, error: 2 };

/** Returns the cursor to the start of the line and clears it (ECMA-48 EL). */
export const CLEAR_LINE = '\r\x1b[K';

/** Whether the last line on standard error is that of the progress, which a note must clear. */
export const PROGRESS = { isShown: false };

/** The path that means standard input. */
export const STDIN_PATH = '-';

/** Returns the name of an input in messages. */
export function inputName(path: string): string {
  return path === STDIN_PATH ? 'standard input' : path;
}

/** Returns the state of a standard stream; undefined if Windows cannot tell it, which depends on what opened the handle. */
export function standardStat(fd: number): Stats | undefined {
  try {
    return fstatSync(fd);
  } catch (error) {
    if (SYSTEM.isWindows && systemErrorCode(error) === 'EBADF') return undefined;
    throw error;
  }
}

/** Returns whether a file descriptor is a terminal. node:tty loads the network, which takes 2 ms, so it is asked last. */
export function isTerminal(fd: number): boolean {
  // On Windows, isatty() knows NUL, and needs no state.
  if (SYSTEM.isWindows) return tty().isatty(fd);
  const stat = fstatSync(fd);
  if (!stat.isCharacterDevice() || stat.rdev === statSync(devNull, { throwIfNoEntry: false })?.rdev) return false;
  return tty().isatty(fd);
}
