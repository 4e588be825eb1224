/** `ipatlas stream`: a worker on NATS JetStream or Kafka, and the reader of the output of the former. */
import { createHash } from 'node:crypto';
import { createLog } from '../api/log.js';
import { FORMAT_NAMES, INVALID_POLICIES, type KernelInput } from '../enrich/options.js';
import { AtlasError, EXIT, messageOf } from '../errors.js';
import {
  STREAM_ACK_WAIT_S,
  STREAM_BYTES_IN_FLIGHT,
  STREAM_LARGEST_IN_FLIGHT,
  STREAM_MAX_BYTES,
  STREAM_MESSAGES_IN_FLIGHT,
} from '../limits.js';
import { withPackages } from '../optional-packages.js';
import { watchStopSignals } from '../signals.js';
import type { StreamWorker } from '../stream/broker.js';
import type { StartAt } from '../stream/jetstream/chain.js';
import type { WorkerOptions } from '../stream/jetstream/intake.js';
import type { NatsBroker, NatsServer } from '../stream/jetstream/nats.js';
import type { OrderedOptions } from '../stream/jetstream/ordered.js';
import { OVERSIZE_POLICIES, type OversizePolicy } from '../stream/jetstream/parts.js';
import type { SetupOptions } from '../stream/jetstream/setup.js';
import { type Command, type Invocation, type OptionValues, print, printNote, text, usageError } from './command.js';
import { METRICS_HOST, metricsAddress, wholeNumber } from './number-flags.js';
import { ADD_FLAGS, enrichOptionsOf, REDACT_FLAGS, withLogs } from './records/flags.js';
import {
  COMPRESSIONS,
  isKafka,
  type KafkaRequest,
  openKafka,
  readKafkaRequest,
  SASL_MECHANISMS,
} from './stream-kafka.js';

/** Hexadecimal digits of the hash of the options: enough to tell a few apart. */
const SETTINGS_DIGITS = 16;
const MAX_REPLICAS = 5;
/** A year, in seconds: longer times are mistakes. */
const MAX_SECONDS = 31_536_000;

const usage = (message: string): AtlasError => usageError(message, 'stream');

function required(values: OptionValues, name: string): string {
  const value = text(values, name);
  if (value !== undefined && value !== '') return value;
  throw usage(`--${name} is missing`);
}

/** Names of streams and consumers are parts of subjects, so they have no dots, spaces or wildcards. */
function streamName(name: string, value: string): string {
  if (/^[\w-]{1,255}$/.test(value)) return value;
  throw usage(`--${name} ${JSON.stringify(value)} is not a name of letters, digits, "_" and "-"`);
}

function startAt(values: OptionValues): StartAt | undefined {
  const sequence = wholeNumber(values, 'from-seq', 1, Number.MAX_SAFE_INTEGER);
  const time = text(values, 'from-time');
  if (sequence !== undefined && time !== undefined) throw usage('give --from-seq or --from-time, not both');
  if (sequence !== undefined) return { kind: 'sequence', sequence };
  if (time === undefined) return undefined;
  if (Number.isNaN(Date.parse(time)))
    throw usage(`--from-time ${JSON.stringify(time)} is not a time such as 2026-01-31T00:00:00Z`);
  return { kind: 'time', time: new Date(time) };
}

