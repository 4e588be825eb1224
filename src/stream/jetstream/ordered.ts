/**
 * The worker of an ordered output: reads the source in order, and appends so that the output stream is in that order too.
 *
 * The position is not stored anywhere but in the output: its last message names the source message that it answers, and each
 * append names the position after which it belongs. The broker refuses it if the output has another end by then. So by
 * induction, each message of the output is the successor of the one before it, however many workers try. Appends are
 * pipelined: if one of them fails, the broker refuses all that were sent after it, and the worker begins again at the end of
 * the output.
 *
 * One worker writes at a time. A worker that meets a conflict is a standby, until the output makes no progress.
 */
import { AtlasError } from '../../errors.js';
import { STREAM_ONCE_PULL_MS, STREAM_PULL_MS, STREAM_STANDBY_MS, STREAM_STANDBY_POLL_MS } from '../../limits.js';
import { BrokerUnavailable, pause, pauseAfter, retried } from '../broker.js';
import {
  arrivedAt,
  type Delivery,
  type OutputPart,
  type OutputTail,
  placeOf,
  type SourceReader,
  type StartAt,
  type StoredPart,
} from './chain.js';
import { Intake, type WorkerOptions } from './intake.js';
import type { Job } from './parts.js';

export interface OrderedOptions extends WorkerOptions {
  /** Where to begin if the output has no messages. */
  startAt: StartAt | undefined;
}

/** Why a worker stopped to append: it was told to; everything is done; another worker appends; a step failed. */
type End = 'stopped' | 'done' | 'conflict' | 'interrupted';

/** From one look at the end of the output to the next. */
interface Session {
  /** Position of the last append that was sent. */
  position: number;
  /** The last message of the output at the start, until its source message has arrived. */
  resumeAfter: StoredPart | undefined;
  /** All messages up to this sequence are in the output. */
  doneUpTo: number;
  end: End | undefined;
}

/** The last source sequence that is complete in the output, 0 if none is. */
function doneUpTo({ part }: OutputTail): number {
  return part === undefined ? 0 : part.source.sequence - (part.isLast ? 0 : 1);
}

export class OrderedWorker extends Intake<OrderedOptions> {
  #session!: Session;
  #isStandby = false;
  /** In a row, without progress. */
  #failures = 0;

  /** Whether another worker writes the output. */
  get isStandby(): boolean {
    return this.#isStandby;
  }

  /**
   * Works until aborted or, with `once`, until the source is done. Messages in flight are finished first.
   *
   * @throws AtlasError E_STREAM if the source or the output cannot be continued
   */
  async run(): Promise<void> {
    const { once } = this.options;
    let last = Number.POSITIVE_INFINITY;
    for (let isFirst = true; ; isFirst = false) {
      const now = await this.#readOutputTail();
      if (now === undefined) return;
      if (isFirst && once) last = now.sourceEnd;
      if (doneUpTo(now.tail) >= last) return;
      const end = await this.#work(now.tail, last);
      if (this.failure !== undefined) throw this.failure.error;
      if (end === 'done' || end === 'stopped') return;
      if (end === 'conflict') await this.#standBy(last);
      else await pauseAfter(++this.#failures, this.options.signal);
    }
  }

  /**
   * Returns the end of the output and the last sequence of the source; undefined when told to stop.
   *
   * @throws AtlasError E_STREAM if the output cannot be continued
   */
  async #readOutputTail(): Promise<{ tail: OutputTail; sourceEnd: number } | undefined> {
    const { broker } = this.options;
    const tail = await retried(this.options, () => broker.outputTail());
    const range = await retried(this.options, () => broker.sourceRange());
    if (tail === undefined || range === undefined) return undefined;
    if (tail.part !== undefined && range.last < tail.part.source.sequence) throw this.#lostSource(tail.part);
    return { tail, sourceEnd: range.last };
  }

