/** The streams and the consumer on the server: checks them before any work, and creates what is missing on request. */
import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerInfo,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  type StoredMsg,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream';
import { millis, nanos } from '@nats-io/transport-node';
import { AtlasError } from '../../errors.js';
import { STREAM_MAX_ACK_PENDING, STREAM_READER_IDLE_MS } from '../../limits.js';
import type { StartAt } from './chain.js';
import { HEADER, parseSource, requireSource } from './headers.js';

export interface StreamNames {
  from: string;
  to: string;
  rejects: string;
  consumer: string;
}

export interface SetupOptions {
  names: StreamNames;
  /** Where the consumer begins; undefined accepts any existing consumer. */
  startAt: StartAt | undefined;
  /** Only messages of the source with this subject, which may have wildcards. */
  filter?: string | undefined;
  /** Hash of the options of the enrichment; undefined for a reader. */
  settings?: string | undefined;
  /** Whether the output is in the order of the source: there is no consumer then. */
  ordered: boolean;
  /** Creates what is missing. */
  create: boolean;
  /** Creates an output whose subjects have those of the source in them; one that has none is refused. */
  keepSubjects?: boolean;
  /** For what is created. */
  ackWaitMs: number;
  maxBytes: number;
  maxAgeMs: number;
  replicas: number;
}

/** What the broker needs to know of the streams. */
export interface Setup {
  /** Output subjects are `<prefix>.<source sequence>`. */
  outputPrefix: string;
  /** Whether `.<subject of the source message>` follows. */
  keepsSubjects: boolean;
  /** Reject subjects are `<prefix>.<source sequence>`, with `.<offset>` for a single line. */
  rejectsPrefix: string;
  /** Largest message that the output stream accepts in bytes, headers included; infinite without such a limit. */
  maxMessageBytes: number;
  ackWaitMs: number;
  ordered: boolean;
  /** Sequence at which the work began, if it began at one. */
  startSequence: number;
  filter: string | undefined;
  /** Hash of the options of the enrichment, for the headers of the output. */
  settings: string;
  /** One sentence for each thing that was created. */
  created: string[];
  /** One sentence for each setting that is allowed but loses messages. */
  warnings: string[];
}

function streamError(message: string): AtlasError {
  return new AtlasError('E_STREAM', message);
}

const NOT_FOUND: readonly number[] = [JetStreamApiCodes.StreamNotFound, JetStreamApiCodes.ConsumerNotFound];

