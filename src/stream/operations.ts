/** A worker in operation: the release that it uses, what it counts and logs, and its metrics and health over HTTP. */
import type { Server } from 'node:http';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { errorFields, type Log, type LogFields } from '../api/log.js';
import { addProcessMetrics, addPullMetrics, ReleaseMetrics, servedMetrics, serveTexts } from '../api/metrics.js';
import { ReleaseWatcher } from '../api/releases/release-watcher.js';
import { openDatabase } from '../database/database.js';
import type { EnrichOptions } from '../enrich/options.js';
import { RELEASE_POLL_MS } from '../limits.js';
import type { ActiveRelease, Place, StreamWorker, WorkerEvents } from './broker.js';
import { messageEnricher } from './message.js';

/** Upper bounds in seconds of the time from a message's arrival in the source to its output. */
const AGE_BUCKETS = [0.005, 0.01, 0.025, 0.1, 0.25, 1, 5, 30, 300, 3600];

/** Problems of the same kind are logged once in this time, in milliseconds: an outage concerns every message in flight. */
const LOG_INTERVAL_MS = 5_000;

/** How long a problem may last before the worker is not ready, in milliseconds: restarts of a server are shorter. */
const STALL_MS = 10_000;

/** Time between two lines of progress in the log, in milliseconds. */
const PROGRESS_MS = 60_000;

/** Where a message is, as the log has it. */
const fieldsOf = (place: Place = {}): LogFields =>
  Object.fromEntries(Object.entries(place).map(([name, value]) => [name, Number(value)]));

