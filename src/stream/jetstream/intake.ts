/** What both workers do with deliveries: take them in, in order and within limits. */
import { setMaxListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { STREAM_TURN_BYTES } from '../../limits.js';
import type { StreamWorker } from '../broker.js';
import { type FlowLimit, FlowWindow } from '../flow.js';
import type { Backlog, Delivery } from './chain.js';
import { PartMaker, type PartOptions } from './parts.js';

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

export abstract class Intake<Options extends WorkerOptions> implements StreamWorker {
  protected readonly options: Options;
  protected readonly input: FlowWindow;
  protected readonly output: FlowWindow;
  protected readonly parts: PartMaker;
  protected failure: { error: unknown } | undefined;
  readonly #queue: Delivery[] = [];
  #isHandling = false;

  constructor(options: Options) {
    this.options = options;
    // Each message that waits for its next try listens.
    setMaxListeners(0, options.signal);
    this.parts = new PartMaker(options);
    this.input = new FlowWindow(options.inFlight);
    this.output = new FlowWindow({ messages: options.inFlight.messages, bytes: options.maxOutputBytes });
  }

  get isConnected(): boolean {
    return this.options.broker.isConnected;
  }

  get inFlight(): { messages: number; inputBytes: number; outputBytes: number } {
    return { messages: this.input.messages, inputBytes: this.input.bytes, outputBytes: this.output.bytes };
  }

  backlog(): Promise<Backlog> {
    return this.options.broker.backlog();
  }

  abstract run(): Promise<void>;

  /** Handles a delivery, in the order of their arrival. The next one follows when this resolves. Never rejects. */
  protected abstract handle(delivery: Delivery): Promise<void> | void;

  protected accept(delivery: Delivery): void {
    this.input.enter(delivery.bytes.length);
    this.options.events.delivered(delivery.bytes.length, delivery.count);
    this.#queue.push(delivery);
    if (!this.#isHandling) void this.#handleQueued();
  }

  /** Handles the queued messages, each when there is room for its output. */
  async #handleQueued(): Promise<void> {
    this.#isHandling = true;
    let turnBytes = 0;
    for (let delivery = this.#queue.shift(); delivery !== undefined; delivery = this.#queue.shift()) {
      await this.output.hasRoom();
      await this.handle(delivery);
      turnBytes += delivery.bytes.length;
      // Sockets are served between two turns of the event loop only, so the server would be idle during a long turn.
      if (turnBytes >= STREAM_TURN_BYTES) {
        await nextTurn();
        turnBytes = 0;
      }
    }
    this.#isHandling = false;
  }
}
