/** Entry point of the thread that verifies one release. */
import { parentPort, workerData } from 'node:worker_threads';
import { verifyRelease } from '../../database/verify.js';
import { messageOf } from '../../errors.js';
import type { VerifyAnswer } from './release-watcher.js';

function verify(dir: string): VerifyAnswer {
  try {
    verifyRelease(dir);
    return { ok: true };
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
}

parentPort?.postMessage(verify(workerData as string));
