/** Where an enrichment writes to: standard output, or a file that appears only when it is whole. */
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AtlasError, messageOf, systemErrorCode } from '../../errors.js';
import { type ByteSink, fileSink } from './sink.js';

export interface Output extends ByteSink {
  /** All has been written: makes it the file's content. */
  commit(): void;
  /** Leaves the file as it was. Does nothing after a commit. */
  abandon(): void;
}

function unwritable(name: string, error: unknown): AtlasError {
  return new AtlasError('E_OUTPUT', `${name} cannot be written: ${messageOf(error)}`, { cause: error });
}

function writable<T>(name: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw unwritable(name, error);
  }
}

/**
 * A sink whose errors name it.
 *
 * @param mayEnd whether its reader may have enough at any time: then EPIPE is passed on as it is, for the caller to know
 */
function namedSink(name: string, fd: number, mayEnd: boolean): ByteSink {
  const sink = fileSink(fd);
  return {
    async write(bytes) {
      try {
        await sink.write(bytes);
      } catch (error) {
        throw mayEnd && systemErrorCode(error) === 'EPIPE' ? error : unwritable(name, error);
      }
    },
  };
}

/**
 * What is known of a file that is to be written; undefined where it is not there yet.
 *
 * @throws AtlasError E_OUTPUT where that cannot be found out
 */
export function statOutput(path: string): Stats | undefined {
  return writable(path, () => statSync(path, { throwIfNoEntry: false }));
}

function nothing(): void {}

export function standardOutput(): Output {
  return { ...namedSink('standard output', 1, true), commit: nothing, abandon: nothing };
}

/**
 * Opens a file that is written as the work goes on.
 *
 * @param mayEnd whether, where it is a pipe, its reader may have enough at any time; its writes then fail with EPIPE
 * @throws AtlasError E_OUTPUT where it cannot be opened; its writes do so too
 */
export function plainOutput(path: string, mayEnd = false): Output {
  const fd = writable(path, () => openSync(path, 'w'));
  let isOpen = true;
  function close(): void {
    if (isOpen) closeSync(fd);
    isOpen = false;
  }
  return { ...namedSink(path, fd, mayEnd), commit: () => writable(path, close), abandon: close };
}

/**
 * Opens a file that appears, or is replaced, only by `commit`: until then what is written goes to a file beside it. What
 * is no regular file (a device, a named pipe) is written as it is. A symbolic link stays, and its target is replaced.
 *
 * @throws AtlasError E_OUTPUT where it cannot be opened, written or replaced
 */
export function replacedOutput(path: string): Output {
  const before = statOutput(path);
  if (before !== undefined && !before.isFile()) {
    if (before.isDirectory()) throw new AtlasError('E_OUTPUT', `${path} is a directory; name a file`);
    return plainOutput(path, true);
  }
  return besideOutput(path, before === undefined ? path : realpathSync(path), before);
}

function besideOutput(name: string, target: string, before: Stats | undefined): Output {
  const temporary = join(dirname(target), `.${basename(target)}.${process.pid}.tmp`);
  const fd = writable(name, () => openSync(temporary, 'wx'));
  let isOpen = true;

  function abandon(): void {
    process.off('exit', abandon);
    if (isOpen) {
      isOpen = false;
      closeSync(fd);
      rmSync(temporary, { force: true });
    }
  }
  // However the process comes to its end, but for SIGKILL and the like.
  process.on('exit', abandon);
  return {
    ...namedSink(name, fd, false),
    commit() {
      writable(name, () => {
        if (before !== undefined) fchmodSync(fd, before.mode);
        fsyncSync(fd);
        renameSync(temporary, target);
      });
      isOpen = false;
      process.off('exit', abandon);
      closeSync(fd);
    },
    abandon,
  };
}
