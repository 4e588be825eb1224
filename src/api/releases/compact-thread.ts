/** Entry point of the thread that writes a compact form of a release, for browsers. */
import { parentPort, workerData } from 'node:worker_threads';
import { writeContainer } from '../../compact/container.js';
import { rangeFileSections } from '../../compact/range-file.js';
import { aboutRelease, compactNetworks, compressCompact } from '../../database/compact.js';
import { openNetworks, openRanges } from '../../database/origin.js';
import { noNetworks } from '../../database/release-files.js';
import type { CompactJob } from './public-database.js';

function compactForm({ dir, content }: CompactJob): Uint8Array {
  const { manifest, file } = openRanges(dir);
  if (content === 'country') {
    const about = aboutRelease(manifest, { countries: true, networks: false });
    return writeContainer(rangeFileSections(about, file, false));
  }
  const networks = openNetworks(dir, manifest);
  if (networks === undefined) throw noNetworks(manifest);
  return compactNetworks(manifest, networks);
}

parentPort?.postMessage(compressCompact(compactForm(workerData as CompactJob), 'gzip'));
