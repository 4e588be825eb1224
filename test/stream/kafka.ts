/** Real brokers of Apache Kafka for tests: started, killed and started again on the same files. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
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

export const SKIPPED =
  'SKIPPED: Java, Maven or kcat is missing (scripts/ci-packages.sh installs it); streams on Kafka are NOT tested';

/** Whether brokers can be run. They are downloaded by {@link installKafka}. */
export function hasKafka(): boolean {
  return [
    ['java', '-version'],
    ['mvn', '-version'],
    ['kcat', '-V'],
  ].every(([program, flag]) => spawnSync(program!, [flag!]).error === undefined);
}

/** Downloads brokers, client and Node, unless they are there. Returns the folder. */
export function installKafka(): string {
  return execFileSync(join(FOLDER, 'install.sh'), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}

interface BrokerNode {
  properties: string;
  port: number;
  child?: ChildProcess;
}

export class KafkaCluster {
  readonly #cache: string;
  readonly #dir = temporaryDir();
  readonly #nodes: BrokerNode[] = [];
  readonly #clients = new Set<ChildProcess>();

  private constructor(cache: string) {
    this.#cache = cache;
  }

  /** Starts brokers on free ports of the loopback address. Each is a controller, too. */
  static async start(count = 1): Promise<KafkaCluster> {
    const cluster = new KafkaCluster(installKafka());
    const ports = await Promise.all(Array.from({ length: 2 * count }, () => freePort()));
    const voters = Array.from({ length: count }, (_, at) => `${at + 1}@127.0.0.1:${ports[count + at]}`).join(',');
    await Promise.all(
      ports.slice(0, count).map(async (port, at) => {
        const dir = join(cluster.#dir, String(at));
        mkdirSync(dir);
        const lines = [
          'process.roles=broker,controller',
          `node.id=${at + 1}`,
          `controller.quorum.voters=${voters}`,
          `listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${ports[count + at]}`,
          'controller.listener.names=CONTROLLER',
          'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
          `log.dirs=${join(dir, 'log')}`,
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
        ];
        const properties = join(dir, 'properties');
        writeFileSync(properties, lines.join('\n'));
        cluster.#nodes.push({ properties, port });
        const format = cluster.#java('kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', properties);
        const { code, stdout } = await finished(format);
        if (code !== 0) throw new Error(`the files of a broker cannot be made: ${stdout}`);
      }),
    );
    await Promise.all(cluster.#nodes.map((_, at) => cluster.resume(at)));
    return cluster;
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
    return spawn('java', [...memory, '-cp', join(this.#cache, 'lib', '*'), ...args]);
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
  #node(args: string[]): ChildProcess {
    const env = { ...process.env, KAFKA_CACHE: this.#cache };
    const child = spawn(join(this.#cache, 'node'), ['--import', join(FOLDER, 'client-hook.js'), ...args], { env });
    this.#clients.add(child);
    child.on('exit', () => this.#clients.delete(child));
    return child;
  }

  /** Starts a worker. */
  worker(...flags: string[]): ChildProcess {
    if (!existsSync(MAIN)) throw new Error('dist/ is missing: run "npm run build" first (make test does)');
    return this.#node([MAIN, 'stream', '--server', this.url, ...flags]);
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
