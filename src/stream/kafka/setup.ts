/** The topics on the brokers: checks them before any work, and creates what is missing on request. */
import { AtlasError } from '../../errors.js';
import {
  type Admin,
  ask,
  COMPRESSIONS,
  type Compression,
  protocolErrors,
  type Topic,
  UNKNOWN_TOPIC,
} from './client.js';

export interface KafkaNames {
  from: string;
  to: string;
  rejects: string;
  group: string;
}

export interface KafkaSetupOptions {
  names: KafkaNames;
  /** Whether the key of a record decides its partition, so that the topics may differ in number. */
  byKey: boolean;
  /** Creates what is missing. */
  create: boolean;
  /** Replicas of what is created; by default as many as the source has, or as the brokers say. */
  replicas?: number | undefined;
}

export interface KafkaSetup {
  /** Largest batch of records that the topics take, in bytes. */
  maxBytes: { to: number; rejects: number };
  /** Compression that the output topic sets; undefined if it takes what the producer sends. */
  compression: Compression | undefined;
  created: string[];
}

const TOPIC_RESOURCE = 2;

const streamError = (message: string): AtlasError => new AtlasError('E_STREAM', message);

/** Reads about topics; those that do not exist are left out. Throws as {@link ask} does. */
export async function readTopics(admin: Admin, { from, to, rejects }: KafkaNames): Promise<Map<string, Topic>> {
  const found = new Map<string, Topic>();
  for (const name of [from, to, rejects]) {
    const request = admin.metadata({ topics: [name], forceUpdate: true }).catch((error: unknown) => {
      if (protocolErrors(error).includes(UNKNOWN_TOPIC)) return undefined;
      throw error;
    });
    const topic = (await ask('topics', request))?.topics.get(name);
    if (topic !== undefined) found.set(name, topic);
  }
  return found;
}

/**
 * Returns the number of partitions of each topic.
 *
 * @throws AtlasError E_STREAM if the output or the rejects have another number, and keys do not decide; or if one is missing
 */
export function requireTopics(topics: ReadonlyMap<string, Topic>, { names, byKey }: KafkaSetupOptions) {
  const { from, to, rejects } = names;
  for (const name of [from, to, rejects]) {
    if (!topics.has(name)) throw streamError(`there is no topic ${name}; --init creates it`);
  }
  const counts = new Map([...topics].map(([name, { partitions }]) => [name, partitions.length]));
  const count = counts.get(from);
  for (const name of [to, rejects]) {
    if (byKey || counts.get(name) === count) continue;
    throw streamError(
      `${from} has ${count} partitions and ${name} has ${counts.get(name)}: partition 7 of the source goes to partition 7; ` +
        'make them as many, or give --by-key, with which the order of the source is kept for each key only',
    );
  }
  return counts;
}

/**
 * Checks the topics, and creates those that are missing if that is asked for: with as many partitions as the source.
 *
 * @throws AtlasError E_STREAM as {@link requireTopics} does; BrokerUnavailable
 */
export async function setUpTopics(admin: Admin, options: KafkaSetupOptions): Promise<KafkaSetup> {
  const { from, to, rejects } = options.names;
  const created: string[] = [];
  let topics = await readTopics(admin, options.names);
  for (const name of [from, to, rejects]) {
    if (topics.has(name) || !options.create) continue;
    const source = topics.get(from);
    // -1: as the brokers say.
    const partitions = source?.partitions.length ?? -1;
    const replicas = options.replicas ?? source?.partitions[0]?.replicas.length ?? -1;
    await ask(`create ${name}`, admin.createTopics({ topics: [name], partitions, replicas }));
    // A topic that was just created may be unknown to the other brokers for a moment.
    topics = await readTopics(admin, options.names);
    created.push(`created the topic ${name}, ${topics.get(name)?.partitions.length ?? '?'} partitions`);
  }
  requireTopics(topics, options);
  const keys = ['max.message.bytes', 'compression.type'];
  const resources = [to, rejects].map((resourceName) => ({
    resourceType: TOPIC_RESOURCE,
    resourceName,
    configurationKeys: keys,
  }));
  const described = await ask('configuration of the topics', admin.describeConfigs({ resources }));
  const config = (topic: string, key: string): string =>
    described.find(({ resourceName }) => resourceName === topic)?.configs.find(({ name }) => name === key)?.value ?? '';
  const own = config(to, 'compression.type').replace('uncompressed', 'none');
  return {
    maxBytes: { to: Number(config(to, keys[0]!)), rejects: Number(config(rejects, keys[0]!)) },
    compression: COMPRESSIONS.find((one) => one === own),
    created,
  };
}
