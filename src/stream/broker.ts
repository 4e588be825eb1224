/**
 * What the worker and the reader need of a message broker. nats.ts implements it for NATS JetStream; another broker is
 * another file.
 *
 * The output is a set of chains, one for each source message: most chains have one part, and a message whose output is too
 * large for the broker has several. A part is appended only if the chain's last part is the one that the caller names. This
 * check, made by the broker in the same step as the append, is what makes each message appear once, however many workers
 * hold a delivery of it.
 */

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
  /** Why the output cannot hold the message, whatever is in it; undefined if it can. */
  readonly refusal?: { reason: 'invalid_headers' | 'subject_too_long'; detail: string } | undefined;
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
  /** The refused lines, or all of the message; undefined if they are too large to be published once more. */
  bytes: Uint8Array | undefined;
}

/** A reject as the broker keeps it. */
export interface StoredReject extends Reject {
  bytes: Uint8Array;
  origin: Origin;
  /** Position in the stream of rejects. */
  position: number;
}

/** How much may be in flight. */
export interface FlowLimit {
  messages: number;
  bytes: number;
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
   * Asks for messages once, as {@link Broker.pull} does.
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

/** A failure that may pass: the broker is away, restarting, slow or full. The caller tries again. */
export class BrokerUnavailable extends Error {
  override readonly name: string = 'BrokerUnavailable';
}

/** The stream of rejects takes nothing more. Workers wait until there is room: what is refused must be kept. */
export class RejectsFull extends BrokerUnavailable {
  override readonly name = 'RejectsFull';
}

export interface Broker {
  /** Largest part, in bytes of its payload, if it has no headers of the source. */
  readonly maxPartBytes: number;
  /** Largest message of the source, in bytes. */
  readonly maxMessageBytes: number;
  /** Milliseconds after which an unacknowledged message is delivered again. */
  readonly redeliverAfterMs: number;
  /** Whether there is a connection now. */
  readonly isConnected: boolean;
  /** Resolves when the connection is lost for good, with the reason, or closed by `close`. */
  readonly closed: Promise<Error | undefined>;

  /**
   * Asks for messages once. Resolves when the request is over: the limit is reached, the time is over, or the connection was
   * lost.
   *
   * @param deliver called with each message as it arrives
   * @throws AtlasError E_STREAM if the stream or the consumer is gone
   */
  pull(limit: PullLimit, deliver: (delivery: Delivery) => void): Promise<void>;

  /**
   * Appends a part to the chain of its source message. When the promise resolves, the part's bytes are not used any more, and
   * the caller may overwrite them. When it rejects, the broker may still be sending them.
   *
   * @param previous position of the chain's last part, 0 if there must be none yet
   * @param after position of the last message of the whole output stream, for output in the order of the source: checked in
   *   place of `previous`, which it implies
   * @returns the part's position, or undefined if another part is the last one; nothing was stored then
   * @throws BrokerUnavailable if it is unknown whether the part was stored
   */
  append(part: OutputPart, previous: number, after?: number): Promise<number | undefined>;

  /**
   * Returns the last part of a source message's output, undefined if there is none, or `foreign` if somebody else published to
   * its subject.
   *
   * @param sourceSubject of the source message, if it is known: spares requests
   * @throws BrokerUnavailable. AtlasError E_STREAM if it is output of another source
   */
  lastPart(sequence: number, sourceSubject?: string): Promise<StoredPart | 'foreign' | undefined>;

  /** Returns the part at a position of the output stream, or undefined. Throws BrokerUnavailable. */
  partAt(position: number): Promise<StoredPart | undefined>;

  /** Returns the position of the last message of the output stream. Throws BrokerUnavailable. */
  outputEnd(): Promise<number>;

  /**
   * Returns the last message of the output stream.
   *
   * @throws BrokerUnavailable. AtlasError E_STREAM if it is not output of this source
   */
  outputTail(): Promise<OutputTail>;

  /** Begins to read the source. Throws BrokerUnavailable. */
  readSource(startAt: StartAt): Promise<SourceReader>;

  /**
   * Stores refused input, once for each source message and offset. Returns false if it was there.
   *
   * @throws BrokerUnavailable; RejectsFull if there is no room. AtlasError E_STREAM if the rejects of another source are there
   */
  reject(reject: Reject): Promise<boolean>;

  /** Returns the positions of the first and last reject; `last` is below `first` if there are none. Throws BrokerUnavailable. */
  rejectRange(): Promise<SourceRange>;

  /** Returns the reject at a position, or undefined. Throws BrokerUnavailable. */
  rejectAt(position: number): Promise<StoredReject | undefined>;

  /** Throws BrokerUnavailable. */
  deleteReject(position: number): Promise<void>;

  /** Throws BrokerUnavailable. */
  backlog(): Promise<Backlog>;

  /** Throws BrokerUnavailable. */
  sourceRange(): Promise<SourceRange>;

  /**
   * Returns the sequences whose output can be read, also of messages that the source does not hold any more.
   *
   * @param from first one; by default the first that the source or the output holds
   * @throws BrokerUnavailable. AtlasError E_STREAM if `from` is missing and too much output would have to be searched for it
   */
  readableRange(from?: number): Promise<SourceRange>;

  /** Whether the source stream still holds a message that workers process. Throws BrokerUnavailable. */
  hasSource(sequence: number): Promise<boolean>;

  close(): Promise<void>;
}
