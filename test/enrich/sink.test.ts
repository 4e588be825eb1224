/** Writing to pipes: a reader that is slow costs neither failed writes nor this thread's time. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs, { closeSync, constants, openSync, readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileSink } from '../../src/enrich/output/sink.js';
import { systemErrorCode } from '../../src/errors.js';
import { temporaryDir } from '../support/release.js';

/** Sixteen times the capacity of a pipe. */
const CONTENT = Buffer.alloc(1_048_576, 'ipatlas\n');

let dir: string;
let pipe: string;
/** Descriptors to close at the end. */
let open: number[];
beforeEach(() => {
  dir = temporaryDir();
  pipe = join(dir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  open = [];
});
afterEach(() => {
  for (const fd of open) closeSync(fd);
  fs.rmSync(dir, { recursive: true });
});

/** Opens the pipe for writing. The descriptor for reading lets it open immediately; it is closed when the reader runs. */
function openPipe(flags = 0): { fd: number; closeReader: () => void } {
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const fd = openSync(pipe, constants.O_WRONLY | flags);
  open.push(fd);
  return { fd, closeReader: () => closeSync(reader) };
}

/** Counts the writes of node:fs that fail while `action` runs. */
async function failedWrites(action: () => Promise<void>): Promise<number> {
  const { write, writeSync } = fs;
  let failed = 0;
  fs.write = Object.assign((...args: unknown[]) => {
    const done = args.pop() as (error: Error | null, bytes: number) => void;
    (write as (...all: unknown[]) => void)(...args, (error: Error | null, bytes: number) => {
      if (error !== null) failed++;
      done(error, bytes);
    });
  }, write) as typeof write;
  fs.writeSync = ((...args: Parameters<typeof writeSync>) => {
    try {
      return writeSync(...args);
    } catch (error) {
      if (systemErrorCode(error) === 'EAGAIN') failed++;
      throw error;
    }
  }) as typeof writeSync;
  syncBuiltinESMExports();
  try {
    await action();
  } finally {
    Object.assign(fs, { write, writeSync });
    syncBuiltinESMExports();
  }
  return failed;
}

describe('a pipe with a slow reader', () => {
  it.each([
    ['blocking', 0, 0],
    ['non-blocking', constants.O_NONBLOCK, 1],
  ])('takes all bytes with at most one failed write if it is %s', async (_, flags, allowed) => {
    const { fd, closeReader } = openPipe(flags);
    const out = join(dir, 'out');
    // Reads a page at a time, with pauses.
    const loop = 'for i in $(seq 20); do head -c 4096; sleep 0.01; done; cat';
    const reader = spawn('bash', ['-c', `{ ${loop}; } < "$0" > "$1"`, pipe, out]);
    const ended = once(reader, 'close');
    const failed = await failedWrites(async () => fileSink(fd).write(CONTENT));
    closeReader();
    closeSync(open.pop()!);
    await ended;
    expect(readFileSync(out).equals(CONTENT)).toBe(true);
    expect(failed).toBeLessThanOrEqual(allowed);
  });

  it('does not block this thread', async () => {
    const { fd, closeReader } = openPipe();
    const [go, seen, out] = [join(dir, 'go'), join(dir, 'seen'), join(dir, 'out')];
    // Waits for this thread, but not forever.
    const wait = 'for i in $(seq 100); do [ -e "$1" ] && break; sleep 0.05; done; [ -e "$1" ] && echo yes > "$2"';
    const reader = spawn('bash', ['-c', `${wait}; cat < "$0" > "$3"`, pipe, go, seen, out]);
    const ended = once(reader, 'close');
    const written = fileSink(fd).write(CONTENT);
    writeFileSync(go, '');
    await written;
    closeReader();
    closeSync(open.pop()!);
    await ended;
    expect(readFileSync(seen, 'utf8')).toBe('yes\n');
    expect(readFileSync(out).equals(CONTENT)).toBe(true);
  });
});
