/** Streams that a subject mapping divides, as docs/scale.md has it: from 1 to 4 under load, while workers and the server are killed. */
import { type ChildProcess, execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { headers } from '@nats-io/transport-node';
import { expect, it } from 'vitest';
import { packageFile, packageRoot } from '../../src/package-root.js';
import { outputErrors } from '../stream/exactly-once.js';
import { hasNatsServer, messagesOf, NatsServerProcess, SKIPPED } from '../stream/nats.js';
import { ipatlas, MAIN, start } from '../support/cli.js';
import { smallRelease } from '../support/release.js';
import { randomFrom, rounds } from '../support/seed.js';
import { until } from '../support/serve.js';

/** Partitions, one after the other; each step but the first doubles them. */
const STEPS = [1, 2, 4];
const HOSTS = 50;
/** Messages and kills at each step. */
const MESSAGES = Math.max(100, rounds(2_000));
const KILLS = rounds(20);
const PAGE = readFileSync(packageFile('docs/scale.md'), 'utf8');
/** The commands of the page, which have 2 partitions. */
const [, MAPPING, CREATE, WORKERS, RELOAD] =
  /^(mappings .*)$[\s\S]*?^(for part [\s\S]*?^done)$[\s\S]*?^(ipatlas [\s\S]*?)^```$[\s\S]*?`(nats-server --signal \S+)`/m.exec(
    PAGE,
  )!;
const URL = 'nats://localhost:4222';
const mapping = (count: number): string => MAPPING!.replace('(2,', `(${count},`);

if (!hasNatsServer()) process.stderr.write(`${SKIPPED}\n`);

it.skipIf(!hasNatsServer())(`${STEPS.join(', ')} partitions: each message once`, { timeout: 1_800_000 }, async () => {
  const random = randomFrom();
  const dataDir = await smallRelease();
  const server = await NatsServerProcess.start({ config: mapping(1) });
  const connection = await server.connect();
  const workers: ChildProcess[] = [];
  let isOver = false;
  const words = (part: number): string[] => [
    ...WORKERS!.split('\n')[0]!.replace(URL, server.url).replaceAll('_0', `_${part}`).split(' ').slice(1),
    ...['--data', dataDir],
  ];
  /** Runs commands of the page with the program as it is compiled. Streams are smaller, and failed messages come back sooner. */
  const run = (commands: string): void => {
    const text = commands
      .replaceAll(URL, server.url)
      .replaceAll('10000000000', '500000000')
      .replace('--init', '--init --ack-wait 2');
    const program = `ipatlas() { '${process.execPath}' '${MAIN}' "$@" --data '${dataDir}'; }`;
    execFileSync('bash', ['-ec', `${program}\n${text}`], { cwd: packageRoot(), stdio: 'pipe' });
  };
  const startWorker = (part: number): void => {
    const worker = start(words(part));
    worker.stdout?.resume();
    worker.stderr?.resume();
    worker.on('exit', () => {
      if (!isOver) startWorker(part);
    });
    workers[part] = worker;
  };
  /** Publishes until the message is stored; its id makes the server ignore it if it was, without an answer. */
  const publish = async (number: number): Promise<void> => {
    const id = headers();
    id.set('Nats-Msg-Id', `${number}`);
    const text = `{"n":${number},"ip":"8.${number & 255}.${number % 7}.1"}\n`;
    await until(async () => {
      const subject = `logs.host${number % HOSTS}`;
      const answer = await connection.request(subject, text, { headers: id, timeout: 2_000 }).catch(() => undefined);
      return answer !== undefined && 'seq' in answer.json<object>();
    }, `message ${number}`);
  };
  try {
    for (const [step, count] of STEPS.entries()) {
      // What is sent before the connection is back after a kill is lost with its answer.
      await until(() => connection.rtt().catch(() => undefined), 'the connection');
      // First the new streams and their workers, then the mapping that leads to them: at a moment without an open message, because
      // one that is sent again afterwards goes to another stream, which does not know its id.
      const parts = Array.from({ length: count }, (_, part) => part).slice(STEPS[step - 1] ?? 0);
      run(CREATE!.replace('0 1', parts.join(' ')));
      for (const part of parts) startWorker(part);
      server.configure(mapping(count));
      run(RELOAD!.replace('PID', String(server.pid)));
      let published = 0;
      const load = (async () => {
        while (published < MESSAGES) {
          const batch = Array.from({ length: 20 }, (_, index) => publish(step * MESSAGES + published + index));
          await Promise.all(batch);
          published += batch.length;
        }
      })();
      for (let kill = 0; kill < KILLS; kill++) {
        await until(() => published >= (kill * MESSAGES) / KILLS, 'load');
        await sleep(200 * random());
        if (kill % 4 === 3) {
          await server.kill();
          await server.resume();
        } else workers[Math.floor(random() * count)]!.kill('SIGKILL');
      }
      await load;
    }
    isOver = true;
    for (const worker of workers) worker.kill('SIGKILL');
    const stored: number[] = [];
    const lastCount = STEPS.at(-1)!;
    for (let part = 0; part < lastCount; part++) {
      const last = await ipatlas([...words(part), '--once']);
      expect(last.code, last.stderr).toBe(0);
      const messages = await messagesOf(connection, `LOGS_${part}`);
      expect(messages.length).toBeGreaterThan(MESSAGES / 10);
      stored.push(...messages.map((message) => message.json<{ n: number }>().n));
      expect((await outputErrors(connection, `LOGS_${part}`, `ENRICHED_${part}`, dataDir)).errors).toEqual([]);
    }
    const all = Array.from({ length: STEPS.length * MESSAGES }, (_, number) => number);
    expect(stored.sort((a, b) => a - b)).toEqual(all);
  } finally {
    isOver = true;
    for (const worker of workers) worker.kill('SIGKILL');
    await connection.close();
    await server.remove();
    rmSync(dataDir, { recursive: true });
  }
});
