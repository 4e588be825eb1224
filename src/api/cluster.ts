/**
 * The processes that answer requests: this one, or several workers under a primary. Both are controlled alike.
 *
 * The primary opens no release and answers no request. It hands out connections, watches for releases, verifies each once
 * for all workers, and keeps the shared count of the rate limits.
 */
import cluster, { type Worker } from 'node:cluster';
import { randomBytes } from 'node:crypto';
import { AtlasError, type ErrorCode, endedEarly } from '../errors.js';
import {
  DRAIN_GRACE_MS,
  DRAIN_TIMEOUT_MS,
  PREDRAIN_MS,
  RATE_RESERVED_SHARE,
  RETRY_MAX_MS,
  WORKER_HEARTBEAT_MS,
  WORKER_METRICS_MS,
  WORKER_MISSED_HEARTBEATS,
  WORKER_RETRY_MS,
} from '../limits.js';
import { waitAfter } from '../waits.js';
import type { KeyOutcome, KeyRequest, KeyService } from './keys/sign-up.js';
import { errorFields, type Log } from './log.js';
import { metricsText, RequestMetrics, type WorkerMetrics } from './metrics.js';
import { SECRET_BYTES } from './page/page-keys.js';
import { RateLimiter } from './rates/rate-limit.js';
import { type RateStore, RateWindows, type Reservation } from './rates/rate-windows.js';
import { ApiServer, type ServeSettings } from './server.js';

export interface Cluster {
  /** Answers from the release in this directory from now on. Throws if it cannot be opened. */
  useRelease(dir: string): void;
  /** Begins to answer; resolves to the port. */
  listen(): Promise<number>;
  /** Returns the metrics of the requests as text: the sums over the processes that answer in time, and how many do not. */
  metrics(): Promise<string>;
  /** Stops without dropping a request; resolves to whether all requests were answered in time. */
  stop(): Promise<boolean>;
}

/**
 * Answers in this process.
 *
 * @param keyService makes and revokes keys
 * @param shared the count of several servers, if they share one
 */
export function singleProcess(
  settings: ServeSettings,
  log: Log,
  metrics: RequestMetrics | undefined,
  keyService: KeyService,
  shared?: RateStore,
): Cluster {
  const server = new ApiServer(settings, log, metrics);
  const limiter = new RateLimiter(shared, shared === undefined ? 0 : RATE_RESERVED_SHARE);
  return {
    useRelease: (dir) => server.useRelease(dir),
    listen: () => server.listen(limiter, randomBytes(SECRET_BYTES), keyService),
    metrics: async () => metricsText(metrics === undefined ? [] : [await metrics.values()]),
    stop: () => server.stop(),
  };
}

/** What the primary tells a worker. */
export type ToWorker =
  | { type: 'release'; dir: string }
  | {
      type: 'listen';
      /** Of the keys of the page, in base64. */
      secret: string;
    }
  | { type: 'answer'; request: number; answer: Answer }
  /** How many addresses of the window of a key are used or reserved now. */
  | { type: 'used'; keyId: string; used: number }
  /** Send your metrics. */
  | { type: 'collect' }
  | { type: 'stop' }
  /** No worker that is to stop listens any longer. */
  | { type: 'port_free' };

/** What a worker asks the primary: addresses of a key's window, or the making of a key. */
type Question = { do: 'reserve'; keyId: string; limit: number; needed: number; upTo: number } | KeyRequest;
type Answer = Reservation | KeyOutcome;

/** What a worker tells the primary. */
export type FromWorker =
  | { type: 'ready' }
  | { type: 'alive' }
  | { type: 'listening'; port: number }
  | { type: 'failed'; code: ErrorCode; message: string }
  | { type: 'release_failed'; dir: string; message: string }
  | { type: 'ask'; request: number; question: Question }
  | { type: 'metrics'; values: WorkerMetrics }
  | { type: 'stopped_listening' };

