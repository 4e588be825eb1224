/** Reads the text of a batch: a file in UTF-8 or UTF-16, with or without gzip; text that was pasted is one, too. */
import { PageError } from './problems.js';

/** Bytes that are passed on at a time, so that what is between them can do something else; the first ones are at least as many. */
const PIECE = 65_536;
export const FIRST_BYTES = 3 * PIECE;

/** Bytes at the start of a file by which its encoding is told. */
const HEAD_BYTES = 4_096;

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/**
 * Returns the encoding of a text by its first bytes: by its byte order mark, or by the zeros that UTF-16 has in every second
 * byte of ASCII text.
 *
 * @throws PageError if it is not text: text has no null character; programs, pictures and archives do
 */
export function encodingOf(bytes: Uint8Array): 'utf-8' | 'utf-16le' | 'utf-16be' {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  const zeros = [0, 0];
  for (let i = 0; i < Math.min(bytes.length, HEAD_BYTES); i++) if (bytes[i] === 0) zeros[i & 1]!++;
  const [even = 0, odd = 0] = zeros;
  if (even === 0 && odd === 0) return 'utf-8';
  const half = Math.min(bytes.length, HEAD_BYTES) / 2;
  if (even === 0 && odd > 0.8 * half) return 'utf-16le';
  if (odd === 0 && even > 0.8 * half) return 'utf-16be';
  throw new PageError('This is not a text file.');
}

/** Passes on the chunks of a stream, the first of them with {@link FIRST_BYTES} if there are as many. */
async function* chunksOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader();
  const none = new Uint8Array();
  let held = none;
  let wanted = FIRST_BYTES;
  try {
    for (;;) {
      const { done, value = none } = await reader.read();
      held = held === none ? value : new Uint8Array(await new Blob([held, value]).arrayBuffer());
      if (!done && held.length < wanted) continue;
      yield held;
      if (done) break;
      held = none;
      wanted = 0;
    }
  } finally {
    await reader.cancel();
  }
}

/**
 * Returns the text of a batch in pieces, in UTF-8. If the first one is shorter than {@link FIRST_BYTES}, it is all of the text.
 *
 * @throws PageError if a file cannot be read, is not text, or its gzip is damaged
 */
export async function* readText(source: Blob): AsyncGenerator<Uint8Array> {
  let isPacked = false;
  let decoder: InstanceType<typeof TextDecoder> | undefined;
  let encoding: ReturnType<typeof encodingOf> | undefined;
  const encoder = new TextEncoder();
  try {
    // Throws, too, if a file has changed since it was chosen.
    isPacked = isGzip(new Uint8Array(await source.slice(0, 2).arrayBuffer()));
    const read = source.stream();
    const stream = isPacked ? read.pipeThrough(new DecompressionStream('gzip')) : read;
    for await (const chunk of chunksOf(stream)) {
      encoding ??= encodingOf(chunk);
      if (encoding !== 'utf-8') decoder ??= new TextDecoder(encoding);
      const bytes = decoder === undefined ? chunk : encoder.encode(decoder.decode(chunk, { stream: true }));
      if (bytes.includes(0)) throw new PageError('This is not a text file.');
      // The first piece is by what the text is recognized.
      for (let at = 0, size = FIRST_BYTES; at < bytes.length; at += size, size = PIECE)
        yield bytes.subarray(at, at + size);
    }
  } catch (error) {
    if (error instanceof PageError) throw error;
    if (error instanceof DOMException) {
      throw new PageError('The file cannot be read; it may have changed. Choose it again.');
    }
    if (isPacked) throw new PageError('The gzip file is damaged.');
    throw error;
  }
  if (decoder !== undefined) yield encoder.encode(decoder.decode());
}
