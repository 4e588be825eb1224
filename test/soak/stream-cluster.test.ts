/** Streams with three replicas on a cluster of three nodes, plain and ordered, with split messages, while nodes are killed. */
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { openNatsBroker } from '../../src/stream/jetstream/nats.js';
import { OrderedWorker } from '../../src/stream/jetstream/ordered.js';
import { readInOrder } from '../../src/stream/jetstream/reader.js';
import { NatsCluster } from '../stream/cluster.js';
import { orderErrors } from '../stream/exactly-once.js';
import { MEGABYTE, recordedEvents, releaseOf, setupOptions, worker } from '../stream/in-process.js';
import { messagesOf, publishAll } from '../stream/nats.js';
import { smallRelease } from '../support/release.js';
import { rounds } from '../support/seed.js';

/** Small, so that every other message is split. */
const MAX_PAYLOAD = 65_536;
const MESSAGES = 110;
const KILLS = rounds(10);
/** Most time of a run without kills, in milliseconds: it takes about two seconds. With standbys between, it took minutes. */
const UNDISTURBED_MS = 30_000;

let dataDir: string;
let cluster: NatsCluster;
let connection: NatsConnection;

beforeAll(async () => {
  dataDir = await smallRelease();
  cluster = await NatsCluster.start(MAX_PAYLOAD);
  connection = await connect({
    servers: cluster.url.split(',').map((url) => url.slice('nats://'.length)),
    maxReconnectAttempts: -1,
  });
});
afterAll(async () => {
  await connection.close();
  await cluster.remove();
});

/** A message of which the output is split if its number is odd. */
function message(number: number): string {
  const lines = number % 2 === 1 ? 2_500 : 1 + (number % 5);
  return Array.from({ length: lines }, (_, line) => `{"ip":"8.${number & 255}.${line >> 8}.${line & 255}"}\n`).join('');
}

for (const ordered of [false, true]) {
  const kind = ordered ? 'ordered' : 'plain';
  it(`${kind} workers write each message once, without a standstill, and while nodes are killed`, async () => {
    const suffix = `_${kind.toUpperCase()}`;
    const options = setupOptions(suffix, { ordered, replicas: 3, ackWaitMs: 5_000 });
    const { broker } = await openNatsBroker({ url: cluster.url }, options);
    const release = releaseOf(dataDir);
    const texts: string[] = [];
    const publish = async (count: number): Promise<void> => {
      const batch = Array.from({ length: count }, (_, index) => message(texts.length + index));
      texts.push(...batch);
      await publishAll(connection, `in${suffix.toLowerCase()}.a`, batch);
    };
    const events = recordedEvents();
    const newWorker = () =>
      ordered
        ? new OrderedWorker({
            ...{ broker, release: () => release, oversize: 'split', once: true, startAt: undefined, events },
            ...{ inFlight: { messages: 64, bytes: 8 * MEGABYTE }, maxOutputBytes: 8 * MEGABYTE },
            signal: new AbortController().signal,
          })
        : worker(broker, release, { events });

    await publish(MESSAGES);
    const begun = performance.now();
    await newWorker().run();
    expect(performance.now() - begun).toBeLessThan(UNDISTURBED_MS);

    for (let kill = 0; kill < KILLS; kill++) {
      await publish(20);
      const running = newWorker().run();
      await cluster.killLeaderOf(connection, `${kill % 2 === 0 ? 'OUT' : 'IN'}${suffix}`);
      await running;
      await cluster.isInSync(connection, [`IN${suffix}`, `OUT${suffix}`]);
    }

    const database = openDatabase(dataDir);
    const enricher = createBlockEnricher(database);
    const expected = (await messagesOf(connection, `IN${suffix}`)).map(({ data }) =>
      Buffer.from(enricher.enrichBlock(data)).toString(),
    );
    database.close();
    const output: string[] = [];
    for await (const { parts } of readInOrder({ broker, once: true, signal: new AbortController().signal })) {
      output.push(parts.map(({ bytes }) => Buffer.from(bytes).toString()).join(''));
    }
    expect(output.length).toBe(expected.length);
    expect(output.every((text, index) => text === expected[index])).toBe(true);
    // Parts that are in no chain would be there twice.
    const parts = (await messagesOf(connection, `OUT${suffix}`)).reduce((sum, { data }) => sum + data.length, 0);
    expect(parts).toBe(expected.reduce((sum, text) => sum + Buffer.byteLength(text), 0));
    if (ordered) expect(await orderErrors(connection, `OUT${suffix}`)).toEqual([]);
    await broker.close();
  });
}
