/** Real brokers of Apache Kafka for tests: started, killed and started again on the same files. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { openDatabase } from '../../src/database/database.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { packageFile } from '../../src/package-root.js';
import { type Finished, finished, MAIN } from '../support/cli.js';
import { freePort } from '../support/ports.js';
import { temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';

const FOLDER = packageFile('test/support/kafka');
/** Time for a broker to answer, on a machine that is busy, in milliseconds. */
const PATIENCE_MS = 180_000;
const CLUSTER_ID = 'MkU3OEVBNTcwNTJENDM2Qg';

let missing: string | false | undefined;

/** Downloads brokers, client and Node, unless they are there. Returns why brokers cannot be run; false if they can. */
export function missingKafka(): string | false {
  if (missing !== undefined) return missing;
  const programs = ['java', 'mvn', 'kcat'].filter((name) => spawnSync('which', [name]).status !== 0);
  const install = programs.length > 0 ? undefined : spawnSync(join(FOLDER, 'install.sh'), { encoding: 'utf8' });
  if (install?.status === 0) cache = install.stdout.trim();
  const why = programs.length > 0 ? `${programs.join(', ')} (scripts/ci-packages.sh)` : install?.stderr.slice(-500);
  missing = cache === '' && `SKIPPED: what Kafka needs is missing: ${why}; streams on Kafka are NOT tested`;
  return missing;
}

let cache = '';

/** User of the secured listeners. */
export const USER = { name: 'ann', password: 's3cret/x' };

/** Lines that add listeners of all kinds to a broker, with their ports. */
function securedListeners(dir: string, ports: { sasl: number; tls: number; both: number }): string[] {
  const pem = ['server.key', 'server.pem'].map((name) => readFileSync(join(dir, name), 'utf8')).join('');
  writeFileSync(join(dir, 'keystore.pem'), pem);
  const module = (name: string): string => `org.apache.kafka.common.security.${name} required`;
  const mechanisms = [
    ['plain', `${module('plain.PlainLoginModule')} user_${USER.name}="${USER.password}";`],
    ['scram-sha-256', `${module('scram.ScramLoginModule')};`],
    ['scram-sha-512', `${module('scram.ScramLoginModule')};`],
    ['oauthbearer', `${module('oauthbearer.OAuthBearerLoginModule')} unsecuredLoginStringClaim_sub="broker";`],
  ];
  const names = Object.keys(ports) as (keyof typeof ports)[];
  return [
    ...names.flatMap((name) => [
      `listener.name.${name}.sasl.enabled.mechanisms=${mechanisms.map(([mechanism]) => mechanism!.toUpperCase())}`,
      ...mechanisms.map(([mechanism, jaas]) => `listener.name.${name}.${mechanism}.sasl.jaas.config=${jaas}`),
    ]),
    'listener.name.tls.ssl.client.auth=required',
    ...['keystore', 'truststore'].map((store) => `ssl.${store}.type=PEM`),
    `ssl.keystore.location=${join(dir, 'keystore.pem')}`,
    `ssl.truststore.location=${join(dir, 'ca.pem')}`,
  ];
}

interface BrokerNode {
  properties: string;
  port: number;
  child?: ChildProcess;
}

export class KafkaCluster {
  /** Ports of further listeners of the first broker: with users, with TLS and certificates, with users over TLS. */
  readonly secured = { sasl: 0, tls: 0, both: 0 };
  readonly #dir = temporaryDir();
  readonly #nodes: BrokerNode[] = [];
  readonly #clients = new Set<ChildProcess>();

