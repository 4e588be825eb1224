/** The kernel of the page's worker, which browsers load from the server. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../../src/package-root.js';

let kernel: WebAssembly.Module | undefined;

export async function pageKernel(): Promise<WebAssembly.Module> {
  kernel ??= new WebAssembly.Module(readFileSync(packageFile('dist/src/enrich/kernel/kernel-alone.wasm')));
  return kernel;
}
