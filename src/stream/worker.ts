/**
 * The worker: takes messages from the source stream, enriches each and appends the result to the output stream.
 *
 * Each message is in the output exactly once because the order of the steps is fixed: append, under the broker's check that
 * the chain of this message ends where the worker thinks it does; then acknowledge. A worker that dies in between leaves a
 * message that is delivered again. The next worker meets a conflict, sees that the output is complete, and acknowledges.
 * Workers keep no state of their own, so they can be started and killed at any time.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import {
  STREAM_ONCE_PULL_MS,
  STREAM_PULL_MS,
  STREAM_RETRY_MAX_MS,
  STREAM_RETRY_MS,
  STREAM_TURN_BYTES,
} from '../limits.js';
import { type Broker, BrokerUnavailable, type Delivery, type FlowLimit, type OutputPart } from './broker.js';
import { FlowWindow } from './flow.js';
import { type Enriched, type EnrichMessage, nextPart } from './message.js';

/** What happens to a message whose output is larger than the broker takes. */
export const OVERSIZE_POLICIES = ['split', 'reject'] as const;
export type OversizePolicy = (typeof OVERSIZE_POLICIES)[number];

/** Reasons for which input is refused, as they appear in headers and metrics. */
export type RejectReason = 'invalid_line' | 'too_large' | 'sequence_reused' | 'internal_error';

/** A release in use. */
export interface ActiveRelease {
  id: string;
  enrich: EnrichMessage;
}

/** What the worker reports as it works. */
export interface WorkerEvents {
  delivered(delivery: Delivery): void;
  /** A part was stored. */
  appended(part: OutputPart): void;
  /** A message is done and its acknowledgment is confirmed. */
  done(delivery: Delivery): void;
  /** The message was in the output already. */
  alreadyDone(delivery: Delivery): void;
  rejected(delivery: Delivery, reason: RejectReason, detail: string): void;
  /** A step failed and is tried again, or the message is left to be delivered again. */
  retried(delivery: Delivery, problem: string): void;
  /** A message could not be enriched because of a bug. */
  failed(delivery: Delivery, error: unknown): void;
}

export interface WorkerOptions {
  broker: Broker;
  /** The release that answers now; asked for each message. */
  release: () => ActiveRelease;
  oversize: OversizePolicy;
  /** Most input in flight. */
  inFlight: FlowLimit;
  /** Most output bytes that wait to be stored; the output of one message may go beyond it. */
  maxOutputBytes: number;
  /** Ends when all messages that the source held at the start are done. */
  once: boolean;
  /** Aborting ends the worker after the messages in flight. */
  signal: AbortSignal;
  events: WorkerEvents;
}

/** A message on its way through the worker. */
interface Job {
  delivery: Delivery;
  release: ActiveRelease;
  /** The whole message, enriched; undefined if that failed because of a bug. */
  enriched: Enriched | undefined;
}

type PartContent = Pick<OutputPart, 'bytes' | 'inputEnd' | 'release' | 'rejected'>;

const EMPTY = new Uint8Array(0);

