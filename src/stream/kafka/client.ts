/**
 * What is used of the client library, `@platformatic/kafka`, an optional peer that needs a later Node than ipatlas does. So its
 * types are written here: the project compiles without it, and test/soak/kafka.test.ts uses all of it against a broker.
 */
import { AtlasError, causedError, messageOf } from '../../errors.js';
import { KAFKA_REQUEST_TIMEOUT_MS } from '../../limits.js';
import { BrokerUnavailable } from '../broker.js';

type Bytes = Buffer | null;

/** A record as the library reads it. */
export interface KafkaRecord {
  timestampDelta: bigint;
  offsetDelta: number;
  key: Bytes;
  value: Bytes;
  headers: [name: Bytes, value: Bytes][];
}

export interface RecordsBatch {
  firstOffset: bigint;
  lastOffsetDelta: number;
  attributes: number;
  firstTimestamp: bigint;
  maxTimestamp: bigint;
  producerId: bigint;
  records: KafkaRecord[];
}

export interface FetchedPartition {
  partitionIndex: number;
  lastStableOffset: bigint;
  abortedTransactions: { producerId: bigint; firstOffset: bigint }[] | null;
  records?: RecordsBatch[] | null | undefined;
}

/** A record to be written. Headers are a map so that the library takes names that are bytes; a name may be there twice. */
export interface NewRecord {
  topic: string;
  partition: number;
  key?: Buffer | undefined;
  value: Buffer | undefined;
  headers: Map<Buffer, Buffer>;
  timestamp?: bigint;
}

export const COMPRESSIONS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

/** Who a member of a consumer group was when it got its partitions. */
export interface Membership {
  groupId: string;
  memberId: string;
  generationId: number;
  coordinatorId: number;
}

export interface Topic {
  id: string;
  partitions: { leader: number; replicas: number[] }[];
}

interface Client {
  on(event: string, listener: (payload: never) => void): unknown;
  metadata(options: { topics: string[]; forceUpdate?: boolean }): Promise<{ topics: Map<string, Topic> }>;
  close(): Promise<void>;
}

export interface Consumer extends Client {
  topics: { track(topic: string): boolean };
  coordinatorId: number | null;
  joinGroup(): Promise<unknown>;
  fetch(options: {
    node: number;
    maxWaitTime: number;
    minBytes: number;
    maxBytes: number;
    isolationLevel: number;
    topics: { topicId: string; partitions: object[] }[];
  }): Promise<{ responses: { partitions: FetchedPartition[] }[] }>;
  listOffsets(options: {
    topics: string[];
    partitions?: Record<string, number[]>;
    timestamp: bigint;
    isolationLevel: number;
  }): Promise<Map<string, bigint[]>>;
}

export interface Transaction {
  addConsumer(consumer: Membership): Promise<void>;
  addOffset(message: { topic: string; partition: number; offset: bigint; metadata: object }): Promise<void>;
  send(options: { messages: NewRecord[]; compression: Compression }): Promise<unknown>;
  commit(): Promise<void>;
  abort(): Promise<void>;
}

export interface Producer extends Client {
  beginTransaction(): Promise<Transaction>;
}

export interface Admin extends Client {
  createTopics(options: { topics: string[]; partitions: number; replicas: number }): Promise<unknown>;
  describeConfigs(options: {
    resources: { resourceType: number; resourceName: string; configurationKeys: string[] }[];
  }): Promise<{ resourceName: string; configs: { name: string; value: string | null }[] }[]>;
  listConsumerGroupOffsets(options: {
    groups: { groupId: string; topics: { name: string; partitionIndexes: number[] }[] }[];
    requireStable: boolean;
  }): Promise<{ topics: { partitions: { partitionIndex: number; committedOffset: bigint }[] }[] }[]>;
}

type Options = Record<string, unknown>;

/** The library. */
export interface KafkaModule {
  Admin: new (options: Options) => Admin;
  Consumer: new (options: Options) => Consumer;
  Producer: new (options: Options) => Producer;
  /** Hashes a key as Kafka's own producer does. The library's default has another sign. */
  compatibilityPartitioner(message: object, key: Buffer): number;
}

/** Options of each client: addresses, TLS, credentials. */
export interface KafkaServer {
  bootstrapBrokers: string[];
  tls?: { ca?: Buffer; cert?: Buffer; key?: Buffer };
  sasl?: { mechanism: string; username?: string; password?: string; token?: string };
}

/** The clients of one worker. A fetch waits for records at the broker, so it has connections of its own. */
export class Clients {
  readonly #module: KafkaModule;
  readonly #options: Options;
  readonly #open: Client[] = [];

