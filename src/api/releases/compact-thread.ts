/** Entry point of the thread that writes a compact form of a release, for browsers. */
import { parentPort, workerData } from 'node:worker_threads';
import { compactPartition, compressCompact } from '../../database/compact.js';
import { manifestOfDatabase, openPartition } from '../../database/origin.js';
import { noPartition } from '../../database/release-files.js';
import type { Partition } from '../../rangefile/partitions.js';
import { type CompactJob, PUBLIC_PARTITIONS } from './public-database.js';

const { dir, content } = workerData as CompactJob;
const partition: Partition = PUBLIC_PARTITIONS[content];
const manifest = manifestOfDatabase(dir);
const file = openPartition(dir, manifest, partition);
if (file === undefined) throw noPartition(manifest, partition);
parentPort?.postMessage(compressCompact(compactPartition(manifest, partition, file), 'gzip'));
