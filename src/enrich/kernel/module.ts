/** Loads the kernel from the package's files. Browsers load it themselves. */
import { readFileSync } from 'node:fs';
import { causedError } from '../../errors.js';
import { packageFile } from '../../package-root.js';
import type { KernelLayout } from './layout.js';

/** The same module twice: a module declares whether its memory is shared. */
const MODULE_FILES = {
  shared: 'dist/src/enrich/kernel/kernel-shared.wasm',
  alone: 'dist/src/enrich/kernel/kernel-alone.wasm',
} as const;

const compiled: { -readonly [Kind in keyof typeof MODULE_FILES]?: WebAssembly.Module } = {};

/**
 * Returns the compiled module for a memory; it can be sent to another thread.
 *
 * @throws AtlasError E_FAULT if the package was not built
 */
export function kernelModule({ memory }: KernelLayout): WebAssembly.Module {
  const kind = memory.buffer instanceof SharedArrayBuffer ? 'shared' : 'alone';
  if (compiled[kind] === undefined) {
    const path = packageFile(MODULE_FILES[kind]);
    try {
      compiled[kind] = new WebAssembly.Module(readFileSync(path));
    } catch (error) {
      throw causedError('E_FAULT', `${path} cannot be loaded`, error, 'run "npm run build"');
    }
  }
  return compiled[kind];
}
