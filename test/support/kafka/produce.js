/** Writes records that come as JSON lines on stdin: topic, partition, key, value, headers, timestamp. usage: produce.js SERVERS */
import { createInterface } from 'node:readline';
import { Admin, Consumer, Producer } from '@platformatic/kafka';

const BATCH = 500;
const bytes = (text) => (text === null ? undefined : Buffer.from(text));
const options = {
  clientId: 'produce',
  bootstrapBrokers: process.argv[2].split(','),
  timeout: 20_000,
  retries: 20,
  retryDelay: 200,
};
const admin = new Admin(options);
const producer = new Producer({ ...options, idempotent: true });

/** A line may also create topics, remove some or their first records, join a group as a member that is never heard again, and may begin and abort a transaction. */
async function run({ create, partitions, replicas, configs, remove, expire, upTo, join, of }) {
  if (create !== undefined) await admin.createTopics({ topics: create, partitions, replicas, configs });
  if (remove !== undefined) await admin.deleteTopics({ topics: remove });
  if (expire !== undefined) {
    const first = [{ partition: 0, offset: BigInt(upTo) }];
    await admin.deleteRecords({ topics: [{ name: expire, partitions: first }] });
  }
  if (join !== undefined) {
    const { protocol } = (await admin.describeGroups({ groups: [join] })).get(join);
    const times = { sessionTimeout: 30_000, rebalanceTimeout: 30_000 };
    const member = new Consumer({ ...options, groupId: join, protocols: [{ name: protocol, version: 1 }], ...times });
    member.topics.track(of);
    await member.joinGroup();
  }
}

let messages = [];
async function flush(transaction = producer) {
  for (; messages.length > 0; messages = messages.slice(BATCH)) {
    await transaction.send({ messages: messages.slice(0, BATCH), acks: -1, compression: process.argv[3] ?? 'none' });
  }
}
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.topic === undefined) {
    await flush();
    await run(command);
    if (command.abort !== undefined) {
      const own = new Producer({ ...options, idempotent: true, transactionalId: command.abort });
      for (let round = 0; round < 2; round++) {
        const transaction = await own.beginTransaction();
        await transaction.send({
          messages: [{ topic: command.in, partition: 0, value: Buffer.from('{"aborted":1}') }],
        });
        await transaction.abort();
      }
      await own.close();
    }
    continue;
  }
  const { topic, partition, key, value, headers, timestamp } = command;
  // The client writes differences of more than 31 bits wrongly.
  if (messages.length > 0 && Math.abs(timestamp - Number(messages[0].timestamp)) > 2 ** 30) await flush();
  const map = new Map(headers.map(([name, text]) => [Buffer.from(name), Buffer.from(text)]));
  messages.push({ topic, partition, key: bytes(key), value: bytes(value), headers: map, timestamp: BigInt(timestamp) });
}
await flush();
await admin.close();
await producer.close();
process.stdout.write('written\n', () => process.exit());
