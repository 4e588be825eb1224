/** The broker on NATS JetStream. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type StoredMsg,
  type StreamState,
} from '@nats-io/jetstream';
import {
  ClosedConnectionError,
  type ConnectionOptions,
  connect,
  createInbox,
  credsAuthenticator,
  headers,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  nanos,
  PermissionViolationError,
  TimeoutError,
} from '@nats-io/transport-node';
import { AtlasError, messageOf } from '../errors.js';
import {
  STREAM_CONNECT_TIMEOUT_MS,
  STREAM_GONE_MS,
  STREAM_HEADER_BYTES,
  STREAM_REQUEST_TIMEOUT_MS,
  STREAM_RETRY_MS,
} from '../limits.js';
import {
  type Backlog,
  type Broker,
  BrokerUnavailable,
  type Delivery,
  type OutputPart,
  type OutputTail,
  type PullLimit,
  type Reject,
  type SourceId,
  type SourceRange,
  type SourceReader,
  type StartAt,
  type StoredPart,
} from './broker.js';
import {
  isNotFound,
  readerConfig,
  requireNoConsumer,
  type Setup,
  type SetupOptions,
  type StreamNames,
  setUpStreams,
} from './setup.js';

export interface NatsServer {
  /** `nats://host:port` or `tls://host:port`, several with commas between them; may hold `user:password@`. */
  url: string;
  /** Files, by path. */
  creds?: string | undefined;
  tlsCa?: string | undefined;
  tlsCert?: string | undefined;
  tlsKey?: string | undefined;
}

/** Headers of an output message; docs/streams.md describes them for readers. */
export const HEADER = {
  /** `<source stream> <sequence> <time stored, ns>` */
  source: 'Ipatlas-Source',
  release: 'Ipatlas-Release',
  /** Of a split message only: `<number> <more|last> <end in the source message, bytes> <output sequence of the part before>` */
  part: 'Ipatlas-Part',
  /** Reason for which the input of this part is missing. */
  rejected: 'Ipatlas-Rejected',
} as const;

/** Milliseconds between two pings, and pings without an answer after which a connection counts as lost. */
const PING_INTERVAL_MS = 10_000;
const MAX_PINGS_OUT = 2;
const RECONNECT_WAIT_MS = 250;

/** How much longer than the server a pull waits for the server's word that a request is over, in milliseconds. */
const PULL_GRACE_MS = 2_000;

/** Statuses of a pull request: still open; its time is over; any failure, or too few bytes left for the next message. */
const STATUS_HEARTBEAT = 100;
const STATUS_TIMEOUT = 408;
const TOO_FEW_BYTES = /^message size exceeds maxbytes/i;

/** Status of a request whose subject nobody listens to. */
const STATUS_NO_RESPONDERS = 503;

/** Headers by which the server checks a message before it stores it. */
const EXPECTED = {
  stream: 'Nats-Expected-Stream',
  lastOfSubject: 'Nats-Expected-Last-Subject-Sequence',
  last: 'Nats-Expected-Last-Sequence',
} as const;

/** Begins the last token of a request's reply subject; that of a pull is a number. */
const REQUEST_TOKEN = 'r';

const ACK = '+ACK';
const ACK_PREFIX = '$JS.ACK.';

function connectionOptions({ url, creds, tlsCa, tlsCert, tlsKey }: NatsServer): ConnectionOptions {
  const urls = url.split(',').map((one) => {
    const text = one.includes('://') ? one : `nats://${one}`;
    if (URL.canParse(text) && /^(nats|tls):$/.test(new URL(text).protocol)) return new URL(text);
    // Not quoted: it may hold a password.
    throw new AtlasError(
      'E_USAGE',
      '--server must be an address such as nats://localhost:4222 or tls://nats.example:4222',
    );
  });
  const user = urls.find(({ username }) => username !== '');
  const usesTls =
    [tlsCa, tlsCert, tlsKey].some((file) => file !== undefined) || urls.some(({ protocol }) => protocol === 'tls:');
  return {
    servers: urls.map(({ host }) => host),
    name: 'ipatlas stream',
    ...(user === undefined ? {} : { user: decodeURIComponent(user.username), pass: decodeURIComponent(user.password) }),
    ...(creds === undefined ? {} : { authenticator: credsAuthenticator(readCredentials(creds)) }),
    ...(usesTls ? { tls: tlsOptions({ tlsCa, tlsCert, tlsKey }) } : {}),
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_WAIT_MS,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: MAX_PINGS_OUT,
    // A connection that is lost in its handshake is noticed only after this time.
    timeout: STREAM_REQUEST_TIMEOUT_MS,
    noAsyncTraces: true,
  };
}

