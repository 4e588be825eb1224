/** The broker on NATS JetStream. */
import { randomUUID } from 'node:crypto';
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
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  nanos,
  nkeyAuthenticator,
  PermissionViolationError,
  TimeoutError,
} from '@nats-io/transport-node';
import { AtlasError, causedError, messageOf, misuse } from '../../errors.js';
import {
  STREAM_CONNECT_TIMEOUT_MS,
  STREAM_GONE_MS,
  STREAM_HEADER_BYTES,
  STREAM_READ_SUBJECTS,
  STREAM_REQUEST_TIMEOUT_MS,
} from '../../limits.js';
import { credentialsOf, PERCENT_ADVICE, parseUrl } from '../../url.js';
import { BrokerUnavailable, readFlagFile } from '../broker.js';
import {
  type Backlog,
  type Delivery,
  type OutputPart,
  type OutputTail,
  type PullLimit,
  type Reject,
  RejectsFull,
  type SourceId,
  type SourceRange,
  type SourceReader,
  type StartAt,
  type StoredPart,
  type StoredReject,
} from './chain.js';
import {
  deliveredOrigin,
  parsePart,
  parseReject,
  parseSource,
  partHeaders,
  rejectHeaders,
  requireSource,
} from './headers.js';
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
  nkey?: string | undefined;
  token?: string | undefined;
  tlsCa?: string | undefined;
  tlsCert?: string | undefined;
  tlsKey?: string | undefined;
}

/** Milliseconds between two pings, and pings without an answer after which a connection counts as lost. */
const PING_INTERVAL_MS = 10_000;
const MAX_PINGS_OUT = 2;
const RECONNECT_WAIT_MS = 250;

/** How much longer than the request itself a pull waits for the server's status that ends it, in milliseconds. */
const PULL_GRACE_MS = 2_000;

/** Statuses of a pull request: still open; its time is over; any failure, or too few bytes left for the next message. */
const STATUS_HEARTBEAT = 100;
const STATUS_TIMEOUT = 408;
const TOO_FEW_BYTES = /^message size exceeds maxbytes/i;

/**
 * Longest subject of the output in bytes: the server closes the connection of a client whose control line is longer than
 * max_control_line (4,096 bytes by default), which also has the reply subject and two lengths.
 */
const MAX_SUBJECT_BYTES = 4_000;

/** Takes the place of a source subject that is too long for that. */
const LONG_SUBJECT = '_';

/** Part of the largest output message that the headers of a source message may take. */
const MAX_HEADERS_SHARE = 4;

/** Status of a request whose subject nobody listens to. */
const STATUS_NO_RESPONDERS = 503;

/** Headers by which the server checks a message before it stores it. */
const EXPECTED = {
  stream: 'Nats-Expected-Stream',
  lastOfSubject: 'Nats-Expected-Last-Subject-Sequence',
  last: 'Nats-Expected-Last-Sequence',
} as const;

/** Header of an id by which the server notices that it has stored a message before, within the duplicate window of the stream. */
const MESSAGE_ID = 'Nats-Msg-Id';

/** Time between two looks for requests without an answer, in milliseconds. */
const LATE_REQUESTS_MS = 500;

/** Begins the last token of a request's reply subject; that of a pull is a number. */
const REQUEST_TOKEN = 'r';

const ACK = '+ACK';
const ACK_PREFIX = '$JS.ACK.';

