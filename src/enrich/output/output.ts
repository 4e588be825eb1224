/** The outputs of a command: standard output, a file that is replaced when complete, or a file written incrementally. */
import { closeSync, openSync, type Stats, statSync } from 'node:fs';
import { systemErrorCode, writeError } from '../../errors.js';
import { openPendingFile } from '../../files.js';
import { STANDARD_FD } from '../../standard-streams.js';
import { type ByteSink, fileSink, newFileSink } from './sink.js';

export interface Output extends ByteSink {
  /** Writes what is buffered. Must be called after the last write. */
  end(): Promise<void>;
  /** Completes the output: gives a replaced file its name. */
  commit(): void;
  /** Leaves a file that would be replaced as it was. Does nothing after `commit`. */
  abandon(): void;
}

async function nothingBuffered(): Promise<void> {}

function withOutputErrors<T>(name: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw writeError(name, error);
  }
}

/** Creates a sink whose errors name the output. */
function namedSink(name: string, sink: ByteSink): ByteSink {
  const { place } = sink;
  return {
    place:
      place &&
      ((bytes) => {
        const placed = place(bytes);
        return { ...placed, writeHere: () => withOutputErrors(name, () => placed.writeHere()) };
      }),
    async write(bytes) {
      try {
        await sink.write(bytes);
      } catch (error) {
        throw writeError(name, error);
      }
    },
  };
}

/**
 * Returns the status of a file that is to be written; undefined if it does not exist.
 *
 * @throws AtlasError E_OUTPUT if that cannot be determined
 */
export function statOutput(path: string): Stats | undefined {
  return withOutputErrors(path, () => statSync(path, { throwIfNoEntry: false }));
}

/**
 * Standard output. Its reader may close the pipe at any time, as in `ipatlas enrich … | head`.
 *
 * @param onClosed called when the reader has closed it. If it returns, this and all further writes do nothing
 */
export function standardOutput(onClosed: () => void): Output {
  const sink = fileSink(STANDARD_FD.output);
  let isClosed = false;
  return {
    async write(bytes) {
      if (isClosed) return;
      try {
        await sink.write(bytes);
      } catch (error) {
        if (systemErrorCode(error) !== 'EPIPE') throw writeError('standard output', error);
        isClosed = true;
        onClosed();
      }
    },
    end: nothingBuffered,
    commit() {},
    abandon() {},
  };
}

/**
 * Opens a file that is written as the work goes on.
 *
 * @throws AtlasError E_OUTPUT if it cannot be opened; E_OUTPUT, or E_DISK, if a write fails
 */
export function plainOutput(path: string): Output {
  const fd = withOutputErrors(path, () => openSync(path, 'w'));
  let isOpen = true;
  function close(): void {
    if (isOpen) closeSync(fd);
    isOpen = false;
  }
  return {
    ...namedSink(path, fileSink(fd)),
    end: nothingBuffered,
    commit: () => withOutputErrors(path, close),
    abandon: close,
  };
}

/**
 * Opens a file that is created or replaced by `commit`, as `openPendingFile` describes. A device or a named pipe is written
 * as the work goes on.
 *
 * @throws AtlasError E_OUTPUT if it cannot be opened or replaced; E_OUTPUT, or E_DISK, if a write fails
 */
export function replacedOutput(path: string): Output {
  const file = withOutputErrors(path, () => openPendingFile(path));
  return {
    ...namedSink(path, file.isReplacement ? newFileSink(file.fd) : fileSink(file.fd)),
    end: nothingBuffered,
    commit: () => withOutputErrors(path, () => file.commit()),
    abandon: () => file.abandon(),
  };
}
