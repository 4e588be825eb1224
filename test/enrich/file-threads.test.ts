/** Regular files, which the threads that process lines read and write themselves. */
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { LineRequest } from '../../src/enrich/enrich-lines.js';
import { type ByteSource, openSource } from '../../src/enrich/input/source.js';
import { type EnrichOptions, parseFields } from '../../src/enrich/options.js';
import { replacedOutput } from '../../src/enrich/output/output.js';
import { WorkerPool } from '../../src/enrich/schedule/worker-pool.js';
import { parseAdd } from '../support/add.js';
import { shell } from '../support/cli.js';
import { expectLines } from '../support/line-oracle.js';
import { ANY_INPUT } from '../support/nasty-lines.js';
import { releaseForTests } from '../support/open-release.js';
import { LARGE_WORLD, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { runEngine } from '../support/run-engine.js';

const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 40) / 10);

const release = releaseForTests(LARGE_WORLD);
const options: EnrichOptions = { fields: parseFields(['ip']), add: parseAdd('country_code'), onInvalid: 'keep' };
const dir = temporaryDir();

/** Returns the result of `LINE`, repeated. */
function expectedLines(count: number): string {
  return expectLines(release.database, Buffer.from(LINE), options).output.toString('latin1').repeat(count);
}

/** Opens a file, and calls a function before each stretch that other threads read. */
function openCounted(path: string, onStretch: () => Promise<void>): ByteSource {
  const source = openSource(path);
  const takeLines = source.takeLines!.bind(source);
  source.takeLines = async (...args) => {
    const part = await takeLines(...args);
    if (part !== undefined) await onStretch();
    return part;
  };
  return source;
}

/**
 * Enriches files into another one; returns its text, and how many chunks workers read and wrote.
 *
 * @param onStretch called before each stretch with the number of chunks that workers have been asked to write
 */
async function enrichFiles(
  inputs: string[],
  request: Partial<LineRequest> = {},
  onStretch: (placed: number) => void | Promise<void> = () => {},
) {
  const path = join(dir, 'out');
  const output = replacedOutput(path);
  const place = vi.fn(output.place!);
  let stretches = 0;
  const sources = inputs.map((input) =>
    openCounted(input, async () => {
      stretches++;
      await onStretch(place.mock.calls.length);
    }),
  );
  const run = await runEngine({
    inputs: sources,
    openFile: () => release.file,
    options,
    jobs: 2,
    ...request,
    output: { ...output, place },
  });
  if (run.error === undefined) output.commit();
  else output.abandon();
  const written = run.error === undefined ? readFileSync(path, 'latin1') : undefined;
  return { ...run, output: written, stretches, placed: place.mock.calls.length };
}

const LINE = '{"ip":"193.0.6.139","text":"as long as lines of logs are, more or less"}\n';

describe('files', () => {
  it('give what the oracle says, for all lines, chunks and jobs', async () => {
    let stretches = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.array(ANY_INPUT, { minLength: 1, maxLength: 4 }), fc.integer({ min: 1, max: 60 })), {
          minLength: 1,
          maxLength: 2,
        }),
        fc.integer({ min: 2, max: 4 }),
        fc.constantFrom(64, 500, 6000),
        async (files, jobs, chunkBytes) => {
          const bytes = files.map(([pieces, times]) => {
            const text = Buffer.concat(pieces.flatMap((piece) => [piece, Buffer.from('\n')]));
            return Buffer.concat(Array.from({ length: times }, () => text));
          });
          const paths = bytes.map((content, index) => {
            const path = join(dir, `in${index}`);
            writeFileSync(path, content);
            return path;
          });
          const run = await enrichFiles(paths, { jobs, chunkBytes });
          stretches += run.stretches;
          const expected = bytes.map((content) => expectLines(release.database, content, options));
          expect(run.error).toBeUndefined();
          expect(run.output).toBe(expected.map(({ output }) => output.toString('latin1')).join(''));
          expect(run.rejects).toBe(expected.map(({ rejects }) => rejects.toString('latin1')).join(''));
          expect(run.counts.lines).toBe(expected.reduce((sum, { counts }) => sum + counts.lines, 0));
          expect(run.counts.bytes).toBe(bytes.reduce((sum, { length }) => sum + length, 0));
        },
      ),
      { numRuns: RUNS },
    );
    expect(stretches).toBeGreaterThan(0);
  });

  it('are read and written by workers, except for their ends', async () => {
    const path = join(dir, 'many');
    writeFileSync(path, LINE.repeat(200_000));
    // Until the workers have started, this thread runs the kernel and writes: reading waits for them.
    const { stretches, placed, output } = await enrichFiles([path], { chunkBytes: 16_384, jobs: 3 }, (placedSoFar) =>
      placedSoFar === 0 ? sleep(50) : undefined,
    );
    expect(stretches).toBeGreaterThan(850);
    expect(placed).toBeGreaterThan(0);
    expect(output === expectedLines(200_000)).toBe(true);
  });

  it('that become shorter are an error, after everything before was written', async () => {
    const path = join(dir, 'shrinks');
    writeFileSync(path, LINE.repeat(4000));
    const { error, counts } = await enrichFiles([path], { chunkBytes: 1000 }, () => truncateSync(path, 1500));
    expect(error).toMatchObject({
      code: 'E_BAD_INPUT',
      message: expect.stringMatching(/shrinks cannot be read: it has become shorter while it was read/),
    });
    expect(counts.lines).toBe(Math.floor(1000 / LINE.length));
  });

  it('are left alone when a worker cannot write, and the error says why', async () => {
    const data = join(dir, 'data');
    await publishBlocks(data, SMALL_WORLD);
    const path = join(dir, 'large');
    writeFileSync(path, LINE.repeat(80_000));
    const target = join(dir, 'full');
    writeFileSync(target, 'as before');
    // No file may be larger than 2 MiB: a longer write fails with EFBIG, as setrlimit(2) says.
    const { code, stderr } = await shell(
      'ulimit -f 2048; exec "$NODE" "$MAIN" enrich "$IN" -o "$OUT" --jobs 2 --data "$DATA"',
      { DATA: data, IN: path, OUT: target },
    );
    expect(stderr).toMatch(/full cannot be written: .*file too large/);
    expect(code).toBe(1);
    expect(readFileSync(target, 'utf8')).toBe('as before');
    expect(readdirSync(dir).filter((name) => name.endsWith('.part'))).toEqual([]);
    expect(existsSync(target)).toBe(true);
  });

  it('say what to do when a thread ends that should not', async () => {
    const pool = new WorkerPool(1);
    pool.start();
    await pool.close();
    expect(() => pool.check()).toThrow(/a worker thread ended: .*; run the command again; if that repeats, report/);
  });

  it('end after whole lines when the run is stopped', async () => {
    const path = join(dir, 'stopped');
    writeFileSync(path, LINE.repeat(200_000));
    const controller = new AbortController();
    const { error, output, counts } = await enrichFiles([path], {
      chunkBytes: 5000,
      signal: controller.signal,
      onProgress: () => controller.abort(),
    });
    expect(error).toBeUndefined();
    expect(counts.lines).toBeGreaterThan(0);
    expect(counts.lines).toBeLessThan(200_000);
    expect(output === expectedLines(counts.lines)).toBe(true);
  });
});