function tlsOptions({ tlsCa, tlsCert, tlsKey }: Pick<NatsServer, 'tlsCa' | 'tlsCert' | 'tlsKey'>) {
  return {
    ...(tlsCa === undefined ? {} : { caFile: tlsCa }),
    ...(tlsCert === undefined ? {} : { certFile: tlsCert }),
    ...(tlsKey === undefined ? {} : { keyFile: tlsKey }),
  };
}

function readCredentials(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new AtlasError('E_USAGE', `--creds ${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/** Failures of a server that starts or was killed: the connection is refused, lost, or silent. */
function isPassing(error: unknown): boolean {
  if (error instanceof AtlasError) return isPassing(error.cause);
  if (error instanceof TimeoutError || error instanceof ClosedConnectionError) return true;
  return /refused|ECONNRESET|EPIPE|error connecting|disconnected/.test(messageOf(error));
}

/** Repeats a step whose failure may pass, until it succeeds or {@link STREAM_CONNECT_TIMEOUT_MS} are over. */
async function persistently<Result>(step: () => Promise<Result>): Promise<Result> {
  const end = performance.now() + STREAM_CONNECT_TIMEOUT_MS;
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!isPassing(error) || performance.now() > end) throw error;
      await sleep(RECONNECT_WAIT_MS);
    }
  }
}

/**
 * Connects, retrying for a while.
 *
 * @throws AtlasError E_STREAM if that fails, E_USAGE for a wrong address or credentials file
 */
export async function connectNats(server: NatsServer): Promise<NatsConnection> {
  const options = connectionOptions(server);
  try {
    return await persistently(() => connect(options));
  } catch (error) {
    const hosts = [options.servers ?? []].flat().join(', ');
    throw new AtlasError('E_STREAM', `cannot connect to the NATS server at ${hosts}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/**
 * Connects and sets the streams up, retrying for a while.
 *
 * @returns the broker, and what was created
 * @throws AtlasError as {@link connectNats} and {@link setUpStreams} do
 */
export function openNatsBroker(
  server: NatsServer,
  options: SetupOptions,
): Promise<{ broker: NatsBroker; setup: Setup }> {
  return persistently(async () => {
    const connection = await connectNats(server);
    try {
      const jsm = await jetstreamManager(connection, { timeout: STREAM_REQUEST_TIMEOUT_MS });
      const setup = await setUpStreams(jsm, options);
      return { broker: new NatsBroker(connection, jsm, options.names, setup), setup };
    } catch (error) {
      await connection.close();
      if (error instanceof AtlasError) throw error;
      throw new AtlasError('E_STREAM', `the NATS server refuses a request: ${messageOf(error)}`, { cause: error });
    }
  });
}

/**
 * Parses the reply subject of a delivery (NATS ADR-15): `$JS.ACK.` and 7 tokens, or 9 with domain and account first.
 *
 * @returns `consumerSequence` counts the deliveries of the consumer
 */
export function parseAckSubject(subject: string): {
  consumer: string;
  count: number;
  consumerSequence: number;
  source: SourceId;
} {
  const tokens = subject.slice(ACK_PREFIX.length).split('.');
  const at = tokens.length === 7 ? 2 : 4;
  return {
    consumer: tokens[at - 1]!,
    count: Number(tokens[at]),
    consumerSequence: Number(tokens[at + 2]),
    source: { sequence: Number(tokens[at + 1]), storedAt: tokens[at + 3]! },
  };
}

function partHeaders(part: OutputPart, previous: number, sourceStream: string): MsgHdrs {
  const all = headers();
  all.set(HEADER.source, `${sourceStream} ${part.source.sequence} ${part.source.storedAt}`);
  all.set(HEADER.release, part.release);
  if (part.number > 1 || !part.isLast) {
    all.set(HEADER.part, `${part.number} ${part.isLast ? 'last' : 'more'} ${part.inputEnd} ${previous}`);
  }
  if (part.rejected !== undefined) all.set(HEADER.rejected, part.rejected);
  return all;
}

/** Reads back what {@link partHeaders} wrote; undefined for a message that is not one of these. */
export function parsePart({ header, seq, data }: Pick<StoredMsg, 'header' | 'seq' | 'data'>): StoredPart | undefined {
  const source = /^\S+ (\d+) (\d+)$/.exec(header.get(HEADER.source));
  if (source === null) return undefined;
  const part = /^(\d+) (more|last) (\d+) (\d+)$/.exec(header.get(HEADER.part) || '1 last 0 0')!;
  return {
    source: { sequence: Number(source[1]), storedAt: source[2]! },
    number: Number(part[1]),
    isLast: part[2] === 'last',
    inputEnd: Number(part[3]),
    release: header.get(HEADER.release),
    rejected: header.get(HEADER.rejected) || undefined,
    bytes: data,
    position: seq,
    previous: Number(part[4]),
  };
}

/** The answer of a stream to a message. With an error, `seq` is 0. */
interface PublishAnswer {
  seq: number;
  error?: { err_code: number; description: string };
}

function parsePublishAnswer({ data }: Msg): PublishAnswer {
  return JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.length).toString()) as PublishAnswer;
}

