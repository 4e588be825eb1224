/**
 * Messages of the source and their output, as workers and readers on JetStream see them.
 *
 * The output is a set of chains, one for each source message: most chains have one part, and a message whose output is too
 * large for the broker has several. A part is appended only if the chain's last part is the one that the caller names. This
 * check, made by the broker in the same step as the append, is what makes each message appear once, however many workers
 * hold a delivery of it.
 */
import { BrokerUnavailable, type Place, type RejectReason } from '../broker.js';
import type { FlowLimit } from '../flow.js';

/** Identifies a source message. After a broker lost its newest messages, a sequence can be used a second time. */
export interface SourceId {
  /** Position in the source stream, from 1. */
  sequence: number;
  /** When the broker stored the message: nanoseconds since 1970, decimal. */
  storedAt: string;
}

/** Where a source message came from. */
export interface Origin {
  readonly subject: string;
  /** Names and values, without those that the broker obeys. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** What both take of the largest message of the output. */
  readonly bytes: number;
}

/** One delivery of a source message. */
export interface Delivery {
  readonly source: SourceId;
  readonly origin: Origin;
  /** How often the message has been delivered, this delivery included. */
  readonly count: number;
  readonly bytes: Uint8Array;
  /** Why the output cannot hold the message, regardless of its lines; undefined if it can. */
  readonly refusal?: { reason: RejectReason; detail: string } | undefined;
  /**
   * Tells the broker that the message is done. Resolves when the broker has confirmed it.
   *
   * @throws BrokerUnavailable if no confirmation arrives; the broker then delivers the message again
   */
  acknowledge(): Promise<void>;
}

/** One part of a message's output. */
export interface OutputPart {
  source: SourceId;
  /** Goes into the headers. Not read back. */
  origin?: Origin | undefined;
  /** From 1. */
  number: number;
  /** Whether the message's output ends here. */
  isLast: boolean;
  /** The parts up to this one answer the first `inputEnd` bytes of the source message. */
  inputEnd: number;
  /** Id of the release that answered. */
  release: string;
  /** Why the input of this part is not in the output; undefined if it is. */
  rejected?: string | undefined;
  /** Set if this is output of a reject that was enriched later: which one of the message, and the end of this part in it. */
  replay?: { offset: number | undefined; end: number };
  bytes: Uint8Array;
}

/** A part as the broker keeps it. */
export interface StoredPart extends OutputPart {
  /** Position in the output stream. */
  position: number;
  /** Position of the part before it, 0 for the first. */
  previous: number;
}

/** Input that the worker refused, for a person to look at. */
export interface Reject {
  source: SourceId;
  origin?: Origin | undefined;
  /** The byte of the message at which a refused line begins; undefined for all of it, or for the lines of a policy. */
  offset?: number | undefined;
  reason: string;
  /** The refused lines, or all of the message; undefined if they are too large to be published. */
  bytes: Uint8Array | undefined;
}

/** A reject as the broker keeps it. */
export interface StoredReject extends Reject {
  bytes: Uint8Array;
  origin: Origin;
  /** Position in the stream of rejects. */
  position: number;
}

/** How much may be delivered, and how long to wait for it. */
export interface PullLimit extends FlowLimit {
  waitMs: number;
}

/** What is left to do. */
export interface Backlog {
  /** Messages that were never delivered. */
  pending: number;
  /** Messages that were delivered and are not acknowledged. */
  unacknowledged: number;
  /** All messages up to this sequence are acknowledged. */
  acknowledgedUpTo: number;
}

/** The sequences of the source stream that workers process; `last` is below `first` if there are none. */
export interface SourceRange {
  first: number;
  last: number;
}

/** Where a reader of the source begins: at the first message, at a sequence, or at a time. */
export type StartAt = { kind: 'first' } | { kind: 'sequence'; sequence: number } | { kind: 'time'; time: Date };

/** Reads the source in order, without acknowledgments. */
export interface SourceReader {
  /**
   * Asks for messages once, as NatsBroker.pull does.
   *
   * @returns false if messages may be missing from now on; the reader is of no more use then
   */
  pull(limit: PullLimit, deliver: (delivery: Delivery) => void): Promise<boolean>;
  /** Returns the number of messages that this reader has not delivered. Throws BrokerUnavailable. */
  pending(): Promise<number>;
  /** Tells the broker to forget the reader. Never rejects. */
  close(): Promise<void>;
}

/** The end of the output stream. */
export interface OutputTail {
  /** Position of the last message, 0 if there was never one. */
  position: number;
  /** That message; undefined if it was deleted or there was never one. */
  part: StoredPart | undefined;
}

/** The stream of rejects takes nothing more. Workers wait until there is room: what is refused must be kept. */
export class RejectsFull extends BrokerUnavailable {
  override readonly name = 'RejectsFull';
}

const NANOSECONDS_A_MILLISECOND = 1_000_000n;

/** When a message arrived in the source, in milliseconds since 1970. */
export const arrivedAt = ({ storedAt }: SourceId): number => Number(BigInt(storedAt) / NANOSECONDS_A_MILLISECOND);

/** Where a message is in the source, for the log. */
export const placeOf = ({ source }: Delivery): Place => ({ sequence: source.sequence });
