/** Entry point of the thread that writes the compact form of a release, for browsers. */
import { parentPort, workerData } from 'node:worker_threads';
import { writeContainer } from '../../compact/container.js';
import { rangeFileSections } from '../../compact/range-file.js';
import { aboutRelease, compressCompact } from '../../database/compact.js';
import { openRanges } from '../../database/origin.js';

const { manifest, file } = openRanges(workerData as string);
const compact = writeContainer(rangeFileSections(aboutRelease(manifest), file, false));
parentPort?.postMessage(compressCompact(compact, 'gzip'));