/** A request for messages that the server still works on. */
interface OpenPull {
  reply: string;
  consumer: string;
  messagesLeft: number;
  deliver: (delivery: Delivery, consumerSequence: number) => void;
  /** @param isSuspicious whether the consumer may be gone */
  end: (isSuspicious: boolean) => void;
}

/** A request that the server has not answered yet. */
interface OpenRequest {
  subject: string;
  /** When it was sent, in milliseconds of the clock of the process. */
  sentAt: number;
  resolve: (answer: Msg) => void;
  reject: (error: Error) => void;
}

export class NatsBroker implements Broker {
  readonly redeliverAfterMs: number;
  readonly closed: Promise<Error | undefined>;
  readonly #connection: NatsConnection;
  readonly #manager: JetStreamManager;
  readonly #names: StreamNames;
  readonly #setup: Setup;
  readonly #inbox = createInbox();
  #pull: OpenPull | undefined;
  #pulls = 0;
  #isConnected = true;
  #disconnects = 0;
  /** Requests without an answer so far, by their reply subjects, oldest first. */
  readonly #openRequests = new Map<string, OpenRequest>();
  #requests = 0;
  #requestTimer: NodeJS.Timeout | undefined;
  /** Set after a request without an answer: resolves when the server has taken everything that was sent. */
  #drained: Promise<void> | undefined;

