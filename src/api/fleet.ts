/**
 * What serves: one process, or several workers under a primary. Both are told the release and asked to stop alike.
 *
 * The primary opens no release and answers no request. It hands out connections, looks for releases, verifies each once
 * for all, and keeps the count of the rate limits.
 */
import cluster, { type Worker } from 'node:cluster';
import { AtlasError, type ErrorCode } from '../errors.js';
import { DRAIN_GRACE_MS, DRAIN_TIMEOUT_MS, PREDRAIN_MS, RATE_LEASE_SHARE } from '../limits.js';
import { ApiServer } from './api-server.js';
import { errorFields, type Log } from './log.js';
import { exposeToPrimary, RequestMetrics } from './metrics.js';
import { type Grant, MemoryRateStore, RateLimiter, type RateStore } from './rate-limit.js';
import type { ServeSettings } from './settings.js';

export interface Fleet {
  /** Answers from the release in this directory from now on. Throws where it cannot be opened. */
  useRelease(dir: string): void;
  /** Begins to answer; resolves to the port. */
  listen(): Promise<number>;
  /** Stops without dropping a request; resolves to whether all were answered in time. */
  stop(): Promise<boolean>;
}

/** One process, this one. */
export function singleProcess(settings: ServeSettings, log: Log, metrics: RequestMetrics | undefined): Fleet {
  const server = new ApiServer(settings, log, metrics);
  return {
    useRelease: (dir) => server.useRelease(dir),
    listen: () => server.listen(new RateLimiter(new MemoryRateStore(), RATE_LEASE_SHARE)),
    stop: () => server.stop(),
  };
}

type ToWorker =
  | { type: 'release'; dir: string }
  | { type: 'listen' }
  | { type: 'grant'; request: number; grant: Grant }
  | { type: 'stop' };

type FromWorker =
  | { type: 'ready' }
  | { type: 'listening'; port: number }
  | { type: 'failed'; code: ErrorCode; message: string }
  | { type: 'release_failed'; message: string }
  | { type: 'lease'; request: number; keyId: string; limit: number; least: number; most: number };

/** How long a worker that ended is not replaced, in milliseconds: one that ends at once must not fork without end. */
const RESPAWN_DELAY_MS = 500;

/** How long the primary waits for a worker that was asked to stop before it ends it, in milliseconds. */
const STOP_TIMEOUT_MS = PREDRAIN_MS + DRAIN_GRACE_MS + DRAIN_TIMEOUT_MS + 2_000;

/** Several workers, each a process that runs the same command line again. */
export class WorkerFleet implements Fleet {
  readonly #count: number;
  readonly #log: Log;
  readonly #rates = new MemoryRateStore();
  #releaseDir: string | undefined;
  #stopping = false;
  #inTime = true;

  constructor(count: number, log: Log) {
    this.#count = count;
    this.#log = log;
  }

