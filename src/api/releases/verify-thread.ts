/** Entry point of the thread that verifies one release. What it throws is thrown to the caller. */
import { parentPort, workerData } from 'node:worker_threads';
import { verifyRelease } from '../../database/verify.js';

verifyRelease(workerData as string);
parentPort?.postMessage(undefined);