/** Whether an error says that a stream or a consumer does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof JetStreamApiError && NOT_FOUND.includes(error.code);
}

/** The result of a request, or undefined if the stream or consumer does not exist. */
async function existing<Info>(request: Promise<Info>): Promise<Info | undefined> {
  try {
    return await request;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The settings of a stream that loses nothing: file storage, limits retention, refuses messages when it is full. */
function newStream(
  name: string,
  description: string | undefined,
  subjects: string,
  { maxBytes, maxAgeMs, replicas }: SetupOptions,
): Partial<StreamConfig> & { name: string } {
  return {
    name,
    ...(description !== undefined && { description }),
    subjects: [`${name.toLowerCase()}.${subjects}`],
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    max_bytes: maxBytes,
    max_age: nanos(maxAgeMs),
    num_replicas: replicas,
    max_msgs_per_subject: -1,
  };
}

/** The description of a stream that is made for one source; it names the source before there is a message. */
const descriptionFor = (source: string): string => `ipatlas stream --from ${source}`;
const DESCRIPTION = /^ipatlas stream --from (\S+)$/;

/**
 * Refuses an output, or rejects, of another source: of two messages with the same sequence, one would be lost. Returns the
 * newest message.
 */
async function requireOwn(jsm: JetStreamManager, { config, state }: StreamInfo, source: string) {
  const [, described = source] = DESCRIPTION.exec(config.description ?? '') ?? [];
  if (described !== source) {
    throw streamError(`${config.name} belongs to the source ${described}, not ${source}; use another stream`);
  }
  const newest = state.messages === 0 ? null : await jsm.streams.getMessage(config.name, { seq: state.last_seq });
  if (newest !== null) requireSource(newest, config.name, source);
  return newest;
}

/** Returns a warning if the newest output was made with other options. */
function settingsWarnings(newest: StoredMsg | null, { config }: StreamInfo, settings: string | undefined): string[] {
  if (newest === null || settings === undefined || parseSource(newest) === undefined) return [];
  const before = newest.header.get(HEADER.settings);
  if (before === '' || before === settings) return [];
  return [
    `the newest message of ${config.name} was enriched with other options (--field, --add, --format, …): from now on ` +
      `the output has both; the header ${HEADER.settings} tells them apart`,
  ];
}

/** The message of a server that has no room for another stream, with what to do. */
function storageError(error: unknown, name: string, { maxBytes }: SetupOptions): unknown {
  if (!(error instanceof JetStreamApiError) || !/insufficient|maximum/i.test(error.message)) return error;
  return streamError(
    `the server cannot create ${name}: ${error.message}. It reserves ${maxBytes} bytes for each of the streams; ` +
      '--max-bytes sets this, and max_file_store of the server is the limit of the sum; lower one or raise the other',
  );
}

/**
 * Reads about a stream, and creates it if it is missing and that is asked for.
 *
 * @param source the stream from which its messages come, if there is one
 * @param subjects what follows its name in the subjects of a new stream
 */
async function streamInfo(
  jsm: JetStreamManager,
  name: string,
  options: SetupOptions,
  created: string[],
  source?: string,
  subjects = '>',
): Promise<StreamInfo> {
  const found = await existing(jsm.streams.info(name));
  if (found !== undefined) return found;
  if (!options.create) throw streamError(`there is no stream ${name} on the server; --init creates it`);
  const description = source === undefined ? undefined : descriptionFor(source);
  const info = await jsm.streams.add(newStream(name, description, subjects, options)).catch((error: unknown) => {
    throw storageError(error, name, options);
  });
  const { config } = info;
  const age =
    options.maxAgeMs === 0 ? 'messages kept until they are deleted' : `messages kept for ${options.maxAgeMs} ms`;
  created.push(
    `created the stream ${name}: subjects ${config.subjects.join(' ')}, on disk, ${config.num_replicas} replica(s), ` +
      `at most ${config.max_bytes} bytes, new messages refused when it is full, ${age}` +
      (name === options.names.rejects ? '. Workers wait while it is full' : ''),
  );
  return info;
}

const isLimited = (value: number): boolean => value > 0;

/** The settings of an output stream under which a message would be lost or appear twice. */
function outputProblems(output: StreamConfig, source: StreamConfig): string[] {
  const problems: string[] = [];
  const isBounded = [output.max_bytes, output.max_msgs, output.max_msgs_per_subject].some(isLimited);
  if (output.discard !== DiscardPolicy.New && isBounded) {
    problems.push('it deletes old messages when it is full; set discard to "new"');
  }
  if (isLimited(output.max_msgs_per_subject)) {
    problems.push('max_msgs_per_subject limits the parts of a split message; set it to -1');
  }
  if (isLimited(output.max_age) && (!isLimited(source.max_age) || source.max_age > output.max_age)) {
    problems.push(
      `its messages expire before those of ${source.name}, and one that is delivered again after that would appear ` +
        `twice; set max_age to 0, or at least to that of ${source.name}`,
    );
  }
  return problems;
}

/** The settings under which any stream is not usable. */
function commonProblems(config: StreamConfig): string[] {
  const problems: string[] = [];
  if (config.retention !== RetentionPolicy.Limits) {
    problems.push(`its retention is "${config.retention}", which loses track of messages in a crash; use "limits"`);
  }
  if (config.storage !== StorageType.File) problems.push('it is kept in memory only; use file storage');
  if (config.no_ack) problems.push('it does not confirm messages; set no_ack to false');
  return problems;
}

function refuse(kind: string, name: string, problems: string[]): void {
  if (problems.length > 0) throw streamError(`the ${kind} ${name} is set up wrongly: ${problems.join('; ')}`);
}

/** The subject of a stream that ends in a wildcard, without it. */
function subjectPrefix({ name, subjects, mirror }: StreamConfig, wildcards: RegExp): string {
  const subject = mirror === undefined ? subjects?.find((one) => wildcards.test(one)) : undefined;
  if (subject !== undefined) return subject.replace(wildcards, '');
  throw streamError(`the stream ${name} is set up wrongly: it needs a subject like ${name.toLowerCase()}.>; add one`);
}

/** The end of the subject of an output whose subjects have those of the source in them, after the sequence. */
const KEEPING = '*.>';

/**
 * Returns the subjects of the output. Its own subject decides, so that all workers agree: output of one message under two
 * subjects would be there twice.
 */
function outputSubjects(config: StreamConfig, newest: StoredMsg | null, keepSubjects: boolean) {
  const keepsSubjects = config.subjects?.some((subject) => subject.endsWith(`.${KEEPING}`)) ?? false;
  if (keepSubjects && !keepsSubjects) {
    const wanted = `${config.name.toLowerCase()}.${KEEPING}`;
    throw streamError(
      `${config.name} keeps no subjects of the source: it needs a subject like ${wanted}; use another stream`,
    );
  }
  const outputPrefix = subjectPrefix(config, keepsSubjects ? /\.\*\.>$/ : /\.[>*]$/);
  const isOurs = newest !== null && parseSource(newest) !== undefined;
  if (isOurs && newest.subject.slice(outputPrefix.length + 1).includes('.') !== keepsSubjects) {
    throw streamError(
      `the subject of ${config.name} was changed after ${newest.subject} was written, and messages could appear twice; ` +
        'use another stream',
    );
  }
  return { outputPrefix, keepsSubjects };
}

function deliverPolicy(startAt: StartAt): Partial<ConsumerConfig> {
  switch (startAt.kind) {
    case 'first':
      return { deliver_policy: DeliverPolicy.All };
    case 'sequence':
      return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: startAt.sequence };
    case 'time':
      return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: startAt.time.toISOString() };
  }
}