function readSetup(values: OptionValues): SetupOptions {
  const from = streamName('from', required(values, 'from'));
  const to = streamName('to', required(values, 'to'));
  const rejects = streamName('rejects', text(values, 'rejects') ?? `${to}_REJECTS`);
  if (values.ordered === true && values['ack-wait'] !== undefined) {
    throw usage('--ack-wait is for workers with acknowledgments, so not for --ordered');
  }
  if (values['replay-rejects'] === true && values.ordered === true) {
    throw usage('--replay-rejects is not for --ordered: the place of a reject in the order is taken');
  }
  if (new Set([from, to, rejects]).size < 3) throw usage('--from, --to and --rejects must name different streams');
  return {
    names: { from, to, rejects, consumer: streamName('consumer', text(values, 'consumer') ?? `ipatlas_${to}`) },
    startAt: values.read === true ? undefined : startAt(values),
    filter: readFilter(values),
    settings: values.read === true ? undefined : settingsHash(values),
    ordered: values.ordered === true,
    create: values.init === true,
    keepSubjects: values['keep-subjects'] === true,
    ackWaitMs: 1000 * (wholeNumber(values, 'ack-wait', 1, MAX_SECONDS) ?? STREAM_ACK_WAIT_S),
    maxBytes: wholeNumber(values, 'max-bytes', 1, Number.MAX_SAFE_INTEGER) ?? STREAM_MAX_BYTES,
    maxAgeMs: 1000 * (wholeNumber(values, 'max-age', 0, MAX_SECONDS) ?? 0),
    replicas: wholeNumber(values, 'replicas', 1, MAX_REPLICAS) ?? 1,
  };
}

function readServer(values: OptionValues): NatsServer {
  return {
    url: required(values, 'server'),
    creds: text(values, 'creds'),
    nkey: text(values, 'nkey'),
    token: text(values, 'token'),
    tlsCa: text(values, 'tls-ca'),
    tlsCert: text(values, 'tls-cert'),
    tlsKey: text(values, 'tls-key'),
  };
}

/** The filter of the source: tokens with dots between them, of which "*" is any one, and ">" at the end all that follow. */
function readFilter(values: OptionValues): string | undefined {
  const filter = text(values, 'filter');
  if (filter === undefined || /^([^\s.*>]+|\*)(\.([^\s.*>]+|\*))*(\.>)?$/.test(filter)) return filter;
  throw usage(`--filter ${JSON.stringify(filter)} is not a subject such as logs.web.> or logs.*.errors`);
}

/** Tells outputs that were made with other options apart. */
function settingsHash(values: OptionValues): string {
  return createHash('sha256')
    .update(JSON.stringify(enrichOptionsOf(values)))
    .digest('hex')
    .slice(0, SETTINGS_DIGITS);
}

/** Formats whose lines can be enriched one without the others, so that output can be split. */
const LINE_FORMATS: readonly KernelInput['kind'][] = ['jsonl', 'logfmt', 'list', 'combined', 'text'];

function readOversize(values: OptionValues): OversizePolicy {
  const isSplittable = LINE_FORMATS.includes(enrichOptionsOf(values).input.kind);
  if (isSplittable) return (text(values, 'on-oversize') ?? 'split') as OversizePolicy;
  if (text(values, 'on-oversize') === 'split') {
    throw usage(`--on-oversize split goes with --format ${LINE_FORMATS.join(', ')} only`);
  }
  return 'reject';
}

/** Runs something with an AbortSignal for the first signal to stop; the second ends the process at once. */
async function stoppable<Result>(run: (stop: AbortSignal) => Promise<Result>): Promise<Result> {
  const signals = watchStopSignals();
  try {
    return await run(signals.signal);
  } finally {
    signals.stop();
  }
}

const NEWLINE = 10;

/** Writes the output of all messages to stdout. A message without a final newline gets one if another follows. */
async function read(broker: NatsBroker, values: OptionValues, signal: AbortSignal): Promise<void> {
  const { readInOrder } = await import('../stream/jetstream/reader.js');
  const fromSequence = wholeNumber(values, 'from-seq', 1, Number.MAX_SAFE_INTEGER);
  let needsNewline = false;
  for await (const { parts } of readInOrder({ broker, fromSequence, once: values.once === true, signal })) {
    for (const { bytes, number, replay } of parts) {
      if (bytes.length === 0) continue;
      // Parts of one message are split at ends of lines; a replayed reject may follow a message without one.
      if (needsNewline && (number === 1 || replay !== undefined)) await print('\n');
      await print(bytes);
      needsNewline = bytes.at(-1) !== NEWLINE;
    }
  }
}