/** The part of a worker process that the primary uses. */
export type WorkerProcess = Pick<Worker, 'on' | 'once' | 'send' | 'isConnected'> & {
  process: { kill(signal: NodeJS.Signals): unknown };
};

/**
 * How long the primary waits for a worker that was told to stop before it ends it, in milliseconds. A worker waits for the
 * others to stop listening for a grace period, too.
 */
const STOP_TIMEOUT_MS = PREDRAIN_MS + 2 * DRAIN_GRACE_MS + DRAIN_TIMEOUT_MS + 2_000;

/** Returns the wait before the next try, in milliseconds. @param failures in a row, before the last one */
const backoff = (failures: number): number => waitAfter(failures + 1, WORKER_RETRY_MS, RETRY_MAX_MS);

/** Several workers, each a process that runs the same command line again. */
export class WorkerCluster implements Cluster {
  readonly #count: number;
  readonly #log: Log;
  readonly #fork: () => WorkerProcess;
  readonly #rates: RateStore;
  readonly #keyService: KeyService;
  readonly #secret = randomBytes(SECRET_BYTES).toString('base64');
  readonly #workers = new Set<WorkerProcess>();
  /** Workers that have received everything, with the number of heartbeats that they missed since their last message. */
  readonly #instructed = new Map<WorkerProcess, number>();
  /** Workers that no longer listen. */
  readonly #notListening = new Set<WorkerProcess>();
  /** Called with the metrics of a worker, or with nothing if it ended. */
  readonly #collecting = new Map<WorkerProcess, (values?: WorkerMetrics) => void>();
  #collection: Promise<string> | undefined;
  /** Replacements in a row that failed. */
  #failedReplacements = 0;
  #releaseDir: string | undefined;
  #stopping = false;
  #inTime = true;

  /**
   * @param fork starts a worker
   * @param rates the count that the workers share
   * @param keyService makes and revokes keys for all workers
   */
  constructor(
    count: number,
    log: Log,
    fork: () => WorkerProcess = () => cluster.fork(),
    rates: RateStore = new RateWindows(),
    keyService: KeyService = () => ({ refused: 'sign_up_closed' }),
  ) {
    this.#count = count;
    this.#log = log;
    this.#fork = fork;
    this.#rates = rates;
    this.#keyService = keyService;
  }

  useRelease(dir: string): void {
    this.#releaseDir = dir;
    for (const worker of this.#workers) this.#send(worker, { type: 'release', dir });
  }

  async listen(): Promise<number> {
    // Checks are counted, not the time: after the machine was suspended, no worker has missed more than one.
    setInterval(() => this.#checkHeartbeats(), WORKER_HEARTBEAT_MS).unref();
    const ports = await Promise.all(Array.from({ length: this.#count }, () => this.#start()));
    return ports[0]!;
  }

  metrics(): Promise<string> {
    // Two that ask at the same time get the same.
    this.#collection ??= this.#collect().finally(() => {
      this.#collection = undefined;
    });
    return this.#collection;
  }

  /** Asks the workers that can answer: one that starts would be waited for. */
  async #collect(): Promise<string> {
    let silent = 0;
    const all = await Promise.all(
      [...this.#instructed.keys()].map(async (worker) => {
        const told = new Promise<WorkerMetrics | undefined>((resolve) => this.#collecting.set(worker, resolve));
        const overdue = setTimeout(() => {
          silent++;
          this.#collecting.get(worker)?.();
        }, WORKER_METRICS_MS);
        this.#send(worker, { type: 'collect' });
        return told.finally(() => clearTimeout(overdue));
      }),
    );
    const values = all.filter((each) => each !== undefined);
    return metricsText(values, silent);
  }

  /** Ends workers that hang: a stopped process, or one whose event loop is blocked. They are replaced as any that ended. */
  #checkHeartbeats(): void {
    for (const [worker, missed] of this.#instructed) {
      this.#instructed.set(worker, missed + 1);
      if (missed < WORKER_MISSED_HEARTBEATS || this.#stopping) continue;
      this.#log.error({}, 'a worker does not answer; it is ended');
      worker.process.kill('SIGKILL');
    }
  }

  async stop(): Promise<boolean> {
    this.#stopping = true;
    await Promise.all(
      [...this.#workers].map(async (worker) => {
        const exited = new Promise((resolve) => worker.once('exit', resolve));
        const overdue = setTimeout(() => worker.process.kill('SIGKILL'), STOP_TIMEOUT_MS);
        this.#send(worker, { type: 'stop' });
        if ((await exited) !== 0) this.#inTime = false;
        clearTimeout(overdue);
      }),
    );
    return this.#inTime;
  }

  #send(worker: WorkerProcess, message: ToWorker): void {
    // A worker that just ended is replaced, and its successor receives everything.
    if (worker.isConnected()) worker.send(message, () => {});
  }

