/** Entry point of the thread that writes a compact form of a release, for browsers. */
import { parentPort, workerData } from 'node:worker_threads';
import { writeContainer } from '../../compact/container.js';
import { rangeFileSections } from '../../compact/range-file.js';
import { aboutRelease, compactPartition, compressCompact } from '../../database/compact.js';
import { openPartition, openRanges } from '../../database/origin.js';
import { noPartition } from '../../database/release-files.js';
import { COUNTRIES, NETWORKS } from '../../rangefile/partitions.js';
import type { CompactJob } from './public-database.js';

function compactForm({ dir, content }: CompactJob): Uint8Array {
  const { manifest, file } = openRanges(dir);
  if (content === 'country') return writeContainer(rangeFileSections(aboutRelease(manifest, [COUNTRIES]), file, false));
  const networks = openPartition(dir, manifest, NETWORKS);
  if (networks === undefined) throw noPartition(manifest, NETWORKS);
  return compactPartition(manifest, NETWORKS, networks);
}

parentPort?.postMessage(compressCompact(compactForm(workerData as CompactJob), 'gzip'));