  /** Where to go on reading. Begins with the last message that is in the output, to check that it is still the same. */
  #startAt({ position, part }: OutputTail): StartAt {
    if (part !== undefined) return { kind: 'sequence', sequence: part.source.sequence };
    if (position === 0) return this.options.startAt ?? { kind: 'first' };
    if (this.options.startAt !== undefined) return this.options.startAt;
    throw new AtlasError('E_STREAM', 'the last message of the output was deleted: say with --from-seq where to go on');
  }

  /** Reads and appends until something ends that; everything that was sent is settled then. */
  async #work(tail: OutputTail, last: number): Promise<End> {
    const { broker, events, once, signal } = this.options;
    const startAt = this.#startAt(tail);
    const reader = await retried(this.options, () => broker.readSource(startAt));
    if (reader === undefined) return 'stopped';
    const session: Session = {
      position: tail.position,
      resumeAfter: tail.part,
      doneUpTo: doneUpTo(tail),
      end: undefined,
    };
    this.#session = session;
    while (session.end === undefined) {
      let delivered = 0;
      const limit = { ...this.input.room, waitMs: once ? STREAM_ONCE_PULL_MS : STREAM_PULL_MS };
      const isComplete = await this.#pull(reader, limit, (delivery) => {
        delivered++;
        this.accept(delivery);
      });
      if (!isComplete) session.end ??= 'interrupted';
      else if (signal.aborted) session.end ??= 'stopped';
      else if (delivered === 0 && this.input.isEmpty) {
        events.idle();
        const pending = once ? await reader.pending().catch(() => 1) : 1;
        if (once && (session.doneUpTo >= last || pending === 0)) session.end ??= 'done';
      }
      await this.input.halfFree();
    }
    await this.input.empty();
    await reader.close();
    return session.end;
  }

  /** Asks the reader for messages. Returns false if messages may be missing from now on. */
  async #pull(reader: SourceReader, ...[limit, deliver]: Parameters<SourceReader['pull']>): Promise<boolean> {
    try {
      return await reader.pull(limit, deliver);
    } catch (error) {
      if (!(error instanceof BrokerUnavailable)) throw error;
      this.options.events.retried(error.message);
      return false;
    }
  }

  #lostSource({ source }: StoredPart): AtlasError {
    return new AtlasError(
      'E_STREAM',
      `the output has message ${source.sequence} of the source, and the source has another one or none: it lost messages, ` +
        'and uses their sequences again; use another output stream',
    );
  }

  protected async handle(delivery: Delivery): Promise<void> {
    const session = this.#session;
    const sent: Promise<void>[] = [];
    try {
      // When told to stop, what was delivered is still done; after a failure, nothing more can be appended.
      if (session.end === undefined || session.end === 'stopped') await this.#sendParts(session, delivery, sent);
    } catch (error) {
      this.#fail(session, delivery, error);
    }
    void Promise.all(sent).then(() => this.input.leave(delivery.bytes.length));
  }

  #fail(session: Session, delivery: Delivery, error: unknown): void {
    if (error instanceof BrokerUnavailable) this.options.events.retried(error.message, placeOf(delivery));
    else this.failure ??= { error };
    session.end = session.end === 'conflict' ? 'conflict' : 'interrupted';
  }

  /** Enriches a message and sends the parts of its output, without waiting for the broker. */
  async #sendParts(session: Session, delivery: Delivery, sent: Promise<void>[]): Promise<void> {
    const { source, origin, bytes } = delivery;
    const before = session.resumeAfter;
    session.resumeAfter = undefined;
    let [from, number, previous] = [0, 1, 0];
    if (before?.source.sequence === source.sequence) {
      if (before.source.storedAt !== source.storedAt) throw this.#lostSource(before);
      if (before.isLast) return;
      [from, number, previous] = [before.inputEnd, before.number + 1, before.position];
    }
    const job = this.parts.enrich(delivery);
    for (;;) {
      const content = await this.parts.part(job, from);
      if (session.end === 'conflict' || session.end === 'interrupted') return;
      const part = { ...content, source, origin, number, isLast: content.inputEnd === bytes.length };
      sent.push(this.#send(session, job, part, previous));
      if (part.isLast) return;
      [from, number, previous] = [part.inputEnd, number + 1, session.position];
      await this.output.hasRoom();
    }
  }

  /** Appends a part after everything that was sent before. Never rejects. */
  async #send(session: Session, job: Job, part: OutputPart, previous: number): Promise<void> {
    const { delivery, enriched } = job;
    const { broker, events } = this.options;
    const after = session.position++;
    this.output.enter(part.bytes.length);
    try {
      const position = await broker.append(part, previous, after);
      if (position === undefined) {
        // The consequence of an append that failed before this one, or another worker.
        session.end = session.end === 'interrupted' ? 'interrupted' : 'conflict';
        return;
      }
      this.#failures = 0;
      events.stored(1, part.bytes.length);
      if (!part.isLast) return;
      session.doneUpTo = part.source.sequence;
      events.done(1, arrivedAt(part.source));
      enriched?.recycle?.();
    } catch (error) {
      this.#fail(session, delivery, error);
    } finally {
      this.output.leave(part.bytes.length);
    }
  }

  /** Waits until the output makes no progress although there is something to do, or until everything is done. */
  async #standBy(last: number): Promise<void> {
    const { broker, once, signal } = this.options;
    this.#isStandby = true;
    // Of several standbys, one should be the first.
    const patience = STREAM_STANDBY_MS * (1 + Math.random());
    let position = -1;
    let since = performance.now();
    while (!signal.aborted) {
      await pause(STREAM_STANDBY_POLL_MS, this.options.signal);
      const end = await retried(this.options, () => broker.outputEnd());
      const isIdle = end === position;
      if (isIdle ? performance.now() - since < patience : !once) {
        if (!isIdle) since = performance.now();
        position = end ?? position;
        continue;
      }
      const now = await this.#readOutputTail();
      if (now === undefined) break;
      const done = doneUpTo(now.tail);
      if (done >= last || (isIdle && done < now.sourceEnd)) break;
      position = now.tail.position;
      since = performance.now();
    }
    this.#isStandby = false;
  }
}
