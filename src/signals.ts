/** Signals that ask a program to end. */
import { fstatSync, readSync, statSync } from 'node:fs';
import { devNull } from 'node:os';
import { systemErrorCode } from './errors.js';

/** The signals that ask a program to end. Windows sends SIGBREAK for Ctrl+Break; other systems have no such signal. */
export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGBREAK'] as const;

/** Returns an abort signal for the signals to stop. A second one ends the process at once. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const signal of STOP_SIGNALS) process.once(signal, () => controller.abort());
  return controller.signal;
}

/**
 * Returns whether nohup(1) started the program. Node forgets that SIGHUP was ignored, but where standard input was a terminal, nohup
 * opened the null device there for writing only.
 *
 * @param fd standard input
 */
export function isUnderNohup(fd = 0): boolean {
  try {
    if (fstatSync(fd).rdev !== statSync(devNull).rdev) return false;
    readSync(fd, Buffer.alloc(1));
    return false;
  } catch (error) {
    return systemErrorCode(error) === 'EBADF' && !isClosed(fd);
  }
}

function isClosed(fd: number): boolean {
  try {
    fstatSync(fd);
    return false;
  } catch {
    return true;
  }
}