/** Settings of the consumer of one reader that needs no acknowledgments. The server deletes it when the reader is gone. */
export function readerConfig(startAt: StartAt, filter: string | undefined): Partial<ConsumerConfig> {
  return {
    ...(filter !== undefined && { filter_subject: filter }),
    ack_policy: AckPolicy.None,
    replay_policy: ReplayPolicy.Instant,
    inactive_threshold: nanos(STREAM_READER_IDLE_MS),
    mem_storage: true,
    num_replicas: 1,
    ...deliverPolicy(startAt),
  };
}

/** Whether a consumer began where it was asked to. */
function beganAt({ config }: ConsumerInfo, startAt: StartAt): boolean {
  const wanted = deliverPolicy(startAt);
  const time = (text: string | undefined): number => (text === undefined ? 0 : Date.parse(text));
  return (
    config.deliver_policy === wanted.deliver_policy &&
    config.opt_start_seq === wanted.opt_start_seq &&
    time(config.opt_start_time) === time(wanted.opt_start_time)
  );
}

function consumerProblems(info: ConsumerInfo, { startAt, filter, settings }: SetupOptions): string[] {
  const { config } = info;
  const problems: string[] = [];
  if (config.deliver_subject !== undefined) problems.push('it pushes messages; name a pull consumer with --consumer');
  if (config.durable_name === undefined) problems.push('it is not durable; name one that is with --consumer');
  if (config.ack_policy !== AckPolicy.Explicit)
    problems.push('each message must be acknowledged: set ack_policy to "explicit"');
  if (isLimited(config.max_deliver ?? -1)) {
    problems.push('max_deliver makes it drop messages that workers died with; set it to -1');
  }
  if (config.headers_only) problems.push('it delivers headers only; set headers_only to false');
  const filters = config.filter_subjects ?? (config.filter_subject ? [config.filter_subject] : []);
  // A reader takes the consumer as it is.
  if (settings !== undefined && filters.join(' ') !== (filter ?? '')) {
    const filtered = `it has a filter (--filter ${filters.join(' ')}), and messages would be missing; give the same`;
    const same = filters.length === 0 ? 'it has no filter; leave out --filter' : filtered;
    problems.push(`${same}, or choose another --consumer and output stream`);
  }
  if (startAt !== undefined && !beganAt(info, startAt)) {
    problems.push(
      'it began at another message; leave out --from-seq and --from-time, or choose another --consumer and output stream',
    );
  }
  return problems;
}

