/** The thread that verifies a release and ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { verifyRelease } from '../database/verify.js';
import { messageOf } from '../errors.js';
import type { VerifyAnswer } from './release-watch.js';

function verify(dir: string): VerifyAnswer {
  try {
    verifyRelease(dir);
    return { ok: true };
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
}

parentPort?.postMessage(verify(workerData as string));