export class Worker {
  readonly #options: WorkerOptions;
  readonly #input: FlowWindow;
  readonly #output: FlowWindow;
  readonly #queue: Delivery[] = [];
  #isEnriching = false;
  #failure: { error: unknown } | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#input = new FlowWindow(options.inFlight);
    this.#output = new FlowWindow({ messages: options.inFlight.messages, bytes: options.maxOutputBytes });
  }

  /** What is in flight now. */
  get inFlight(): { messages: number; inputBytes: number; outputBytes: number } {
    return { messages: this.#input.messages, inputBytes: this.#input.bytes, outputBytes: this.#output.bytes };
  }

  /**
   * Works until aborted or, with `once`, until the source is done. Messages in flight are finished first.
   *
   * @throws AtlasError E_STREAM if the stream or consumer is gone
   */
  async run(): Promise<void> {
    const { broker, once, signal } = this.#options;
    const last = once ? (await this.#persistently(() => broker.sourceRange())).last : Number.POSITIVE_INFINITY;
    const waitMs = once ? STREAM_ONCE_PULL_MS : STREAM_PULL_MS;
    while (!signal.aborted && this.#failure === undefined) {
      let delivered = 0;
      await broker.pull({ ...this.#input.room, waitMs }, (delivery) => {
        delivered++;
        this.#accept(delivery);
      });
      if (once && delivered === 0 && this.#input.isEmpty && (await this.#isDone(last))) break;
      await this.#input.halfFree();
    }
    await this.#input.empty();
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Repeats a request until the broker answers. */
  async #persistently<Result>(request: () => Promise<Result>): Promise<Result> {
    for (let wait = STREAM_RETRY_MS; ; wait = Math.min(2 * wait, STREAM_RETRY_MAX_MS)) {
      try {
        return await request();
      } catch (error) {
        if (!(error instanceof BrokerUnavailable) || this.#options.signal.aborted) throw error;
        await this.#pause(wait);
      }
    }
  }

  /** Waits, but not after the worker was told to stop. */
  async #pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.#options.signal }).catch(() => {});
  }

  /** Whether no message up to `last` is left, for this worker or for any other. */
  async #isDone(last: number): Promise<boolean> {
    try {
      const { pending, unacknowledged, acknowledgedUpTo } = await this.#options.broker.backlog();
      return acknowledgedUpTo >= last || (pending === 0 && unacknowledged === 0);
    } catch (error) {
      if (error instanceof BrokerUnavailable) return false;
      throw error;
    }
  }

  #accept(delivery: Delivery): void {
    this.#input.enter(delivery.bytes.length);
    this.#options.events.delivered(delivery);
    this.#queue.push(delivery);
    if (!this.#isEnriching) void this.#enrichQueued();
  }

  /** Enriches the queued messages in order, each when there is room for its output, and lets the rest of its steps run. */
  async #enrichQueued(): Promise<void> {
    this.#isEnriching = true;
    let turnBytes = 0;
    while (this.#queue.length > 0) {
      await this.#output.hasRoom();
      const delivery = this.#queue.shift()!;
      turnBytes += delivery.bytes.length;
      const release = this.#options.release();
      const enriched = await this.#enrich(release, delivery);
      const outputBytes = enriched?.output.length ?? 0;
      this.#output.enter(outputBytes);
      void this.#finish({ delivery, release, enriched }).finally(() => {
        this.#output.leave(outputBytes);
        this.#input.leave(delivery.bytes.length);
      });
      // Sockets are served between two turns of the event loop only, so the server would be idle during a long turn.
      if (turnBytes >= STREAM_TURN_BYTES) {
        await nextTurn();
        turnBytes = 0;
      }
    }
    this.#isEnriching = false;
  }

  /** Enriches a message; undefined if that fails because of a bug, which must not stop the other messages. */
  async #enrich({ enrich }: ActiveRelease, delivery: Delivery): Promise<Enriched | undefined> {
    try {
      return await enrich(delivery.bytes);
    } catch (error) {
      this.#options.events.failed(delivery, error);
      return undefined;
    }
  }

  /** Repeats the steps of one message until they are done, or until the broker delivers it again anyway. Never rejects. */
  async #finish(job: Job): Promise<void> {
    const { delivery } = job;
    const { events, broker, signal } = this.#options;
    const begun = performance.now();
    for (let wait = STREAM_RETRY_MS; ; wait = Math.min(2 * wait, STREAM_RETRY_MAX_MS)) {
      try {
        await this.#store(job);
        await delivery.acknowledge();
        events.done(delivery);
        return;
      } catch (error) {
        if (!(error instanceof BrokerUnavailable)) {
          this.#failure ??= { error };
          return;
        }
        events.retried(delivery, error.message);
        if (signal.aborted || performance.now() - begun > broker.redeliverAfterMs) return;
        await this.#pause(wait);
      }
    }
  }

  /** Appends the message's output to the output stream, unless it is there. */
  async #store(job: Job): Promise<void> {
    const { source, bytes } = job.delivery;
    const { broker, events } = this.#options;
    let previous = 0;
    let number = 1;
    let from = 0;
    for (;;) {
      const content = from === 0 ? await this.#firstPart(job) : await this.#furtherPart(job, from);
      const part = { ...content, source, number, isLast: content.inputEnd === bytes.length };
      const position = await broker.append(part, previous);
      if (position !== undefined) {
        events.appended(part);
        if (part.isLast) return;
        previous = position;
        number++;
        from = part.inputEnd;
        continue;
      }
      // Another delivery of this message got here first.
      const last = await broker.lastPart(source.sequence);
      if (last === undefined) throw new BrokerUnavailable('the output refuses a part and does not show another');
      if (last.source.storedAt !== source.storedAt) {
        await this.#reject(job.delivery, 'sequence_reused', `sequence ${source.sequence} was used twice`, bytes);
        return;
      }
      if (last.isLast) {
        events.alreadyDone(job.delivery);
        return;
      }
      previous = last.position;
      number = last.number + 1;
      from = last.inputEnd;
    }
  }

  /** The first part of a message: all of it, if its output fits. Refused input goes to the rejects first. */
  async #firstPart({ delivery, release, enriched }: Job): Promise<PartContent> {
    const { bytes } = delivery;
    const { maxPartBytes } = this.#options.broker;
    const refuse = async (rejected: RejectReason, detail: string): Promise<PartContent> => {
      await this.#reject(delivery, rejected, detail, bytes);
      return { bytes: EMPTY, inputEnd: bytes.length, release: release.id, rejected };
    };
    if (enriched === undefined) return refuse('internal_error', 'a bug: see the log of the worker');
    if (enriched.refusal !== undefined) return refuse('invalid_line', enriched.refusal);
    const { output, rejects } = enriched;
    const fits = output.length <= maxPartBytes;
    if (!fits && this.#options.oversize === 'reject') {
      return refuse('too_large', `the output has ${output.length} bytes, more than ${maxPartBytes}`);
    }
    if (rejects.length > 0) await this.#reject(delivery, 'invalid_line', 'lines were dropped', rejects);
    if (fits) return { bytes: output, inputEnd: bytes.length, release: release.id };
    return this.#furtherPart({ delivery, release, enriched }, 0);
  }

  /** A part of a message that is split, from byte `from` on. */
  async #furtherPart({ delivery, release }: Job, from: number): Promise<PartContent> {
    const { bytes } = delivery;
    const { maxPartBytes } = this.#options.broker;
    const { isTooLarge, ...part } = await nextPart(release.enrich, bytes, from, maxPartBytes);
    if (!isTooLarge) return { ...part, release: release.id };
    const detail = `the output of the line at byte ${from} is larger than ${maxPartBytes} bytes`;
    await this.#reject(delivery, 'too_large', detail, bytes.subarray(from, part.inputEnd), from);
    return { ...part, release: release.id, rejected: 'too_large' };
  }

  async #reject(delivery: Delivery, reason: RejectReason, detail: string, bytes: Uint8Array, offset?: number) {
    const { broker, events } = this.#options;
    const fits = bytes.length <= broker.maxPartBytes;
    await broker.reject({ source: delivery.source, offset, reason, bytes: fits ? bytes : undefined });
    events.rejected(delivery, reason, detail);
  }
}