async function consumerInfo(jsm: JetStreamManager, options: SetupOptions, created: string[]): Promise<ConsumerInfo> {
  const { names, create, ackWaitMs, startAt = { kind: 'first' }, replicas, filter, settings } = options;
  const info = await existing(jsm.consumers.info(names.from, names.consumer));
  if (info !== undefined) return info;
  if (!create) {
    const missing = `the stream ${names.from} has no consumer ${names.consumer}`;
    if (settings !== undefined) throw streamError(`${missing}; --init creates it`);
    // A reader has an output, and one in the order of the source has no consumer.
    throw streamError(
      `${missing}: if ${names.to} was made with --ordered, add --ordered; if not, name its workers' --consumer`,
    );
  }
  const made = await jsm.consumers.add(names.from, {
    durable_name: names.consumer,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(ackWaitMs),
    max_deliver: -1,
    max_ack_pending: STREAM_MAX_ACK_PENDING,
    replay_policy: ReplayPolicy.Instant,
    num_replicas: replicas,
    ...(filter !== undefined && { filter_subject: filter }),
    ...deliverPolicy(startAt),
  });
  created.push(
    `created the consumer ${names.consumer} of ${names.from}: durable, delivers a message again after ` +
      `${ackWaitMs / 1000} s without acknowledgment, at most ${STREAM_MAX_ACK_PENDING} messages in flight`,
  );
  return made;
}

/** Refuses an output stream that has workers with a common consumer, which write in any order. */
export async function requireNoConsumer(jsm: JetStreamManager, { from, to, consumer }: StreamNames): Promise<void> {
  if ((await existing(jsm.consumers.info(from, consumer))) === undefined) return;
  throw streamError(
    `${to} has workers without --ordered: ${from} has their consumer ${consumer}; leave out --ordered, or use another output stream`,
  );
}

/**
 * Checks the streams and the consumer, and creates what is missing if that is asked for.
 *
 * @throws AtlasError E_STREAM if something is missing or set up so that messages could be lost or appear twice; what the
 *   client throws if the server does not answer
 */
export async function setUpStreams(jsm: JetStreamManager, options: SetupOptions): Promise<Setup> {
  const { names } = options;
  const created: string[] = [];
  const { config: source } = await streamInfo(jsm, names.from, options, created);
  const { keepSubjects = false } = options;
  const outputInfo = await streamInfo(jsm, names.to, options, created, names.from, keepSubjects ? KEEPING : '>');
  const rejectsInfo = await streamInfo(jsm, names.rejects, options, created, names.from);
  const newest = await requireOwn(jsm, outputInfo, names.from);
  await requireOwn(jsm, rejectsInfo, names.from);
  const [output, rejects] = [outputInfo.config, rejectsInfo.config];
  refuse('stream', source.name, commonProblems(source));
  for (const config of [output, rejects]) {
    refuse('stream', config.name, [...commonProblems(config), ...outputProblems(config, source)]);
  }
  if (isLimited(rejects.max_msg_size)) {
    refuse('stream', rejects.name, ['max_msg_size limits what can be rejected; set it to -1']);
  }
  const { startAt } = options;
  let ackWaitMs = options.ackWaitMs;
  let { filter } = options;
  let startSequence = startAt?.kind === 'sequence' ? startAt.sequence : 1;
  if (options.ordered) {
    await requireNoConsumer(jsm, names);
  } else {
    const consumer = await consumerInfo(jsm, options, created);
    refuse('consumer', names.consumer, consumerProblems(consumer, options));
    filter = consumer.config.filter_subject ?? consumer.config.filter_subjects?.[0];
    ackWaitMs = millis(consumer.config.ack_wait ?? nanos(ackWaitMs));
    startSequence = consumer.config.opt_start_seq ?? 1;
  }

  const warnings = settingsWarnings(newest, outputInfo, options.settings);
  if (source.discard !== DiscardPolicy.New && [source.max_bytes, source.max_msgs].some(isLimited)) {
    warnings.push(
      `the stream ${source.name} deletes its oldest messages when it is full, processed or not; discard "new" does not`,
    );
  }
  return {
    ...outputSubjects(output, newest, keepSubjects),
    rejectsPrefix: subjectPrefix(rejects, /\.>$/),
    maxMessageBytes: isLimited(output.max_msg_size) ? output.max_msg_size : Number.POSITIVE_INFINITY,
    ackWaitMs,
    ordered: options.ordered,
    startSequence,
    filter,
    settings: options.settings ?? '',
    created,
    warnings,
  };
}
