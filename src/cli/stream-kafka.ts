/** `ipatlas stream --server kafka://…`: a worker on Kafka. */
import { AtlasError, causedError, misuse } from '../errors.js';
import { withPackages } from '../optional-packages.js';
import { readFlagFile } from '../stream/broker.js';
import { Clients, COMPRESSIONS, type Compression, type KafkaModule, type KafkaServer } from '../stream/kafka/client.js';
import { type KafkaSetupOptions, setUpTopics } from '../stream/kafka/setup.js';
import { credentialsOf, PERCENT_ADVICE, parseUrl } from '../url.js';
import { type OptionValues, printNote, text, usageError } from './command.js';
import { wholeNumber } from './number-flags.js';

const usage = (message: string): AtlasError => usageError(message, 'stream');

export const SASL_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'] as const;
export { COMPRESSIONS };

/** Flags that are for NATS only. */
const NATS_FLAGS = [
  ...[
    'consumer',
    'ordered',
    'keep-subjects',
    'read',
    'filter',
    'replay-rejects',
    'from-seq',
    'from-time',
    'on-oversize',
  ],
  ...['creds', 'nkey', 'ack-wait', 'max-bytes', 'max-age'],
];
/** Flags that are for Kafka only. */
const KAFKA_FLAGS = ['group', 'by-key', 'compression', 'sasl'];

/** The first version of Node with which the client library works. */
const NODE_VERSION = [22, 22];
const MAX_REPLICAS = 32;
const DEFAULT_PORT = 9092;

/** Whether a server is one of Kafka. Throws AtlasError E_USAGE for flags of the other kind of server. */
export function isKafka(values: OptionValues): boolean {
  const is = /^kafka(\+tls)?:\/\//.test(text(values, 'server') ?? '');
  const wrong = (is ? NATS_FLAGS : KAFKA_FLAGS).find((name) => values[name] !== undefined);
  if (wrong !== undefined) throw usage(`--${wrong} is for --server ${is ? 'nats' : 'kafka'}:// only`);
  return is;
}

function file(values: OptionValues, flag: string): Buffer | undefined {
  const path = text(values, flag);
  return path === undefined ? undefined : readFlagFile(flag, path);
}

function parseUrls(server: string): URL[] {
  const [, scheme, rest] = /^(kafka(?:\+tls)?:\/\/)(.*)$/.exec(server)!;
  return rest!.split(',').map((one) => {
    const text = one.includes('://') ? one : `${scheme}${one}`;
    const url = parseUrl(text);
    if (url !== undefined && url.host !== '' && `${url.protocol}//` === scheme) return url;
    // Not quoted: it may hold a password.
    throw misuse(
      `--server must be an address such as kafka://localhost:9092 or kafka+tls://one.example:9093,two.example:9093; ${PERCENT_ADVICE}`,
    );
  });
}

function readServer(values: OptionValues): KafkaServer {
  const urls = parseUrls(text(values, 'server')!);
  const credentials = urls.map(credentialsOf).find((one) => one !== undefined);
  const ca = file(values, 'tls-ca');
  const cert = file(values, 'tls-cert');
  const key = file(values, 'tls-key');
  const usesTls = [ca, cert, key].some((one) => one !== undefined) || urls[0]!.protocol === 'kafka+tls:';
  const username = credentials?.user ?? process.env.IPATLAS_KAFKA_USER;
  const password = credentials?.pass || process.env.IPATLAS_KAFKA_PASSWORD;
  const token = file(values, 'token')?.toString().trim();
  const mechanism = text(values, 'sasl')?.toUpperCase();
  if ((mechanism === 'OAUTHBEARER') !== (token !== undefined))
    throw usage('--sasl oauthbearer and --token go together');
  if (mechanism !== undefined && token === undefined && username === undefined) {
    throw usage('--sasl needs a user: in --server, or in IPATLAS_KAFKA_USER with IPATLAS_KAFKA_PASSWORD');
  }
  return {
    bootstrapBrokers: urls.map(({ hostname, port }) => `${hostname}:${port || DEFAULT_PORT}`),
    ...(usesTls && { tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) } }),
    ...(token !== undefined && { sasl: { mechanism: 'OAUTHBEARER', token } }),
    ...(token === undefined &&
      username !== undefined && {
        sasl: {
          mechanism: mechanism ?? 'PLAIN',
          username,
          password: password ?? '',
        },
      }),
  };
}

/** Names as Kafka allows them. */
function topicName(values: OptionValues, flag: string, byDefault?: string): string {
  const value = text(values, flag) ?? byDefault;
  if (value === undefined || value === '') throw usage(`--${flag} is missing`);
  if (/^[\w.-]{1,249}$/.test(value) && !/^\.\.?$/.test(value)) return value;
  throw usage(`--${flag} ${JSON.stringify(value)} is not a name of letters, digits, ".", "_" and "-"`);
}

/** What a worker on Kafka needs of the command line. */
export interface KafkaRequest {
  server: KafkaServer;
  setupOptions: KafkaSetupOptions;
  compression: Compression | undefined;
}

/** Reads the options. Throws AtlasError E_USAGE for those that are not valid, and E_INSTALL for a Node that is too old. */
export function readKafkaRequest(values: OptionValues): KafkaRequest {
  const from = topicName(values, 'from');
  const to = topicName(values, 'to');
  const rejects = topicName(values, 'rejects', `${to}-rejects`);
  const group = topicName(values, 'group', `ipatlas-${to}`);
  if (new Set([from, to, rejects]).size < 3) throw usage('--from, --to and --rejects must name different topics');
  const request: KafkaRequest = {
    server: readServer(values),
    setupOptions: {
      names: { from, to, rejects, group },
      byKey: values['by-key'] === true,
      create: values.init === true,
      replicas: wholeNumber(values, 'replicas', 1, MAX_REPLICAS),
    },
    compression: text(values, 'compression') as Compression | undefined,
  };
  const [major, minor] = process.versions.node.split('.').map(Number) as [number, number];
  if (major > NODE_VERSION[0]! || (major === NODE_VERSION[0]! && minor >= NODE_VERSION[1]!)) return request;
  throw new AtlasError(
    'E_INSTALL',
    `--server kafka:// needs Node ${NODE_VERSION.join('.')} or later, because its client does, and this is ${process.versions.node}`,
  );
}

/** Loads the client library, and checks the topics. Throws as {@link setUpTopics} does; E_INSTALL without the library. */
export async function openKafka({ server, setupOptions }: KafkaRequest) {
  const name: string = '@platformatic/kafka';
  const module = await withPackages('stream --server kafka://', async () => (await import(name)) as KafkaModule);
  const clients = new Clients(module, server);
  try {
    const setup = await setUpTopics(clients.admin(), setupOptions);
    for (const line of setup.created) printNote(`ipatlas: ${line}\n`);
    return { module, setup };
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    const hosts = server.bootstrapBrokers.join(', ');
    // A broker closes connections that do not begin as it expects, without a reason.
    const advice =
      'start it, or name another with --server; if it runs, it may want TLS (kafka+tls://), a certificate (--tls-cert) or a user';
    throw causedError('E_STREAM', `no answer from Kafka at ${hosts}`, error, advice);
  } finally {
    await clients.close();
  }
}
