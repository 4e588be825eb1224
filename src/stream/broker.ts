/** What the command, the metrics and the log know of a worker. jetstream/ and kafka/ have one each. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { causedError, fileAdvice } from '../errors.js';
import { STREAM_RETRY_MAX_MS, STREAM_RETRY_MS } from '../limits.js';
import { waitAfter } from '../waits.js';
import type { EnrichMessage } from './message.js';

/** A failure that may pass: the broker is away, restarting, slow or full. The caller tries again. */
export class BrokerUnavailable extends Error {
  override readonly name: string = 'BrokerUnavailable';
}

/** Reasons for which input is refused, as they appear in headers and metrics. */
export type RejectReason =
  | 'invalid_line'
  | 'invalid_headers'
  | 'subject_too_long'
  | 'too_large'
  | 'sequence_reused'
  | 'subject_taken'
  | 'internal_error'
  | 'refused_by_broker';

/** A release in use. */
export interface ActiveRelease {
  id: string;
  enrich: EnrichMessage;
}

/** Where a message is in the source, for the log: its sequence, or its partition and offset. */
export type Place = Readonly<Record<string, number | bigint>>;

/** What a worker reports as it works. */
export interface WorkerEvents {
  /** @param count how often the message has been delivered, this delivery included */
  delivered(bytes: number, count: number): void;
  /** Output was stored: a number of output messages. */
  stored(parts: number, bytes: number): void;
  /**
   * Messages are done: their output is stored, and the broker has confirmed that they are not delivered again.
   *
   * @param oldest when the oldest of them arrived in the source, in milliseconds since 1970
   */
  done(messages: number, oldest: number): void;
  /** The message was in the output already. */
  alreadyDone(): void;
  rejected(place: Place, reason: RejectReason, detail: string): void;
  /** Messages were deleted from the source before any worker read them. */
  lost(place: Place, messages: bigint): void;
  /** A step failed and is tried again, or the message of `place` is left to be delivered again. */
  retried(problem: string, place?: Place): void;
  /** There is nothing to do now, and the broker says so. */
  idle(): void;
  /** A message could not be enriched because of a bug. */
  failed(place: Place, error: unknown): void;
}

/** What can be asked of a worker at any time. */
export interface StreamWorker {
  readonly isConnected: boolean;
  readonly inFlight: { messages: number; inputBytes: number; outputBytes: number };
  /** Whether another worker writes the output. JetStream with an ordered output only. */
  readonly isStandby?: boolean;
  /** Messages that were never delivered, and those that are delivered and not done. JetStream only. Throws BrokerUnavailable. */
  backlog?(): Promise<{ pending: number; unacknowledged: number }>;
  /** Records of each of this worker's partitions that were not read yet. Kafka only. */
  readonly lag?: ReadonlyMap<number, bigint>;
  /** Works until it is told to stop, or until the source is done. Throws AtlasError E_STREAM if it cannot go on. */
  run(): Promise<void>;
}

/** Reads a file that a flag names. Throws AtlasError E_USAGE. */
export function readFlagFile(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw causedError('E_USAGE', `--${flag} ${path} cannot be read`, error, fileAdvice(error));
  }
}

/** Waits, but not after the worker was told to stop. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {});
}

/** Waits after failures in a row, of which there is at least one, as {@link pause} does. */
export function pauseAfter(failures: number, signal: AbortSignal): Promise<void> {
  return pause(waitAfter(failures, STREAM_RETRY_MS, STREAM_RETRY_MAX_MS), signal);
}

/** Repeats a request until the broker answers; undefined when told to stop. */
export async function retried<Result>(
  { signal, events }: { signal: AbortSignal; events: Pick<WorkerEvents, 'retried'> },
  request: () => Promise<Result>,
): Promise<Result | undefined> {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof BrokerUnavailable)) throw error;
      events.retried(error.message);
      await pauseAfter(failures, signal);
    }
  }
  return undefined;
}
