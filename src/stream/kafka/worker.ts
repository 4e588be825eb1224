/**
 * The worker on Kafka: a member of a consumer group that reads, enriches and writes in transactions.
 *
 * Each record is in the output exactly once because one transaction holds its output, its reject, and the group's new offset. Two
 * rules make this hold when workers die, hang and wake up (KIP-447): an offset is written in the name of the membership under
 * which its records were read, so the group's coordinator refuses it once a partition may belong to another member; and a worker
 * that takes over a partition reads its offset only when no transaction is open that may change it. After any failure, a worker
 * begins again at the group's offsets, as another transactional id: it never has to find out what became of a transaction.
 */
import { createHash, randomUUID } from 'node:crypto';
import { EventEmitter, once, setMaxListeners } from 'node:events';
import { AtlasError } from '../../errors.js';
import {
  KAFKA_BYTES_IN_FLIGHT,
  KAFKA_FETCH_MS,
  KAFKA_HEARTBEAT_MS,
  KAFKA_REBALANCE_MS,
  KAFKA_RECORDS_A_TRANSACTION,
  KAFKA_SESSION_MS,
  STREAM_GONE_MS,
} from '../../limits.js';
import {
  type ActiveRelease,
  BrokerUnavailable,
  pauseAfter,
  type RejectReason,
  type StreamWorker,
  type WorkerEvents,
} from '../broker.js';
import { FlowWindow } from '../flow.js';
import {
  type Admin,
  ask,
  Clients,
  COMPRESSIONS,
  type Compression,
  type Consumer,
  type KafkaModule,
  type KafkaServer,
  type Membership,
  type NewRecord,
  type Producer,
  protocolErrors,
} from './client.js';
import { committedRecords, enrichRecords, type Outcome, type SourceRecord } from './records.js';
import { type KafkaSetup, type KafkaSetupOptions, readTopics, requireTopics } from './setup.js';

export interface KafkaWorkerOptions {
  module: KafkaModule;
  server: KafkaServer;
  setupOptions: KafkaSetupOptions;
  setup: KafkaSetup;
  /** Undefined: that of the output topic, or else that of the source's records. */
  compression: Compression | undefined;
  release: () => ActiveRelease;
  /** Whether records can be enriched as one block. */
  areLines: boolean;
  events: WorkerEvents;
  /** Ends when all records that the source held at the start are done, by any worker of the group. */
  once: boolean;
  /** Aborting ends the worker after the transaction in flight. */
  signal: AbortSignal;
}

/** A member of the group with its partitions, and who it was when it got them. */
interface Member extends Membership {
  partitions: readonly number[];
}

/** The membership in the group. The client library renews it by itself. */
interface Group {
  /** Undefined while the group gives its partitions to others. */
  member: Member | undefined;
  /** Whether the client library has failed to join again: it tries no more. */
  isLost: boolean;
  close(): Promise<void>;
}

/** The work of a member with its partitions. */
interface Session {
  /** Number of partitions of each topic. */
  counts: ReadonlyMap<string, number>;
  /** Offsets of the group. */
  committed: Map<number, bigint>;
  /** Offsets to read on from. */
  positions: Map<number, bigint>;
  /** What was read, in the order of each partition. */
  queue: SourceRecord[];
  flow: FlowWindow;
  /** Code of the compression of what was read last. */
  compression: number;
  isOver: () => boolean;
}

/** Hexadecimal digits that tell the topics of a group apart. */
const HASH_DIGITS = 16;

const READ_COMMITTED = 1;
const EARLIEST = -2n;
const LATEST = -1n;

/** Failures in a row without progress after which the membership is given up, too. */
const FAILURES_OF_MEMBERSHIP = 4;

/** Bytes that the broker's format adds to a record and to each of its headers, at most. */
const RECORD_BYTES = 40;
const HEADER_BYTES = 10;
/** The same for a batch. */
const BATCH_BYTES = 100;
/**
 * Most milliseconds between the times of two records of a batch: the client library writes differences of more than 31 bits wrongly
 * (@platformatic/dynamic-buffer 0.3.1, int64ZigZagEncode).
 */
const MAX_SPAN = 1n << 30n;
/** Characters of the explanation of a reject that are kept. */
const DETAIL_CHARACTERS = 200;