function connectionOptions({ url, creds, nkey, token, tlsCa, tlsCert, tlsKey }: NatsServer): ConnectionOptions {
  const urls = url.split(',').map((one) => {
    const text = one.includes('://') ? one : `nats://${one}`;
    const parsed = parseUrl(text);
    if (parsed !== undefined && /^(nats|tls):$/.test(parsed.protocol)) return parsed;
    // Not quoted: it may hold a password.
    throw misuse(
      `--server must be an address such as nats://localhost:4222 or tls://nats.example:4222; ${PERCENT_ADVICE}`,
    );
  });
  const user = urls.map(credentialsOf).find((credentials) => credentials?.user);
  const tls = {
    ...(tlsCa !== undefined && { caFile: tlsCa }),
    ...(tlsCert !== undefined && { certFile: tlsCert }),
    ...(tlsKey !== undefined && { keyFile: tlsKey }),
  };
  const usesTls = Object.keys(tls).length > 0 || urls.some(({ protocol }) => protocol === 'tls:');
  return {
    servers: urls.map(({ host }) => host),
    name: 'ipatlas stream',
    ...user,
    ...(creds !== undefined && { authenticator: credsAuthenticator(readFlagFile('creds', creds)) }),
    ...(nkey !== undefined && { authenticator: nkeyAuthenticator(Buffer.from(readText('nkey', nkey))) }),
    ...(token !== undefined && { token: readText('token', token) }),
    ...(usesTls && { tls }),
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_WAIT_MS,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: MAX_PINGS_OUT,
    // A connection that is lost in its handshake is noticed only after this time.
    timeout: STREAM_REQUEST_TIMEOUT_MS,
    noAsyncTraces: true,
  };
}

/** Whether a subject matches a filter with the wildcards of NATS: \* for one token, > for the rest. */
export function matchesFilter(subject: string, filter: string | undefined): boolean {
  if (filter === undefined) return true;
  const tokens = subject.split('.');
  const pattern = filter.split('.');
  const isLong = pattern.at(-1) === '>' ? tokens.length >= pattern.length : tokens.length === pattern.length;
  return isLong && pattern.every((one, at) => one === '>' || one === '*' || one === tokens[at]);
}

