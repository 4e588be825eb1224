/** The line engine, compared with an oracle that JSON.parse decides for. */
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EnrichCounts, emptyCounts } from '../../src/enrich/counts.js';
import type { LineRequest } from '../../src/enrich/enrich-lines.js';
import { type ByteSource, streamSource } from '../../src/enrich/input/source.js';
import { type EnrichOptions, type InvalidPolicy, parseFields } from '../../src/enrich/options.js';
import { parseAdd } from '../support/add.js';
import { chunkedSource } from '../support/chunks.js';
import { expectLines } from '../support/line-oracle.js';
import { ANY_INPUT, FLAT_LINES } from '../support/nasty-lines.js';
import { releaseForTests } from '../support/open-release.js';
import { LARGE_WORLD } from '../support/release.js';
import { runEngine } from '../support/run-engine.js';

/** Runs of each property; set it high for a long test. */
const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 50) / 10);

const release = releaseForTests(LARGE_WORLD);

function optionsOf(onInvalid: InvalidPolicy = 'keep', fields: string[] = []): EnrichOptions {
  return { fields: parseFields(fields), add: parseAdd('country_code'), onInvalid };
}

/** Wraps a source to record whether it was closed. */
function watched(source: ByteSource): ByteSource & { closed: boolean } {
  return {
    name: source.name,
    size: undefined,
    closed: false,
    get bytesRead() {
      return source.bytesRead;
    },
    read: (target) => source.read(target),
    async close() {
      this.closed = true;
      await source.close();
    },
  };
}

/** Runs the engine over inputs. */
function enrich(inputs: ByteSource[], request: Partial<LineRequest> = {}) {
  return runEngine({ inputs, openFile: () => release.file, options: optionsOf(), ...request });
}

/** Joins the outputs of several inputs; adds the newline that an output lacks if another follows. */
function joinOutputs(parts: string[]): string {
  return parts
    .filter((part) => part !== '')
    .map((part, index, all) => (index < all.length - 1 && !part.endsWith('\n') ? `${part}\n` : part))
    .join('');
}

