/** Reads one source for `explain`, in a thread of its own. */
import { parentPort, workerData } from 'node:worker_threads';
import { rowsOfSource, type SourceJob } from './covering-rows.js';

parentPort!.postMessage(await rowsOfSource(workerData as SourceJob));
