/** Workers and brokers in the test's own process, against a real server. */
import { jetstreamManager } from '@nats-io/jetstream';
import { openDatabase } from '../../src/database/database.js';
import { parseFields } from '../../src/enrich/options.js';
import type { ActiveRelease, WorkerEvents } from '../../src/stream/broker.js';
import type { Origin } from '../../src/stream/jetstream/chain.js';
import type { WorkerOptions } from '../../src/stream/jetstream/intake.js';
import { connectNats, NatsBroker } from '../../src/stream/jetstream/nats.js';
import { type SetupOptions, setUpStreams } from '../../src/stream/jetstream/setup.js';
import { Worker } from '../../src/stream/jetstream/worker.js';
import { messageEnricher } from '../../src/stream/message.js';
import { parseAdd } from '../support/add.js';

export const MEGABYTE = 1_048_576;

/** Returns lines of different addresses, and of nothing else. */
export const bareLines = (count: number, first = 0): string =>
  Array.from({ length: count }, (_, line) => `{"ip":"8.0.${(first + line) >> 8}.${(first + line) & 255}"}\n`).join('');

export const ORIGIN: Origin = { subject: 'in.a', headers: [], bytes: 4 };

/** Setup of streams whose names end in a suffix, so that tests can share a server. */
export function setupOptions(suffix: string, changes: Partial<SetupOptions> = {}): SetupOptions {
  return {
    names: { from: `IN${suffix}`, to: `OUT${suffix}`, rejects: `REJECTS${suffix}`, consumer: 'workers' },
    startAt: undefined,
    ordered: false,
    create: true,
    ackWaitMs: 30_000,
    maxBytes: 64 * MEGABYTE,
    maxAgeMs: 0,
    replicas: 1,
    ...changes,
  };
}

/** An object that does what another does, but for some members. */
export function altered<Target extends object>(target: Target, changes: Partial<Target>): Target {
  return new Proxy(target, {
    get(_, name) {
      if (Object.hasOwn(changes, name)) return changes[name as keyof Target];
      const member = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/**
 * Opens a broker, creating the streams.
 *
 * @param checksSequence false leaves out the headers by which the server refuses output that does not belong there
 */
export async function openBroker(url: string, options: SetupOptions, checksSequence = true): Promise<NatsBroker> {
  const real = await connectNats({ url });
  const connection = checksSequence
    ? real
    : altered(real, {
        publish: (subject, payload, publishOptions) => {
          publishOptions?.headers?.delete('Nats-Expected-Last-Subject-Sequence');
          publishOptions?.headers?.delete('Nats-Expected-Last-Sequence');
          real.publish(subject, payload, publishOptions);
        },
      });
  const manager = await jetstreamManager(real);
  return new NatsBroker(connection, manager, options.names, await setUpStreams(manager, options));
}

/** The current release of a data directory, as a worker uses it. */
export function releaseOf(dataDir: string, onInvalid: 'keep' | 'drop' | 'fail' = 'keep'): ActiveRelease {
  const database = openDatabase(dataDir);
  const release = {
    id: database.manifest.id,
    enrich: messageEnricher(database, { fields: parseFields([]), add: parseAdd(undefined), onInvalid }),
  };
  database.close();
  return release;
}

/** A release that records the memory of each output. */
export function recordedOutputs({ id, enrich }: ActiveRelease): {
  recorded: ActiveRelease;
  buffers: ArrayBufferLike[];
} {
  const buffers: ArrayBufferLike[] = [];
  return {
    buffers,
    recorded: {
      id,
      enrich: (bytes) => {
        const result = enrich(bytes);
        buffers.push(result.output.buffer);
        return result;
      },
    },
  };
}

/** Names of events in the order in which they came. */
export function recordedEvents(): WorkerEvents & { log: string[] } {
  const log: string[] = [];
  return {
    log,
    delivered: () => {},
    stored: () => log.push('stored'),
    done: () => log.push('done'),
    alreadyDone: () => log.push('alreadyDone'),
    lost: () => {},
    rejected: (_place, reason) => log.push(`rejected ${reason}`),
    retried: (problem, place) => log.push(place === undefined ? `stalled ${problem}` : 'retried'),
    idle: () => {},
    failed: () => log.push('failed'),
  };
}

/** A worker that ends when the source is done. */
export function worker(broker: NatsBroker, release: ActiveRelease, changes: Partial<WorkerOptions> = {}): Worker {
  return new Worker({ ...workerOptions(broker, release), ...changes });
}

export function workerOptions(broker: NatsBroker, release: ActiveRelease): WorkerOptions {
  return {
    broker,
    release: () => release,
    oversize: 'split',
    inFlight: { messages: 64, bytes: 8 * MEGABYTE },
    maxOutputBytes: 8 * MEGABYTE,
    once: true,
    signal: new AbortController().signal,
    events: recordedEvents(),
  };
}