/** Errors of the broker that concern the record, not its producer. */
const RECORD_ERRORS: Record<string, RejectReason> = {
  MESSAGE_TOO_LARGE: 'too_large',
  RECORD_LIST_TOO_LARGE: 'too_large',
  INVALID_TIMESTAMP: 'refused_by_broker',
  INVALID_RECORD: 'refused_by_broker',
  CORRUPT_MESSAGE: 'refused_by_broker',
};

const HEADER = {
  /** `<topic> <partition> <offset>` */
  source: Buffer.from('ipatlas-source'),
  release: Buffer.from('ipatlas-release'),
  /** Of a reject: the reason, and an explanation. */
  rejected: Buffer.from('ipatlas-rejected'),
  detail: Buffer.from('ipatlas-detail'),
  /** `too large`: the value was left out of a reject. */
  value: Buffer.from('ipatlas-value'),
};
const RESERVED = /^ipatlas-/i;

/** The headers of a record, without those that only ipatlas writes, and further ones. */
function withHeaders({ headers }: SourceRecord, ...own: [Buffer, string][]): Map<Buffer, Buffer> {
  const all = new Map<Buffer, Buffer>();
  for (const [name, value] of headers) {
    if (name !== null && !RESERVED.test(name.toString('latin1'))) all.set(name, value as Buffer);
  }
  for (const [name, text] of own) all.set(name, Buffer.from(text));
  return all;
}

function bytesOf({ key, value, headers }: Pick<NewRecord, 'key' | 'value' | 'headers'>): number {
  let bytes = RECORD_BYTES + (key?.length ?? 0) + (value?.length ?? 0);
  for (const [name, header] of headers) bytes += HEADER_BYTES + name.length + (header?.length ?? 0);
  return bytes;
}

/** Bytes of some records of the source. */
const bytesIn = (records: readonly SourceRecord[]): number =>
  records.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0);

const placeOf = ({ partition, offset }: SourceRecord) => ({ partition, offset });

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);

/** Waits for the event `ring` of a bell, or some milliseconds. */
async function waitFor(bell: EventEmitter, milliseconds: number): Promise<void> {
  await once(bell, 'ring', { signal: AbortSignal.timeout(milliseconds) }).catch(() => {});
}

interface JoinEvent extends Omit<Membership, 'coordinatorId'> {
  assignments?: { topic: string; partitions: number[] }[];
}

/**
 * Joins the group. Only members with the same topics can be in it: they have the same protocol, whose name is made of these.
 *
 * @param changed rings when the partitions change
 * @throws AtlasError E_STREAM if others are there; BrokerUnavailable
 */
async function joinGroup({ module, server, setupOptions }: KafkaWorkerOptions, changed: EventEmitter): Promise<Group> {
  const { names, byKey } = setupOptions;
  const topics = createHash('sha256')
    .update(JSON.stringify([names, byKey]))
    .digest('hex');
  const clients = new Clients(module, server);
  const consumer = clients.consumer({
    groupId: names.group,
    autocommit: false,
    sessionTimeout: KAFKA_SESSION_MS,
    rebalanceTimeout: KAFKA_REBALANCE_MS,
    heartbeatInterval: KAFKA_HEARTBEAT_MS,
    protocols: [{ name: `ipatlas-${topics.slice(0, HASH_DIGITS)}`, version: 1 }],
  });
  const group: Group = { member: undefined, isLost: false, close: () => clients.close() };
  const become = (member?: Member): void => {
    group.member = member;
    changed.emit('ring');
  };
  consumer.on('consumer:group:join', ({ groupId, memberId, generationId, assignments }: JoinEvent) => {
    const partitions = assignments?.find(({ topic }) => topic === names.from)?.partitions ?? [];
    become({
      ...{ groupId, memberId, generationId, partitions },
      // The coordinator may move to another broker.
      get coordinatorId() {
        return consumer.coordinatorId ?? -1;
      },
    });
  });
  for (const event of ['rebalance', 'leave']) consumer.on(`consumer:group:${event}`, () => become());
  consumer.on('error', () => {
    group.isLost = true;
    become();
  });
  consumer.topics.track(names.from);
  try {
    await ask(`join the group ${names.group}`, consumer.joinGroup());
    return group;
  } catch (error) {
    await clients.close();
    throw error;
  }
}