  useRelease(dir: string): void {
    this.#releaseDir = dir;
    for (const worker of this.#workers()) this.#send(worker, { type: 'release', dir });
  }

  async listen(): Promise<number> {
    const ports = await Promise.all(Array.from({ length: this.#count }, () => this.#start()));
    return ports[0]!;
  }

  async stop(): Promise<boolean> {
    this.#stopping = true;
    const workers = this.#workers();
    await Promise.all(
      workers.map(
        (worker) =>
          new Promise<void>((resolve) => {
            const overdue = setTimeout(() => worker.process.kill('SIGKILL'), STOP_TIMEOUT_MS);
            worker.once('exit', (code) => {
              if (code !== 0) this.#inTime = false;
              clearTimeout(overdue);
              resolve();
            });
            this.#send(worker, { type: 'stop' });
          }),
      ),
    );
    return this.#inTime;
  }

  #workers(): Worker[] {
    return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  }

  #send(worker: Worker, message: ToWorker): void {
    // One that just ended is replaced; its successor is told everything.
    if (worker.isConnected()) worker.send(message, () => {});
  }

  /** Starts a worker; resolves to its port, rejects with what it could not do. */
  #start(): Promise<number> {
    const worker = cluster.fork();
    return new Promise((resolve, reject) => {
      let listening = false;
      worker.on('message', (message: FromWorker) => {
        switch (message.type) {
          case 'ready':
            this.#instruct(worker);
            break;
          case 'listening':
            listening = true;
            resolve(message.port);
            break;
          case 'failed':
            reject(new AtlasError(message.code, message.message));
            break;
          case 'release_failed':
            this.#log.error({ problem: message.message }, 'a worker could not open a release; it keeps its old one');
            break;
          case 'lease':
            this.#rates.lease(message.keyId, message.limit, message.least, message.most, (grant) =>
              this.#send(worker, { type: 'grant', request: message.request, grant }),
            );
            break;
        }
      });
      worker.once('exit', (code, signal) => {
        reject(new AtlasError('E_FAULT', `a worker ended before it listened (exit code ${code}, signal ${signal})`));
        if (listening && !this.#stopping) this.#replace(code, signal);
      });
    });
  }

  /** What a worker is told when it can be told something: whatever was sent before is lost. */
  #instruct(worker: Worker): void {
    if (this.#stopping) {
      this.#send(worker, { type: 'stop' });
      return;
    }
    if (this.#releaseDir !== undefined) this.#send(worker, { type: 'release', dir: this.#releaseDir });
    this.#send(worker, { type: 'listen' });
  }

  #replace(code: number | null, signal: string | null): void {
    this.#log.error({ code, signal }, 'a worker ended; another takes its place');
    setTimeout(() => {
      if (this.#stopping) return;
      this.#start().catch((error: unknown) => {
        if (this.#stopping) return;
        this.#log.error(errorFields(error), 'a worker could not be started');
        this.#replace(null, null);
      });
    }, RESPAWN_DELAY_MS);
  }
}

/** The common count, as a worker sees it: a message to the primary and one back. */
class PrimaryRateStore implements RateStore {
  readonly #send: (message: FromWorker) => void;
  readonly #waiting = new Map<number, (grant: Grant) => void>();
  #last = 0;

  constructor(send: (message: FromWorker) => void) {
    this.#send = send;
  }

  lease(keyId: string, limit: number, least: number, most: number, callback: (grant: Grant) => void): void {
    const request = ++this.#last;
    this.#waiting.set(request, callback);
    this.#send({ type: 'lease', request, keyId, limit, least, most });
  }

  grant(request: number, grant: Grant): void {
    const callback = this.#waiting.get(request);
    this.#waiting.delete(request);
    callback?.(grant);
  }
}

/**
 * A worker's life: does what the primary says until it is told to stop.
 *
 * @returns whether all requests were answered in time when it stopped
 */
export async function runWorker(settings: ServeSettings, log: Log): Promise<boolean> {
  const metrics = settings.metricsPort === undefined ? undefined : new RequestMetrics();
  if (metrics !== undefined) exposeToPrimary(metrics);
  const server = new ApiServer(settings, log, metrics);
  const tell = (message: FromWorker): void => {
    process.send?.(message);
  };
  const rates = new PrimaryRateStore(tell);

  async function listen(): Promise<void> {
    try {
      tell({ type: 'listening', port: await server.listen(new RateLimiter(rates, RATE_LEASE_SHARE)) });
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error;
      tell({ type: 'failed', code: error.code, message: error.message });
    }
  }

  function useRelease(dir: string): void {
    try {
      server.useRelease(dir);
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error;
      tell({ type: 'release_failed', message: error.message });
    }
  }

  let listening = Promise.resolve();
  await new Promise<void>((resolve) => {
    process.on('message', (message: ToWorker) => {
      switch (message.type) {
        case 'release':
          useRelease(message.dir);
          break;
        case 'listen':
          listening = listen();
          break;
        case 'grant':
          rates.grant(message.request, message.grant);
          break;
        case 'stop':
          resolve();
          break;
      }
    });
    // Ctrl-C reaches every process of the terminal: the primary says when to stop. A signal for this one alone counts.
    process.on('SIGINT', () => {});
    process.once('SIGTERM', resolve);
    tell({ type: 'ready' });
  });
  // Told to stop while it starts: what does not listen yet could not be stopped.
  await listening;
  const inTime = await server.stop();
  process.disconnect?.();
  return inTime;
}