  /** Starts a worker; resolves to its port. Rejects if it cannot listen; the worker is ended then. */
  #start(): Promise<number> {
    const worker = this.#fork();
    this.#workers.add(worker);
    return new Promise((resolve, reject) => {
      let listening = false;
      let failedReleases = 0;
      worker.on('message', (message: FromWorker) => {
        if (this.#instructed.has(worker)) this.#instructed.set(worker, 0);
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
            worker.process.kill('SIGKILL');
            break;
          case 'release_failed':
            this.#log.error({ problem: message.message }, 'a worker could not open a release; it keeps the one before');
            this.#resend(worker, message.dir, failedReleases++);
            break;
          case 'ask':
            void this.#answer(worker, message.request, message.question);
            break;
          case 'metrics':
            this.#collecting.get(worker)?.(message.values);
            break;
          case 'stopped_listening':
            this.#notListening.add(worker);
            this.#tellPortFree();
            break;
        }
      });
      worker.once('exit', (code, signal) => {
        this.#workers.delete(worker);
        this.#instructed.delete(worker);
        this.#collecting.get(worker)?.();
        this.#collecting.delete(worker);
        this.#notListening.delete(worker);
        this.#tellPortFree();
        reject(endedEarly(`a worker ended before it listened (exit code ${code}, signal ${signal})`));
        if (!listening || this.#stopping) return;
        this.#log.error({ code, signal }, 'a worker ended; another one replaces it');
        this.#replace();
      });
    });
  }

  /**
   * Tells workers that stopped listening to close their connections. When all workers stop, none does so while another
   * one listens: its clients would connect again, and Node loses a connection that it hands to a worker as that worker
   * stops listening.
   */
  #tellPortFree(): void {
    if (this.#stopping && this.#notListening.size < this.#workers.size) return;
    for (const worker of this.#notListening) this.#send(worker, { type: 'port_free' });
  }

  async #answer(worker: WorkerProcess, request: number, question: Question): Promise<void> {
    if (question.do !== 'reserve') {
      this.#send(worker, { type: 'answer', request, answer: await this.#keyService(question) });
      return;
    }
    const { keyId, limit, needed, upTo } = question;
    const reserved = this.#rates.reserve(keyId, limit, needed, upTo);
    const answer = reserved instanceof Promise ? await reserved : reserved;
    this.#send(worker, { type: 'answer', request, answer });
    if (answer.reserved === 0) return;
    // So that what remains does not seem to grow if another worker answers the next request.
    for (const other of this.#instructed.keys()) {
      if (other !== worker) this.#send(other, { type: 'used', keyId, used: answer.used });
    }
  }

  /** Tells a worker everything that it must know; messages before it was ready are lost. */
  #instruct(worker: WorkerProcess): void {
    if (this.#stopping) {
      this.#send(worker, { type: 'stop' });
      return;
    }
    if (this.#releaseDir !== undefined) this.#send(worker, { type: 'release', dir: this.#releaseDir });
    this.#send(worker, { type: 'listen', secret: this.#secret });
    this.#instructed.set(worker, 0);
  }

