/** Workers and brokers of Kafka are killed at random, stopped, added and removed, while records flow. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  KAFKA_HEARTBEAT_MS,
  KAFKA_REBALANCE_MS,
  KAFKA_REQUEST_TIMEOUT_MS,
  KAFKA_SESSION_MS,
} from '../../src/limits.js';
import { KafkaCluster, missingKafka, recordErrors, testRecord } from '../stream/kafka.js';
import { smallRelease } from '../support/release.js';
import { randomFrom, rounds } from '../support/seed.js';
import { until } from '../support/serve.js';

const NODES = Number(process.env.SOAK_SCALE ?? 1) < 0.1 ? 1 : 3;
const WORKER_KILLS = rounds(200);
const BROKER_KILLS = rounds(60);
const REBALANCES = rounds(20);
const RECORDS = rounds(40_000);
const PARTITIONS = 6;
const WORKERS = 2;
/** Every so many kills of a worker are a stop instead: it goes on when others have its partitions, and is killed later. */
const STOP_EVERY = 3;
/** Longest time without output that has a reason, on a busy machine twice as long. */
const STALL_MS = 2 * (KAFKA_SESSION_MS + KAFKA_REBALANCE_MS + 3 * KAFKA_REQUEST_TIMEOUT_MS);

const missing = missingKafka();
const random = randomFrom();
let dataDir: string;
let cluster: KafkaCluster;

beforeAll(async () => {
  if (missing) return;
  dataDir = await smallRelease();
  cluster = await KafkaCluster.start(NODES);
});
afterAll(async () => {
  await cluster?.remove();
});

if (missing) process.stderr.write(`${missing}\n`);

it.skipIf(missing)(
  'a member goes on whose brokers all end while its group waits for another that is silent',
  async () => {
    const flags = ['--from', 'joining', '--to', 'joined', '--data', dataDir];
    const produce = (first: number): Promise<void> =>
      cluster.produce(Array.from({ length: 20 }, (_, at) => testRecord('joining', first + at, PARTITIONS)));
    const hasOutput = (count: number, milliseconds: number): Promise<unknown> =>
      until(async () => (await cluster.read('joined')).length === count, 'output', milliseconds);
    await cluster.produce([{ create: ['joining'], partitions: PARTITIONS, replicas: NODES }]);
    await cluster.work(...flags, '--init', '--once');
    const worker = cluster.worker(...flags);
    await produce(0);
    await hasOutput(20, STALL_MS);
    await cluster.produce([{ join: 'ipatlas-joined', of: 'joining' }]);
    const other = cluster.worker(...flags);
    await sleep(4 * KAFKA_HEARTBEAT_MS);
    other.kill('SIGKILL');
    for (let at = 0; at < NODES; at++) await cluster.kill(at);
    await Promise.all(Array.from({ length: NODES }, (_, at) => cluster.resume(at)));
    await produce(20);
    await hasOutput(40, KAFKA_SESSION_MS + 2 * KAFKA_REBALANCE_MS + 3 * KAFKA_REQUEST_TIMEOUT_MS);
    worker.kill('SIGTERM');
    expect((await once(worker, 'exit'))[0]).toBe(0);
  },
);

it.skipIf(missing)(
  `${WORKER_KILLS} kills of workers, ${BROKER_KILLS} of ${NODES} brokers, ${REBALANCES} rebalances: each record once, in order`,
  async () => {
    const flags = ['--from', 'in', '--to', 'out', '--data', dataDir];
    await cluster.produce([{ create: ['in'], partitions: PARTITIONS, replicas: NODES }]);
    const created = await cluster.work(...flags, '--init', '--once');
    expect(created.code, created.stderr).toBe(0);
    const steps = [
      ...Array.from({ length: WORKER_KILLS }, (_, at) => (at % STOP_EVERY === 0 ? 'stop' : 'kill')),
      ...Array.from({ length: BROKER_KILLS }, () => 'broker'),
      ...Array.from({ length: REBALANCES }, () => 'rebalance'),
    ]
      .map((step) => ({ step, at: random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ step }) => step);

    let isOver = false;
    let log = '';
    const workers: ChildProcess[] = [];
    const started: ChildProcess[] = [];
    const startWorker = (index: number): void => {
      const worker = cluster.worker(...flags);
      worker.stdout!.resume();
      worker.stderr!.setEncoding('utf8').on('data', (text: string) => {
        log = (log + text).slice(-4_000);
      });
      // A service manager starts a worker again that could not reach the brokers.
      worker.on('exit', () => {
        if (!isOver && workers[index] === worker) startWorker(index);
      });
      workers[index] = worker;
      started.push(worker);
    };
    for (let index = 0; index < WORKERS; index++) startWorker(index);

    let produced = 0;
    const produce = async (count: number): Promise<void> => {
      const records = Array.from({ length: count }, (_, at) => testRecord('in', produced + at, PARTITIONS));
      produced += count;
      // What failed may be there in part: the source is what the topic has.
      for (let isWritten = false; !isWritten; ) {
        isWritten = await cluster.produce(records).then(
          () => true,
          () => false,
        );
      }
    };
    let stopped = 0;
    try {
      for (const step of steps) {
        const before = await until(() => cluster.end('out', PARTITIONS), 'an answer of the brokers', STALL_MS);
        const writing = produce(Math.ceil(RECORDS / steps.length));
        await sleep(500 * random());
        const index = Math.floor(random() * WORKERS);
        if (step === 'broker') {
          const at = Math.floor(random() * NODES);
          await cluster.kill(at);
          await cluster.resume(at);
        } else if (step === 'rebalance') {
          workers[WORKERS] === undefined ? startWorker(WORKERS) : workers[WORKERS].kill('SIGTERM');
        } else if (step === 'stop') {
          const worker = workers[index]!;
          worker.kill('SIGSTOP');
          stopped++;
          startWorker(index);
          setTimeout(() => worker.kill('SIGCONT'), 1.5 * KAFKA_SESSION_MS).unref();
          setTimeout(() => {
            worker.kill('SIGKILL');
            stopped--;
          }, 3 * KAFKA_SESSION_MS).unref();
        } else {
          workers[index]!.kill('SIGKILL');
        }
        await writing;
        const grows = async (): Promise<boolean> => ((await cluster.end('out', PARTITIONS)) ?? 0) > before;
        await until(grows, 'output', STALL_MS).catch((error: unknown) => {
          throw new Error(`a stall: ${log}`, { cause: error });
        });
      }
      await until(() => stopped === 0, 'the end of the stops', 4 * KAFKA_SESSION_MS);
      isOver = true;
      const last = await cluster.work(...flags, '--once');
      expect(last.code, last.stderr).toBe(0);
    } finally {
      isOver = true;
      for (const worker of started) {
        if (worker.exitCode !== null || worker.signalCode !== null) continue;
        worker.kill('SIGKILL');
        await once(worker, 'exit');
      }
    }
    const { errors, records } = await recordErrors(cluster, 'in', 'out', dataDir);
    expect(errors).toEqual([]);
    expect(records).toBeGreaterThanOrEqual(RECORDS);
    expect(await cluster.read('out-rejects')).toEqual([]);
    process.stderr.write(`${records} records, ${steps.length} steps\n`);
  },
  120_000 + 2 * STALL_MS * (WORKER_KILLS + BROKER_KILLS + REBALANCES),
);
