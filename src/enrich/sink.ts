/** Where bytes go. */
import { write } from 'node:fs';
import { systemErrorCode } from '../errors.js';

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
  return {
    async write(bytes) {
      for (let done = 0; done < bytes.length; ) done += await writeOnce(fd, bytes.subarray(done));
    },
  };
}
