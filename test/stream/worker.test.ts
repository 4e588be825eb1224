import { connect } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { StreamConfig } from '@nats-io/jetstream';
import { headers, type NatsConnection, nanos } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { AtlasError } from '../../src/errors.js';
import { STREAM_HEADER_BYTES, STREAM_TURN_BYTES } from '../../src/limits.js';
import { type ActiveRelease, BrokerUnavailable } from '../../src/stream/broker.js';
import type { Delivery, StoredPart } from '../../src/stream/jetstream/chain.js';
import { HEADER, parsePart } from '../../src/stream/jetstream/headers.js';
import type { NatsBroker } from '../../src/stream/jetstream/nats.js';
import { type ReadMessage, readInOrder } from '../../src/stream/jetstream/reader.js';
import { type Replayed, replayRejects } from '../../src/stream/jetstream/replay.js';
import { type SetupOptions, setUpStreams } from '../../src/stream/jetstream/setup.js';
import { Worker } from '../../src/stream/jetstream/worker.js';
import { country, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';
import { outputErrors } from './exactly-once.js';
import {
  altered,
  bareLines,
  MEGABYTE,
  ORIGIN,
  openBroker,
  recordedEvents,
  recordedOutputs,
  releaseOf,
  setupOptions,
  worker,
} from './in-process.js';
import { hasNatsServer, managerOf, messagesOf, NatsServerProcess, publishAll, SKIPPED } from './nats.js';

/** Small, so that bare addresses outgrow it. */
const MAX_PAYLOAD = 65_536;

/** Header blocks without their first line, and whether the client library parses them. */
const HEADER_BLOCKS = (
  [
    [
      true,
      ['a: 1', 'a: 1\r\na: 2', 'A-b_c!#$: x', 'a:', ': 1', 'no colon', '', 'a: b: c', 'a:  padded  ', 'a: \xff\xfe'],
    ],
    [true, ['a: x\r\n\r\nb: 2', 'a: \x00\x01', `${'a'.repeat(5_000)}: 1`, '(a): 1', '"a": 1', '{a}: 1', 'a: \r']],
    [true, ['Nats-Msg-Id: 7', 'nats-expected-last-sequence: 99', 'Ipatlas-Source: forged']],
    [
      false,
      ['odd name: 1', ' a: 1', 'a : 1', '\ta: 1', 'a\t: 1', 'a\x00b: 1', 'a\x7f: 1', 'caf\xe9: 1', '\xc3\xa9: 1'],
    ],
    [false, ['a: x\ry', 'a: x\ny', 'a\nb: 1', 'a: 1\r\nb c: 2']],
  ] as const
).flatMap(([isParsed, blocks]) => blocks.map((block) => ({ block, isParsed })));

/** Publishes bytes as headers that the client library would refuse to write. */
async function publishRaw(server: NatsServerProcess, subject: string, text: string, headerLines = ''): Promise<void> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  const block = Buffer.from(`NATS/1.0\r\n${headerLines}\r\n\r\n`, 'latin1');
  const head = `HPUB ${subject} ${block.length} ${block.length + text.length}\r\n`;
  socket.write(
    Buffer.concat([Buffer.from(`CONNECT {"headers":true,"verbose":false}\r\n${head}`), block, Buffer.from(text)]),
  );
  socket.write('\r\nPING\r\n');
  for await (const chunk of socket) if (String(chunk).includes('PONG')) break;
}

/** For tests that wait for a message to be delivered again; others must not depend on the speed of the machine. */
const REDELIVERED_SOON = { ackWaitMs: 1_000 };

if (!hasNatsServer()) it(SKIPPED, ({ skip }) => skip(SKIPPED));