/** What a worker counts and logs, and whether it gets on. No content of a message is logged: places, reasons and errors only. */
export class Operations {
  readonly log: Log;
  readonly releases = new ReleaseMetrics();
  readonly #now: () => number;
  #problem: { text: string; since: number } | undefined;
  #lastRetry = Number.NEGATIVE_INFINITY;
  readonly #registry = new Registry();
  readonly #messages = this.#counter('messages_total', 'Messages done: output stored and acknowledgment confirmed.');
  readonly #inputBytes = this.#counter('input_bytes_total', 'Bytes of the messages that were delivered.');
  readonly #outputBytes = this.#counter('output_bytes_total', 'Bytes of the output that was stored.');
  readonly #parts = this.#counter('parts_total', 'Output messages that were stored.');
  readonly #redeliveries = this.#counter('redeliveries_total', 'Deliveries of messages that were delivered before.');
  readonly #alreadyDone = this.#counter('already_done_total', 'Deliveries of messages whose output was there already.');
  readonly #retries = this.#counter('retries_total', 'Steps that failed and were tried again.');
  readonly #rejects = new Counter({
    name: 'ipatlas_stream_rejects_total',
    help: 'Messages and lines that were refused, by reason.',
    labelNames: ['reason'],
    registers: [this.#registry],
  });
  readonly #age = new Histogram({
    name: 'ipatlas_stream_message_age_seconds',
    help: 'Time from the arrival of a message in the source stream until it was done.',
    buckets: AGE_BUCKETS,
    registers: [this.#registry],
  });

  /**
   * @param dataDir data directory, for the state of pulls from a signed repository
   * @param now a clock in milliseconds
   */
  constructor(dataDir: string, log: Log, now: () => number = () => performance.now()) {
    this.log = log;
    this.#now = now;
    addPullMetrics(dataDir, this.releases.registry);
    addProcessMetrics(this.#registry);
  }

  #counter(name: string, help: string): Counter {
    return new Counter({ name: `ipatlas_stream_${name}`, help, registers: [this.#registry] });
  }

  /** Adds what can be asked for at any time: the connection, what is in flight, what is left. */
  observe(worker: StreamWorker): void {
    const registers = [this.#registry];
    const gauge = (name: string, help: string, value: () => number | Promise<number | undefined>): void => {
      new Gauge({
        name: `ipatlas_stream_${name}`,
        help,
        registers,
        async collect() {
          const now = await value();
          if (now === undefined) this.remove();
          else this.set(now);
        },
      });
    };
    gauge('connected', 'Whether there is a connection to the broker.', () => Number(worker.isConnected));
    gauge('in_flight_messages', 'Messages that this worker holds.', () => worker.inFlight.messages);
    gauge('in_flight_input_bytes', 'Bytes of input that this worker holds.', () => worker.inFlight.inputBytes);
    gauge('in_flight_output_bytes', 'Bytes of output that this worker holds.', () => worker.inFlight.outputBytes);
    if (worker.isStandby !== undefined) {
      gauge('standby', 'Whether another worker writes the ordered output: 1 or 0.', () => Number(worker.isStandby));
    }
    if (worker.backlog !== undefined) {
      // Left out while the broker does not answer.
      const left = async (name: 'pending' | 'unacknowledged') =>
        (await worker.backlog?.().catch(() => undefined))?.[name];
      gauge('lag_messages', 'Messages of the source that were never delivered, to any worker.', () => left('pending'));
      gauge('unacknowledged_messages', 'Messages that are delivered to any worker and not done.', () =>
        left('unacknowledged'),
      );
    }
    if (worker.lag === undefined) return;
    new Gauge({
      name: 'ipatlas_stream_lag_records',
      help: "Records of this worker's partitions that were not read yet.",
      labelNames: ['partition'],
      registers,
      collect() {
        this.reset();
        for (const [partition, records] of worker.lag ?? []) this.set({ partition }, Number(records));
      },
    });
  }

  readonly events: WorkerEvents = {
    delivered: (bytes, count) => {
      this.#inputBytes.inc(bytes);
      if (count > 1) this.#redeliveries.inc();
    },
    stored: (parts, bytes) => {
      this.#problem = undefined;
      this.#parts.inc(parts);
      this.#outputBytes.inc(bytes);
    },
    done: (messages, oldest) => {
      this.#problem = undefined;
      this.#messages.inc(messages);
      this.#age.observe(Math.max(0, Date.now() - oldest) / 1000);
    },
    alreadyDone: () => this.#alreadyDone.inc(),
    idle: () => {
      this.#problem = undefined;
    },
    rejected: (place, reason, detail) => {
      this.#rejects.inc({ reason });
      this.log.warn({ ...fieldsOf(place), reason, detail }, 'input refused');
    },
    retried: (problem, place) => {
      const now = this.#now();
      this.#retries.inc();
      this.#problem = { text: problem, since: this.#problem?.since ?? now };
      if (now - this.#lastRetry < LOG_INTERVAL_MS) return;
      this.#lastRetry = now;
      this.log.warn({ ...fieldsOf(place), problem }, 'a step failed and is tried again');
    },
    lost: (place, records) =>
      this.log.error(
        { ...fieldsOf(place), records: Number(records) },
        'records were deleted before they were processed',
      ),
    failed: (place, error) =>
      this.log.error({ ...fieldsOf(place), ...errorFields(error) }, 'a bug: this message could not be enriched'),
  };

  /** The problem, if it has lasted long; undefined otherwise. */
  get lastingProblem(): string | undefined {
    const { text, since } = this.#problem ?? { since: Number.POSITIVE_INFINITY };
    return this.#now() - since >= STALL_MS ? text : undefined;
  }

  /** Writes a line of progress each minute. Returns a function that ends it. */
  logProgress(): () => void {
    const counters = {
      messages: this.#messages,
      input_bytes: this.#inputBytes,
      output_bytes: this.#outputBytes,
      redeliveries: this.#redeliveries,
      rejects: this.#rejects,
      retries: this.#retries,
    };
    const write = async (): Promise<void> => {
      const fields: LogFields = {};
      for (const [name, counter] of Object.entries(counters)) {
        fields[name] = (await counter.get()).values.reduce((sum, one) => sum + one.value, 0);
      }
      this.log.info(fields, 'progress');
    };
    const timer = setInterval(() => void write(), PROGRESS_MS);
    return () => clearInterval(timer);
  }

  /**
   * Serves `/metrics`, `/healthz` and `/readyz`. Throws as {@link serveTexts} does.
   *
   * @param isConnected whether there is a connection to the broker
   */
  serve(address: { host: string; port: number }, isConnected: () => boolean): Promise<Server> {
    return serveTexts(address, {
      '/healthz': () => ({ text: 'ok\n' }),
      '/readyz': () => {
        const problem = isConnected() ? this.lastingProblem : 'not connected to the broker';
        return { status: problem === undefined ? 200 : 503, text: `${problem ?? 'ready'}\n` };
      },
      '/metrics': async () =>
        servedMetrics((await this.#registry.metrics()) + (await this.releases.registry.metrics())),
    });
  }
}

/** The current release, replaced when another one is published. */
export interface FollowedRelease {
  current: () => ActiveRelease;
  stop: () => void;
}

/**
 * Opens the current release and follows it: a new one is checked, as every command checks what it reads, and used for the next
 * message.
 *
 * @throws AtlasError E_NO_DATABASE or E_DAMAGED if there is no release to begin with
 */
export async function followRelease(
  dataDir: string,
  options: EnrichOptions,
  { releases, log }: Operations,
): Promise<FollowedRelease> {
  function open(dir: string): ActiveRelease {
    const database = openDatabase(dir);
    const { manifest } = database;
    const { id, as_of } = manifest;
    const release = { id, enrich: messageEnricher(database, options) };
    database.close();
    releases.release(manifest);
    log.info({ release: id, as_of }, 'answering from this release');
    return release;
  }
  let current = open(dataDir);
  const watch = new ReleaseWatcher({
    dataDir,
    interval: RELEASE_POLL_MS,
    // Opening a release checks the file that a worker reads. The others, which take longer and more memory, are for servers.
    verify: () => Promise.resolve(),
    onRelease(dir) {
      if (!dir.endsWith(current.id)) current = open(dir);
    },
    onFailure(problem) {
      releases.failedReload();
      log.error({ problem }, 'the new release is not used; the one in use stays');
    },
  });
  await watch.start();
  return { current: () => current, stop: () => watch.stop() };
}
