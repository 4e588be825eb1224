/**
 * The worker: takes messages from the source stream, enriches each and appends the result to the output stream.
 *
 * Each message is in the output exactly once because the order of the steps is fixed: append, under the broker's check that
 * the chain of this message ends where the worker thinks it does; then acknowledge. A worker that dies in between leaves a
 * message that is delivered again. The next worker meets a conflict, sees that the output is complete, and acknowledges.
 * Workers keep no state of their own, so they can be started and killed at any time.
 */
import { STREAM_ONCE_PULL_MS, STREAM_PULL_MS, STREAM_RETRY_MAX_MS } from '../../limits.js';
import { BrokerUnavailable, pause, pauseAfter, retried } from '../broker.js';
import { arrivedAt, type Delivery, placeOf, RejectsFull } from './chain.js';
import { Intake, type WorkerOptions } from './intake.js';
import type { Job } from './parts.js';

export class Worker extends Intake<WorkerOptions> {
  /** Messages that wait for room in the rejects. */
  readonly #unrejected = new Set<Job>();

  /**
   * Works until aborted or, with `once`, until the source is done. Messages in flight are finished first.
   *
   * @throws AtlasError E_STREAM if the stream or consumer is gone
   */
  async run(): Promise<void> {
    const { broker, events, once, signal } = this.options;
    const range = once ? await retried(this.options, () => broker.sourceRange()) : undefined;
    const last = range?.last ?? Number.POSITIVE_INFINITY;
    const waitMs = once ? STREAM_ONCE_PULL_MS : STREAM_PULL_MS;
    while (!signal.aborted && this.failure === undefined) {
      if (this.#unrejected.size > 0) {
        // Further messages may be refused, too, and those that wait would be delivered here again and again.
        await pause(STREAM_RETRY_MAX_MS, signal);
        continue;
      }
      let delivered = 0;
      await retried(this.options, () =>
        broker.pull({ ...this.input.room, waitMs }, (delivery) => {
          delivered++;
          this.accept(delivery);
        }),
      );
      if (delivered === 0 && this.input.isEmpty) {
        if (once && (await this.#isDone(last))) break;
        if (!signal.aborted) events.idle();
      }
      await this.input.halfFree();
    }
    await this.input.empty();
    if (this.failure !== undefined) throw this.failure.error;
  }

  /** Whether no message up to `last` is left, for this worker or for any other. */
  async #isDone(last: number): Promise<boolean> {
    try {
      const { pending, unacknowledged, acknowledgedUpTo } = await this.options.broker.backlog();
      return acknowledgedUpTo >= last || (pending === 0 && unacknowledged === 0);
    } catch (error) {
      if (error instanceof BrokerUnavailable) return false;
      throw error;
    }
  }

  protected handle(delivery: Delivery): void {
    const job = this.parts.enrich(delivery);
    const outputBytes = job.enriched?.output.length ?? 0;
    this.output.enter(outputBytes);
    void this.#finish(job).finally(() => {
      this.#unrejected.delete(job);
      this.output.leave(outputBytes);
      this.input.leave(delivery.bytes.length);
    });
  }

  /** Repeats the steps of one message until they are done, or until the broker delivers it again anyway. Never rejects. */
  async #finish(job: Job): Promise<void> {
    const { delivery } = job;
    const { events, broker, signal } = this.options;
    const begun = performance.now();
    for (let failures = 0; ; ) {
      try {
        await this.#store(job);
        await delivery.acknowledge();
        events.done(1, arrivedAt(delivery.source));
        // After a failed try, the broker may still be sending the output.
        if (failures === 0) job.enriched?.recycle?.();
        return;
      } catch (error) {
        if (!(error instanceof BrokerUnavailable)) {
          this.failure ??= { error };
          return;
        }
        events.retried(error.message, placeOf(delivery));
        const isFull = error instanceof RejectsFull;
        if (isFull) this.#unrejected.add(job);
        if (signal.aborted || (!isFull && performance.now() - begun > broker.redeliverAfterMs)) return;
        await pauseAfter(++failures, signal);
      }
    }
  }

  /** Appends the message's output to the output stream, unless it is there. */
  async #store(job: Job): Promise<void> {
    const { source, origin, bytes } = job.delivery;
    const { broker, events } = this.options;
    let previous = 0;
    let number = 1;
    let from = 0;
    for (;;) {
      const content = await this.parts.part(job, from);
      const part = { ...content, source, origin, number, isLast: content.inputEnd === bytes.length };
      const position = await broker.append(part, previous);
      if (position !== undefined) {
        events.stored(1, part.bytes.length);
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
        await this.parts.reject(job.delivery, 'subject_taken', detail, bytes);
        return;
      }
      if (last.source.storedAt !== source.storedAt) {
        const detail = `sequence ${source.sequence} was used twice`;
        await this.parts.reject(job.delivery, 'sequence_reused', detail, bytes);
        return;
      }
      if (last.isLast) {
        events.alreadyDone();
        return;
      }
      previous = last.position;
      number = last.number + 1;
      from = last.inputEnd;
    }
  }
}
