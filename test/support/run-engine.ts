/** Runs the line engine and collects what it writes. */
import { type EnrichCounts, emptyCounts } from '../../src/enrich/counts.js';
import { enrichLines, type LineRequest } from '../../src/enrich/enrich-lines.js';
import { JsonDocument } from '../../src/enrich/formats/document.js';

/**
 * Longest line, unless a test says otherwise: far less memory to make and release for each run than with the real limit. The
 * garbage collector runs for every 64 MB of such memories.
 */
export const TEST_LINE_BYTES = 100_000;

/** Memories of runs that have ended. A run must not depend on what is in its memory. */
const usedMemories: WebAssembly.Memory[] = [];

/** Returns a memory that is full of bytes, from another run if possible. */
function dirtyMemory(): WebAssembly.Memory {
  const used = usedMemories.pop();
  if (used !== undefined) return used;
  const memory = new WebAssembly.Memory({ initial: 32, maximum: 32_768, shared: true });
  new Uint8Array(memory.buffer).fill(0xa5);
  return memory;
}

export interface EngineRun {
  /** One character for each byte. */
  output: string;
  rejects: string;
  counts: EnrichCounts;
  /** The error that the run ended with; undefined if it did not. */
  error: unknown;
}

/**
 * Runs the line engine over inputs, by default with one thread.
 *
 * @param request its inputs, release and options, and what differs from the default
 */
export async function runEngine(
  request: Pick<LineRequest, 'inputs' | 'options' | 'openFile'> & Partial<LineRequest>,
): Promise<EngineRun> {
  const output: Buffer[] = [];
  const rejects: Buffer[] = [];
  const counts = request.counts ?? emptyCounts();
  // The bytes are copied, because the kernel reuses their memory.
  const error = await enrichLines({
    output: { write: (bytes) => void output.push(Buffer.from(bytes)) },
    rejects: { write: (bytes) => void rejects.push(Buffer.from(bytes)) },
    jobs: 1,
    counts,
    maxLineBytes: TEST_LINE_BYTES,
    documents: async () => JsonDocument,
    memory: dirtyMemory(),
    ...request,
  }).then(
    ({ memory }) => void usedMemories.push(memory),
    (thrown: unknown) => thrown,
  );
  return {
    output: Buffer.concat(output).toString('latin1'),
    rejects: Buffer.concat(rejects).toString('latin1'),
    counts,
    error,
  };
}
