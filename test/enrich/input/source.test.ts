import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { constants, gunzipSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { Inputs } from '../../../src/enrich/input/recognize.js';
import { type ByteSource, openSource } from '../../../src/enrich/input/source.js';
import { temporaryDir } from '../../support/temporary.js';

const dir = temporaryDir();

/** Lines that do not compress too well. */
const LINES = Buffer.from(
  Array.from({ length: 60_000 }, (_, index) => `{"n":${index},"x":${(index * 2_654_435_761) % 4_294_967_296}}\n`).join(
    '',
  ),
);

/** Opens a file as a run does. */
async function openInput(path: string): Promise<ByteSource> {
  const { value } = await new Inputs([openSource(path)], { input: { kind: 'jsonl' }, fields: [] }).ofRun().next();
  return value as ByteSource;
}

/** Reads all of a source slowly; returns the bytes and the error, if any. */
async function readSlowly(path: string): Promise<{ bytes: Buffer; error: unknown }> {
  const parts: Buffer[] = [];
  const target = Buffer.alloc(100_000);
  let source: ByteSource | undefined;
  try {
    source = await openInput(path);
    for (;;) {
      const bytes = await source.read(target);
      if (bytes === 0) return { bytes: Buffer.concat(parts), error: undefined };
      parts.push(Buffer.from(target.subarray(0, bytes)));
      await wait(2);
    }
  } catch (error) {
    return { bytes: Buffer.concat(parts), error };
  } finally {
    await source?.close();
  }
}

it('returns everything that can be decompressed of a truncated file, then fails', async () => {
  const packed = gzipSync(LINES);
  for (const length of [packed.length >> 1, packed.length - 1, 11]) {
    const path = join(dir, `cut-${length}.gz`);
    writeFileSync(path, packed.subarray(0, length));
    const whole = gunzipSync(packed.subarray(0, length), { finishFlush: constants.Z_SYNC_FLUSH });
    const { bytes, error } = await readSlowly(path);
    expect(bytes.equals(whole)).toBe(true);
    expect(error).toMatchObject({ code: 'E_BAD_INPUT', message: expect.stringContaining('unexpected end of file') });
  }
});

it('returns the data before damaged bytes, then fails', async () => {
  const packed = gzipSync(LINES);
  packed.fill(0xff, packed.length - 20_000, packed.length - 10_000);
  const path = join(dir, 'damaged.gz');
  writeFileSync(path, packed);
  const { bytes, error } = await readSlowly(path);
  // Damaged bytes may decompress to some data; the data before them is complete.
  const half = LINES.length >> 1;
  expect(bytes.subarray(0, half).equals(LINES.subarray(0, half))).toBe(true);
  expect(error).toMatchObject({ code: 'E_BAD_INPUT' });
});

it('decompresses several members of any size', async () => {
  const parts = [Buffer.alloc(0), LINES, Buffer.from('x'), Buffer.alloc(3_000_000)];
  const path = join(dir, 'members.gz');
  // Zeros after the last member are padding, as on tapes.
  writeFileSync(path, Buffer.concat([...parts.map((part) => gzipSync(part)), Buffer.alloc(200_000)]));
  const { bytes, error } = await readSlowly(path);
  expect(error).toBeUndefined();
  expect(bytes.equals(Buffer.concat(parts))).toBe(true);
});

it('holds little of what a chunk that repeats itself is decompressed to', async () => {
  const path = join(dir, 'zeros.gz');
  // The first chunk of 32 KiB is nearly all of it.
  const zeros = Buffer.alloc(36_000_000);
  writeFileSync(path, gzipSync(zeros));
  const source = await openInput(path);
  const target = Buffer.alloc(100_000);
  const before = process.memoryUsage().arrayBuffers;
  let length = 0;
  for (let bytes = 1; bytes > 0; length += bytes) {
    bytes = await source.read(target);
    // What was read is garbage, which may pile up.
    if (length < 4_000_000) expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(12_000_000);
  }
  // Compared at the end, so that the garbage collector does not take this memory in between.
  expect(length).toBe(zeros.length);
  await source.close();
});
