/** Signals that ask a program to end. */
import { fstatSync, readSync, statSync } from 'node:fs';
import { devNull } from 'node:os';
import { basename } from 'node:path';
import { EXIT, systemErrorCode } from './errors.js';
import { SYSTEM } from './system.js';

/** The signals that ask a program to end. Windows sends SIGBREAK for Ctrl+Break; other systems have no such signal. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGBREAK'] as const;

export interface StopSignals {
  /** Aborted by the first signal. */
  signal: AbortSignal;
  /** Returns the first signal, if there was one. */
  received(): NodeJS.Signals | undefined;
  /** Stops listening: the next signal ends the process. */
  stop(): void;
}

/**
 * Listens for the signals that ask a program to end, and for the end of its terminal, unless it runs under nohup(1).
 *
 * @param onSecond called for each later one; by default, it ends the process at once
 */
export function watchStopSignals(
  onSecond: (name: NodeJS.Signals) => void = () => process.exit(EXIT.interrupted),
): StopSignals {
  const controller = new AbortController();
  const names: NodeJS.Signals[] = [...STOP_SIGNALS, ...(isUnderNohup() ? [] : ['SIGHUP' as const])];
  let received: NodeJS.Signals | undefined;
  function onSignal(name: NodeJS.Signals): void {
    if (received === undefined) {
      received = name;
      controller.abort();
    } else if (name !== 'SIGHUP') {
      // That the terminal is gone, the shell and the system may both say.
      onSecond(name);
    }
  }
  for (const name of names) process.on(name, onSignal);
  return {
    signal: controller.signal,
    received: () => received,
    stop() {
      for (const name of names) process.off(name, onSignal);
    },
  };
}

/** Ends the process by a signal, so that its parent sees the cause. On Windows a process cannot send itself each signal. */
export function endBySignal(name: NodeJS.Signals): void {
  if (SYSTEM.isWindows) process.exit(EXIT.interrupted);
  process.kill(process.pid, name);
}

/**
 * Returns whether nohup(1) started the program. Node forgets that SIGHUP was ignored. But shells put the path of a command into its
 * environment as `_`, which nohup leaves as it is; and where standard input was a terminal, nohup opened the null device there for
 * writing only.
 *
 * @param fd standard input
 */
export function isUnderNohup(fd = 0): boolean {
  if (basename(process.env._ ?? '') === 'nohup') return true;
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
