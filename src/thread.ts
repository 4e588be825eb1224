/** Threads for what takes long. */
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { AtlasError } from './errors.js';
import { packageFile } from './package-root.js';

/**
 * Runs a thread; resolves to its message.
 *
 * @param name of its file, from the root of the package, without `.js`. It is the compiled one: Node 20 cannot start a thread from
 *   TypeScript
 * @param job its `workerData`
 * @param resourceLimits of its memory
 * @throws what it throws; AtlasError E_FAULT if it ends without a message
 */
export function runThread<Result>(name: string, job: unknown, resourceLimits?: ResourceLimits): Promise<Result> {
  const thread = new Worker(packageFile(`dist/${name}.js`), {
    workerData: job,
    ...(resourceLimits && { resourceLimits }),
  });
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new AtlasError('E_FAULT', `the thread ${name} ended too early`)));
  });
}