  constructor(connection: NatsConnection, manager: JetStreamManager, names: StreamNames, setup: Setup) {
    this.#connection = connection;
    this.#manager = manager;
    this.#names = names;
    this.#setup = setup;
    this.redeliverAfterMs = setup.ackWaitMs;
    this.closed = connection.closed().then((error) => error ?? undefined);
    connection.subscribe(`${this.#inbox}.*`, { callback: (_error, message) => this.#receive(message) });
    void this.#watchConnection();
  }

  get maxPartBytes(): number {
    const maxPayload = this.#connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
    return Math.min(maxPayload, this.#setup.maxMessageBytes) - STREAM_HEADER_BYTES;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  async #watchConnection(): Promise<void> {
    for await (const status of this.#connection.status()) {
      const { type } = status;
      if (type === 'error') this.#failForbidden(status.error);
      if (type === 'disconnect') {
        this.#isConnected = false;
        this.#disconnects++;
        this.#drained = undefined;
        // The server forgets requests of a lost connection.
        this.#pull?.end(false);
        this.#failRequests('the connection was lost');
      }
      if (type === 'reconnect') this.#isConnected = true;
    }
  }

  /**
   * Makes a request only while the server takes what is sent. The client would keep everything in memory otherwise, once
   * more with each retry.
   */
  async #request<Result>(what: string, request: () => Promise<Result>): Promise<Result> {
    if (!this.#isConnected) throw new BrokerUnavailable(`${what}: not connected`);
    if (this.#drained !== undefined) {
      const isDrained = await Promise.race([this.#drained.then(() => true), sleep(STREAM_REQUEST_TIMEOUT_MS, false)]);
      if (!isDrained || !this.#isConnected) throw new BrokerUnavailable(`${what}: the server does not answer`);
    }
    try {
      return await request();
    } catch (error) {
      if (error instanceof JetStreamApiError || error instanceof AtlasError) throw error;
      if (error instanceof BrokerUnavailable) throw new BrokerUnavailable(`${what}: ${error.message}`);
      this.#drained ??= this.#connection
        .flush()
        .catch(() => {}) // a lost connection is noticed elsewhere
        .finally(() => {
          this.#drained = undefined;
        });
      throw new BrokerUnavailable(`${what}: ${messageOf(error)}`, { cause: error });
    }
  }

  /**
   * Sends a request and waits for the answer. The client library's request() makes a timer and an error with a stack trace for
   * each one, and goes on waiting when the connection is lost.
   */
  #ask(subject: string, bytes: Uint8Array | string, messageHeaders?: MsgHdrs): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const reply = `${this.#inbox}.${REQUEST_TOKEN}${++this.#requests}`;
      this.#openRequests.set(reply, { subject, sentAt: performance.now(), resolve, reject });
      this.#requestTimer ??= setTimeout(() => this.#failLateRequests(), STREAM_REQUEST_TIMEOUT_MS);
      this.#connection.publish(subject, bytes, { reply, ...(messageHeaders && { headers: messageHeaders }) });
    });
  }

  /** Waits for a request that the client library makes, but only as long as the connection lasts. */
  async #whileConnected<Result>(request: Promise<Result>): Promise<Result> {
    const key = String(++this.#requests);
    const lost = new Promise<never>((_, reject) => {
      this.#openRequests.set(key, { subject: '', sentAt: performance.now(), resolve: () => {}, reject });
    });
    try {
      return await Promise.race([request, lost]);
    } finally {
      this.#openRequests.delete(key);
    }
  }

  /** Rejects all open requests, because there will be no answers. */
  #failRequests(problem: string): void {
    for (const { reject } of this.#openRequests.values()) reject(new BrokerUnavailable(problem));
    this.#openRequests.clear();
  }

  /** Rejects the requests to a subject for which this user has no permission. */
  #failForbidden(error: Error): void {
    if (!(error instanceof PermissionViolationError) || error.operation !== 'publish') return;
    for (const { subject, reject } of this.#openRequests.values()) if (subject === error.subject) reject(error);
  }

  /** Rejects the requests whose time is over, and sets the timer for the next one. */
  #failLateRequests(): void {
    this.#requestTimer = undefined;
    for (const [reply, { sentAt, reject }] of this.#openRequests) {
      const left = sentAt + STREAM_REQUEST_TIMEOUT_MS - performance.now();
      if (left > 0) {
        this.#requestTimer = setTimeout(() => this.#failLateRequests(), left);
        return;
      }
      this.#openRequests.delete(reply);
      reject(new TimeoutError());
    }
  }

  /** Handles a message that belongs to no pull. Returns whether it is the answer to a request. */
  #isAnswer(message: Msg): boolean {
    const request = this.#openRequests.get(message.subject);
    if (request === undefined) return false;
    this.#openRequests.delete(message.subject);
    const isUnheard = message.data.length === 0 && message.headers?.code === STATUS_NO_RESPONDERS;
    if (isUnheard) request.reject(new Error('no responders'));
    else request.resolve(message);
    return true;
  }

  #receive(message: Msg): void {
    if (this.#isAnswer(message)) return;
    const pull = this.#pull;
    if (message.reply?.startsWith(ACK_PREFIX)) {
      const { consumer, consumerSequence, ...rest } = parseAckSubject(message.reply);
      // After the end of its request. A durable consumer delivers it again.
      if (pull?.consumer !== consumer) return;
      pull.deliver(this.#delivery(message, message.reply, rest), consumerSequence);
      if (--pull.messagesLeft === 0) pull.end(false);
      return;
    }
    // Statuses of earlier requests have another subject.
    if (message.subject !== pull?.reply) return;
    const { code, description } = message.headers ?? { code: 0, description: '' };
    if (code !== STATUS_HEARTBEAT) pull.end(code !== STATUS_TIMEOUT && !TOO_FEW_BYTES.test(description));
  }

  #delivery(message: Msg, reply: string, about: Pick<Delivery, 'source' | 'count'>): Delivery {
    return {
      ...about,
      bytes: message.data,
      acknowledge: async () => {
        await this.#request('acknowledge', () => this.#ask(reply, ACK));
      },
    };
  }

  /*
   * Speaks JetStream's pull protocol (NATS ADR-13) itself. The client library's fetch() ends with an error, and loses
   * messages that it holds, when the server reports that the next message exceeds max_bytes; its consume() then waits for
   * missed heartbeats.
   */
  async pull(limit: PullLimit, deliver: (delivery: Delivery) => void): Promise<void> {
    if (!this.#isConnected || this.#drained !== undefined) {
      await sleep(STREAM_RETRY_MS);
      return;
    }
    if (await this.#pullFrom(this.#names.consumer, limit, deliver)) await this.#checkConsumer();
  }

  /** Asks a consumer for messages once. Returns whether the consumer may be gone. */
  async #pullFrom(consumer: string, limit: PullLimit, deliver: OpenPull['deliver']): Promise<boolean> {
    const { from } = this.#names;
    const reply = `${this.#inbox}.${++this.#pulls}`;
    const isSuspicious = await new Promise<boolean>((resolve) => {
      const end = (suspicious: boolean): void => {
        clearTimeout(timer);
        resolve(suspicious);
      };
      const timer = setTimeout(() => end(true), limit.waitMs + PULL_GRACE_MS);
      this.#pull = { reply, consumer, messagesLeft: limit.messages, deliver, end };
      const request = { batch: limit.messages, max_bytes: limit.bytes, expires: nanos(limit.waitMs) };
      this.#connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${from}.${consumer}`, JSON.stringify(request), { reply });
    });
    this.#pull = undefined;
    return isSuspicious;
  }

  async readSource(startAt: StartAt): Promise<SourceReader> {
    const { from } = this.#names;
    const { consumers } = this.#manager;
    const disconnects = this.#disconnects;
    const { name } = await this.#apiRequest('read source', () => consumers.add(from, readerConfig(startAt)));
    let next = 1;
    let isComplete = true;
    return {
      pull: async (limit, deliver) => {
        // The server does not deliver again what was lost with a connection.
        if (disconnects !== this.#disconnects) return false;
        const isSuspicious = await this.#pullFrom(name, limit, (delivery, consumerSequence) => {
          isComplete &&= consumerSequence === next++;
          if (isComplete) deliver(delivery);
        });
        return isComplete && !isSuspicious && disconnects === this.#disconnects;
      },
      pending: async () => (await this.#apiRequest('read source', () => consumers.info(from, name))).num_pending,
      close: async () => {
        // The server forgets it by itself.
        await this.#apiRequest('read source', () => consumers.delete(from, name)).catch(() => {});
      },
    };
  }

  /** Fails if the consumer is gone. A server that starts may say so for a moment. */
  async #checkConsumer(): Promise<void> {
    const end = performance.now() + STREAM_GONE_MS;
    for (;;) {
      try {
        await this.#manager.consumers.info(this.#names.from, this.#names.consumer);
        return;
      } catch (error) {
        if (!isNotFound(error)) return;
        if (performance.now() > end) throw this.#gone(error);
        await sleep(10 * STREAM_RETRY_MS);
      }
    }
  }