  /**
   * Starts brokers on free ports of the loopback address. Each is a controller, too.
   *
   * @param certificates folder of makeCertificates, for listeners with TLS and users
   */
  static async start(count = 1, certificates?: string): Promise<KafkaCluster> {
    const cluster = new KafkaCluster();
    const { secured } = cluster;
    if (certificates !== undefined) for (const name of Object.keys(secured)) secured[name as 'tls'] = await freePort();
    const more =
      certificates === undefined
        ? ''
        : Object.entries(secured)
            .map(([name, port]) => `,${name}://127.0.0.1:${port}`)
            .join('');
    const ports = await Promise.all(Array.from({ length: 2 * count }, () => freePort()));
    const voters = Array.from({ length: count }, (_, at) => `${at + 1}@127.0.0.1:${ports[count + at]}`).join(',');
    await Promise.all(
      ports.slice(0, count).map((port, at) =>
        cluster.#addNode(at, port, [
          'process.roles=broker,controller',
          `node.id=${at + 1}`,
          `controller.quorum.voters=${voters}`,
          `listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${ports[count + at]}${more}`,
          'controller.listener.names=CONTROLLER',
          'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,sasl:SASL_PLAINTEXT,tls:SSL,both:SASL_SSL',
          ...(certificates === undefined ? [] : securedListeners(certificates, secured)),
          `log.dirs=${join(cluster.#dir, String(at), 'log')}`,
          `offsets.topic.replication.factor=${count}`,
          `transaction.state.log.replication.factor=${count}`,
          `transaction.state.log.min.isr=${Math.ceil(count / 2)}`,
          `min.insync.replicas=${Math.ceil(count / 2)}`,
          'offsets.topic.num.partitions=3',
          'transaction.state.log.num.partitions=3',
          'group.initial.rebalance.delay.ms=0',
          // A broker that was killed and starts again is not let in until its earlier session is over: 9 seconds by default.
          'broker.session.timeout.ms=3000',
          'broker.heartbeat.interval.ms=500',
          'controller.quorum.election.timeout.ms=500',
          'controller.quorum.fetch.timeout.ms=1000',
          'transaction.abort.timed.out.transaction.cleanup.interval.ms=500',
          'auto.create.topics.enable=false',
          // The records of tests are old.
          'log.retention.ms=-1',
        ]),
      ),
    );
    await Promise.all(cluster.#nodes.map((_, at) => cluster.resume(at)));
    return cluster;
  }

  /**
   * Starts a broker with the environment of a service of Docker Compose, as its image takes it: `KAFKA_NODE_ID` is `node.id`.
   *
   * @param host the name of the service, in whose place is the loopback address
   */
  static async startAsIn(environment: Record<string, unknown>, host: string): Promise<KafkaCluster> {
    const cluster = new KafkaCluster();
    const [port, controller] = [await freePort(), await freePort()];
    const lines = Object.entries(environment).map(([name, value]) => {
      const key = name
        .replace(/^KAFKA_/, '')
        .toLowerCase()
        .replaceAll('_', '.');
      return `${key}=${key === 'log.dirs' ? join(cluster.#dir, 'log') : value}`;
    });
    const text = lines.join('\n').replaceAll('9092', `${port}`).replaceAll('9093', `${controller}`);
    await cluster.#addNode(0, port, [text.replaceAll(`//${host}:`, '//127.0.0.1:')]);
    await cluster.resume(0);
    return cluster;
  }

  /** Makes the files of a broker. */
  async #addNode(at: number, port: number, lines: readonly string[]): Promise<void> {
    const dir = join(this.#dir, String(at));
    mkdirSync(dir);
    const properties = join(dir, 'properties');
    writeFileSync(properties, lines.join('\n'));
    this.#nodes.push({ properties, port });
    const users = ['256', '512'].flatMap((bits) => [
      '--add-scram',
      `SCRAM-SHA-${bits}=[name=${USER.name},password=${USER.password}]`,
    ]);
    const format = this.#java('kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', properties, ...users);
    const { code, stdout } = await finished(format);
    if (code !== 0) throw new Error(`the files of a broker cannot be made: ${stdout}`);
  }

  get size(): number {
    return this.#nodes.length;
  }

  get url(): string {
    return `kafka://${this.servers}`;
  }

  get servers(): string {
    return this.#nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
  }

  #java(...args: string[]): ChildProcess {
    const memory = ['-Xmx384m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
    return spawn('java', [...memory, '-cp', join(cache, 'lib', '*'), ...args]);
  }

  /** Starts a broker again and waits until it accepts connections. */
  async resume(at: number): Promise<void> {
    const node = this.#nodes[at]!;
    const child = this.#java('kafka.Kafka', node.properties);
    node.child = child;
    let log = '';
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        log = (log + text).slice(-2_000);
      });
    }
    const accepts = async (): Promise<boolean> => {
      if (child.exitCode !== null) throw new Error(`a broker ended (${child.exitCode}): ${log}`);
      const socket = connect(node.port, '127.0.0.1');
      const answer = await Promise.race([
        once(socket, 'connect').then(() => true),
        once(socket, 'close').then(() => false),
      ]).catch(() => false);
      socket.destroy();
      return answer;
    };
    await until(accepts, 'the start of a broker', PATIENCE_MS);
  }

  async kill(at: number): Promise<void> {
    const { child } = this.#nodes[at]!;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Starts a program of the client's Node. */
  #node(args: string[], variables: NodeJS.ProcessEnv = {}): ChildProcess {
    const env = { ...process.env, KAFKA_CACHE: cache, ...variables };
    const child = spawn(join(cache, 'node'), ['--import', join(FOLDER, 'client-hook.js'), ...args], { env });
    this.#clients.add(child);
    child.on('exit', () => this.#clients.delete(child));
    return child;
  }

  /** Starts a worker. */
  worker(...flags: string[]): ChildProcess {
    if (!existsSync(MAIN)) throw new Error('dist/ is missing: run "npm run build" first (make test does)');
    return this.#node([MAIN, 'stream', '--server', this.url, ...flags]);
  }

  /** Runs a worker of another server's address to its end, with environment variables. */
  workAt(server: string, variables: NodeJS.ProcessEnv, ...flags: string[]): Promise<Finished> {
    return finished(this.#node([MAIN, 'stream', '--server', server, ...flags], variables));
  }

  /** Runs a worker to its end. */
  work(...flags: string[]): Promise<Finished> {
    return finished(this.worker(...flags));
  }

  /** Writes records and runs other commands of test/support/kafka/produce.js, in order. */
  async produce(commands: object[], compression = 'none'): Promise<void> {
    const child = this.#node([join(FOLDER, 'produce.js'), this.servers, compression]);
    child.stdin!.end(commands.map((command) => `${JSON.stringify(command)}\n`).join(''));
    const { stdout, stderr } = await finished(child);
    if (!stdout.includes('written')) throw new Error(`records were not written: ${stderr}`);
  }

  /** Writes records without a value by an independent client, which chooses partitions as Kafka's own does. */
  async produceByKey(topic: string, keys: readonly string[]): Promise<void> {
    const child = spawn('kcat', ['-b', this.servers, '-P', '-t', topic, '-K', ':', '-X', 'partitioner=murmur2']);
    child.stdin.end(keys.map((key) => `${key}:x\n`).join(''));
    await once(child, 'close');
  }

  /** Reads the committed records of a topic by an independent client, each partition in order. */
  async read(topic: string): Promise<ReadRecord[]> {
    const format = '%p %o %T %K %S %h\\n%k%s\\n';
    const flags = [
      '-b',
      this.servers,
      '-C',
      '-t',
      topic,
      '-e',
      '-q',
      '-X',
      'isolation.level=read_committed',
      '-f',
      format,
    ];
    const child = spawn('kcat', flags);
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    const [code] = (await once(child, 'close')) as [number];
    if (code !== 0) throw new Error(`kcat ended with ${code}`);
    const all = Buffer.concat(chunks);
    const records: ReadRecord[] = [];
    for (let at = 0; at < all.length; ) {
      const end = all.indexOf(10, at);
      const [partition, offset, timestamp, keySize, valueSize, ...headers] = all.toString('utf8', at, end).split(' ');
      const value = end + 1 + Math.max(0, Number(keySize));
      at = value + Math.max(0, Number(valueSize)) + 1;
      records.push({
        partition: Number(partition),
        offset: Number(offset),
        timestamp: Number(timestamp),
        key: Number(keySize) < 0 ? null : all.toString('utf8', end + 1, value),
        value: Number(valueSize) < 0 ? null : all.toString('utf8', value, at - 1),
        headers: headers.join(' '),
      });
    }
    return records.sort((a, b) => a.partition - b.partition || a.offset - b.offset);
  }

  /** Returns the sum of the ends of a topic's partitions, markers of transactions included; undefined without an answer. */
  async end(topic: string, partitions: number): Promise<number | undefined> {
    const targets = Array.from({ length: partitions }, (_, at) => ['-t', `${topic}:${at}:-1`]).flat();
    const { code, stdout } = await finished(spawn('kcat', ['-b', this.servers, '-Q', '-m', '10', ...targets]));
    const ends = [...stdout.matchAll(/offset (\d+)/g)].map(([, offset]) => Number(offset));
    return code === 0 && ends.length === partitions ? ends.reduce((sum, one) => sum + one, 0) : undefined;
  }

  async remove(): Promise<void> {
    for (const client of this.#clients) client.kill('SIGKILL');
    await Promise.all(this.#nodes.map((_, at) => this.kill(at)));
    rmSync(this.#dir, { recursive: true });
  }
}

export interface ReadRecord {
  partition: number;
  offset: number;
  timestamp: number;
  key: string | null;
  value: string | null;
  headers: string;
}

/**
 * Compares an output with the local enrichment of its source, record by record and partition by partition.
 *
 * @returns what is wrong; empty if nothing is
 */
export async function recordErrors(cluster: KafkaCluster, from: string, to: string, dataDir: string) {
  const database = openDatabase(dataDir);
  const enricher = createBlockEnricher(database);
  const { id } = database.manifest;
  const source = await cluster.read(from);
  const expected = source.map(({ partition, offset, timestamp, key, value, headers }) => {
    const enriched =
      value === null || value === '' ? value : Buffer.from(enricher.enrichBlock(Buffer.from(value))).toString();
    const own = `ipatlas-source=${from} ${partition} ${offset},ipatlas-release=${id}`;
    return JSON.stringify([partition, timestamp, key, enriched, headers === '' ? own : `${headers},${own}`]);
  });
  database.close();
  const output = (await cluster.read(to)).map(({ partition, timestamp, key, value, headers }) =>
    JSON.stringify([partition, timestamp, key, value, headers]),
  );
  const errors: string[] = [];
  if (output.length !== expected.length) errors.push(`${output.length} records instead of ${expected.length}`);
  const wrong = expected.findIndex((text, at) => text !== output[at]);
  if (wrong >= 0) errors.push(`${output[wrong]} instead of ${expected[wrong]}`);
  return { errors, records: source.length };
}

/** A record of a kind that its number gives: lines, several or one, broken ones, empty values, tombstones, without a key. */
export function testRecord(topic: string, number: number, partitions: number): object {
  const line = (at: number): string =>
    JSON.stringify({
      n: number,
      at,
      ip: number % 3 ? `8.${number & 255}.${at}.1` : `2a00:1::${number.toString(16)}`,
      text: 'x'.repeat(number % 150),
    });
  const lines = Array.from({ length: number % 10 === 0 ? 3 : 1 }, (_, at) => line(at)).join('\n');
  const text = number % 97 === 0 ? `not JSON ${number}` : `${lines}${number % 4 === 0 ? '\n' : ''}`;
  const isEmpty = number % 101 === 0;
  return {
    topic,
    partition: number % partitions,
    key: number % 7 === 0 ? null : `key ${number}`,
    value: number % 103 === 0 ? null : isEmpty ? '' : text,
    headers:
      number % 5 === 0
        ? []
        : [
            ['trace', `${number}`],
            ['trace', 'again'],
          ],
    // Now and then of another month.
    timestamp: 1_700_000_000_000 + number + (number % 60 === 0 ? 5_000_000_000 : 0),
  };
}