  constructor(module: KafkaModule, server: KafkaServer) {
    this.#module = module;
    this.#options = {
      ...server,
      clientId: 'ipatlas-stream',
      connectTimeout: KAFKA_REQUEST_TIMEOUT_MS,
      requestTimeout: 2 * KAFKA_REQUEST_TIMEOUT_MS,
      // Of a request at the broker, and of a transaction.
      timeout: KAFKA_REQUEST_TIMEOUT_MS,
      // The markers of the transaction before may still be written; other failures are dealt with by the worker.
      retries: 5,
      retryDelay: (_client: unknown, _operation: string, attempt: number): number => 10 * 2 ** attempt,
    };
  }

  #add<One extends Client>(client: One): One {
    this.#open.push(client);
    // What fails is noticed by the request that fails. Without a listener, Node would end the process.
    client.on('error', () => {});
    return client;
  }

  admin(): Admin {
    return this.#add(new this.#module.Admin(this.#options));
  }

  consumer(options: Options): Consumer {
    return this.#add(new this.#module.Consumer({ ...this.#options, ...options }));
  }

  producer(transactionalId: string): Producer {
    return this.#add(new this.#module.Producer({ ...this.#options, idempotent: true, transactionalId }));
  }

  /** Closes all clients; a member leaves its group if the broker answers. Never rejects. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#open.splice(0).map((client) => client.close()));
  }
}

/** The failures within a failure of the client library, the innermost ones. */
function* leaves(error: unknown): Generator<Record<string, unknown> & Error> {
  if (!(error instanceof Error)) return;
  const inner =
    'errors' in error && Array.isArray(error.errors) && error.errors.length > 0 ? error.errors : [error.cause];
  let hasInner = false;
  for (const one of inner) {
    for (const leaf of leaves(one)) {
      hasInner = true;
      yield leaf;
    }
  }
  if (!hasInner) yield error as unknown as Record<string, unknown> & Error;
}

/** What the client library says without the name of the error. */
export const UNKNOWN_TOPIC = 'UNKNOWN_TOPIC_OR_PARTITION';

/** Returns the names of the protocol's errors in a failure, such as `ILLEGAL_GENERATION`. */
export function protocolErrors(error: unknown): string[] {
  const ids = [...leaves(error)].map(
    ({ apiId, message }) => apiId ?? (message.startsWith('Unknown topic') ? UNKNOWN_TOPIC : ''),
  );
  return ids.filter((id) => typeof id === 'string');
}

/** Errors that another try does not remove, with what to do. */
const LASTING: Record<string, string> = {
  INCONSISTENT_GROUP_PROTOCOL:
    'the group has other members, of another program or with another --from, --to or --rejects: name another --group',
  GROUP_AUTHORIZATION_FAILED: 'allow its user to read the group',
  TOPIC_AUTHORIZATION_FAILED: 'allow its user to read --from and to write --to and --rejects',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    'allow its user to write transactional ids that begin with the name of the group',
  CLUSTER_AUTHORIZATION_FAILED: 'allow its user to write idempotently',
  INVALID_TRANSACTION_TIMEOUT: `transaction.max.timeout.ms of the brokers must be at least ${KAFKA_REQUEST_TIMEOUT_MS}`,
  SASL_AUTHENTICATION_FAILED: 'check user and password',
  UNSUPPORTED_SASL_MECHANISM: 'name another one with --sasl',
};

/**
 * Returns a failure of the client library as the worker takes it: most pass.
 *
 * @returns BrokerUnavailable, or AtlasError E_STREAM for what another try does not remove
 */
export function kafkaError(what: string, error: unknown): BrokerUnavailable | AtlasError {
  if (error instanceof BrokerUnavailable || error instanceof AtlasError) return error;
  const lasting = protocolErrors(error).find((id) => id in LASTING);
  if (lasting !== undefined) return causedError('E_STREAM', what, new Error(lasting), LASTING[lasting]!);
  const isRefused = [...leaves(error)].some(({ code }) => code === 'PLT_KFK_AUTHENTICATION');
  if (isRefused) return causedError('E_STREAM', what, error, 'check user and password, and --sasl');
  const texts = [
    ...new Set([...leaves(error)].map((leaf) => (leaf.apiId === undefined ? leaf.message : String(leaf.apiId)))),
  ];
  return new BrokerUnavailable(`${what}: ${texts.join(', ') || messageOf(error)}`, { cause: error });
}

/** Waits for a request of the client library. Throws what {@link kafkaError} returns. */
export async function ask<Result>(what: string, request: Promise<Result>): Promise<Result> {
  try {
    return await request;
  } catch (error) {
    throw kafkaError(what, error);
  }
}
