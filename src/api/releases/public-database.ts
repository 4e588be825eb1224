/** The compact form of the release that answers, which anyone may load: the countries of all addresses, half a megabyte. */
import { Worker } from 'node:worker_threads';
import { AtlasError } from '../../errors.js';
import { packageFile } from '../../package-root.js';
import type { ServedRelease } from './served-release.js';

/** The compiled file, because Node 20 cannot start a thread from TypeScript. */
const COMPACT_THREAD_FILE = 'dist/src/api/releases/compact-thread.js';

/** Returns a release in the compact form with gzip; rejects with AtlasError if it is damaged. @param dir of the release, or the path of the seed */
export type MakeCompact = (dir: string) => Promise<Uint8Array>;

/** Writes a compact form in a thread, which takes about a second, so that requests are still answered. */
export function compactInThread(dir: string): Promise<Uint8Array> {
  const thread = new Worker(packageFile(COMPACT_THREAD_FILE), { workerData: dir });
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () =>
      reject(new AtlasError('E_FAULT', 'the thread that writes a compact form ended too early')),
    );
  });
}

export class PublicDatabase {
  readonly #make: MakeCompact;
  #made: { id: string; bytes: Promise<Uint8Array> } | undefined;

  constructor(make: MakeCompact = compactInThread) {
    this.#make = make;
  }

  /** Returns the compact form of a release with gzip. It is made when it is first asked for, once. */
  bytes({ id, dir }: Pick<ServedRelease, 'id' | 'dir'>): Promise<Uint8Array> {
    if (this.#made?.id !== id) {
      const bytes = this.#make(dir);
      this.#made = { id, bytes };
      // The next request tries again.
      bytes.catch(() => {
        if (this.#made?.bytes === bytes) this.#made = undefined;
      });
    }
    return this.#made.bytes;
  }
}
