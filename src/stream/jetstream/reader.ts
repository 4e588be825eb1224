/** Reads the output in the order of the source: the output stream itself is in the order in which workers finished. */
import { setMaxListeners } from 'node:events';
import { AtlasError } from '../../errors.js';
import { STREAM_READ_AHEAD, STREAM_READ_POLL_MS } from '../../limits.js';
import { pause, retried } from '../broker.js';
import type { StoredPart } from './chain.js';
import type { NatsBroker } from './nats.js';

export interface ReadOptions {
  broker: NatsBroker;
  /** First source sequence; default the first that the source or the output holds. */
  fromSequence?: number | undefined;
  /** Ends after the last message that the source held at the start. */
  once: boolean;
  signal: AbortSignal;
}

/** The output of one source message. */
export interface ReadMessage {
  sequence: number;
  /** In order; empty for a message that was removed from the source before any worker had it. */
  parts: StoredPart[];
}

const lost = (what: string): AtlasError => new AtlasError('E_STREAM', `${what}; read on after it with --from-seq`);

/** Follows a chain from its last part back to its first. */
export async function chain(broker: NatsBroker, last: StoredPart): Promise<StoredPart[]> {
  const parts = [last];
  for (let first = last; first.previous > 0; ) {
    const before = await broker.partAt(first.previous);
    const { sequence, storedAt } = last.source;
    const what = `part ${first.number - 1} of the output of message ${sequence}`;
    if (before === undefined) throw lost(`${what} was deleted`);
    const { source, number } = before;
    if (source.sequence !== sequence || source.storedAt !== storedAt || number !== first.number - 1) {
      throw lost(`${what} is not at position ${first.previous}: the server has lost messages`);
    }
    parts.unshift(before);
    first = before;
  }
  return parts;
}

class Reader {
  readonly #broker: NatsBroker;
  readonly #signal: AbortSignal;

  constructor(broker: NatsBroker, signal: AbortSignal) {
    this.#broker = broker;
    this.#signal = signal;
    // Each message that is waited for listens.
    setMaxListeners(0, signal);
  }

  /** Repeats a request until the broker answers; undefined when told to stop. */
  persistently<Result>(request: () => Promise<Result>): Promise<Result | undefined> {
    return retried({ signal: this.#signal, events: { retried() {} } }, request);
  }

  /** Waits for the output of one message to be complete; undefined when told to stop. */
  async message(sequence: number): Promise<ReadMessage | undefined> {
    for (;;) {
      const found = await this.persistently(() => this.#readMessage(sequence));
      if (found !== 'waiting') return found;
      await pause(STREAM_READ_POLL_MS, this.#signal);
    }
  }

  async #readMessage(sequence: number): Promise<ReadMessage | 'waiting'> {
    const found = await this.#complete(sequence);
    if (found !== undefined) return found;
    const { acknowledgedUpTo } = await this.#broker.backlog();
    if (sequence > acknowledgedUpTo) return 'waiting';
    // Done while this was looked up, or never: the message was deleted, or its output was.
    const again = await this.#complete(sequence);
    if (again !== undefined) return again;
    if (!(await this.#broker.hasSource(sequence))) return { sequence, parts: [] };
    throw lost(`message ${sequence} is acknowledged and its output is not there, as if it was deleted`);
  }

  /** The output of a message; undefined if it is not complete. */
  async #complete(sequence: number): Promise<ReadMessage | undefined> {
    const last = await this.#broker.lastPart(sequence);
    // The worker rejects a message whose subject somebody else took.
    if (last === 'foreign') return { sequence, parts: [] };
    return last?.isLast ? { sequence, parts: await chain(this.#broker, last) } : undefined;
  }
}

/**
 * Yields the output message by message, in the order of the source. Waits for messages that are not done.
 *
 * @throws AtlasError E_STREAM if output that was there is gone
 */
export async function* readInOrder(options: ReadOptions): AsyncGenerator<ReadMessage> {
  const { broker, fromSequence, once, signal } = options;
  // Ends the requests for messages that nobody will read.
  const ended = new AbortController();
  const reader = new Reader(broker, AbortSignal.any([signal, ended.signal]));
  try {
    const range = await reader.persistently(() => broker.readableRange(fromSequence));
    if (range === undefined) return;
    const last = once ? range.last : Number.POSITIVE_INFINITY;
    const ahead: Promise<ReadMessage | undefined>[] = [];
    let next = range.first;
    for (let sequence = next; sequence <= last; sequence++) {
      while (next <= last && ahead.length < STREAM_READ_AHEAD) {
        const message = reader.message(next++);
        // A failure is reported when the message's turn comes.
        message.catch(() => {});
        ahead.push(message);
      }
      const message = await ahead.shift();
      if (message === undefined) return;
      yield message;
    }
  } finally {
    ended.abort();
  }
}