describe('enrichLines', () => {
  it('equals the oracle for all inputs, chunks, blocks and jobs', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(ANY_INPUT, fc.array(fc.nat(), { maxLength: 5 })), { maxLength: 3 }),
        fc.constantFrom<InvalidPolicy>('keep', 'drop', 'fail'),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 400 }),
        fc.constantFrom(60, 300, 100_000),
        async (inputs, policy, jobs, chunkBytes, maxLineBytes) => {
          const options = optionsOf(policy, ['ip', 'client.ip=geo']);
          const sources = inputs.map(([input, cuts], index) => watched(chunkedSource(`input ${index}`, input, cuts)));
          const actual = await enrich(sources, { options, jobs, chunkBytes, maxLineBytes });

          const expected = inputs.map(([input]) => expectLines(release.database, input, options, maxLineBytes));
          const failing = expected.findIndex(({ failsAt }) => failsAt !== undefined);
          const done = failing < 0 ? expected : expected.slice(0, failing + 1);
          expect(actual.output).toBe(joinOutputs(done.map(({ output }) => output.toString('latin1'))));
          expect(actual.rejects).toBe(joinOutputs(done.map(({ rejects }) => rejects.toString('latin1'))));
          if (failing >= 0) {
            expect(actual.error).toMatchObject({ code: 'E_BAD_INPUT' });
            expect(String(actual.error)).toContain(`input ${failing}: line ${expected[failing]!.failsAt} `);
          } else {
            expect(actual.error).toBeUndefined();
            const counts = emptyCounts();
            for (const part of expected) {
              for (const key of Object.keys(counts) as (keyof EnrichCounts)[]) counts[key] += part.counts[key];
            }
            expect(actual.counts).toEqual(counts);
            expect(sources.every(({ closed }) => closed)).toBe(true);
          }
        },
      ),
      { numRuns: RUNS },
    );
  });

  it.each([
    ['ip'],
    ['ip', 'client=geo'],
    [`${'x'.repeat(61)}=a`],
    [`${'x'.repeat(62)}=a`, 'ip'],
    ['client.ip', 'ip=c'],
    ['a":true,"ip=a', 'ip'],
  ])('equals the oracle on the lines of logs, for %s', async (...fields) => {
    const options = optionsOf('keep', fields);
    await fc.assert(
      fc.asyncProperty(FLAT_LINES, fc.integer({ min: 1000, max: 30_000 }), async (lines, chunkBytes) => {
        const input = Buffer.from(lines.join('\n'), 'latin1');
        const actual = await enrich([chunkedSource('input', input)], { options, chunkBytes });
        const expected = expectLines(release.database, input, options);
        expect(actual.error).toBeUndefined();
        expect(actual.output).toBe(expected.output.toString('latin1'));
        expect(actual.rejects).toBe(expected.rejects.toString('latin1'));
        expect(actual.counts).toEqual(expected.counts);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('distinguishes a key with a quote from two members', async () => {
    const options = optionsOf('keep', ['a":1,"ip=x', 'ip=geo']);
    const input = Buffer.from('{"a":1,"ip":"8.8.8.8"}\n{"a\\":1,\\"ip":"8.8.8.8"}\n');
    const { output } = await enrich([chunkedSource('input', input)], { options });
    expect(output).toBe(expectLines(release.database, input, options).output.toString('latin1'));
    expect(output.split('\n')[0]).toMatch(/"x":null,"geo":\{"country_code":"US"\}\}$/);
  });

  it('keeps the order with any number of jobs and blocks of different cost', async () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => {
      const padding = index % 1000 < 300 ? '[[1,2,{"a":"b"}],3]' : `"${'x'.repeat(index % 200)}"`;
      return `{"n":${index},"ip":"8.8.${index % 256}.8","p":${padding}}\n`;
    });
    const input = Buffer.from(lines.join(''));
    const expected = expectLines(release.database, input, optionsOf());
    for (const jobs of [1, 2, 3, 4]) {
      const actual = await enrich([chunkedSource('input', input, [100_000, 1_000_000])], {
        jobs,
        chunkBytes: 10_000,
      });
      expect(actual.output === expected.output.toString('latin1'), `${jobs} jobs`).toBe(true);
      expect(actual.counts).toEqual(expected.counts);
    }
  });

  it('writes an output many times as long as its input', async () => {
    const input = Buffer.from('{}\n'.repeat(50_000));
    for (const jobs of [1, 2]) {
      const { output, counts } = await enrich([chunkedSource('input', input)], { jobs });
      expect(output === '{"geo":null}\n'.repeat(50_000)).toBe(true);
      expect(counts).toMatchObject({ lines: 50_000, missing_field: 50_000, bytes: 150_000 });
    }
  });

  it.each([1, 2])('reads no further ahead than it has slots, with %i jobs', async (jobs) => {
    let taken = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        taken += 1000;
        yield Buffer.from(`${'{}'.padEnd(999)}\n`);
      }
    }
    const controller = new AbortController();
    let unblock = (): void => {};
    const stuck = new Promise<void>((resolve) => {
      unblock = resolve;
    });
    const run = enrich([streamSource('input', endless())], {
      jobs,
      chunkBytes: 1000,
      signal: controller.signal,
      output: { write: () => stuck },
      rejects: undefined,
    });
    // Until it reads no more.
    for (let before = -1; before !== taken; await sleep(50)) before = taken;
    expect(taken).toBeLessThanOrEqual(10_000);
    controller.abort();
    unblock();
    expect((await run).error).toBeUndefined();
  });

  it('ends after complete lines when aborted, even while a read waits', async () => {
    const controller = new AbortController();
    async function* stalls(): AsyncGenerator<Buffer> {
      yield Buffer.from('{"n":1}\n{"n":2}\n{"n":');
      setTimeout(() => controller.abort(), 20);
      await new Promise(() => {});
    }
    const chunks = { [Symbol.asyncIterator]: stalls };
    const unread = watched(streamSource('never read', chunks));
    const source = watched(streamSource('input', chunks));
    const { output, error, counts } = await enrich([source, unread], { signal: controller.signal });
    expect(error).toBeUndefined();
    expect(output).toBe('{"n":1,"geo":null}\n{"n":2,"geo":null}\n');
    expect(counts.lines).toBe(2);
    expect(source.closed).toBe(true);
    expect(unread.bytesRead).toBe(0);
  });

  it('writes nothing if aborted before the start', async () => {
    const source = watched(chunkedSource('input', Buffer.from('{}\n')));
    const { output, error } = await enrich([source], { signal: AbortSignal.abort() });
    expect({ output, error }).toEqual({ output: '', error: undefined });
    expect(source.bytesRead).toBe(0);
  });

  it.each([1, 2])('fails with the error of the output, with %i jobs', async (jobs) => {
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) yield Buffer.from('{}\n'.repeat(100));
    }
    const source = watched(streamSource('input', endless()));
    let writes = 0;
    const write = async (): Promise<void> => {
      if (++writes > 3) throw Object.assign(new Error('gone'), { code: 'EPIPE' });
    };
    const { error } = await enrich([source], { jobs, output: { write } });
    expect(error).toMatchObject({ code: 'EPIPE' });
    expect(source.closed).toBe(true);
  });

  // Then nothing waits for the next write: the line occupies the large slot, or no more input arrives.
  it.each([1, 2])(
    'fails at once with a line longer than a block, or while the input is silent, with %i jobs',
    async (jobs) => {
      const write = async (): Promise<void> => {
        await sleep(1);
        throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      };
      const long = Buffer.from(`{"ip":"8.8.8.8","x":"${'y'.repeat(5000)}"}\n`.repeat(20));
      const { error } = await enrich([chunkedSource('input', long)], {
        jobs,
        chunkBytes: 1000,
        output: { write },
      });
      expect(error).toMatchObject({ code: 'ENOSPC' });

      async function* silent(): AsyncGenerator<Buffer> {
        yield Buffer.from('{"ip":"8.8.8.8"}\n');
        await new Promise(() => {});
      }
      const source = watched(streamSource('input', { [Symbol.asyncIterator]: silent }));
      expect(await enrich([source], { jobs, output: { write } })).toMatchObject({ error: { code: 'ENOSPC' } });
      expect(source.closed).toBe(true);
    },
  );

  it('fails with the error of a read, after writing everything before it', async () => {
    async function* breaks(): AsyncGenerator<Buffer> {
      yield Buffer.from('{"n":1}\n{"n":2}\n{"n":');
      throw new Error('no more');
    }
    const { output, error } = await enrich([streamSource('the input', breaks())]);
    expect(error).toMatchObject({ code: 'E_BAD_INPUT' });
    expect(String(error)).toContain('the input cannot be read: no more');
    expect(output).toBe('{"n":1,"geo":null}\n{"n":2,"geo":null}\n');
  });

  it('fails with the error of opening the next input', async () => {
    async function* inputs(): AsyncGenerator<ByteSource> {
      yield chunkedSource('first', Buffer.from('{}\n'));
      throw new Error('no such file');
    }
    const { output, error } = await enrich([], { inputs: inputs() });
    expect(String(error)).toContain('no such file');
    expect(output).toBe('{"geo":null}\n');
  });

  it.each([1, 3])('names input and line under the policy fail, with %i jobs', async (jobs) => {
    const good = '{"ip":"8.8.8.8"}\n'.repeat(1000);
    const inputs = ['a', 'b'].map((name) =>
      chunkedSource(name, Buffer.from(`${good}${name === 'b' ? 'x' : '{}'}\n${good}`)),
    );
    const { output, error } = await enrich(inputs, { jobs, chunkBytes: 1000, options: optionsOf('fail') });
    expect(String(error)).toContain('b: line 1001 is not a JSON object');
    expect(output.split('\n').length - 1).toBe(3001);
  });

  it('reports its progress', async () => {
    const seen: number[] = [];
    const counts = emptyCounts();
    const input = Buffer.from('{}\n'.repeat(3000));
    await enrich([chunkedSource('input', input)], {
      counts,
      chunkBytes: 1000,
      onProgress: () => seen.push(counts.bytes),
    });
    expect(seen.length).toBe(10);
    expect(seen.at(-1)).toBe(9000);
  });
});
