/** Workers and the server are killed at random while messages flow. scripts/stream-kills.sh runs this with more kills. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type NatsConnection, TimeoutError } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STREAM_REQUEST_TIMEOUT_MS, STREAM_RETRY_MAX_MS, STREAM_STANDBY_MS } from '../../src/limits.js';
import { orderErrors, outputErrors } from '../stream/exactly-once.js';
import { managerOf, messagesOf, NatsServerProcess } from '../stream/nats.js';
import { finished, ipatlas, start } from '../support/cli.js';
import { smallRelease } from '../support/release.js';
import { randomFrom, rounds } from '../support/seed.js';
import { until } from '../support/serve.js';

const WORKERS = 2;
const random = randomFrom();
const KINDS = [
  { kind: 'workers', suffix: '', flags: [], workerKills: rounds(40), serverKills: rounds(10) },
  {
    kind: 'workers of an ordered output',
    suffix: '_O',
    flags: ['--ordered'],
    workerKills: rounds(40),
    serverKills: rounds(10),
  },
].map(({ workerKills, serverKills, ...rest }) => ({
  ...rest,
  workerKills: Number(process.env.STREAM_WORKER_KILLS ?? workerKills),
  serverKills: Number(process.env.STREAM_SERVER_KILLS ?? serverKills),
}));
/** Every so many kills of a worker are a stop instead: it goes on after its messages were delivered to another one. */
const STOP_EVERY = 3;
const ACK_WAIT_S = 2;
/** Messages that are in the output since the last kill before the next one. */
const PROGRESS = 100;
/**
 * Most time in which neither the output grows nor more of the source is acknowledged. The longest wait that has a reason is a
 * connection that is cut in its handshake, a request without an answer, the wait before the next try, and the time until a
 * standby takes over or the messages of a killed worker are delivered again. A busy machine may need four times as long.
 */
const STALL_MS = 4 * (2 * STREAM_REQUEST_TIMEOUT_MS + STREAM_RETRY_MAX_MS + 2 * STREAM_STANDBY_MS);
/** Most time for the run: far above what it takes. */
const killsTimeoutMs = (kills: number): number => 120_000 + 30_000 * kills;
const LINES = 20;
/** Messages that are published at a time, so that kills meet many in flight, and the pause after them. */
const BATCH = 200;
const BATCH_PAUSE_MS = 1_000;
/** Messages that are published beyond those in the output at the last kill: a slow run must not fill the streams. */
const AHEAD = 2 * BATCH;
/** How much of the end of a worker's log is shown if the test fails. */
const LOG_CHARACTERS = 2_000;

/** A message: lines with addresses of both families, some broken; one in three lacks its final newline. */
function message(number: number): string {
  const lines = Array.from({ length: LINES }, (_, line) => {
    if (line === 7) return `not JSON ${number}`;
    const ip = line % 3 === 0 ? `2a00:1::${(number + line).toString(16)}` : `8.${number & 255}.${line}.1`;
    return `{"n":${number},"ip":"${ip}","text":"${'x'.repeat(number % 200)}"}`;
  });
  return lines.join('\n') + (number % 3 === 0 ? '' : '\n');
}