  /** Asks a worker again to use a release that it could not open, unless another one is current by then. */
  #resend(worker: WorkerProcess, dir: string, failures: number): void {
    setTimeout(() => {
      if (!this.#stopping && this.#releaseDir === dir) this.#send(worker, { type: 'release', dir });
    }, backoff(failures)).unref();
  }

  #replace(): void {
    setTimeout(() => {
      if (this.#stopping) return;
      this.#start().then(
        () => {
          this.#failedReplacements = 0;
        },
        (error: unknown) => {
          if (this.#stopping) return;
          const problem = error instanceof AtlasError ? { problem: error.message } : errorFields(error);
          this.#log.error(problem, 'a worker could not be started; it is tried again');
          this.#failedReplacements++;
          this.#replace();
        },
      );
    }, backoff(this.#failedReplacements));
  }
}

/**
 * Runs a worker: does what the primary says until it is told to stop.
 *
 * @returns whether all requests were answered in time when it stopped
 */
export async function runWorker(settings: ServeSettings, log: Log): Promise<boolean> {
  const metrics = settings.metrics === undefined ? undefined : new RequestMetrics();
  const server = new ApiServer(settings, log, metrics);
  const tell = (message: FromWorker): void => {
    process.send?.(message);
  };
  const waiting = new Map<number, (answer: Answer) => void>();
  let asked = 0;
  /** Asks the primary; the answer is of the kind that belongs to the question. */
  const ask = <Kind extends Answer>(question: Question): Promise<Kind> =>
    new Promise((resolve) => {
      waiting.set(++asked, resolve as (answer: Answer) => void);
      tell({ type: 'ask', request: asked, question });
    });
  const rates: RateStore = {
    reserve: (keyId, limit, needed, upTo) => ask<Reservation>({ do: 'reserve', keyId, limit, needed, upTo }),
  };
  const limiter = new RateLimiter(rates, RATE_RESERVED_SHARE);

  async function listen(secret: string): Promise<void> {
    try {
      const port = await server.listen(limiter, Buffer.from(secret, 'base64'), ask<KeyOutcome>);
      tell({ type: 'listening', port });
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
      tell({ type: 'release_failed', dir, message: error.message });
    }
  }

  let listening = Promise.resolve();
  let onPortFree = (): void => {};
  const portFree = new Promise<void>((resolve) => {
    onPortFree = resolve;
  });
  await new Promise<void>((resolve) => {
    process.on('message', (message: ToWorker) => {
      switch (message.type) {
        case 'release':
          useRelease(message.dir);
          break;
        case 'listen':
          listening = listen(message.secret);
          break;
        case 'answer':
          waiting.get(message.request)?.(message.answer);
          waiting.delete(message.request);
          break;
        case 'used':
          limiter.note(message.keyId, message.used);
          break;
        case 'collect':
          void metrics?.values().then((values) => tell({ type: 'metrics', values }));
          break;
        case 'stop':
          resolve();
          break;
        case 'port_free':
          onPortFree();
          break;
      }
    });
    // Ctrl-C, and the end of the terminal, reach every process of it, but the primary says when to stop. SIGTERM to this
    // process counts.
    for (const signal of ['SIGINT', 'SIGHUP', 'SIGBREAK']) process.on(signal, () => {});
    process.once('SIGTERM', resolve);
    tell({ type: 'ready' });
    setInterval(() => tell({ type: 'alive' }), WORKER_HEARTBEAT_MS).unref();
  });
  // A worker may be told to stop while it starts; a server that does not listen yet cannot be stopped.
  await listening;
  const inTime = await server.stop(() => {
    tell({ type: 'stopped_listening' });
    return portFree;
  });
  process.disconnect?.();
  return inTime;
}