/** The release and the metrics of a worker, before it has a connection: without a release, nothing is created. */
async function prepareWork({ values, dataDir }: Invocation) {
  const { followRelease, Operations } = await import('../stream/operations.js');
  const operations = new Operations(dataDir, createLog());
  return { operations, release: await followRelease(dataDir, enrichOptionsOf(values), operations) };
}

type Prepared = Awaited<ReturnType<typeof prepareWork>>;

/** Enriches the rejects again, and says which ones stay. */
async function replay(
  broker: NatsBroker,
  { operations: { events, log }, release }: Prepared,
  values: OptionValues,
  stop: AbortSignal,
) {
  const { replayRejects } = await import('../stream/jetstream/replay.js');
  const options = { broker, release: release.current, oversize: readOversize(values), events, signal: stop };
  const { replayed, left } = await replayRejects(options);
  for (const { position, sequence, why } of left) log.warn({ position, sequence, problem: why }, 'a reject stays');
  log.info({ replayed, left: left.length }, 'rejects are replayed');
}

/** Makes a worker, and runs it to its end while its metrics and health are served. */
async function operate(
  { operations, release }: Prepared,
  values: OptionValues,
  signal: AbortSignal,
  create: (common: Pick<WorkerOptions, 'release' | 'events' | 'once'>) => StreamWorker,
): Promise<void> {
  const { events, log } = operations;
  const worker = create({ release: release.current, events, once: values.once === true });
  operations.observe(worker);
  const address = metricsAddress(values);
  const server = address === undefined ? undefined : await operations.serve(address, () => worker.isConnected);
  const bound = server?.address();
  if (bound !== null && typeof bound === 'object') log.info({ port: bound.port }, 'metrics and health');
  const endProgress = operations.logProgress();
  log.info({}, 'working');
  try {
    await worker.run();
  } finally {
    endProgress();
    server?.close();
    server?.closeAllConnections();
  }
  log.info({}, signal.aborted ? 'stopped' : 'done');
}

async function work(broker: NatsBroker, prepared: Prepared, values: OptionValues, signal: AbortSignal): Promise<void> {
  const { OrderedWorker } = await import('../stream/jetstream/ordered.js');
  const { Worker } = await import('../stream/jetstream/worker.js');
  const lost = new AbortController();
  void broker.closed.then((error) => lost.abort(error));
  const maxBytes = Math.max(STREAM_BYTES_IN_FLIGHT, STREAM_LARGEST_IN_FLIGHT * broker.maxMessageBytes);
  await operate(prepared, values, signal, (common) => {
    const options: OrderedOptions = {
      ...common,
      broker,
      oversize: readOversize(values),
      inFlight: { messages: STREAM_MESSAGES_IN_FLIGHT, bytes: maxBytes },
      maxOutputBytes: maxBytes,
      signal: AbortSignal.any([signal, lost.signal]),
      startAt: startAt(values),
    };
    return values.ordered === true ? new OrderedWorker(options) : new Worker(options);
  });
  if (lost.signal.aborted) {
    throw new AtlasError('E_STREAM', `the connection was closed: ${messageOf(lost.signal.reason)}; start again`);
  }
}

/** A worker on Kafka. */
async function workOnKafka(request: KafkaRequest, prepared: Prepared, values: OptionValues, signal: AbortSignal) {
  const opened = await unlessStopped(signal, openKafka(request));
  if (opened === undefined) return;
  const { KafkaWorker } = await import('../stream/kafka/worker.js');
  const areLines = LINE_FORMATS.includes(enrichOptionsOf(values).input.kind);
  await operate(
    prepared,
    values,
    signal,
    (common) => new KafkaWorker({ ...common, ...request, ...opened, areLines, signal }),
  );
}

/** Resolves to undefined if the signal comes first. */
async function unlessStopped<Result>(signal: AbortSignal, promise: Promise<Result>): Promise<Result | undefined> {
  const stopped = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  return Promise.race([promise, stopped]);
}