  #gone(error: unknown): AtlasError {
    const { from, consumer } = this.#names;
    return new AtlasError('E_STREAM', `the consumer ${consumer} of ${from} is gone: ${messageOf(error)}`, {
      cause: error,
    });
  }

  append(part: OutputPart, previous: number, after?: number): Promise<number | undefined> {
    const subject = `${this.#setup.outputPrefix}.${part.source.sequence}`;
    return this.#publish(subject, part.bytes, partHeaders(part, previous, this.#names.from), {
      stream: this.#names.to,
      lastOfSubject: previous,
      last: after,
    });
  }

  /** Publishes if the last message of the subject, or of the stream, is the expected one; undefined if it is not. */
  async #publish(
    subject: string,
    bytes: Uint8Array,
    messageHeaders: MsgHdrs,
    expected: { stream: string; lastOfSubject: number; last?: number | undefined },
  ): Promise<number | undefined> {
    messageHeaders.set(EXPECTED.stream, expected.stream);
    messageHeaders.set(EXPECTED.lastOfSubject, String(expected.lastOfSubject));
    if (expected.last !== undefined) messageHeaders.set(EXPECTED.last, String(expected.last));
    const { seq, error } = parsePublishAnswer(
      await this.#request('publish', () => this.#ask(subject, bytes, messageHeaders)),
    );
    if (error === undefined) return seq;
    if (error.err_code === JetStreamApiCodes.StreamWrongLastSequence) return undefined;
    // Such as a full stream: room may be made.
    throw new BrokerUnavailable(`publish: ${error.description} (${error.err_code})`);
  }

  /** A message of a stream, by its sequence; null if it is not there. */
  #message(stream: string, seq: number): Promise<StoredMsg | null> {
    return this.#apiRequest('read message', () => this.#manager.streams.getMessage(stream, { seq }));
  }

  async #streamState(stream: string): Promise<StreamState> {
    return (await this.#apiRequest('stream', () => this.#manager.streams.info(stream))).state;
  }

  async lastPart(sequence: number): Promise<StoredPart | undefined> {
    const subject = `${this.#setup.outputPrefix}.${sequence}`;
    const message = await this.#apiRequest('read output', () =>
      this.#manager.streams.getMessage(this.#names.to, { last_by_subj: subject }),
    );
    return message === null ? undefined : parsePart(message);
  }

  async partAt(position: number): Promise<StoredPart | undefined> {
    const message = await this.#message(this.#names.to, position);
    return message === null ? undefined : parsePart(message);
  }

  async outputEnd(): Promise<number> {
    return (await this.#streamState(this.#names.to)).last_seq;
  }

  async outputTail(): Promise<OutputTail> {
    const { from, to } = this.#names;
    await this.#apiRequest('consumer', () => requireNoConsumer(this.#manager, this.#names));
    const position = await this.outputEnd();
    if (position === 0) return { position, part: undefined };
    const message = await this.#message(to, position);
    if (message === null) return { position, part: undefined };
    const part = parsePart(message);
    if (part !== undefined && message.header.get(HEADER.source).startsWith(`${from} `)) return { position, part };
    throw new AtlasError('E_STREAM', `the last message of ${to} is not output of ${from}; use another output stream`);
  }

  async reject({ source, offset, reason, bytes }: Reject): Promise<void> {
    const all = headers();
    all.set(HEADER.source, `${this.#names.from} ${source.sequence} ${source.storedAt}`);
    all.set(HEADER.rejected, reason);
    const subject = `${this.#setup.rejectsPrefix}.${source.sequence}${offset === undefined ? '' : `.${offset}`}`;
    await this.#publish(subject, bytes ?? new Uint8Array(0), all, { stream: this.#names.rejects, lastOfSubject: 0 });
  }

  /** A request to the API, in which every failure may pass. */
  async #apiRequest<Result>(what: string, request: () => Promise<Result>): Promise<Result> {
    try {
      return await this.#request(what, () => this.#whileConnected(request()));
    } catch (error) {
      if (error instanceof BrokerUnavailable || error instanceof AtlasError) throw error;
      throw new BrokerUnavailable(`${what}: ${messageOf(error)}`, { cause: error });
    }
  }

  async backlog(): Promise<Backlog> {
    const { from, consumer } = this.#names;
    if (this.#setup.ordered) {
      const { part } = await this.outputTail();
      const { last_seq } = await this.#streamState(from);
      const done = part === undefined ? this.#setup.startSequence - 1 : part.source.sequence - (part.isLast ? 0 : 1);
      return { pending: Math.max(0, last_seq - done), unacknowledged: 0, acknowledgedUpTo: done };
    }
    const info = await this.#apiRequest('consumer', () => this.#manager.consumers.info(from, consumer));
    return {
      pending: info.num_pending,
      unacknowledged: info.num_ack_pending,
      acknowledgedUpTo: info.ack_floor.stream_seq,
    };
  }

  async sourceRange(): Promise<SourceRange> {
    const { from, to } = this.#names;
    const { first_seq, last_seq } = await this.#streamState(from);
    let first = Math.max(first_seq, this.#setup.startSequence);
    if (this.#setup.ordered) {
      // Only the output knows at which message its workers began.
      const output = await this.#streamState(to);
      const part = output.messages === 0 ? undefined : await this.partAt(output.first_seq);
      first = Math.max(first, part?.source.sequence ?? 1);
    }
    return { first, last: last_seq };
  }

  async hasSource(sequence: number): Promise<boolean> {
    return (await this.#message(this.#names.from, sequence)) !== null;
  }

  /** Sends what is under way and closes. */
  async close(): Promise<void> {
    await this.#connection.close();
    clearTimeout(this.#requestTimer);
    this.#failRequests('the connection was closed');
  }
}
