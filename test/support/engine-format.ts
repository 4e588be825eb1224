/** Runs the line engine as a function from an input to its output. */
import { join } from 'node:path';
import type { Database } from '../../src/database/database.js';
import { RANGE_FILE } from '../../src/database/release.js';
import type { EnrichCounts } from '../../src/enrich/counts.js';
import { type EnricherSizes, LineEnricher } from '../../src/enrich/enricher.js';
import type { EnrichOptions, KernelInput } from '../../src/enrich/options.js';
import { openRangeFile } from '../../src/rangefile/reader.js';
import { TEST_LINE_BYTES } from './run-engine.js';

export const CSV: KernelInput = { kind: 'table', delimiter: ',', hasHeader: true };
export const TSV: KernelInput = { kind: 'table', delimiter: '\t', hasHeader: true };
export const LIST: KernelInput = { kind: 'list' };

export interface FormatContext {
  database: Database;
  options: EnrichOptions;
  counts: EnrichCounts;
  /** Receives rejected records. */
  reject: (record: Uint8Array) => void;
}

export interface FormatEnricher {
  enrich(name: string, chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
}

/** Returns a document with its items at keys. */
export function documentAt(...itemsPath: string[]): KernelInput {
  return { kind: 'json', itemsPath };
}

/** The enrichers by what they do, because to make one takes longer than to use it. */
const enrichers = new Map<string, { enricher: LineEnricher; output: Buffer[]; rejects: Buffer[] }>();

function enricherFor(dir: string, options: EnrichOptions, sizes: EnricherSizes) {
  const key = JSON.stringify([dir, options, sizes]);
  let entry = enrichers.get(key);
  if (entry === undefined) {
    const output: Buffer[] = [];
    const rejects: Buffer[] = [];
    // The bytes are copied, because the kernel reuses their memory.
    const enricher = new LineEnricher(
      openRangeFile(join(dir, RANGE_FILE)),
      options,
      (bytes) => output.push(Buffer.from(bytes)),
      (bytes) => rejects.push(Buffer.from(bytes)),
      sizes,
    );
    entry = { enricher, output, rejects };
    enrichers.set(key, entry);
  }
  return entry;
}

/** Returns a format as a function from an input to its output. Each input is a run of its own, in this thread. */
export function engineFormat(
  { database, options, counts, reject }: FormatContext,
  input: KernelInput,
  sizes: EnricherSizes = {},
): FormatEnricher {
  async function* enrich(name: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const { enricher, output, rejects } = enricherFor(
      database.dir,
      { ...options, input },
      { maxLineBytes: TEST_LINE_BYTES, ...sizes },
    );
    output.length = 0;
    rejects.length = 0;
    const before = { ...enricher.counts };
    enricher.reset();
    let failure: Error | undefined;
    try {
      for await (const chunk of chunks) enricher.write(chunk);
      enricher.end();
    } catch (error) {
      failure = error as Error;
    }
    for (const key of Object.keys(counts) as (keyof EnrichCounts)[]) counts[key] += enricher.counts[key] - before[key];
    rejects.forEach(reject);
    yield Buffer.concat(output);
    if (failure === undefined) return;
    failure.message = failure.message.replace(/^message\b/, name);
    throw failure;
  }
  return { enrich };
}
