/** Reads the text of a batch, from the text field or from a file, in pieces that keep the page responsive. */
import { AddressReader, type Entry } from './extract.js';

/** Characters that are examined at a time. */
const PIECE = 32_768;

/** Longest time in milliseconds in which the page is not given a chance to respond. */
const TURN_MS = 30;

/** Input that cannot be used; the message is for people. */
export class InputError extends Error {}

let lastYield = 0;

/** Lets the browser handle events and paint, if the last time was a while ago. */
export async function yieldToBrowser(): Promise<void> {
  if (performance.now() - lastYield < TURN_MS) return;
  await new Promise((resolve) => setTimeout(resolve));
  lastYield = performance.now();
}

/** The entries of an input, and the lines without any. */
export interface Input {
  entries: Entry[];
  linesWithoutAddress: number;
  /** Whether there is more text than the limit allows. */
  isFull: boolean;
}

async function* piecesOf(source: string | Blob): AsyncGenerator<string> {
  if (typeof source === 'string') {
    yield source;
    return;
  }
  const reader = source
    .stream()
    .pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>)
    .getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

/**
 * Finds the addresses of an input.
 *
 * @param limit entries at most
 * @throws InputError if it is not text, or the reason of the signal
 */
export async function readInput(source: string | Blob, limit: number, signal: AbortSignal): Promise<Input> {
  const reader = new AddressReader(limit);
  const entries: Entry[] = [];
  for await (const piece of piecesOf(source)) {
    // Text has no null character; programs, pictures and archives do.
    if (piece.includes('\0')) throw new InputError('This is not a text file.');
    for (let at = 0; at < piece.length && !reader.isFull; at += PIECE) {
      for (const entry of reader.read(piece.slice(at, at + PIECE))) entries.push(entry);
      await yieldToBrowser();
      signal.throwIfAborted();
    }
    if (reader.isFull) break;
  }
  for (const entry of reader.end()) entries.push(entry);
  return { entries, linesWithoutAddress: reader.linesWithoutAddress, isFull: reader.isFull };
}
