/** The compact forms of the release that answers, which anyone may load: the countries of all addresses, their networks, and their kinds. */

import { COUNTRIES, KINDS, NETWORKS, type Partition } from '../../rangefile/partitions.js';
import { runThread } from '../../thread.js';

/** The partitions that have a file, by its name. */
export const PUBLIC_PARTITIONS = { country: COUNTRIES, networks: NETWORKS, kinds: KINDS } as const satisfies Record<
  string,
  Partition
>;

/** What a compact form is made of. */
export interface CompactJob {
  /** The directory of the release, or the path of the seed. */
  dir: string;
  content: keyof typeof PUBLIC_PARTITIONS;
}

/** Returns a release in the compact form with gzip; rejects with AtlasError if it is damaged. */
export type MakeCompact = (job: CompactJob) => Promise<Uint8Array>;

/** Writes a compact form in a thread: it takes about a second. */
export const compactInThread: MakeCompact = (job) => runThread('src/api/releases/compact-thread', job);

export class PublicDatabase {
  readonly #make: MakeCompact;
  readonly #made = new Map<CompactJob['content'], { id: string; bytes: Promise<Uint8Array> }>();

  constructor(make: MakeCompact = compactInThread) {
    this.#make = make;
  }

  /** Returns the compact form of a release with gzip. It is made when it is first asked for, once. */
  bytes({ id, dir }: { id: string; dir: string }, content: CompactJob['content'] = 'country'): Promise<Uint8Array> {
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
