// A nats-server for benchmarks, and messages for it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

const MAX_PAYLOAD = 4_194_304;
/** Longest time for a request, in milliseconds: the server may wait for its disk. */
export const PATIENCE_MS = 60_000;

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** Starts a server with its files in a folder. */
export async function startServer(folder) {
  const port = await freePort();
  mkdirSync(join(folder, 'store'));
  const config = [
    `listen: "127.0.0.1:${port}"`,
    `jetstream { store_dir: "${join(folder, 'store')}", max_file_store: 64GB }`,
    `max_payload: ${MAX_PAYLOAD}`,
  ];
  writeFileSync(join(folder, 'nats.conf'), config.join('\n'));
  const child = spawn('nats-server', ['-c', join(folder, 'nats.conf')], { stdio: 'ignore' });
  for (let tries = 0; ; tries++) {
    try {
      return { child, port, connection: await connect({ servers: `127.0.0.1:${port}` }) };
    } catch (error) {
      if (tries === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Cuts lines into messages of whole lines of about `bytes` bytes; one line each for 0. */
export function messagesOf(lines, bytes, total) {
  const messages = [];
  let from = 0;
  for (let taken = 0; taken < total; ) {
    if (from >= lines.length) from = 0;
    const end = lines.indexOf(10, Math.min(from + Math.max(0, bytes - 100), lines.length - 1)) + 1;
    const message = lines.subarray(from, end === 0 ? lines.length : end);
    messages.push(message);
    taken += message.length;
    from += message.length;
  }
  return messages;
}

/** Fills a new stream; resolves with the seconds that took. */
export async function fill(connection, name, messages, maxBytes = 2_000_000_000) {
  const client = jetstream(connection, { timeout: PATIENCE_MS });
  const manager = await jetstreamManager(connection, { timeout: PATIENCE_MS });
  const settings = { retention: 'limits', storage: 'file', discard: 'new', max_bytes: maxBytes };
  await manager.streams.add({ ...settings, name, subjects: [`${name.toLowerCase()}.>`] });
  const begun = performance.now();
  const window = new Set();
  for (const message of messages) {
    const done = client.publish(`${name.toLowerCase()}.lines`, message).then(() => window.delete(done));
    window.add(done);
    if (window.size >= 64) await Promise.race(window);
  }
  await Promise.all(window);
  return (performance.now() - begun) / 1000;
}
