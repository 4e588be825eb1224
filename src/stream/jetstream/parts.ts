/** What all workers do with one message: enrich it, cut its output into parts, and reject what cannot be in the output. */
import type { ActiveRelease, RejectReason, WorkerEvents } from '../broker.js';
import { type Enriched, nextPart } from '../message.js';
import { type Delivery, type OutputPart, placeOf } from './chain.js';
import type { NatsBroker } from './nats.js';

/** What happens to a message whose output is larger than the broker takes. */
export const OVERSIZE_POLICIES = ['split', 'reject'] as const;
export type OversizePolicy = (typeof OVERSIZE_POLICIES)[number];

/** A message and its output. */
export interface Job {
  delivery: Delivery;
  release: ActiveRelease;
  /** The whole message, enriched; undefined if the broker refuses it, or if that failed because of a bug. */
  enriched: Enriched | undefined;
}

export type PartContent = Pick<OutputPart, 'bytes' | 'inputEnd' | 'release' | 'rejected'>;

export interface PartOptions {
  broker: NatsBroker;
  /** The release that answers now; asked for each message. */
  release: () => ActiveRelease;
  oversize: OversizePolicy;
  events: WorkerEvents;
}

const EMPTY = new Uint8Array(0);

export class PartMaker {
  readonly #options: PartOptions;

  constructor(options: PartOptions) {
    this.#options = options;
  }

  /** Enriches a message. A failure because of a bug must not stop the other messages. */
  enrich(delivery: Delivery): Job {
    const release = this.#options.release();
    if (delivery.refusal !== undefined) return { delivery, release, enriched: undefined };
    try {
      return { delivery, release, enriched: release.enrich(delivery.bytes) };
    } catch (error) {
      this.#options.events.failed(placeOf(delivery), error);
      return { delivery, release, enriched: undefined };
    }
  }

  /**
   * Returns the part of a message's output that begins with byte `from` of the message: all of the output, if it fits.
   * Refused input goes to the rejects first.
   *
   * @throws BrokerUnavailable if the rejects do not take it
   */
  part(job: Job, from: number): Promise<PartContent> {
    return from === 0 ? this.#firstPart(job) : this.#furtherPart(job, from);
  }

  /** Bytes of output that fit into one message beside the headers of its source. */
  #room({ origin }: Delivery): number {
    return this.#options.broker.maxPartBytes - origin.bytes;
  }

  async #firstPart(job: Job): Promise<PartContent> {
    const { delivery, release, enriched } = job;
    const { bytes } = delivery;
    const maxPartBytes = this.#room(delivery);
    const refuse = async (rejected: RejectReason, detail: string): Promise<PartContent> => {
      await this.reject(delivery, rejected, detail, bytes);
      return { bytes: EMPTY, inputEnd: bytes.length, release: release.id, rejected };
    };
    if (delivery.refusal !== undefined) return refuse(delivery.refusal.reason, delivery.refusal.detail);
    if (enriched === undefined) return refuse('internal_error', 'a bug: see the log of the worker');
    if (enriched.refusal !== undefined) return refuse('invalid_line', enriched.refusal);
    const { output, rejects } = enriched;
    const fits = output.length <= maxPartBytes;
    if (!fits && this.#options.oversize === 'reject') {
      return refuse('too_large', `the output has ${output.length} bytes, more than ${maxPartBytes}`);
    }
    if (rejects.length > 0) await this.reject(delivery, 'invalid_line', 'lines were dropped', rejects);
    if (fits) return { bytes: output, inputEnd: bytes.length, release: release.id };
    return this.#furtherPart(job, 0);
  }

  /** A part of a message that is split. */
  async #furtherPart({ delivery, release }: Job, from: number): Promise<PartContent> {
    const { bytes } = delivery;
    const maxPartBytes = this.#room(delivery);
    const { isTooLarge, ...part } = nextPart(release.enrich, bytes, from, maxPartBytes);
    if (!isTooLarge) return { ...part, release: release.id };
    const detail = `the output of the line at byte ${from} is larger than ${maxPartBytes} bytes`;
    await this.reject(delivery, 'too_large', detail, bytes.subarray(from, part.inputEnd), from);
    return { ...part, release: release.id, rejected: 'too_large' };
  }

  /** Stores refused input, without its bytes if they are too large. Throws BrokerUnavailable. */
  async reject(delivery: Delivery, reason: RejectReason, detail: string, bytes: Uint8Array, offset?: number) {
    const { broker, events } = this.#options;
    const fits = bytes.length <= this.#room(delivery);
    const isNew = await broker.reject({
      source: delivery.source,
      origin: delivery.origin,
      offset,
      reason,
      bytes: fits ? bytes : undefined,
    });
    if (isNew) events.rejected(placeOf(delivery), reason, detail);
  }
}