/** Works on NATS JetStream, or reads from it. */
async function onNats(
  [server, setupOptions]: [NatsServer, SetupOptions],
  prepared: Prepared | undefined,
  values: OptionValues,
  signal: AbortSignal,
): Promise<void> {
  const { openNatsBroker } = await withPackages('stream', () => import('../stream/jetstream/nats.js'));
  const opened = await unlessStopped(signal, openNatsBroker(server, setupOptions));
  if (opened === undefined) return;
  const { broker, setup } = opened;
  try {
    for (const line of [...setup.created, ...setup.warnings]) printNote(`ipatlas: ${line}\n`);
    if (prepared === undefined) await read(broker, values, signal);
    else if (values['replay-rejects'] === true) await replay(broker, prepared, values, signal);
    else await work(broker, prepared, values, signal);
  } finally {
    await broker.close();
  }
}

function stream(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  if (values.redact !== undefined && values['keep-keys'] !== true) {
    throw usage(
      'keys, subjects, headers and refused messages may have addresses that --redact does not hide; say with --keep-keys that they may stay',
    );
  }
  // All flags are checked before any connection.
  const kafka = isKafka(values) ? readKafkaRequest(values) : undefined;
  const nats: [NatsServer, SetupOptions] | undefined = kafka ? undefined : [readServer(values), readSetup(values)];
  metricsAddress(values);
  if (nats !== undefined) readOversize(values);
  return stoppable(async (signal) => {
    const prepared = values.read === true ? undefined : await prepareWork(invocation);
    try {
      if (nats !== undefined) await onNats(nats, prepared, values, signal);
      else await workOnKafka(kafka!, prepared!, values, signal);
      return EXIT.ok;
    } finally {
      prepared?.release.stop();
    }
  });
}