// Tests with streams of their own run together, since several wait for time limits.
describe.skipIf(!hasNatsServer())('a worker', { concurrent: true }, () => {
  let dataDir: string;
  let otherDataDir: string;
  let server: NatsServerProcess;
  let connection: NatsConnection;
  let release: ActiveRelease;
  let otherRelease: ActiveRelease;
  const brokers: NatsBroker[] = [];

  beforeAll(async () => {
    dataDir = temporaryDir();
    otherDataDir = temporaryDir();
    await publishBlocks(dataDir, SMALL_WORLD);
    await publishBlocks(otherDataDir, [['8.0.0.0/8', country('XK', 'A country with a name that is much longer')]]);
    release = releaseOf(dataDir);
    otherRelease = releaseOf(otherDataDir);
    server = await NatsServerProcess.start({ maxPayload: MAX_PAYLOAD });
    connection = await server.connect();
  });
  afterAll(async () => {
    await Promise.all(brokers.map((broker) => broker.close()));
    await connection.close();
    await server.remove();
  });

  async function open(suffix: string, changes: Partial<SetupOptions> = {}, checksSequence = true): Promise<NatsBroker> {
    const broker = await openBroker(server.url, setupOptions(suffix, changes), checksSequence);
    brokers.push(broker);
    return broker;
  }

  function enriched(text: string, from = dataDir): string {
    const database = openDatabase(from);
    const output = createBlockEnricher(database).enrichBlock(Buffer.from(text));
    database.close();
    return Buffer.from(output).toString();
  }

  /** All output in order, as the reader gives it. */
  async function readAll(broker: NatsBroker): Promise<ReadMessage[]> {
    const messages: ReadMessage[] = [];
    const signal = new AbortController().signal;
    for await (const message of readInOrder({ broker, once: true, signal })) messages.push(message);
    return messages;
  }

  const textOf = ({ parts }: ReadMessage): string => parts.map(({ bytes }) => Buffer.from(bytes).toString()).join('');

  /**
   * A worker takes messages and is stopped; another does them; the first one goes on.
   *
   * @returns what is wrong with the output, and what the first worker saw
   */
  async function stoppedAndWokenUp(suffix: string, checksSequence: boolean, keepSubjects = false) {
    const setup = { ...REDELIVERED_SOON, keepSubjects };
    const zombie = await open(suffix, setup, checksSequence);
    await publishAll(
      connection,
      `in${suffix.toLowerCase()}.a`,
      Array.from({ length: 20 }, (_, n) => bareLines(3, n)),
    );
    const held: Delivery[] = [];
    while (held.length < 10) {
      await zombie.pull({ messages: 10 - held.length, bytes: MEGABYTE, waitMs: 1_000 }, (delivery) =>
        held.push(delivery),
      );
    }
    await worker(await open(suffix, setup, checksSequence), release).run();

    const controller = new AbortController();
    const pull: NatsBroker['pull'] = async (_limit, deliver) => {
      for (const delivery of held.splice(0)) deliver(delivery);
      controller.abort();
    };
    const events = recordedEvents();
    const wokenUp = altered<NatsBroker>(zombie, { pull });
    await worker(wokenUp, release, { once: false, signal: controller.signal, events }).run();
    const { errors } = await outputErrors(connection, `IN${suffix}`, `OUT${suffix}`, dataDir, keepSubjects);
    return { errors, log: events.log };
  }

  it.each([
    ['A', false],
    ['AK', true],
  ])('that was stopped and wakes up adds nothing to what another worker wrote (%s)', async (suffix, keepSubjects) => {
    const { errors, log } = await stoppedAndWokenUp(suffix, true, keepSubjects);
    expect(errors).toEqual([]);
    expect(log.filter((event) => event === 'alreadyDone')).toHaveLength(10);
    expect(log).not.toContain('stored');
  });

  it('without the expected sequence would write messages twice, which the check finds', async () => {
    const { errors } = await stoppedAndWokenUp('B', false);
    // A message that a busy machine delivers again to the other worker is one more.
    expect(errors.length).toBeGreaterThanOrEqual(10);
    for (const error of errors) expect(error).toMatch(/appears twice$/);
  });

  it.sequential('serves its connection between messages that arrive at once', async () => {
    const broker = await open('S', REDELIVERED_SOON);
    const controller = new AbortController();
    const count = 16;
    let enrichedMessages = 0;
    let atFirstAppend = 0;
    const slow: ActiveRelease = {
      id: release.id,
      enrich: (bytes) => {
        enrichedMessages++;
        return release.enrich(bytes);
      },
    };
    const acknowledge = async (): Promise<void> => {};
    const burst = altered<NatsBroker>(broker, {
      maxPartBytes: MEGABYTE,
      pull: async (_limit, deliver) => {
        for (let sequence = 1; sequence <= count; sequence++) {
          const bytes = Buffer.alloc(STREAM_TURN_BYTES, '\n');
          deliver({ source: { sequence, storedAt: '1' }, origin: ORIGIN, count: 1, bytes, acknowledge });
        }
        controller.abort();
      },
      // As a socket, it is served between two turns of the event loop, never between two microtasks.
      append: async () => {
        await nextTurn();
        if (atFirstAppend === 0) atFirstAppend = enrichedMessages;
        return 1;
      },
    });
    await worker(burst, slow, { once: false, signal: controller.signal }).run();
    expect(enrichedMessages).toBe(count);
    expect(atFirstAppend).toBeGreaterThan(0);
    expect(atFirstAppend).toBeLessThan(count);
  });

  it.sequential('uses the memory of an output again only if no step of its message failed', async () => {
    const broker = await open('M', REDELIVERED_SOON);
    const controller = new AbortController();
    const count = 24;
    const { buffers, recorded } = recordedOutputs(release);
    const tries = new Map<number, { bytes: Uint8Array; copy: Buffer }[]>();
    let delivered = 0;
    const failing = altered<NatsBroker>(broker, {
      maxPartBytes: MEGABYTE,
      pull: async ({ messages }, deliver) => {
        for (let room = messages; room > 0 && delivered < count; room--) {
          const sequence = ++delivered;
          let acknowledgments = 0;
          const acknowledge = async (): Promise<void> => {
            await nextTurn();
            if (sequence % 3 === 1 && ++acknowledgments === 1) throw new BrokerUnavailable('no confirmation');
          };
          const bytes = Buffer.from(bareLines(4_000, 10 * sequence));
          deliver({ source: { sequence, storedAt: '1' }, origin: ORIGIN, count: 1, bytes, acknowledge });
        }
        if (delivered === count) controller.abort();
      },
      append: async ({ source: { sequence }, bytes }) => {
        const earlier = tries.get(sequence) ?? [];
        tries.set(sequence, [...earlier, { bytes, copy: Buffer.from(bytes) }]);
        await nextTurn();
        if (sequence % 3 === 2 && earlier.length === 0) throw new BrokerUnavailable('no answer');
        return sequence;
      },
    });
    const inFlight = { messages: 4, bytes: 8 * MEGABYTE };
    await worker(failing, recorded, { once: false, inFlight, signal: controller.signal }).run();
    expect(new Set(buffers).size).toBeLessThan(count);
    expect(tries.size).toBe(count);
    for (const [sequence, all] of tries) {
      const expected = enriched(bareLines(4_000, 10 * sequence));
      // After a failed step, the broker may still be sending what the first try gave it.
      const held = sequence % 3 === 0 ? [] : all.map(({ bytes }) => bytes);
      for (const bytes of [...held, ...all.map(({ copy }) => copy)]) {
        expect(Buffer.from(bytes).toString() === expected).toBe(true);
      }
    }
    // The server reserves room for each stream.
    const manager = await managerOf(connection);
    for (const name of ['INM', 'OUTM', 'REJECTSM']) await manager.streams.delete(name);
  });

  it.sequential('holds no more than its limits while the server is stopped, and goes on when the server does', async () => {
    const broker = await open('S', REDELIVERED_SOON);
    const line = '{"ip":"8.8.8.8"}\n';
    const messages = Array.from({ length: 120 }, (_, n) => `${line.repeat(600)}{"n":${n}}\n`);
    await publishAll(connection, 'ins.a', messages);
    const limit = { messages: 16, bytes: 10 * MEGABYTE };
    let appended = 0;
    const pausing = altered<NatsBroker>(broker, {
      append: async (part, previous) => {
        // The server stops while messages are in flight.
        if (++appended === 30) server.signal('SIGSTOP');
        return broker.append(part, previous);
      },
    });
    const running = worker(pausing, release, { inFlight: limit, maxOutputBytes: MEGABYTE });
    const ended = running.run();
    await until(() => appended >= 30, 'the stop of the server');
    let most = 0;
    for (let sample = 0; sample < 30; sample++) {
      await sleep(50);
      most = Math.max(most, running.inFlight.messages);
    }
    server.signal('SIGCONT');
    await ended;
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(limit.messages);
    const { errors } = await outputErrors(connection, 'INS', 'OUTS', dataDir);
    expect(errors).toEqual([]);
    // The server reserves room for each stream.
    const manager = await managerOf(connection);
    for (const name of ['INS', 'OUTS', 'REJECTSS']) await manager.streams.delete(name);
  });

  it.each([
    ['C', false],
    ['CK', true],
  ])(
    'splits too large output at ends of lines; another goes on, with its release (%s)',
    async (suffix, keepSubjects) => {
      const text = bareLines(2_500).slice(0, -1);
      const broker = await open(suffix, { ...REDELIVERED_SOON, keepSubjects });
      await publishAll(connection, `in${suffix.toLowerCase()}.a`, ['{"ip":"8.8.8.8"}', text, '{"ip":"10.0.0.1"}\n']);
      const dying = altered<NatsBroker>(broker, {
        append: async (part, previous) => {
          // Dies in the middle of the second message.
          if (part.source.sequence === 2 && part.number === 2) throw new Error('dies');
          return broker.append(part, previous);
        },
      });
      const alone = { inFlight: { messages: 1, bytes: MEGABYTE } };
      await expect(worker(dying, release, alone).run()).rejects.toThrow('dies');
      await worker(broker, otherRelease, alone).run();

      const [first, second, third] = await readAll(broker);
      expect(textOf(first!)).toBe(enriched('{"ip":"8.8.8.8"}'));
      expect(textOf(third!)).toBe(enriched('{"ip":"10.0.0.1"}\n', otherDataDir));
      const { parts } = second!;
      expect(parts.length).toBeGreaterThan(2);
      expect(parts.map(({ number }) => number)).toEqual(parts.map((_, index) => index + 1));
      expect(parts.map(({ release: id }) => id === release.id)).toEqual(parts.map((_, index) => index === 0));
      let begin = 0;
      for (const { inputEnd, bytes, number } of parts) {
        const dir = number === 1 ? dataDir : otherDataDir;
        expect(Buffer.from(bytes).toString()).toBe(enriched(text.slice(begin, inputEnd), dir));
        begin = inputEnd;
      }
      expect(begin).toBe(text.length);
      // A server that applies its log again tells further parts by their ids; others by their subjects.
      const stored = await messagesOf(connection, `OUT${suffix}`);
      const ids = stored.map(({ header }) => header.get('Nats-Msg-Id'));
      expect(ids.map((id) => id !== '')).toEqual(
        stored.map(({ header }) => !/^(1 .*)?$/.test(header.get(HEADER.part))),
      );
      expect(new Set(ids).size).toBe(parts.length);
    },
  );

  it('refuses a single line that is too large, and keeps its position', async () => {
    const broker = await open('D');
    const long = `{"ip":"8.8.8.8","text":"${'x'.repeat(MAX_PAYLOAD - 2_100)}"}\n`;
    const text = `${bareLines(10)}${long}${bareLines(10)}`;
    await publishAll(connection, 'ind.a', [text]);
    await worker(broker, release).run();
    const [message] = await readAll(broker);
    expect(message!.parts.map(({ rejected }) => rejected)).toEqual([undefined, 'too_large', undefined]);
    expect(textOf(message!)).toBe(enriched(bareLines(10)).repeat(2));
    const rejects = await messagesOf(connection, 'REJECTSD');
    expect(rejects.map(({ subject }) => subject)).toEqual([`rejectsd.1.${bareLines(10).length}`]);
    expect(Buffer.from(rejects[0]!.data).toString()).toBe(long);
  });

  it('rejects a message whose output is too large, if that is the policy', async () => {
    const broker = await open('E');
    const text = bareLines(2_500);
    await publishAll(connection, 'ine.a', [text, bareLines(2)]);
    await worker(broker, release, { oversize: 'reject' }).run();
    const [large, small] = await readAll(broker);
    expect(large!.parts).toMatchObject([{ rejected: 'too_large', bytes: new Uint8Array(0), isLast: true }]);
    expect(textOf(small!)).toBe(enriched(bareLines(2)));
    const [reject] = await messagesOf(connection, 'REJECTSE');
    expect(reject!.subject).toBe('rejectse.1');
    expect(reject!.header.get(HEADER.rejected)).toBe('too_large');
    expect(Buffer.from(reject!.data).toString()).toBe(text);
  });

  it.each([
    ['fail', '', '{"ip":"8.8.8.8"}\nbroken\n'],
    ['drop', '{"ip":"8.8.8.8"}\n', 'broken\n'],
    ['keep', '{"ip":"8.8.8.8"}\nbroken\n', undefined],
  ] as const)('under the policy %s goes on after an invalid line', async (policy, output, rejected) => {
    const suffix = `F-${policy}`;
    const broker = await open(suffix);
    await publishAll(connection, `in${suffix.toLowerCase()}.a`, ['{"ip":"8.8.8.8"}\nbroken\n', bareLines(2)]);
    await worker(broker, releaseOf(dataDir, policy)).run();
    const [first, second] = await readAll(broker);
    expect(textOf(first!)).toBe(policy === 'fail' ? '' : enriched(output));
    expect(textOf(second!)).toBe(enriched(bareLines(2)));
    const rejects = await messagesOf(connection, `REJECTS${suffix}`);
    expect(rejects.map(({ data }) => Buffer.from(data).toString())).toEqual(rejected === undefined ? [] : [rejected]);
  });

  it('goes on after a message that it fails on because of a bug', async () => {
    const broker = await open('G');
    await publishAll(connection, 'ing.a', [bareLines(1), 'poison', bareLines(2)]);
    const events = recordedEvents();
    const enrich: ActiveRelease['enrich'] = (bytes) => {
      if (Buffer.from(bytes).toString() === 'poison') throw new Error('a bug');
      return release.enrich(bytes);
    };
    await worker(broker, { id: release.id, enrich }, { events }).run();
    expect((await readAll(broker)).map(textOf)).toEqual([enriched(bareLines(1)), '', enriched(bareLines(2))]);
    expect(events.log).toContain('failed');
    expect(events.log).toContain('rejected internal_error');
  });

  it('does not take the output of another message for its own, if a server lost messages and used sequences again', async () => {
    const broker = await open('H');
    const lost = { source: { sequence: 1, storedAt: '1' }, number: 1, isLast: true, inputEnd: 3, release: 'old' };
    await broker.append({ ...lost, bytes: Buffer.from('old') }, 0);
    await publishAll(connection, 'inh.a', [bareLines(1)]);
    const events = recordedEvents();
    await worker(broker, release, { events }).run();
    expect(events.log).toEqual(['rejected sequence_reused', 'done']);
    const [reject] = await messagesOf(connection, 'REJECTSH');
    expect(Buffer.from(reject!.data).toString()).toBe(bareLines(1));
  });

  it('keeps the reject of a message whose sequence was used before, and stores each once', async () => {
    const broker = await open('O');
    const source = { sequence: 1, storedAt: '1' };
    const later = { sequence: 1, storedAt: '2' };
    for (const one of [source, source, later, later]) {
      await broker.reject({ source: one, reason: 'invalid_line', bytes: Buffer.from(one.storedAt) });
    }
    const rejects = await messagesOf(connection, 'REJECTSO');
    expect(rejects.map(({ data }) => Buffer.from(data).toString())).toEqual(['1', '2']);
  });

  it('copies subject and headers of the source, but for those that the server obeys', async () => {
    const broker = await open('P');
    const all = headers();
    all.append('trace', 'a');
    all.append('trace', 'b: c');
    all.set('Nats-Msg-Id', 'same');
    all.set('Ipatlas-Release', 'forged');
    await connection.request('inp.web.a', '{"ip":"8.8.8.8"}\nbroken\n', { headers: all, timeout: 20_000 });
    all.set('large', 'x'.repeat(MAX_PAYLOAD / 2));
    all.set('Nats-Msg-Id', 'other');
    await connection.request('inp.web.b', bareLines(1), { headers: all, timeout: 20_000 });
    await worker(broker, releaseOf(dataDir, 'drop')).run();
    const output = await messagesOf(connection, 'OUTP');
    const [first, second] = output.sort((a, b) => a.subject.localeCompare(b.subject));
    expect(first!.header.values('trace')).toEqual(['a', 'b: c']);
    expect(first!.header.get(HEADER.subject)).toBe('inp.web.a');
    expect(first!.header.get(HEADER.release)).toBe(release.id);
    expect(first!.header.has('Nats-Msg-Id')).toBe(false);
    expect(second!.header.get(HEADER.subject)).toBe('inp.web.b');
    expect(second!.header.get(HEADER.headers)).toBe('too large');
    expect(second!.header.has('large')).toBe(false);
    const [reject] = await messagesOf(connection, 'REJECTSP');
    expect(reject!.header.values('trace')).toEqual(['a', 'b: c']);
  });

  it('rejects a message with headers that its client does not parse, and does the others', async () => {
    const broker = await open('HD', { settings: 'one' });
    for (const [at, { block }] of HEADER_BLOCKS.entries()) {
      await publishRaw(server, `inhd.${at}`, bareLines(1, at), block);
    }
    // Somebody else's, in the place of the output of one more message.
    const taken = HEADER_BLOCKS.length + 1;
    await publishRaw(server, `inhd.${taken}`, bareLines(1, taken));
    await publishRaw(server, `outhd.${taken}`, 'of someone else', 'odd name: 1');
    await worker(broker, release).run();
    const rejects = await messagesOf(connection, 'REJECTSHD');
    const reasons = new Map(rejects.map(({ subject, header }) => [subject, header.get(HEADER.rejected)]));
    const texts = (await readAll(broker)).map(textOf);
    for (const [at, { block, isParsed }] of HEADER_BLOCKS.entries()) {
      const reason = reasons.get(`rejectshd.${at + 1}`);
      expect([block, reason, texts[at]]).toEqual(
        isParsed ? [block, undefined, enriched(bareLines(1, at))] : [block, 'invalid_headers', ''],
      );
    }
    expect(reasons.get(`rejectshd.${taken}`)).toBe('subject_taken');
    for (const { data, seq } of rejects) expect(Buffer.from(data).toString(), String(seq)).toMatch(/^{"ip":"8.*"}\n$/);
    // A reader and a worker that start, and a replay, meet these headers, too.
    await publishRaw(server, 'rejectshd.99', 'of someone else', 'odd name: 1');
    const again = await open('HD', { settings: 'two' });
    const options = { release: () => release, oversize: 'split', signal: new AbortController().signal } as const;
    const { left, replayed } = await replayRejects({ ...options, broker: again, events: recordedEvents() });
    expect(replayed).toBe(HEADER_BLOCKS.filter(({ isParsed }) => !isParsed).length);
    expect(left).toMatchObject([{ sequence: taken, why: 'somebody else published to its output subject' }]);
    expect((await readAll(again)).map(textOf).slice(0, -1).join('')).toBe(enriched(bareLines(HEADER_BLOCKS.length)));
  });

  it('takes a message for a message, whatever its subject is', async () => {
    const broker = await open('SUB');
    const subjects = Array.from({ length: 400 }, (_, at) => String(at + 1));
    await (await managerOf(connection)).streams.update('INSUB', { subjects: ['insub.>', ...subjects] });
    for (const subject of subjects) connection.publish(subject, bareLines(1));
    await until(async () => (await broker.sourceRange()).last === subjects.length, 'the messages');
    const delivered: number[] = [];
    const events = { ...recordedEvents(), delivered: (_bytes: number, count: number) => delivered.push(count) };
    let isOver = false;
    const running = worker(broker, release, { events }).run();
    // Requests of the client library are open while the messages arrive.
    const asking = (async () => {
      while (!isOver) await Promise.all(Array.from({ length: 40 }, () => broker.outputEnd()));
    })();
    await running;
    isOver = true;
    await asking;
    expect(delivered).toEqual(subjects.map(() => 1));
  });

  it('rejects a message whose subject is too long for that of its output, and does the others', async () => {
    const broker = await open('LONG', { keepSubjects: true });
    const long = `inlong.${'x'.repeat(4_053)}`;
    for (const subject of ['inlong.a', long, 'inlong.b']) await publishRaw(server, subject, bareLines(1));
    await worker(broker, release).run();
    expect((await readAll(broker)).map(textOf)).toEqual([enriched(bareLines(1)), '', enriched(bareLines(1))]);
    const [reject] = await messagesOf(connection, 'REJECTSLONG');
    expect(reject!.header.get(HEADER.rejected)).toBe('subject_too_long');
    expect(reject!.header.get(HEADER.subject)).toBe(long);
    expect(Buffer.from(reject!.data).toString()).toBe(bareLines(1));
  });

  it('waits while the rejects are full, without a loop, and goes on when there is room', async () => {
    const broker = await open('FULL', REDELIVERED_SOON);
    const manager = await managerOf(connection);
    await manager.streams.update('REJECTSFULL', { max_msgs: 2 });
    const texts = Array.from({ length: 40 }, (_, n) => (n < 20 ? 'broken\n' : bareLines(1, n)));
    await publishAll(connection, 'infull.a', texts);
    const events = recordedEvents();
    const problems: string[] = [];
    let delivered = 0;
    const run = worker(broker, releaseOf(dataDir, 'fail'), {
      inFlight: { messages: 8, bytes: MEGABYTE },
      events: {
        ...events,
        delivered: () => delivered++,
        retried: (problem) => problems.push(problem),
      },
    }).run();
    // Each message is delivered again after a second, so a worker that asked for more would have them all many times.
    await sleep(4_000);
    expect(delivered).toBeLessThanOrEqual(16);
    expect(new Set(problems)).toEqual(new Set(['REJECTSFULL takes no messages: maximum messages exceeded (10077)']));
    await manager.streams.update('REJECTSFULL', { max_msgs: -1 });
    await run;
    expect((await readAll(broker)).map(textOf)).toEqual(
      texts.map((text) => (text === 'broken\n' ? '' : enriched(text))),
    );
    expect(events.log.filter((event) => event === 'rejected invalid_line')).toHaveLength(20);
    expect(await messagesOf(connection, 'REJECTSFULL')).toHaveLength(20);
  });

  it('splits output that fits only without the headers of its source', async () => {
    const broker = await open('Q');
    const all = headers();
    all.set('trace', 'x'.repeat(8_000));
    const lines = bareLines(Math.floor((broker.maxPartBytes - 2_000) / (enriched(bareLines(100)).length / 100)));
    await connection.request('inq.a', lines, { headers: all, timeout: 20_000 });
    await worker(broker, release).run();
    const [message] = await readAll(broker);
    expect(message!.parts.length).toBe(2);
    expect(textOf(message!)).toBe(enriched(lines));
  });

  it.each([
    ['Y', false],
    ['YK', true],
  ])('replays rejects once, however often the replay is killed (%s)', async (suffix, keepSubjects) => {
    const broker = await open(suffix, { keepSubjects });
    const texts = ['{"ip":"8.8.8.8"}\nbroken', bareLines(2), `broken\n${bareLines(2_500)}`, 'broken for good\n'];
    await publishAll(connection, `in${suffix.toLowerCase()}.a`, texts);
    const failing = releaseOf(dataDir, 'fail');
    await worker(broker, failing).run();
    const repaired: ActiveRelease = {
      id: release.id,
      enrich: (bytes) => (Buffer.from(bytes).includes('for good') ? failing : release).enrich(bytes),
    };
    const { signal } = new AbortController();
    const options = { release: () => repaired, oversize: 'split', events: recordedEvents(), signal } as const;
    // Dies at each step that changes something: before it, and after it.
    let kills = 0;
    let result: Replayed | undefined;
    for (let death = 1; result === undefined; death++) {
      let moment = 0;
      const die = (): void => {
        if (++moment === death) throw new Error('dies');
      };
      const mortal = async <Value>(step: () => Promise<Value>): Promise<Value> => {
        die();
        const value = await step();
        die();
        return value;
      };
      const dying = altered<NatsBroker>(broker, {
        append: (part, previous) => mortal(() => broker.append(part, previous)),
        deleteReject: (position) => mortal(() => broker.deleteReject(position)),
      });
      result = await replayRejects({ ...options, broker: dying }).catch((error: Error) => {
        expect(error.message).toBe('dies');
        kills++;
        return undefined;
      });
    }
    expect(kills).toBeGreaterThan(2);
    expect(result.left).toMatchObject([{ sequence: 4 }]);
    expect((await readAll(broker)).map(textOf)).toEqual([...texts.slice(0, 3).map((text) => enriched(text)), '']);
    expect(await messagesOf(connection, `REJECTS${suffix}`)).toHaveLength(1);
    // A delivery of the first message that comes late rejects it once more.
    const { source } = (await broker.lastPart(1)) as StoredPart;
    const origin = { ...ORIGIN, subject: `in${suffix.toLowerCase()}.a` };
    await broker.reject({ source, origin, reason: 'invalid_line', bytes: Buffer.from(texts[0]!) });
    expect(await replayRejects({ ...options, broker })).toMatchObject({ replayed: 1 });
    expect((await readAll(broker)).map(textOf)[0]).toBe(enriched(texts[0]!));
  });

  it('processes only the messages that match a filter, and the reader passes over the others', async () => {
    const broker = await open('T', { filter: 'int.*.web' });
    for (const subject of ['int.a.db', 'int.a.web', 'int.b.web', 'int.b.db']) {
      await publishAll(connection, subject, [`{"n":"${subject}"}\n`]);
    }
    await worker(broker, release).run();
    expect((await readAll(broker)).map(textOf).join('')).toBe(
      '{"n":"int.a.web","geo":null}\n{"n":"int.b.web","geo":null}\n',
    );
    await expect(open('T', { settings: 'x' })).rejects.toThrow('it has a filter (--filter int.*.web)');
  });

  it('rejects a message whose output subject somebody else took', async () => {
    const broker = await open('U');
    await publishAll(connection, 'outu.1', ['of someone else']);
    await publishAll(connection, 'inu.a', [bareLines(1), bareLines(2)]);
    const events = recordedEvents();
    await worker(broker, release, { events }).run();
    expect(events.log).toContain('rejected subject_taken');
    expect((await readAll(broker)).map(textOf)).toEqual(['', enriched(bareLines(2))]);
  });

  it.sequential('refuses an output of another source, before and while it works', async () => {
    const broker = await open('V');
    await publishAll(connection, 'inv.a', [bareLines(1)]);
    const names = { from: 'INV2', to: 'OUTV', rejects: 'REJECTSV2', consumer: 'others' };
    // By the description that --init gives, while the output is empty.
    await expect(open('', { names })).rejects.toThrow('OUTV belongs to the source INV, not INV2');
    const manager = await managerOf(connection);
    await manager.streams.update('OUTV', { description: '' });
    const other = await open('', { names });
    await publishAll(connection, 'inv2.a', [bareLines(2)]);
    await worker(broker, release).run();
    await expect(worker(other, release).run()).rejects.toMatchObject({
      code: 'E_STREAM',
      message: 'OUTV belongs to the source INV, not INV2; use another stream',
    });
    // By its newest message.
    await expect(open('', { names })).rejects.toThrow('OUTV belongs to the source INV, not INV2');
  });

  it.sequential('warns if the output was made with other options', async () => {
    await publishAll(connection, 'inv.a', [bareLines(3)]);
    const first = await open('V', { settings: 'one' });
    await worker(first, release).run();
    const warnings = async (settings: string): Promise<string[]> =>
      (await setUpStreams(await managerOf(connection), setupOptions('V', { settings }))).warnings;
    expect(await warnings('one')).toEqual([]);
    expect((await warnings('two')).join()).toContain('was enriched with other options');
  });

  it('keeps the subjects of the source, in the subjects of the output, if that is how it was made', async () => {
    const broker = await open('KS', { keepSubjects: true });
    const subjects = ['inks.eu.web', 'inks.us', 'inks.eu.db'];
    for (const subject of subjects) await publishAll(connection, subject, ['{"n":1}\n']);
    // A worker that is not asked for it finds it in the output.
    await worker(await open('KS'), release).run();
    await worker(broker, release).run();
    const { errors } = await outputErrors(connection, 'INKS', 'OUTKS', dataDir, true);
    expect(errors).toEqual([]);
    const { streams } = await managerOf(connection);
    const webOfEu = await streams.getMessage('OUTKS', { last_by_subj: 'outks.*.inks.eu.web' });
    expect(webOfEu).toMatchObject({ subject: 'outks.1.inks.eu.web' });

    await open('KT');
    await expect(open('KT', { keepSubjects: true })).rejects.toThrow('keeps no subjects of the source: it needs');
    await streams.update('OUTKS', { subjects: ['outks.>'] });
    await expect(open('KS')).rejects.toThrow('the subject of OUTKS was changed after outks.3.inks.eu.db was written');
  });

  it('takes messages that are larger than those of the output', async () => {
    const text = bareLines(2_500);
    await open('Z');
    await (await managerOf(connection)).streams.update('OUTZ', { max_msg_size: 8_192 });
    const broker = await open('Z');
    expect([broker.maxPartBytes, broker.maxMessageBytes]).toEqual([8_192 - STREAM_HEADER_BYTES, MAX_PAYLOAD]);
    await publishAll(connection, 'inz.a', [text]);
    await worker(broker, release, { inFlight: { messages: 1, bytes: broker.maxMessageBytes } }).run();
    const [message] = await readAll(broker);
    expect(message!.parts.length).toBeGreaterThan(10);
    expect(textOf(message!)).toBe(enriched(text));
  });

  it.each([
    ['W', false],
    ['WK', true],
  ])('reads output that is left after a purge of the source (%s)', async (suffix, keepSubjects) => {
    const broker = await open(suffix, { keepSubjects });
    await publishAll(connection, `in${suffix.toLowerCase()}.a`, ['{"n":1}\n', '{"n":2}\n', '{"n":3}\n']);
    await worker(broker, release).run();
    await (await managerOf(connection)).streams.purge(`IN${suffix}`, { seq: 3 });
    expect((await readAll(broker)).map(textOf).join('')).toBe([1, 2, 3].map((n) => `{"n":${n},"geo":null}\n`).join(''));
  });

  it.sequential('makes no warning of Node when many messages wait for their next try', async () => {
    const broker = await open('X');
    await publishAll(
      connection,
      'inx.a',
      Array.from({ length: 40 }, (_, n) => bareLines(1, n)),
    );
    const warnings: Error[] = [];
    const collect = (warning: Error): number => warnings.push(warning);
    process.on('warning', collect);
    let failures = 0;
    const failing = altered<NatsBroker>(broker, {
      append: async (part, previous) => {
        if (failures++ < 40) throw new BrokerUnavailable('no answer');
        return broker.append(part, previous);
      },
    });
    await worker(failing, release).run();
    process.off('warning', collect);
    expect(failures).toBeGreaterThan(40);
    expect(warnings).toEqual([]);
  });

  it('waits with bounded memory while the output is full, and goes on when there is room', async () => {
    const options = setupOptions('I', { maxBytes: 2 * MEGABYTE });
    const broker = await openBroker(server.url, options);
    brokers.push(broker);
    const manager = await managerOf(connection);
    await manager.streams.update('OUTI', { max_bytes: 100_000 });
    await publishAll(
      connection,
      'ini.a',
      Array.from({ length: 60 }, (_, n) => bareLines(200, n)),
    );
    const events = recordedEvents();
    const limits = { inFlight: { messages: 16, bytes: 40_000 }, maxOutputBytes: 60_000 };
    const busy = worker(broker, release, { ...limits, events });
    let most = { messages: 0, inputBytes: 0, outputBytes: 0 };
    let isOver = false;
    const watching = (async () => {
      while (!isOver) {
        const { inFlight } = busy;
        most = {
          messages: Math.max(most.messages, inFlight.messages),
          inputBytes: Math.max(most.inputBytes, inFlight.inputBytes),
          outputBytes: Math.max(most.outputBytes, inFlight.outputBytes),
        };
        await sleep(1);
      }
    })();
    const run = busy.run();
    await until(() => events.log.filter((event) => event === 'retried').length > 20, 'retries');
    await manager.streams.update('OUTI', { max_bytes: 32 * MEGABYTE });
    await run;
    isOver = true;
    await watching;
    expect((await outputErrors(connection, 'INI', 'OUTI', dataDir)).errors).toEqual([]);
    expect(most.messages).toBeLessThanOrEqual(16);
    expect(most.inputBytes).toBeLessThanOrEqual(40_000);
    // One message may go beyond the limit.
    expect(most.outputBytes).toBeLessThanOrEqual(60_000 + enriched(bareLines(200)).length);
    expect(most.outputBytes).toBeGreaterThan(0);
  });

  it('takes up another release between two messages, and names it in a header', async () => {
    const broker = await open('J');
    await publishAll(
      connection,
      'inj.a',
      Array.from({ length: 10 }, () => bareLines(1)),
    );
    let enrichedMessages = 0;
    const options = { broker, oversize: 'split', inFlight: { messages: 4, bytes: MEGABYTE }, once: true } as const;
    const run = new Worker({
      ...options,
      release: () => (enrichedMessages++ < 5 ? release : otherRelease),
      maxOutputBytes: MEGABYTE,
      signal: new AbortController().signal,
      events: recordedEvents(),
    });
    await run.run();
    const parts = (await messagesOf(connection, 'OUTJ')).map((message) => parsePart(message)!);
    expect(parts.filter(({ release: id }) => id === release.id)).toHaveLength(5);
    for (const { release: id, bytes } of parts) {
      expect(Buffer.from(bytes).toString()).toBe(enriched(bareLines(1), id === release.id ? dataDir : otherDataDir));
    }
  });

  it('ends with an error if its consumer is deleted', async () => {
    const broker = await open('K');
    const running = worker(broker, release, { once: false }).run();
    await (await managerOf(connection)).consumers.delete('INK', 'workers');
    const error = await running.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(AtlasError);
    expect(error).toMatchObject({
      code: 'E_STREAM',
      message: expect.stringContaining('consumer workers of INK is gone'),
    });
  });

  describe('refuses a stream', () => {
    const day = nanos(86_400_000);
    it.each([
      ['L1', 'IN', { retention: 'workqueue' }, /INL1 is set up wrongly: its retention is "workqueue"/],
      ['L2', 'OUT', { retention: 'interest' }, /OUTL2 is set up wrongly: its retention is "interest"/],
      ['L3', 'OUT', { storage: 'memory' }, /kept in memory only/],
      ['L4', 'OUT', { discard: 'old', max_bytes: 1_000_000 }, /deletes old messages when it is full/],
      ['L5', 'OUT', { max_age: day }, /expire before those of INL5/],
      ['L6', 'OUT', { max_msgs_per_subject: 1, discard: 'old' }, /limits the parts of a split message/],
      ['L7', 'REJECTS', { subject: 'rejectsl7.*' }, /needs a subject like rejectsl7\.>/],
      ['L8', 'OUT', { subject: 'outl8' }, /needs a subject like outl8\.>/],
      ['L9', 'OUT', { no_ack: true }, /does not confirm messages/],
    ] as const)('%s %s %j', async (suffix, name, settings, message) => {
      const manager = await managerOf(connection);
      const full = `${name}${suffix}`;
      const { subject = `${full.toLowerCase()}.>`, ...changes }: Partial<StreamConfig> & { subject?: string } =
        settings;
      await manager.streams.add({ discard: 'new', ...changes, name: full, subjects: [subject] });
      const opening = openBroker(server.url, setupOptions(suffix));
      await expect(opening).rejects.toMatchObject({ code: 'E_STREAM', message: expect.stringMatching(message) });
    });

    it.each([
      ['M1', { max_deliver: 5 }, /max_deliver makes it drop messages/],
      ['M2', { ack_policy: 'none' }, /each message must be acknowledged/],
      ['M3', { filter_subject: 'inm3.a' }, /it has a filter \(--filter inm3\.a\), and messages would be missing/],
      ['M4', { deliver_policy: 'new' }, /it began at another message/],
    ] as const)('with a consumer %s %j', async (suffix, changes, message) => {
      const manager = await managerOf(connection);
      await manager.streams.add({ name: `IN${suffix}`, subjects: [`in${suffix.toLowerCase()}.>`] });
      await manager.consumers.add(`IN${suffix}`, { durable_name: 'workers', ack_policy: 'explicit', ...changes });
      const opening = openBroker(server.url, setupOptions(suffix, { startAt: { kind: 'first' }, settings: 'any' }));
      await expect(opening).rejects.toMatchObject({ code: 'E_STREAM', message: expect.stringMatching(message) });
    });

    it('that is missing', async () => {
      const opening = openBroker(server.url, setupOptions('N', { create: false }));
      await expect(opening).rejects.toMatchObject({
        message: 'there is no stream INN on the server; --init creates it',
      });
    });
  });
});