describe('kills', () => {
  let dataDir: string;
  let server: NatsServerProcess;
  /** Every worker, so that none is left running when the test fails. */
  const started: ChildProcess[] = [];

  beforeAll(async () => {
    dataDir = await smallRelease();
    server = await NatsServerProcess.start();
  });
  afterAll(async () => {
    for (const worker of started) worker.kill('SIGKILL');
    await server.remove();
  });

  for (const { kind, suffix, flags: kindFlags, workerKills: workerLimit, serverKills: serverLimit } of KINDS) {
    it(
      `of ${workerLimit} ${kind} and ${serverLimit} servers leave each message in the output once`,
      async () => {
        const [from, to] = [`IN${suffix}`, `OUT${suffix}`];
        const flags = ['--server', server.url, '--from', from, '--to', to, '--data', dataDir, ...kindFlags];
        const ackWait = kindFlags.length === 0 ? ['--ack-wait', String(ACK_WAIT_S)] : [];
        const init = ['--init', '--once', ...ackWait, '--max-bytes', '600000000'];
        const created = await ipatlas(['stream', ...flags, ...init]);
        expect(created.code, created.stderr).toBe(0);
        const connection = await server.connect();
        // A request that is lost with its connection must not take long: nothing is killed meanwhile.
        const manager = await managerOf(connection, 1_000);
        const consumer = kindFlags.length === 0 ? `ipatlas_${to}` : undefined;
        /** Messages in the output, and anything that shows that workers do something; undefined while the server is away. */
        const progress = async (): Promise<{ count: number; signs: string } | undefined> => {
          try {
            const { messages, last_seq } = (await manager.streams.info(to)).state;
            if (consumer === undefined) return { count: messages, signs: `output ${last_seq}` };
            // A server that is killed while it writes the consumer's position loses it: then all messages are delivered again.
            const { ack_floor } = await manager.consumers.info(from, consumer);
            return { count: messages, signs: `output ${last_seq}, acknowledged up to ${ack_floor.stream_seq}` };
          } catch {
            return undefined;
          }
        };

        let isOver = false;
        let allowed = AHEAD;
        const mayPublish = (published: number): boolean => published < allowed;
        const producer = produce(connection, `${from.toLowerCase()}.lines`, mayPublish, () => isOver);
        const workers: ChildProcess[] = [];
        const logs = new Map<ChildProcess, () => string>();
        /** The workers that should be running, for the message of a failure. */
        const states = (): string =>
          workers.map((one) => `exit ${one.exitCode ?? one.signalCode}, ${logs.get(one)?.()}`).join('\n');
        let restarts = 0;
        const startWorker = (index: number): void => {
          const worker = start(['stream', ...flags]);
          let log = '';
          worker.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
            log = (log + chunk).slice(-LOG_CHARACTERS);
          });
          logs.set(worker, () => log);
          worker.stdout?.resume();
          // A service manager starts a worker again that could not reach the server.
          worker.on('exit', (code) => {
            if (isOver || code === 0 || code === null || workers[index] !== worker) return;
            process.stderr.write(`a worker ended by itself: ${log}`);
            restarts++;
            startWorker(index);
          });
          workers[index] = worker;
          started.push(worker);
        };
        for (let index = 0; index < WORKERS; index++) startWorker(index);

        /** Waits until the output has more messages than `least`, and fails if nothing moves. */
        const outputAbove = async (least: number): Promise<void> => {
          let signs = '';
          let since = performance.now();
          await until(
            async () => {
              const now = await progress();
              if (now !== undefined && now.signs !== signs) {
                signs = now.signs;
                since = performance.now();
              }
              if (performance.now() - since > STALL_MS) throw new Error(`a stall: ${signs}\n${states()}`);
              return now !== undefined && now.count > least;
            },
            'progress of the workers',
            killsTimeoutMs(workerLimit + serverLimit),
          );
        };

        let workerKills = 0;
        let serverKills = 0;
        const stopped = new Set<ChildProcess>();
        while (workerKills < workerLimit || serverKills < serverLimit) {
          const before = (await until(progress, 'an answer of the server')).count;
          allowed = before + AHEAD;
          await outputAbove(before + PROGRESS * random());
          const left = workerLimit - workerKills + serverLimit - serverKills;
          if (random() * left < serverLimit - serverKills) {
            serverKills++;
            await server.kill();
            await server.resume();
            continue;
          }
          const index = Math.floor(random() * WORKERS);
          const worker = workers[index]!;
          if (++workerKills % STOP_EVERY === 0) {
            worker.kill('SIGSTOP');
            stopped.add(worker);
            // Its messages are delivered again, and done by others, before it goes on. Later it is killed.
            setTimeout(() => worker.kill('SIGCONT'), 2000 * ACK_WAIT_S).unref();
            setTimeout(() => {
              worker.kill('SIGKILL');
              stopped.delete(worker);
            }, 3000 * ACK_WAIT_S).unref();
          } else {
            worker.kill('SIGKILL');
          }
          startWorker(index);
        }
        isOver = true;
        await producer;
        await until(() => stopped.size === 0, 'the end of the stops');

        // A last worker ends when everything is done; then the others must not add anything more.
        const last = await ipatlas(['stream', ...flags, '--once']);
        expect(last.code, last.stderr).toBe(0);
        for (const worker of workers) {
          if (worker.exitCode === null && worker.signalCode === null) {
            worker.kill('SIGTERM');
            await once(worker, 'exit');
          }
        }
        const { errors, messages } = await outputErrors(connection, from, to, dataDir);
        expect(errors).toEqual([]);
        if (kindFlags.includes('--ordered')) expect(await orderErrors(connection, to)).toEqual([]);
        expect(messages).toBeGreaterThan(PROGRESS);
        if (process.env.STREAM_WORKER_KILLS !== undefined) {
          process.stderr.write(
            `${messages} messages, ${workerKills} kills of ${kind}, ${serverKills} of the server, ${restarts} restarts\n`,
          );
        }

        // The reader gives, in order, what "enrich" makes of the same messages.
        const files = (await messagesOf(connection, from)).map(({ data }) => Buffer.from(data).toString());
        const input = join(dataDir, 'input.jsonl');
        writeFileSync(input, files.map((text) => (text.endsWith('\n') ? text : `${text}\n`)).join(''));
        await ipatlas(['enrich', input, '-o', join(dataDir, 'enriched.jsonl'), '--data', dataDir]);
        const reader = start(['stream', ...flags, '--read', '--once']);
        const { code, stdout, stderr } = await finished(reader);
        expect(code, stderr).toBe(0);
        const enriched = readFileSync(join(dataDir, 'enriched.jsonl'), 'utf8');
        expect(stdout === enriched || `${stdout}\n` === enriched).toBe(true);
        await connection.close();
      },
      killsTimeoutMs(workerLimit + serverLimit),
    );
  }
});

/** Publishes messages until told to stop, some at a time, while the server is killed and comes back. */
async function produce(
  connection: NatsConnection,
  subject: string,
  mayPublish: (published: number) => boolean,
  isOver: () => boolean,
): Promise<void> {
  let published = 0;
  for (let number = 0; !isOver(); ) {
    const batch = mayPublish(published) ? Array.from({ length: BATCH }, () => message(number++)) : [];
    await Promise.all(
      batch.map(async (text) => {
        try {
          await connection.request(subject, text, { timeout: 2_000 });
          published++;
        } catch (error) {
          // Whether it was stored is unknown: the check takes what the stream holds as the truth.
          if (!(error instanceof TimeoutError) && !String(error).includes('no responders')) throw error;
        }
      }),
    );
    // Keeps the run short: each message is read again several times by the checks.
    await sleep(BATCH_PAUSE_MS);
  }
}
