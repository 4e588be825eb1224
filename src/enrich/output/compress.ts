/** Compresses an output with gzip or zstd, in libuv's thread pool. */
import type { Gzip, Zlib } from 'node:zlib';
import { zlib } from '../../builtins.js';
import { misuse } from '../../errors.js';
import { ZSTD_NODE_VERSIONS } from '../input/decompress.js';
import type { Output } from './output.js';

export const COMPRESSIONS = ['gzip', 'zstd'] as const;
export type OutputCompression = (typeof COMPRESSIONS)[number];

type Compressor = Zlib & Gzip;

function createCompressor(compression: OutputCompression): Compressor {
  if (compression === 'gzip') return zlib().createGzip();
  // A function of newer versions of Node.
  const { createZstdCompress } = zlib() as { createZstdCompress?: () => Compressor };
  if (createZstdCompress !== undefined) return createZstdCompress();
  throw misuse(`Node ${process.versions.node} does not support zstd; use Node ${ZSTD_NODE_VERSIONS}, or gzip`);
}

/** Checks that a compression is available. Throws as {@link compressedOutput} does. */
export function checkCompression(compression: OutputCompression): void {
  createCompressor(compression).close();
}

/**
 * Returns an output that compresses what is written to it.
 *
 * @throws AtlasError E_USAGE if this version of Node does not support the compression
 */
export function compressedOutput(output: Output, compression: OutputCompression): Output {
  const compressor = createCompressor(compression);
  let parts: Buffer[] = [];
  let failure: Error | undefined;
  compressor.on('data', (part: Buffer) => parts.push(part));
  compressor.on('error', (error) => {
    failure = error;
  });
  const ended = new Promise<void>((resolve) => {
    compressor.on('end', resolve).on('close', resolve);
  });

  async function writeParts(): Promise<void> {
    if (failure !== undefined) throw failure;
    const ready = parts;
    parts = [];
    for (const part of ready) await output.write(part);
  }
  return {
    async write(bytes) {
      await new Promise<void>((resolve) => {
        compressor.write(bytes, () => resolve());
      });
      await writeParts();
    },
    async end() {
      compressor.end();
      await ended;
      await writeParts();
      await output.end();
    },
    commit: () => output.commit(),
    abandon: () => output.abandon(),
  };
}
