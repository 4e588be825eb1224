/** Workers of an ordered output: one writes, in the order of the source, and each message once. */
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { type ActiveRelease, BrokerUnavailable } from '../../src/stream/broker.js';
import type { StartAt } from '../../src/stream/jetstream/chain.js';
import type { WorkerOptions } from '../../src/stream/jetstream/intake.js';
import type { NatsBroker } from '../../src/stream/jetstream/nats.js';
import { OrderedWorker } from '../../src/stream/jetstream/ordered.js';
import { readInOrder } from '../../src/stream/jetstream/reader.js';
import { smallRelease } from '../support/release.js';
import { until } from '../support/serve.js';
import { orderErrors, outputErrors } from './exactly-once.js';
import {
  altered,
  bareLines,
  MEGABYTE,
  openBroker,
  recordedEvents,
  recordedOutputs,
  releaseOf,
  setupOptions,
  workerOptions,
} from './in-process.js';
import { hasNatsServer, managerOf, messagesOf, NatsServerProcess, publishAll, SKIPPED } from './nats.js';

/** Small, so that bare addresses outgrow it. */
const MAX_PAYLOAD = 65_536;

if (!hasNatsServer()) it(SKIPPED, ({ skip }) => skip(SKIPPED));

// Each test has its own streams, and several wait for time limits, so they run together.
describe.skipIf(!hasNatsServer())('a worker of an ordered output', { concurrent: true }, () => {
  let dataDir: string;
  let server: NatsServerProcess;
  let connection: NatsConnection;
  let release: ActiveRelease;
  const brokers: NatsBroker[] = [];

  beforeAll(async () => {
    dataDir = await smallRelease();
    release = releaseOf(dataDir);
    server = await NatsServerProcess.start({ maxPayload: MAX_PAYLOAD });
    connection = await server.connect();
  });
  afterAll(async () => {
    await Promise.all(brokers.map((broker) => broker.close()));
    await connection.close();
    await server.remove();
  });

  async function open(suffix: string, startAt?: StartAt): Promise<NatsBroker> {
    const options = setupOptions(suffix, { ordered: true, startAt });
    const broker = await openBroker(server.url, options);
    brokers.push(broker);
    return broker;
  }

  function worker(broker: NatsBroker, changes: Partial<WorkerOptions & { startAt: StartAt }> = {}): OrderedWorker {
    return new OrderedWorker({ ...workerOptions(broker, release), startAt: undefined, ...changes });
  }

  /** What is wrong with the output: missing, doubled or different messages, and the order. */
  async function errorsOf(suffix: string): Promise<string[]> {
    const { errors } = await outputErrors(connection, `IN${suffix}`, `OUT${suffix}`, dataDir);
    return [...errors, ...(await orderErrors(connection, `OUT${suffix}`))];
  }

  const publish = (suffix: string, count: number, first = 0): Promise<void> =>
    publishAll(
      connection,
      `in${suffix.toLowerCase()}.a`,
      Array.from({ length: count }, (_, n) => bareLines(1 + (n % 7), first + n)),
    );

  it('writes the messages in the order of the source, and the next run goes on at the end of the output', async () => {
    const broker = await open('A');
    await publish('A', 150);
    await worker(broker).run();
    expect(await errorsOf('A')).toEqual([]);
    await publish('A', 50, 150);
    const events = recordedEvents();
    await worker(broker, { events }).run();
    expect(events.log.filter((event) => event === 'stored')).toHaveLength(50);
    expect(await errorsOf('A')).toEqual([]);
    expect(await broker.backlog()).toEqual({ pending: 0, unacknowledged: 0, acknowledgedUpTo: 200 });
  });

  it('keeps the subjects of the source', async () => {
    const broker = await openBroker(server.url, setupOptions('KS', { ordered: true, keepSubjects: true }));
    brokers.push(broker);
    await publish('KS', 20);
    await worker(broker).run();
    expect((await outputErrors(connection, 'INKS', 'OUTKS', dataDir, true)).errors).toEqual([]);
    expect(await orderErrors(connection, 'OUTKS')).toEqual([]);
  });

  it('uses the memory of an output again once it is stored', async () => {
    const large = await NatsServerProcess.start({ maxPayload: MEGABYTE });
    const link = await large.connect();
    const broker = await openBroker(large.url, setupOptions('R', { ordered: true }));
    const messages = Array.from({ length: 60 }, (_, n) => bareLines(1_000 + (n % 7), n));
    await publishAll(link, 'inr.a', messages);
    const { buffers, recorded } = recordedOutputs(release);
    // Each part is sent after the part before it is stored; meanwhile, later messages are enriched.
    let stored: Promise<unknown> = Promise.resolve();
    const slow = altered<NatsBroker>(broker, {
      append: (part, previous, after) => {
        const append = stored.then(() => broker.append(part, previous, after));
        stored = append;
        return append;
      },
    });
    await worker(slow, { release: () => recorded, inFlight: { messages: 4, bytes: MEGABYTE } }).run();
    expect(buffers).toHaveLength(messages.length);
    expect(new Set(buffers).size).toBeLessThan(messages.length);
    expect((await outputErrors(link, 'INR', 'OUTR', dataDir)).errors).toEqual([]);
    await broker.close();
    await link.close();
    await large.remove();
  });

  it('begins again at the end of the output after an append was lost', async () => {
    const broker = await open('B');
    await publish('B', 40);
    let appends = 0;
    // The third append does not arrive, although those that were sent after it do.
    const losing = altered<NatsBroker>(broker, {
      append: async (part, previous, after) => {
        if (++appends === 3) {
          await until(() => appends > 10, 'more appends');
          throw new BrokerUnavailable('lost');
        }
        return broker.append(part, previous, after);
      },
    });
    const events = recordedEvents();
    await worker(losing, { events }).run();
    expect(await errorsOf('B')).toEqual([]);
    expect(events.log).toContain('retried');
  });

  it('adds nothing if it is about to append when another one writes everything', async () => {
    const [slow, fast] = [await open('D'), await open('D')];
    await publish('D', 30);
    let other: Promise<void> | undefined;
    const waiting = altered<NatsBroker>(slow, {
      append: async (part, previous, after) => {
        other ??= worker(fast).run();
        await other;
        return slow.append(part, previous, after);
      },
    });
    const events = recordedEvents();
    await worker(waiting, { events }).run();
    expect(await errorsOf('D')).toEqual([]);
    expect(events.log).not.toContain('stored');
  });

  it('is a standby while another one writes, and takes over when it ends', async () => {
    const controllers = [new AbortController(), new AbortController()];
    const workers = await Promise.all(
      controllers.map(async ({ signal }) => worker(await open('F'), { once: false, signal })),
    );
    const runs = workers.map((one) => one.run());
    let published = 0;
    await until(async () => {
      await publish('F', 20, published);
      published += 20;
      // Both are standbys for a while if each wrote a message at which the other one arrived too late.
      return workers.filter(({ isStandby }) => isStandby).length === 1;
    }, 'one standby');
    const active = workers.findIndex(({ isStandby }) => !isStandby);
    controllers[active]!.abort();
    await runs[active];
    await publish('F', 20, published);
    published += 20;
    const manager = await managerOf(connection);
    await until(async () => (await manager.streams.info('OUTF')).state.messages === published, 'the takeover');
    controllers[1 - active]!.abort();
    await runs[1 - active];
    expect(await errorsOf('F')).toEqual([]);
  });

  it('goes on in the middle of a message that is split, and rejects as other workers do', async () => {
    const broker = await open('G');
    const texts = ['{"ip":"8.8.8.8"}\nbroken\n', bareLines(2_500), '{"ip":"10.0.0.1"}'];
    await publishAll(connection, 'ing.a', texts);
    const dropping = releaseOf(dataDir, 'drop');
    const dying = altered<NatsBroker>(broker, {
      append: async (part, previous, after) => {
        if (part.source.sequence === 2 && part.number === 2) throw new Error('dies');
        return broker.append(part, previous, after);
      },
    });
    await expect(worker(dying, { release: () => dropping }).run()).rejects.toThrow('dies');
    await worker(broker, { release: () => dropping }).run();

    const output: string[] = [];
    for await (const { parts } of readInOrder({ broker, once: true, signal: new AbortController().signal })) {
      output.push(parts.map(({ bytes }) => Buffer.from(bytes).toString()).join(''));
    }
    const database = openDatabase(dataDir);
    const enricher = createBlockEnricher(database, { onInvalid: 'drop' });
    expect(output).toEqual(texts.map((text) => Buffer.from(enricher.enrichBlock(Buffer.from(text))).toString()));
    database.close();
    expect(await orderErrors(connection, 'OUTG')).toEqual([]);
    const rejects = await messagesOf(connection, 'REJECTSG');
    expect(rejects.map(({ data }) => Buffer.from(data).toString())).toEqual(['broken\n']);
  });

  it('waits while the output is full, and goes on when there is room', async () => {
    const broker = await open('H');
    const manager = await managerOf(connection);
    await manager.streams.update('OUTH', { max_bytes: 20_000 });
    // Small messages that would still fit, after large ones that do not.
    const texts = Array.from({ length: 60 }, (_, n) => bareLines(n % 3 === 0 ? 100 : 1, n));
    await publishAll(connection, 'inh.a', texts);
    const events = recordedEvents();
    const run = worker(broker, { events }).run();
    await until(() => events.log.filter((event) => event === 'retried').length > 2, 'the full output');
    await manager.streams.update('OUTH', { max_bytes: 32 * MEGABYTE });
    await run;
    expect(await errorsOf('H')).toEqual([]);
  });

  it('begins at a sequence, and needs one again if the end of the output was deleted', async () => {
    const startAt: StartAt = { kind: 'sequence', sequence: 4 };
    const broker = await open('I', startAt);
    await publish('I', 6);
    await worker(broker, { startAt }).run();
    const subjects = async (): Promise<string[]> =>
      (await messagesOf(connection, 'OUTI')).map(({ subject }) => subject);
    expect(await subjects()).toEqual(['outi.4', 'outi.5', 'outi.6']);
    expect(await broker.sourceRange()).toEqual({ first: 4, last: 6 });
    await (await managerOf(connection)).streams.purge('OUTI');
    await publish('I', 2, 6);
    await expect(worker(broker).run()).rejects.toMatchObject({
      code: 'E_STREAM',
      message: expect.stringContaining('the last message of the output was deleted'),
    });
    await worker(broker, { startAt: { kind: 'sequence', sequence: 7 } }).run();
    expect(await subjects()).toEqual(['outi.7', 'outi.8']);
  });

  it.each([
    ['has fewer messages than the output names', 'J', 5],
    ['uses a sequence again', 'K', 1],
  ] as const)('ends with an error if the source %s', async (_, suffix, sequence) => {
    const broker = await open(suffix);
    const old = { source: { sequence, storedAt: '1' }, number: 1, isLast: true, inputEnd: 3, release: 'old' };
    await broker.append({ ...old, bytes: Buffer.from('old') }, 0, 0);
    await publish(suffix, 2);
    await expect(worker(broker).run()).rejects.toMatchObject({
      code: 'E_STREAM',
      message: expect.stringContaining('it lost messages'),
    });
  });

  it('reports that the source was deleted, and ends if it does not come back', async () => {
    const broker = await open('N');
    const events = recordedEvents();
    const running = worker(broker, { events, once: false }).run();
    await (await managerOf(connection)).streams.delete('INN');
    await expect(running).rejects.toMatchObject({ code: 'E_STREAM', message: expect.stringContaining('INN is gone') });
    // The worker asks for the source's range and for its messages; either may be the first to find it gone.
    expect(events.log.join()).toMatch(/stalled (stream|source) INN: stream not found/);
  });

  it('refuses an output of workers that keep no order, and of another source', async () => {
    await openBroker(server.url, setupOptions('L')).then((broker) => broker.close());
    await expect(open('L')).rejects.toMatchObject({
      code: 'E_STREAM',
      message: expect.stringContaining('OUTL has workers without --ordered'),
    });
    const broker = await open('M');
    await publish('M', 1);
    await publishAll(connection, 'outm.1', ['of someone else']);
    await expect(worker(broker).run()).rejects.toMatchObject({
      code: 'E_STREAM',
      message: expect.stringContaining('the last message of OUTM is not output of INM'),
    });
  });
});
