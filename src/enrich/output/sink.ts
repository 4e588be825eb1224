/** Where bytes go. */
import { fstatSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { systemErrorCode } from '../../errors.js';

/** Takes bytes in order. */
export interface ByteSink {
  /**
   * @param bytes all of them are taken when the promise resolves; until then they must not change
   * @throws whatever the system says, such as an error of code `EPIPE` where the reader has gone
   */
  write(bytes: Uint8Array): Promise<void> | void;
}

/** How long to wait, in milliseconds, where a pipe that does not block is full. */
const FULL_PIPE_WAIT_MS = 1;

function writeOnce(fd: number, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, 0, bytes.length, null, (error, written) => {
      if (error === null) resolve(written);
      // Another process may have made the same pipe non-blocking; then it says "not now" instead of waiting.
      else if (systemErrorCode(error) === 'EAGAIN') setTimeout(resolve, FULL_PIPE_WAIT_MS, 0);
      else reject(error);
    });
  });
}

/**
 * A sink over an open file, pipe or terminal.
 *
 * @param fd its descriptor; it is not closed
 */
export function fileSink(fd: number): ByteSink {
  const stat = fstatSync(fd);
  // What never waits for a reader is written right here: handing it to another thread and back takes longer.
  const isQuick = stat.isFile() || (stat.isCharacterDevice() && !isatty(fd));
  return {
    async write(bytes) {
      for (let done = 0; done < bytes.length; ) {
        const rest = bytes.subarray(done);
        done += isQuick ? writeSync(fd, rest) : await writeOnce(fd, rest);
      }
    },
  };
}