/** The text of a file that ends in a newline, as editors and "echo" write it. */
function readText(flag: string, path: string): string {
  return readFlagFile(flag, path).toString().trim();
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
 * Connects.
 *
 * @throws AtlasError E_STREAM if that fails, E_USAGE for a wrong address or credentials file
 */
export async function connectNats(server: NatsServer): Promise<NatsConnection> {
  const options = connectionOptions(server);
  try {
    return await connect(options);
  } catch (error) {
    const hosts = [options.servers ?? []].flat().join(', ');
    const advice = /auth/i.test(messageOf(error))
      ? 'give its user in --server nats://USER:PASSWORD@HOST, or with --creds, --nkey or --token'
      : 'start it, or name another with --server';
    throw causedError('E_STREAM', `cannot connect to the NATS server at ${hosts}`, error, advice);
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
      throw causedError('E_STREAM', 'the NATS server refuses a request', error, 'check the permissions of its user');
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
  subject: string;
  consumer: string;
  messagesLeft: number;
  deliver: (delivery: Delivery, consumerSequence: number) => void;
  /** @param isSuspicious whether the consumer may be gone */
  end: (isSuspicious: boolean) => void;
  /** Ends it with a failure that may pass. */
  fail: (error: Error) => void;
}

/** A request that the server has not answered yet. */
interface OpenRequest {
  subject: string;
  /** When it was sent, in milliseconds of the clock of the process. */
  sentAt: number;
  resolve: (answer: Msg) => void;
  reject: (error: Error) => void;
}

/** The streams and the consumer of a pipeline. Every request may throw BrokerUnavailable. */
export class NatsBroker {
  /** Milliseconds after which an unacknowledged message is delivered again. */
  readonly redeliverAfterMs: number;
  /** Resolves when the connection is lost for good, with the reason, or closed by `close`. */
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
  readonly #timer: NodeJS.Timeout;
  /** When a stream or consumer was first said to be missing, by what was asked for. */
  readonly #missingSince = new Map<string, number>();
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
    this.#timer = setInterval(() => this.#failLateRequests(), LATE_REQUESTS_MS).unref();
    void this.#watchConnection();
  }

  /** Largest part, in bytes of its payload, if it has no headers of the source. */
  get maxPartBytes(): number {
    const maxPayload = this.#connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
    return Math.min(maxPayload, this.#setup.maxMessageBytes) - STREAM_HEADER_BYTES;
  }

  /** Largest message of the source, in bytes. */
  get maxMessageBytes(): number {
    return this.#connection.info?.max_payload ?? this.maxPartBytes;
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
      this.#connection.publish(subject, bytes, { reply, ...(messageHeaders && { headers: messageHeaders }) });
    });
  }

  /** Waits for a request that the client library makes, but only as long as the connection lasts. */
  async #whileConnected<Result>(request: Promise<Result>): Promise<Result> {
    const key = `${this.#inbox}.${REQUEST_TOKEN}${++this.#requests}`;
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
    if (this.#pull?.subject === error.subject) this.#pull.fail(error);
  }

  /** Rejects the requests whose time is over. */
  #failLateRequests(): void {
    const late = performance.now() - STREAM_REQUEST_TIMEOUT_MS;
    for (const [reply, { sentAt, reject }] of this.#openRequests) {
      if (sentAt > late) return;
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
    const pull = this.#pull;
    // First, because a delivery has the subject of its producer, which may be any.
    if (message.reply?.startsWith(ACK_PREFIX)) {
      const { consumer, consumerSequence, ...rest } = parseAckSubject(message.reply);
      // After the end of its request. A durable consumer delivers it again.
      if (pull?.consumer !== consumer) return;
      pull.deliver(this.#delivery(message, message.reply, rest), consumerSequence);
      if (--pull.messagesLeft === 0) pull.end(false);
      return;
    }
    // Statuses of earlier pulls have another subject.
    if (this.#isAnswer(message) || message.subject !== pull?.reply) return;
    const { code, description } = message.headers ?? { code: 0, description: '' };
    if (code !== STATUS_HEARTBEAT) pull.end(code !== STATUS_TIMEOUT && !TOO_FEW_BYTES.test(description));
  }

  #delivery(message: Msg, reply: string, about: Pick<Delivery, 'source' | 'count'>): Delivery {
    const { origin, isReadable } = deliveredOrigin(message, this.maxPartBytes / MAX_HEADERS_SHARE);
    return {
      ...about,
      origin,
      bytes: message.data,
      refusal: this.#refusal(about.source.sequence, message.subject, isReadable),
      acknowledge: async () => {
        await this.#request('acknowledge', () => this.#ask(reply, ACK));
      },
    };
  }

  #refusal(sequence: number, subject: string, isReadable: boolean): Delivery['refusal'] {
    if (!isReadable) {
      return { reason: 'invalid_headers', detail: 'a name or a value of its headers is not valid in NATS' };
    }
    const fits = !this.#setup.keepsSubjects || this.#outputSubject(sequence, subject).endsWith(`.${subject}`);
    if (fits) return undefined;
    const detail = `with its subject, that of the output would be longer than ${MAX_SUBJECT_BYTES} bytes`;
    return { reason: 'subject_too_long', detail };
  }

  /**
   * Asks for messages once. Resolves when the request is over: the limit is reached, the time is over, or the connection was lost.
   * Speaks JetStream's pull protocol (NATS ADR-13) itself. The client library's fetch() ends with an error, and loses
   * messages that it holds, when the server reports that the next message exceeds max_bytes; its consume() then waits for
   * missed heartbeats.
   *
   * @param deliver called with each message as it arrives
   * @throws AtlasError E_STREAM if the stream or the consumer is gone
   */
  async pull(limit: PullLimit, deliver: (delivery: Delivery) => void): Promise<void> {
    if (!this.#isConnected) throw new BrokerUnavailable('pull: not connected');
    if (this.#drained !== undefined) throw new BrokerUnavailable('pull: the server does not answer');
    const { from, consumer } = this.#names;
    if (!(await this.#pullFrom(consumer, limit, deliver))) return;
    await this.#apiRequest(`consumer ${consumer} of ${from}`, () => this.#manager.consumers.info(from, consumer));
  }

  /** Asks a consumer for messages once. Returns whether the consumer may be gone. */
  async #pullFrom(consumer: string, limit: PullLimit, deliver: OpenPull['deliver']): Promise<boolean> {
    const { from } = this.#names;
    const reply = `${this.#inbox}.${++this.#pulls}`;
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${from}.${consumer}`;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<boolean>((end, reject) => {
        const fail = (error: Error): void =>
          reject(new BrokerUnavailable(`pull: ${messageOf(error)}`, { cause: error }));
        timer = setTimeout(() => end(true), limit.waitMs + PULL_GRACE_MS);
        this.#pull = { reply, subject, consumer, messagesLeft: limit.messages, deliver, end, fail };
        const request = { batch: limit.messages, max_bytes: limit.bytes, expires: nanos(limit.waitMs) };
        this.#connection.publish(subject, JSON.stringify(request), { reply });
      });
    } finally {
      clearTimeout(timer);
      this.#pull = undefined;
    }
  }

  /** Begins to read the source. */
  async readSource(startAt: StartAt): Promise<SourceReader> {
    const { from } = this.#names;
    const { consumers } = this.#manager;
    const disconnects = this.#disconnects;
    const { name } = await this.#apiRequest(`source ${from}`, () =>
      consumers.add(from, readerConfig(startAt, this.#setup.filter)),
    );
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

  /** @param subject of the source message, or a wildcard */
  #outputSubject(sequence: number, subject: string): string {
    const { outputPrefix, keepsSubjects } = this.#setup;
    const own = `${outputPrefix}.${sequence}`;
    if (!keepsSubjects) return own;
    const whole = `${own}.${subject}`;
    return Buffer.byteLength(whole) > MAX_SUBJECT_BYTES ? `${own}.${LONG_SUBJECT}` : whole;
  }

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
  append(part: OutputPart, previous: number, after?: number): Promise<number | undefined> {
    const subject = this.#outputSubject(part.source.sequence, part.origin?.subject ?? '');
    // A cluster checks the last sequence of the subject before, and that of the stream after, the appends that are under way.
    const expected = after === undefined ? { lastOfSubject: previous } : { last: after };
    const all = partHeaders(part, previous, this.#names.from, this.#setup.settings);
    // A node of a cluster that starts again can apply its log twice, and does not check the last sequence then: without an id
    // it would store a further part twice.
    if (previous > 0) all.set(MESSAGE_ID, randomUUID());
    return this.#publish(subject, part.bytes, all, { stream: this.#names.to, ...expected });
  }

  /** Publishes if the last message of the subject, or of the stream, is the expected one; undefined if it is not. */
  async #publish(
    subject: string,
    bytes: Uint8Array,
    messageHeaders: MsgHdrs,
    expected: { stream: string } & ({ lastOfSubject: number } | { last: number }),
    Refused: new (problem: string) => BrokerUnavailable = BrokerUnavailable,
  ): Promise<number | undefined> {
    messageHeaders.set(EXPECTED.stream, expected.stream);
    if ('last' in expected) messageHeaders.set(EXPECTED.last, String(expected.last));
    else messageHeaders.set(EXPECTED.lastOfSubject, String(expected.lastOfSubject));
    const { seq, error } = parsePublishAnswer(
      await this.#request('publish', () => this.#ask(subject, bytes, messageHeaders)),
    );
    if (error === undefined) return seq;
    if (error.err_code === JetStreamApiCodes.StreamWrongLastSequence) return undefined;
    // Such as a full stream: room may be made.
    throw new Refused(`${expected.stream} takes no messages: ${error.description} (${error.err_code})`);
  }

  /** A message of a stream, by its sequence; null if it is not there. */
  #message(stream: string, seq: number): Promise<StoredMsg | null> {
    return this.#apiRequest(`stream ${stream}`, () => this.#manager.streams.getMessage(stream, { seq }));
  }

  async #streamState(stream: string): Promise<StreamState> {
    return (await this.#apiRequest(`stream ${stream}`, () => this.#manager.streams.info(stream))).state;
  }

  /** The last message of a subject; null if there is none. */
  #lastMessage(stream: string, subject: string): Promise<StoredMsg | null> {
    return this.#apiRequest(`stream ${stream}`, () =>
      this.#manager.streams.getMessage(stream, { last_by_subj: subject }),
    );
  }

  /**
   * Returns the last part of a source message's output, undefined if there is none, or `foreign` if somebody else published to
   * its subject.
   *
   * @param sourceSubject of the source message, if it is known: spares requests
   * @throws BrokerUnavailable. AtlasError E_STREAM if it is output of another source
   */
  async lastPart(sequence: number, sourceSubject?: string): Promise<StoredPart | 'foreign' | undefined> {
    const { from, to } = this.#names;
    let subject = sourceSubject ?? '>';
    // The server searches all messages for a wildcard.
    if (sourceSubject === undefined && this.#setup.keepsSubjects) {
      subject = (await this.#message(from, sequence))?.subject ?? subject;
    }
    const message = await this.#lastMessage(to, this.#outputSubject(sequence, subject));
    if (message === null) return undefined;
    requireSource(message, to, from);
    return parsePart(message) ?? 'foreign';
  }

  /** Returns the part at a position of the output stream, or undefined. */
  async partAt(position: number): Promise<StoredPart | undefined> {
    const message = await this.#message(this.#names.to, position);
    return message === null ? undefined : parsePart(message);
  }

  /** Returns the position of the last message of the output stream. */
  async outputEnd(): Promise<number> {
    return (await this.#streamState(this.#names.to)).last_seq;
  }

  /**
   * Returns the last message of the output stream.
   *
   * @throws AtlasError E_STREAM if it is not output of this source
   */
  async outputTail(): Promise<OutputTail> {
    const { from, to } = this.#names;
    await this.#apiRequest('consumer', () => requireNoConsumer(this.#manager, this.#names));
    const position = await this.outputEnd();
    if (position === 0) return { position, part: undefined };
    const message = await this.#message(to, position);
    if (message === null) return { position, part: undefined };
    requireSource(message, to, from);
    const part = parsePart(message);
    if (part !== undefined) return { position, part };
    throw new AtlasError('E_STREAM', `the last message of ${to} is not output of ${from}; use another output stream`);
  }

  /**
   * Stores refused input, once for each source message and offset. Returns false if it was there.
   *
   * @throws RejectsFull if there is no room. AtlasError E_STREAM if the rejects of another source are there
   */
  async reject(reject: Reject): Promise<boolean> {
    const { source, offset, bytes = new Uint8Array(0) } = reject;
    const { from, rejects } = this.#names;
    const subject = `${this.#setup.rejectsPrefix}.${source.sequence}${offset === undefined ? '' : `.${offset}`}`;
    for (let lastOfSubject = 0; ; ) {
      const expected = { stream: rejects, lastOfSubject };
      const position = await this.#publish(subject, bytes, rejectHeaders(reject, from), expected, RejectsFull);
      if (position !== undefined) return true;
      // Stored by an earlier delivery; or the reject of another message that had the same sequence.
      const last = await this.#lastMessage(rejects, subject);
      if (last === null) throw new BrokerUnavailable('the rejects refuse a message and do not show another');
      requireSource(last, rejects, from);
      const other = parseSource(last)?.source;
      if (other?.sequence === source.sequence && other.storedAt === source.storedAt) return false;
      lastOfSubject = last.seq;
    }
  }

  /** Returns the positions of the first and last reject; `last` is below `first` if there are none. */
  async rejectRange(): Promise<SourceRange> {
    const { first_seq, last_seq } = await this.#streamState(this.#names.rejects);
    return { first: first_seq, last: last_seq };
  }

  async rejectAt(position: number): Promise<StoredReject | undefined> {
    const message = await this.#message(this.#names.rejects, position);
    return message === null ? undefined : parseReject(message);
  }

  async deleteReject(position: number): Promise<void> {
    const { rejects } = this.#names;
    await this.#apiRequest(`stream ${rejects}`, () => this.#manager.streams.deleteMessage(rejects, position, false));
  }

  /**
   * A request to the API, in which every failure may pass, but for a stream or consumer that is missing for long: a server that
   * starts may say so for a moment.
   *
   * @throws BrokerUnavailable. AtlasError E_STREAM for what is gone
   */
  async #apiRequest<Result>(what: string, request: () => Promise<Result>): Promise<Result> {
    try {
      const result = await this.#request(what, () => this.#whileConnected(request()));
      this.#missingSince.delete(what);
      return result;
    } catch (error) {
      if (error instanceof BrokerUnavailable || error instanceof AtlasError) throw error;
      if (isNotFound(error)) {
        const since = this.#missingSince.get(what) ?? performance.now();
        this.#missingSince.set(what, since);
        const isGone = performance.now() - since > STREAM_GONE_MS;
        if (isGone) throw causedError('E_STREAM', `${what} is gone`, error, 'start again with --init');
      }
      throw new BrokerUnavailable(`${what}: ${messageOf(error)}`, { cause: error });
    }
  }

  async backlog(): Promise<Backlog> {
    const { from, consumer } = this.#names;
    const { last_seq } = await this.#streamState(from);
    if (this.#setup.ordered) return this.#orderedBacklog(last_seq);
    const info = await this.#apiRequest(`consumer ${consumer} of ${from}`, () =>
      this.#manager.consumers.info(from, consumer),
    );
    const { num_pending: pending, num_ack_pending: unacknowledged, ack_floor } = info;
    // The last messages may be deleted, or not match the filter: these are never acknowledged.
    const isDone = pending === 0 && unacknowledged === 0;
    return {
      pending,
      unacknowledged,
      acknowledgedUpTo: isDone ? Math.max(last_seq, ack_floor.stream_seq) : ack_floor.stream_seq,
    };
  }

  async #orderedBacklog(lastSequence: number): Promise<Backlog> {
    const { part } = await this.outputTail();
    const done = part === undefined ? this.#setup.startSequence - 1 : part.source.sequence - (part.isLast ? 0 : 1);
    let pending = Math.max(0, lastSequence - done);
    if (pending > 0 && this.#setup.filter !== undefined) {
      // Only a consumer counts what matches the filter.
      const reader = await this.readSource({ kind: 'sequence', sequence: done + 1 });
      pending = await reader.pending().finally(() => reader.close());
    }
    return { pending, unacknowledged: 0, acknowledgedUpTo: pending === 0 ? Math.max(done, lastSequence) : done };
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

  /**
   * Returns the sequences whose output can be read, also of messages that the source does not hold any more.
   *
   * @param from first one; by default the first that the source or the output holds
   * @throws AtlasError E_STREAM if `from` is missing and too much output would have to be searched for it
   */
  async readableRange(from?: number): Promise<SourceRange> {
    const { first, last } = await this.sourceRange();
    if (from !== undefined) return { first: from, last };
    const { to } = this.#names;
    const oldest = first > 1 ? Math.min(...(await this.#outputSequences(to))) : first;
    return { first: Math.max(1, Math.min(first, oldest)), last };
  }

  /** The source sequences of which there is output. It is in the order in which workers finished, so all subjects count. */
  async #outputSequences(to: string): Promise<number[]> {
    const { num_subjects = 0 } = await this.#streamState(to);
    if (num_subjects > STREAM_READ_SUBJECTS) {
      throw new AtlasError(
        'E_STREAM',
        `the first messages were deleted from the source, and ${to} has ${num_subjects} subjects to search for their ` +
          'output: say with --from-seq where to begin',
      );
    }
    const filter = `${this.#setup.outputPrefix}.>`;
    const { state } = await this.#apiRequest(`stream ${to}`, () =>
      this.#manager.streams.info(to, { subjects_filter: filter }),
    );
    const at = filter.length - 1;
    return Object.keys(state.subjects ?? {}).map((subject) => Number.parseInt(subject.slice(at), 10));
  }

  /** Whether the source stream still holds a message that workers process. */
  async hasSource(sequence: number): Promise<boolean> {
    const message = await this.#message(this.#names.from, sequence);
    return message !== null && matchesFilter(message.subject, this.#setup.filter);
  }

  async close(): Promise<void> {
    await this.#connection.close();
    clearInterval(this.#timer);
    this.#failRequests('the connection was closed');
  }
}
