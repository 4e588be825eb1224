/**
 * The worker: takes messages from the source stream, enriches each and appends the result to the output stream.
 *
 * Each message is in the output exactly once because the order of the steps is fixed: append, under the broker's check that
 * the chain of this message ends where the worker thinks it does; then acknowledge. A worker that dies in between leaves a
 * message that is delivered again. The next worker meets a conflict, sees that the output is complete, and acknowledges.
 * Workers keep no state of their own, so they can be started and killed at any time.
 */
import { setMaxListeners } from 'node:events';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import {
  STREAM_ONCE_PULL_MS,
  STREAM_PULL_MS,
  STREAM_RETRY_MAX_MS,
  STREAM_RETRY_MS,
  STREAM_TURN_BYTES,
} from '../limits.js';
import { BrokerUnavailable, type Delivery, type FlowLimit, RejectsFull } from './broker.js';
import { FlowWindow } from './flow.js';
import { type Job, PartMaker, type PartOptions, type WorkerEvents } from './parts.js';

export interface WorkerOptions extends PartOptions {
  /** Most input in flight. */
  inFlight: FlowLimit;
  /** Most output bytes that wait to be stored; the output of one message may go beyond it. */
  maxOutputBytes: number;
  /** Ends when all messages that the source held at the start are done. */
  once: boolean;
  /** Aborting ends the worker after the messages in flight. */
  signal: AbortSignal;
}

/** Waits, but not after the worker was told to stop. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => {});
}

/** Repeats a request until the broker answers; undefined when told to stop. */
export async function retried<Result>(
  { signal, events }: Pick<WorkerOptions, 'signal'> & { events: Pick<WorkerEvents, 'stalled'> },
  request: () => Promise<Result>,
): Promise<Result | undefined> {
  for (let wait = STREAM_RETRY_MS; !signal.aborted; wait = Math.min(2 * wait, STREAM_RETRY_MAX_MS)) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof BrokerUnavailable)) throw error;
      events.stalled(error.message);
      await pause(wait, signal);
    }
  }
  return undefined;
}

export class Worker {
  readonly #options: WorkerOptions;
  readonly #input: FlowWindow;
  readonly #output: FlowWindow;
  readonly #parts: PartMaker;
  readonly #queue: Delivery[] = [];
  #isEnriching = false;
  /** Messages that wait for room in the rejects. */
  readonly #unrejected = new Set<Job>();
  #failure: { error: unknown } | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    // Each message that waits for its next try listens.
    setMaxListeners(0, options.signal);
    this.#input = new FlowWindow(options.inFlight);
    this.#parts = new PartMaker(options);
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
    const { broker, events, once, signal } = this.#options;
    const range = once ? await retried(this.#options, () => broker.sourceRange()) : undefined;
    const last = range?.last ?? Number.POSITIVE_INFINITY;
    const waitMs = once ? STREAM_ONCE_PULL_MS : STREAM_PULL_MS;
    while (!signal.aborted && this.#failure === undefined) {
      if (this.#unrejected.size > 0) {
        // Further messages may be refused, too, and those that wait would be delivered here again and again.
        await pause(STREAM_RETRY_MAX_MS, signal);
        continue;
      }
      let delivered = 0;
      await retried(this.#options, () =>
        broker.pull({ ...this.#input.room, waitMs }, (delivery) => {
          delivered++;
          this.#accept(delivery);
        }),
      );
      if (delivered === 0 && this.#input.isEmpty) {
        if (once && (await this.#isDone(last))) break;
        if (!signal.aborted) events.idle();
      }
      await this.#input.halfFree();
    }
    await this.#input.empty();
    if (this.#failure !== undefined) throw this.#failure.error;
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
      const job = this.#parts.enrich(delivery);
      const outputBytes = job.enriched?.output.length ?? 0;
      this.#output.enter(outputBytes);
      void this.#finish(job).finally(() => {
        this.#unrejected.delete(job);
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

  /** Repeats the steps of one message until they are done, or until the broker delivers it again anyway. Never rejects. */
  async #finish(job: Job): Promise<void> {
    const { delivery } = job;
    const { events, broker, signal } = this.#options;
    const begun = performance.now();
    let hasFailed = false;
    for (let wait = STREAM_RETRY_MS; ; wait = Math.min(2 * wait, STREAM_RETRY_MAX_MS)) {
      try {
        await this.#store(job);
        await delivery.acknowledge();
        events.done(delivery);
        // After a failed try, the broker may still be sending the output.
        if (!hasFailed) job.enriched?.recycle?.();
        return;
      } catch (error) {
        if (!(error instanceof BrokerUnavailable)) {
          this.#failure ??= { error };
          return;
        }
        hasFailed = true;
        events.retried(delivery, error.message);
        const isFull = error instanceof RejectsFull;
        if (isFull) this.#unrejected.add(job);
        if (signal.aborted || (!isFull && performance.now() - begun > broker.redeliverAfterMs)) return;
        await pause(wait, signal);
      }
    }
  }

  /** Appends the message's output to the output stream, unless it is there. */
  async #store(job: Job): Promise<void> {
    const { source, origin, bytes } = job.delivery;
    const { broker, events } = this.#options;
    let previous = 0;
    let number = 1;
    let from = 0;
    for (;;) {
      const content = await this.#parts.part(job, from);
      const part = { ...content, source, origin, number, isLast: content.inputEnd === bytes.length };
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
      const last = await broker.lastPart(source.sequence, origin.subject);
      if (last === undefined) throw new BrokerUnavailable('the output refuses a part and does not show another');
      if (last === 'foreign') {
        const detail = `somebody else published to the output subject of message ${source.sequence}`;
        await this.#parts.reject(job.delivery, 'subject_taken', detail, bytes);
        return;
      }
      if (last.source.storedAt !== source.storedAt) {
        const detail = `sequence ${source.sequence} was used twice`;
        await this.#parts.reject(job.delivery, 'sequence_reused', detail, bytes);
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
}