const newWindow = (): FlowWindow => new FlowWindow({ messages: Number.MAX_SAFE_INTEGER, bytes: KAFKA_BYTES_IN_FLIGHT });

export class KafkaWorker implements StreamWorker {
  readonly #options: KafkaWorkerOptions;
  #flow = newWindow();
  readonly lag = new Map<number, bigint>();
  /** Rings when there is something to do or the partitions changed. */
  readonly #bell = new EventEmitter();
  isConnected = false;
  #outputBytes = 0;
  /** Most records of the next transaction: fewer while a record is looked for that the broker refuses. */
  #limit = KAFKA_RECORDS_A_TRANSACTION;
  /** A record that the broker refuses. */
  #refused: { partition: number; offset: bigint; reason: RejectReason; detail: string } | undefined;
  #failures = 0;
  /** Records without a key so far. */
  #keyless = 0;
  #missingSince: number | undefined;
  /** With `once`: the offsets at which the source ended at the start. */
  #ends: Map<number, bigint> | undefined;

  constructor(options: KafkaWorkerOptions) {
    this.#options = options;
    setMaxListeners(0, options.signal);
  }

  get inFlight(): { messages: number; inputBytes: number; outputBytes: number } {
    return { messages: this.#flow.messages, inputBytes: this.#flow.bytes, outputBytes: this.#outputBytes };
  }

  /**
   * Works until aborted or, with `once`, until the source is done. The transaction in flight is finished first.
   *
   * @throws AtlasError E_STREAM if a topic is gone, has another number of partitions, or a permission is missing
   */
  async run(): Promise<void> {
    const { events, signal } = this.#options;
    const stop = (): boolean => this.#bell.emit('ring');
    signal.addEventListener('abort', stop);
    let group: Group | undefined;
    try {
      while (!signal.aborted) {
        try {
          group ??= await joinGroup(this.#options, this.#bell);
          const member = await this.#memberOf(group);
          if (member === undefined || (await this.#work(group, member))) break;
        } catch (error) {
          if (!(error instanceof BrokerUnavailable)) throw error;
          this.isConnected = false;
          this.#checkGone(error);
          events.retried(error.message);
          await pauseAfter(++this.#failures, signal);
          if (!group?.isLost && this.#failures % FAILURES_OF_MEMBERSHIP !== 0) continue;
          await group?.close();
          group = undefined;
        }
      }
    } finally {
      signal.removeEventListener('abort', stop);
      await group?.close();
    }
  }

  /** Waits for partitions; undefined when told to stop. Throws BrokerUnavailable if there are none for longer than a rebalance takes. */
  async #memberOf(group: Group): Promise<Member | undefined> {
    const end = performance.now() + KAFKA_REBALANCE_MS + KAFKA_SESSION_MS;
    while (group.member === undefined && !this.#options.signal.aborted) {
      if (performance.now() > end) group.isLost = true;
      if (group.isLost) throw new BrokerUnavailable('the group does not give this worker its partitions');
      await waitFor(this.#bell, KAFKA_FETCH_MS);
    }
    return group.member;
  }

  /** Throws AtlasError E_STREAM if a topic has been missing for long; brokers that start may not know it for a moment. */
  #checkGone(error: BrokerUnavailable): void {
    if (!protocolErrors(error).some((id) => id.startsWith('UNKNOWN_TOPIC'))) {
      this.#missingSince = undefined;
      return;
    }
    this.#missingSince ??= performance.now();
    if (performance.now() - this.#missingSince < STREAM_GONE_MS) return;
    throw new AtlasError('E_STREAM', `a topic is gone (${error.message}); start again with --init`);
  }

  /**
   * Works as one member, until the group gives other partitions.
   *
   * @returns whether there is nothing more to do. Throws as {@link ask} does
   */
  async #work(group: Group, member: Member): Promise<boolean> {
    const { module, server, setupOptions, once, signal } = this.#options;
    const { names } = setupOptions;
    const clients = new Clients(module, server);
    const over = new AbortController();
    const isOver = (): boolean => over.signal.aborted || signal.aborted || group.member !== member;
    try {
      const admin = clients.admin();
      const topics = await readTopics(admin, names);
      this.#missingSince = undefined;
      const counts = requireTopics(topics, setupOptions);
      const reader = clients.consumer({ groupId: names.group });
      reader.topics.track(names.from);
      if (once) this.#ends ??= await this.#offsets(reader, [...Array(counts.get(names.from)).keys()], LATEST);
      const committed = await this.#committed(admin, member.partitions);
      const positions = await this.#positions(reader, committed);
      this.#flow = newWindow();
      const session: Session = { counts, committed, positions, queue: [], flow: this.#flow, compression: 0, isOver };
      this.isConnected = true;
      this.lag.clear();
      const { id, partitions } = topics.get(names.from)!;
      for (const node of new Set(member.partitions.map((partition) => partitions[partition]!.leader))) {
        const own = member.partitions.filter((partition) => partitions[partition]!.leader === node);
        this.#fetch(reader, { id, node, own }, session).catch((error: unknown) => {
          over.abort(error);
          this.#bell.emit('ring');
        });
      }
      const producer = clients.producer(`${names.group}-${randomUUID()}`);
      while (!isOver()) {
        if (await this.#process(producer, member, session)) continue;
        if (await this.#isDone(admin)) return true;
        await waitFor(this.#bell, KAFKA_FETCH_MS);
      }
      over.signal.throwIfAborted();
      return signal.aborted;
    } finally {
      over.abort();
      await clients.close();
    }
  }

  /** Reads offsets of the source, that of committed records if it is its end. */
  async #offsets(reader: Consumer, partitions: number[], timestamp: bigint): Promise<Map<number, bigint>> {
    const { from } = this.#options.setupOptions.names;
    if (partitions.length === 0) return new Map();
    const options = { topics: [from], partitions: { [from]: partitions }, timestamp, isolationLevel: READ_COMMITTED };
    const offsets = (await ask('offsets of the source', reader.listOffsets(options))).get(from) ?? [];
    return new Map(partitions.map((partition) => [partition, offsets[partition]!]));
  }

  /** Returns the group's offsets, once no transaction is open that may change them; -1 where it has none. */
  async #committed(admin: Admin, partitions: readonly number[]): Promise<Map<number, bigint>> {
    const { from, group } = this.#options.setupOptions.names;
    if (partitions.length === 0) return new Map();
    const groups = [{ groupId: group, topics: [{ name: from, partitionIndexes: [...partitions] }] }];
    const request = admin.listConsumerGroupOffsets({ groups, requireStable: true });
    const [found] = await ask('offsets of the group', request);
    const offsets = new Map(found?.topics[0]?.partitions.map((one) => [one.partitionIndex, one.committedOffset]));
    return new Map(partitions.map((partition) => [partition, offsets.get(partition) ?? -1n]));
  }

  /** Where to begin. */
  async #positions(reader: Consumer, committed: ReadonlyMap<number, bigint>): Promise<Map<number, bigint>> {
    const partitions = [...committed.keys()];
    const first = await this.#offsets(reader, partitions, EARLIEST);
    const last = await this.#offsets(reader, partitions, LATEST);
    const positions = new Map<number, bigint>();
    for (const [partition, offset] of committed) {
      const earliest = first.get(partition)!;
      if (offset > last.get(partition)!) {
        throw new AtlasError(
          'E_STREAM',
          `the group is at record ${offset} of partition ${partition}, and the source ends before it: it was deleted and ` +
            'created again, or lost records; name another --group and another output',
        );
      }
      if (offset >= 0n && offset < earliest) this.#options.events.lost({ partition, offset }, earliest - offset);
      positions.set(partition, offset < earliest ? earliest : offset);
    }
    return positions;
  }

  /** With `once`: whether the group is past the end that the source had. */
  async #isDone(admin: Admin): Promise<boolean> {
    if (this.#ends === undefined) return false;
    const committed = await this.#committed(admin, [...this.#ends.keys()]);
    return [...this.#ends].every(([partition, end]) => end === 0n || committed.get(partition)! >= end);
  }

  /** Reads the partitions that one broker leads, until the work is over. */
  async #fetch(
    reader: Consumer,
    { id, node, own }: { id: string; node: number; own: number[] },
    session: Session,
  ): Promise<void> {
    const { events } = this.#options;
    const { positions, queue, flow, isOver } = session;
    while (!isOver()) {
      await flow.hasRoom();
      const partitions = own.map((partition) => ({
        partition,
        fetchOffset: positions.get(partition)!,
        partitionMaxBytes: KAFKA_BYTES_IN_FLIGHT / 4,
        currentLeaderEpoch: -1,
        lastFetchedEpoch: -1,
      }));
      const request = reader.fetch({
        node,
        topics: [{ topicId: id, partitions }],
        maxWaitTime: KAFKA_FETCH_MS,
        minBytes: 1,
        maxBytes: KAFKA_BYTES_IN_FLIGHT / 2,
        isolationLevel: READ_COMMITTED,
      });
      const { responses } = await ask('read', request);
      if (isOver()) return;
      this.isConnected = true;
      let isEmpty = true;
      for (const fetched of responses.flatMap((one) => one.partitions)) {
        const { partitionIndex: partition } = fetched;
        const from = positions.get(partition);
        if (from === undefined) continue;
        const { records, end, compression } = committedRecords(fetched, from);
        this.lag.set(partition, fetched.lastStableOffset > end ? fetched.lastStableOffset - end : 0n);
        if (end === from) continue;
        isEmpty = false;
        positions.set(partition, end);
        session.compression = compression;
        const bytes = bytesIn(records);
        flow.enter(bytes, records.length);
        events.delivered(bytes, 1);
        for (const record of records) queue.push(record);
      }
      if (isEmpty && flow.isEmpty) events.idle();
      else this.#bell.emit('ring');
    }
  }

  /** Enriches records and writes them in one transaction. Returns false if there are none, and the group is at their end. */
  async #process(producer: Producer, membership: Membership, session: Session): Promise<boolean> {
    const { events, release, areLines, setup } = this.#options;
    const { queue, flow, positions, committed } = session;
    const records = queue.splice(0, this.#limit);
    // After the last record there may be markers of transactions.
    const ends = queue.length === 0 ? positions : records.map((one) => [one.partition, one.offset + 1n] as const);
    const newEnds = new Map([...ends].filter(([partition, end]) => end > 0n && end > committed.get(partition)!));
    if (newEnds.size === 0) return false;
    const { id, enrich } = release();
    const outcomes = enrichRecords(records, enrich, areLines, (error, record) => events.failed(placeOf(record), error));
    const compression = this.#options.compression ?? setup.compression ?? COMPRESSIONS[session.compression] ?? 'none';
    const output = outcomes.flatMap((outcome) => this.#newRecords(outcome, id, compression, session.counts));
    const outputBytes = output.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
    this.#outputBytes += outputBytes;
    try {
      await this.#transact(producer, membership, this.#rounds(output), compression, newEnds);
    } catch (error) {
      this.#narrow(error, records);
      throw error;
    } finally {
      this.#outputBytes -= outputBytes;
      flow.leave(bytesIn(records), records.length);
    }
    for (const [partition, end] of newEnds) committed.set(partition, end);
    // After a failure, the client may still be sending the output.
    for (const { recycle } of outcomes) recycle?.();
    for (const { record, reject } of outcomes) {
      if (reject !== undefined) events.rejected(placeOf(record), reject.reason, reject.detail);
    }
    this.#failures = 0;
    this.#limit = Math.min(2 * this.#limit, KAFKA_RECORDS_A_TRANSACTION);
    events.stored(output.length, outputBytes);
    const times = records.map(({ timestamp }) => Number(timestamp));
    if (records.length > 0)
      events.done(
        records.length,
        times.reduce((least, one) => Math.min(least, one)),
      );
    return true;
  }

  /** After a failure because of a record: fewer records in the next try, until it is found; then it is rejected. */
  #narrow(error: unknown, records: readonly SourceRecord[]): void {
    const id = protocolErrors(error).find((one) => one in RECORD_ERRORS);
    if (id === undefined) return;
    this.#limit = Math.max(1, records.length >> 1);
    const [record] = records;
    if (records.length > 1 || record === undefined) return;
    this.#refused = { ...record, reason: RECORD_ERRORS[id]!, detail: id };
  }

  /** Returns the partition of a topic to which a record goes. Those without a key go round if keys decide. */
  #target(topic: string, { partition, key }: SourceRecord, counts: ReadonlyMap<string, number>): number {
    const { module, setupOptions } = this.#options;
    if (!setupOptions.byKey) return partition;
    return (key === null ? this.#keyless++ : module.compatibilityPartitioner({}, key)) % counts.get(topic)!;
  }

  /** Returns what is written of a record: its output, its reject, or both. */
  #newRecords(
    outcome: Outcome,
    release: string,
    compression: Compression,
    counts: ReadonlyMap<string, number>,
  ): NewRecord[] {
    const { setupOptions, setup } = this.#options;
    const { from, to, rejects } = setupOptions.names;
    const { record, value } = outcome;
    const { partition, offset } = record;
    const newRecord = (topic: string, bytes: Uint8Array | null, ...own: [Buffer, string][]): NewRecord => ({
      topic,
      partition: this.#target(topic, record, counts),
      key: record.key ?? undefined,
      value: bytes === null ? undefined : asBuffer(bytes),
      headers: withHeaders(record, [HEADER.source, `${from} ${partition} ${offset}`], ...own),
    });
    const written: NewRecord[] = [];
    if (value !== undefined) {
      const output = { ...newRecord(to, value, [HEADER.release, release]), timestamp: record.timestamp };
      const bytes = bytesOf(output) + BATCH_BYTES;
      const isRefused = this.#refused?.partition === partition && this.#refused.offset === offset;
      if (isRefused) {
        outcome.reject = { ...this.#refused!, bytes: record.value };
      } else if (compression === 'none' && bytes > setup.maxBytes.to) {
        const detail = `the output has ${bytes} bytes, more than max.message.bytes (${setup.maxBytes.to})`;
        outcome.reject = { reason: 'too_large', detail, bytes: record.value };
      } else {
        written.push(output);
      }
    }
    if (outcome.reject !== undefined) {
      const { reason, detail, bytes } = outcome.reject;
      // With the current time: the broker may have refused that of the record.
      const reject = newRecord(
        rejects,
        bytes,
        [HEADER.rejected, reason],
        [HEADER.detail, detail.slice(0, DETAIL_CHARACTERS)],
      );
      if (bytesOf(reject) + BATCH_BYTES > setup.maxBytes.rejects) {
        reject.headers.set(HEADER.value, Buffer.from('too large'));
        reject.value = undefined;
      }
      written.push(reject);
    }
    return written;
  }

  /** Divides records into requests: the client makes one batch of all that a request has for a partition. */
  #rounds(records: readonly NewRecord[]): NewRecord[][] {
    const { maxBytes } = this.#options.setup;
    const { names } = this.#options.setupOptions;
    const rounds: NewRecord[][] = [];
    const filled = new Map<string, { round: number; bytes: number; first: bigint | undefined }>();
    for (const record of records) {
      const { topic, partition, timestamp } = record;
      const limit = topic === names.to ? maxBytes.to : maxBytes.rejects;
      const target = `${topic} ${partition}`;
      const bytes = bytesOf(record);
      const place = filled.get(target) ?? { round: 0, bytes: BATCH_BYTES, first: timestamp };
      const isFar = timestamp !== undefined && (timestamp - place.first!) / MAX_SPAN !== 0n;
      if (place.bytes > BATCH_BYTES && (place.bytes + bytes > limit || isFar)) {
        Object.assign(place, { round: place.round + 1, bytes: BATCH_BYTES, first: timestamp });
      }
      place.bytes += bytes;
      filled.set(target, place);
      rounds[place.round] ??= [];
      rounds[place.round]!.push(record);
    }
    return rounds;
  }

  async #transact(
    producer: Producer,
    membership: Membership,
    rounds: readonly NewRecord[][],
    compression: Compression,
    ends: ReadonlyMap<number, bigint>,
  ): Promise<void> {
    const { from } = this.#options.setupOptions.names;
    const transaction = await ask('begin a transaction', producer.beginTransaction());
    try {
      for (const messages of rounds) await ask('write', transaction.send({ messages, compression }));
      await ask('add the group', transaction.addConsumer(membership));
      for (const [partition, end] of ends) {
        // One after the other: of two that are open at a time, the client sends only the first.
        const message = { topic: from, partition, offset: end - 1n, metadata: { consumer: membership } };
        await ask('write the offset', transaction.addOffset(message));
      }
      await ask('commit', transaction.commit());
    } catch (error) {
      // If this fails, too, the brokers end the transaction when its time is over.
      await transaction.abort().catch(() => {});
      throw error;
    }
  }
}
