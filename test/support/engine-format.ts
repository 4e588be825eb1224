/** Runs the line engine through the interface of the formats, so that one test can run either. */
import { join } from 'node:path';
import { RANGE_FILE } from '../../src/database/release.js';
import { enrichLines, type LineRequest } from '../../src/enrich/enrich-lines.js';
import type { FormatContext, FormatEnricher } from '../../src/enrich/formats/format.js';
import { streamSource } from '../../src/enrich/input/source.js';
import type { KernelInput } from '../../src/enrich/options.js';
import { openRangeFile } from '../../src/rangefile/reader.js';
import { TEST_LINE_BYTES } from './run-engine.js';

export const CSV: KernelInput = { kind: 'table', delimiter: ',', hasHeader: true };
export const TSV: KernelInput = { kind: 'table', delimiter: '\t', hasHeader: true };
export const LIST: KernelInput = { kind: 'list' };

/** Returns a format that the kernel reads. Each input is a run of its own. */
export function engineFormat(
  { database, options, counts, reject }: FormatContext,
  input: KernelInput,
  request: Partial<LineRequest> = {},
): FormatEnricher {
  const file = openRangeFile(join(database.dir, RANGE_FILE));
  async function* enrich(name: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const output: Uint8Array[] = [];
    const run = enrichLines({
      inputs: [streamSource(name, chunks)],
      output: { write: (bytes) => void output.push(Buffer.from(bytes)) },
      rejects: { write: (bytes) => reject(Buffer.from(bytes)) },
      openFile: () => file,
      options: { ...options, input },
      jobs: 1,
      counts,
      maxLineBytes: TEST_LINE_BYTES,
      ...request,
    });
    const failure = await run.then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    yield Buffer.concat(output);
    if (failure !== undefined) throw failure.error;
  }
  return { newline: '\n', enrich };
}
