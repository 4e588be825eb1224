/** The outputs of a command that processes records. */
import { closeSync, openSync } from 'node:fs';
import { compressedOutput } from '../../enrich/output/compress.js';
import { type Output, plainOutput, replacedOutput, standardOutput, statOutput } from '../../enrich/output/output.js';
import { STDOUT_PATH, type Target } from './plan.js';

/** Thrown if the reader of the first output has closed the pipe, so that it has all it wants. */
export class OutputClosed extends Error {}

/**
 * Opens the named pipes among the outputs, which blocks this thread until they have readers; meanwhile signals must end the
 * process.
 *
 * @returns a function that closes them, to be called when they were opened again
 */
export function awaitReaders(paths: readonly (string | undefined)[]): () => void {
  const pipes = paths.filter((path) => path !== undefined && statOutput(path)?.isFIFO());
  const fds = pipes.map((path) => openSync(path!, 'w'));
  return () => fds.splice(0).forEach(closeSync);
}

/** Opens the output of records. Writing to it throws {@link OutputClosed}. */
export function openOutput({ output: path, compression }: Target): Output {
  const onClosed = () => {
    throw new OutputClosed();
  };
  const target = path === undefined ? standardOutput(onClosed) : replacedOutput(path);
  return compression === undefined ? target : compressedOutput(target, compression);
}

/** Opens a secondary output. If it is a pipe that its reader closes, the rest of it is dropped; the other outputs go on. */
export function openSideOutput(path: string | undefined): Output | undefined {
  if (path === undefined) return undefined;
  return path === STDOUT_PATH ? standardOutput(() => {}) : plainOutput(path);
}
