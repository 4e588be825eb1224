/** The compact forms of the release that answers, which anyone may load: the countries of all addresses, and their networks. */
import { Worker } from 'node:worker_threads';
import { AtlasError } from '../../errors.js';
import { packageFile } from '../../package-root.js';
import type { ServedRelease } from './served-release.js';

/** The compiled file, because Node 20 cannot start a thread from TypeScript. */
const COMPACT_THREAD_FILE = 'dist/src/api/releases/compact-thread.js';

/** What a compact form is made of. */
export interface CompactJob {
  /** The directory of the release, or the path of the seed. */
  dir: string;
  content: 'country' | 'networks';
}

/** Returns a release in the compact form with gzip; rejects with AtlasError if it is damaged. */
export type MakeCompact = (job: CompactJob) => Promise<Uint8Array>;

/** Writes a compact form in a thread, which takes about a second, so that requests are still answered. */
export function compactInThread(job: CompactJob): Promise<Uint8Array> {
  const thread = new Worker(packageFile(COMPACT_THREAD_FILE), { workerData: job });
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
  readonly #made = new Map<CompactJob['content'], { id: string; bytes: Promise<Uint8Array> }>();

  constructor(make: MakeCompact = compactInThread) {
    this.#make = make;
  }

  /** Returns the compact form of a release with gzip. It is made when it is first asked for, once. */
  bytes(
    { id, dir }: Pick<ServedRelease, 'id' | 'dir'>,
    content: CompactJob['content'] = 'country',
  ): Promise<Uint8Array> {
    const made = this.#made.get(content);
    if (made?.id === id) return made.bytes;
    const bytes = this.#make({ dir, content });
    this.#made.set(content, { id, bytes });
    // The next request tries again.
    bytes.catch(() => {
      if (this.#made.get(content)?.bytes === bytes) this.#made.delete(content);
    });
    return bytes;
  }
}
