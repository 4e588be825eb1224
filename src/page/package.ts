/** What the page has in place of the package's files: in its script, or loaded when it is needed; see scripts/pack-page.js. */
import names from '../../data/address-names.json' with { type: 'json' };
import table from '../../data/logs.json' with { type: 'json' };
import type { AddressNames } from '../enrich/address-names.js';
import type { Logs } from '../enrich/logs.js';
import { RequestError } from './problems.js';

export const knownLogs = (): Logs => table.logs as unknown as Logs;
export const addressNames = (): AddressNames => names;

let kernel: WebAssembly.Module | undefined;

/** Loads the kernel, once. @throws RequestError */
export async function loadKernel(): Promise<void> {
  try {
    kernel ??= await WebAssembly.compileStreaming(fetch(new URL('kernel.wasm', globalThis.location.href)));
  } catch {
    throw new RequestError('A part of this page cannot be loaded from the server.', 0);
  }
}

/** Returns the kernel, which was loaded. */
export const kernelModule = (): WebAssembly.Module => kernel!;