export const command: Command = {
  usage: ['stream --server URL --from STREAM --to STREAM [options]'],
  description: `A worker on Kafka or NATS JetStream: takes messages of JSON lines from one topic or stream and puts them into another, with
the country added. Any number of workers can run at a time. The output holds each message exactly once, even if workers or
the servers are killed (docs/streams.md). Ends on SIGTERM or Ctrl-C, after the messages in flight.`,
  options: {
    server: {
      value: 'URL',
      help: 'kafka://HOST:PORT, kafka+tls://HOST:PORT, nats://HOST:PORT or tls://HOST:PORT, several with commas between them; user:password@ is allowed',
    },
    from: { value: 'STREAM', help: 'read messages from this stream or topic' },
    to: {
      value: 'STREAM',
      help: 'write them here. NATS: the output of message 7 has the subject PREFIX.7 in a stream with the subject PREFIX.>',
    },
    rejects: {
      value: 'STREAM',
      help: 'refused messages and lines go here (default: the name of --to and _REJECTS; on Kafka, and -rejects)',
    },
    consumer: { value: 'NAME', help: 'the consumer that the workers share (default: ipatlas_ and the name of --to)' },
    ordered: {
      help: 'keep the order of the source in the output stream, too. One worker writes; others are standbys that take over (default: all workers write, as they finish)',
    },
    init: { help: 'first create the streams and the consumer that are missing, and say what was created' },
    'keep-subjects': {
      help: '--init: the output of message 7 has the subject PREFIX.7.SUBJECT, with the subject of the message (default PREFIX.7)',
    },
    once: { help: 'end when all messages that are in the stream now are done' },
    read: { help: 'do not work: write the output to stdout, in the order of the source stream' },
    filter: {
      value: 'SUBJECT',
      help: 'only messages of the source with this subject; it may have the wildcards "*" and ">"',
    },
    'replay-rejects': {
      help: 'enrich the rejects once more, with the options of now, then end: what succeeds goes to the output and is removed from the rejects',
    },
    'from-seq': { value: 'N', help: 'begin at this message (with --init, --ordered or --read)' },
    'from-time': { value: 'TIME', help: 'begin at the first message since this time (with --init or --ordered)' },
    field: { value: 'PATH[=TARGET]', repeatable: true, help: 'as for "ipatlas enrich"' },
    lenient: { help: 'as for "ipatlas enrich"' },
    ...ADD_FLAGS,
    ...REDACT_FLAGS,
    'keep-keys': {
      help: 'with --redact, which requires it: keys, subjects, headers, and messages that are refused as a whole keep their addresses',
    },
    'on-invalid': {
      value: 'POLICY',
      choices: INVALID_POLICIES,
      help: 'as for "ipatlas enrich"; with fail, a message with such a line goes to the rejects as a whole',
    },
    format: {
      value: 'FORMAT',
      choices: FORMAT_NAMES,
      help: 'as for "ipatlas enrich"; a message of csv, tsv or json is a whole table or document',
    },
    log: {
      value: 'NAME',
      help: 'as for "ipatlas enrich"; exactly this form of the log: no message is looked at to find it',
    },
    logs: { value: 'FILE', help: 'as for "ipatlas enrich"' },
    items: { value: 'PATH', help: 'as for "ipatlas enrich"' },
    'on-oversize': {
      value: 'POLICY',
      choices: OVERSIZE_POLICIES,
      help: `output that is larger than the server's max_payload: split it at ends of lines (default), or reject the message (always in formats that are not lines)`,
    },
    group: {
      value: 'NAME',
      help: 'Kafka: the consumer group that the workers share (default: ipatlas- and the name of --to)',
    },
    'by-key': {
      help: 'Kafka: choose the partition of the output by the key, so that the topics may have different numbers of partitions (default: that of the source)',
    },
    compression: {
      value: 'NAME',
      choices: COMPRESSIONS,
      help: 'Kafka: compression of the output (default: as the topic sets it, or as the source has it)',
    },
    sasl: {
      value: 'NAME',
      choices: SASL_MECHANISMS,
      help: 'Kafka: how the user is authenticated (default plain); the user is in --server or IPATLAS_KAFKA_USER, the password in IPATLAS_KAFKA_PASSWORD',
    },
    creds: { value: 'FILE', help: 'credentials of a NATS user' },
    nkey: { value: 'FILE', help: 'the seed of a NATS user that has a key (NKey) only' },
    token: { value: 'FILE', help: 'a file with the token of the server; on Kafka, for --sasl oauthbearer' },
    'tls-ca': { value: 'FILE', help: 'the certificate authority of the server' },
    'tls-cert': { value: 'FILE', help: 'a certificate of this client' },
    'tls-key': { value: 'FILE', help: 'the key of that certificate' },
    'metrics-port': {
      value: 'PORT',
      help: 'serve /metrics, /healthz and /readyz on http://127.0.0.1:PORT (default none; 0 for any free port)',
    },
    'metrics-host': METRICS_HOST,
    'ack-wait': {
      value: 'SECONDS',
      help: `--init: time after which a message is delivered again (default ${STREAM_ACK_WAIT_S})`,
    },
    'max-bytes': { value: 'N', help: `--init: size of a stream in bytes (default ${STREAM_MAX_BYTES})` },
    'max-age': { value: 'SECONDS', help: '--init: how long streams keep messages (default 0, forever)' },
    replicas: {
      value: 'N',
      help: `--init: replicas of each stream, 1 to ${MAX_REPLICAS} (default 1), or of each topic (default: as the source has)`,
    },
  },
  examples: {
    'ipatlas stream --server kafka://localhost:9092 --from logs --to geo --init':
      'creates the topic geo, and enriches the records of logs into it',
    'ipatlas stream --server nats://localhost:4222 --from LOGS --to GEO --init':
      'creates the stream GEO, and enriches the messages of LOGS into it',
    'ipatlas stream --server nats://localhost:4222 --from LOGS --to GEO --read': 'prints the output in order',
  },
  mayLeaveConnections: true,
  run: (invocation) => withLogs(invocation, () => stream(invocation)),
};
