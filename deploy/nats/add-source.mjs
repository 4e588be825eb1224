// Creates a source stream for "ipatlas stream", with the settings that it needs, where --init would give it another subject.
// Needs: npm install @nats-io/jetstream @nats-io/transport-node
// usage: node add-source.mjs SERVER STREAM SUBJECT BYTES [REPLICAS]
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

const [servers, name, subject, bytes, replicas = 1] = process.argv.slice(2);
const connection = await connect({ servers });
try {
  const { streams } = await jetstreamManager(connection);
  // With other settings, a full stream, or work that is done, would cost messages.
  await streams.add({
    ...{ name, subjects: [subject], storage: 'file', retention: 'limits', discard: 'new' },
    ...{ max_bytes: Number(bytes), num_replicas: Number(replicas) },
  });
} finally {
  await connection.close();
}
