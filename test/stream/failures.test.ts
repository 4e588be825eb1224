/** Failures at a bad moment: connections that a proxy in front of a real server cuts or holds, and files of a killed server. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BrokerUnavailable } from '../../src/stream/broker.js';
import { openNatsBroker } from '../../src/stream/jetstream/nats.js';
import { smallRelease } from '../support/release.js';
import { until } from '../support/serve.js';
import { outputErrors } from './exactly-once.js';
import { recordedEvents, releaseOf, setupOptions, worker } from './in-process.js';
import { hasNatsServer, NatsServerProcess, publishAll, SKIPPED } from './nats.js';

/** Passes connections on to a server, and cuts them. */
class CuttingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** The first connection is cut when its client sends this; empty: as soon as it is accepted. Undefined after that. */
  #cutAt: string | undefined;

  private constructor(target: URL, cutAt: string | undefined) {
    this.#cutAt = cutAt;
    this.#server = createServer((client) => {
      this.#add(client);
      if (this.#cutAt === '') {
        this.#cutAt = undefined;
        client.resetAndDestroy();
        return;
      }
      const upstream = connect(Number(target.port), target.hostname);
      this.#add(upstream);
      client.on('close', () => upstream.destroy());
      upstream.on('close', () => client.destroy());
      upstream.on('data', (bytes) => client.write(bytes));
      client.on('data', (bytes) => {
        if (this.#cutAt === undefined || !bytes.includes(this.#cutAt)) {
          upstream.write(bytes);
          return;
        }
        this.#cutAt = undefined;
        client.destroy();
      });
    });
  }

  static async start(url: string, cutAt?: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(new URL(url), cutAt);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get hasCut(): boolean {
    return this.#cutAt === undefined;
  }

  #add(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {}); // the other end was cut
    socket.on('close', () => this.#sockets.delete(socket));
  }

  /** Passes nothing on, as a server that is stopped. */
  hold(): void {
    for (const socket of this.#sockets) socket.pause();
  }

  /** Passes on what was held, and what follows. */
  release(): void {
    for (const socket of this.#sockets) socket.resume();
  }

  /** Cuts all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

describe.skipIf(!hasNatsServer())('a connection', () => {
  let server: NatsServerProcess;

  beforeAll(async () => {
    server = await NatsServerProcess.start();
  });
  afterAll(() => server.remove());

  it('to a server that lost the position of the consumer leaves each message in the output once', async () => {
    const dataDir = await smallRelease();
    const { broker } = await openNatsBroker({ url: server.url }, setupOptions('_POSITION'));
    const connection = await server.connect();
    const messages = Array.from({ length: 20 }, (_, number) => `{"n":${number},"ip":"8.8.8.8"}\n`);
    await publishAll(connection, 'in_position.lines', messages);
    await worker(broker, releaseOf(dataDir)).run();

    await server.kill();
    expect(server.loseConsumerPositions()).toBeGreaterThan(0);
    await server.resume();
    await until(() => broker.isConnected, 'the connection');
    const events = recordedEvents();
    await worker(broker, releaseOf(dataDir), { events }).run();
    // All messages were delivered again, and each was found in the output.
    expect(events.log.filter((event) => event === 'alreadyDone')).toHaveLength(messages.length);
    expect(events.log).not.toContain('stored');
    const { errors } = await outputErrors(connection, 'IN_POSITION', 'OUT_POSITION', dataDir);
    expect(errors).toEqual([]);
    await connection.close();
    await broker.close();
  });

  // These wait for the time limits of requests, so they wait together.
  it.concurrent.each([
    { when: 'when it is accepted', cutAt: '', suffix: '_ACCEPT' },
    { when: 'in its handshake', cutAt: 'CONNECT ', suffix: '_HANDSHAKE' },
    { when: 'while the streams are checked', cutAt: 'STREAM.INFO', suffix: '_SETUP' },
  ])('that is lost $when does not end a worker that starts', async ({ cutAt, suffix }) => {
    const proxy = await CuttingProxy.start(server.url, cutAt);
    const { broker, setup } = await openNatsBroker({ url: proxy.url }, setupOptions(suffix));
    expect(proxy.hasCut).toBe(true);
    expect(setup.created).not.toEqual([]);
    await broker.close();
    await proxy.close();
  });

  const part = {
    ...{ source: { sequence: 1, storedAt: '1' }, number: 1, isLast: true, inputEnd: 1, release: 'r' },
    bytes: new Uint8Array(1),
  };

  it.concurrent('that is lost fails the requests without an answer at once, and one that is silent fails them after a while', async () => {
    const proxy = await CuttingProxy.start(server.url);
    const { broker } = await openNatsBroker({ url: proxy.url }, setupOptions('_LOST'));
    proxy.hold();
    const silent = await broker.append(part, 0).catch((error: unknown) => error);
    expect(silent).toBeInstanceOf(BrokerUnavailable);
    expect(String(silent)).toContain('publish: timeout');
    proxy.release();
    // The server answers again: the next request is sent, and nothing comes back.
    await until(() => broker.outputEnd().catch(() => undefined), 'an answer of the server');
    proxy.hold();
    const failures = [broker.append(part, 0), broker.outputEnd()].map((request) => request.catch(String));
    await new Promise((resolve) => setImmediate(resolve));
    proxy.cut();
    // And not "timeout", which is the answer to a request that the server keeps.
    for (const failure of await Promise.all(failures)) expect(failure).toContain('the connection was lost');
    await broker.close();
    await proxy.close();
  });

  it.concurrent('without a permission fails its requests with that reason', async () => {
    const permissions = 'permissions: { publish: { deny: [ "out_denied.>", "$JS.API.CONSUMER.MSG.NEXT.>" ] } }';
    const other = await NatsServerProcess.start({
      config: `authorization { users: [ { user: worker, password: secret, ${permissions} } ] }`,
    });
    try {
      const url = other.url.replace('//', '//worker:secret@');
      const { broker } = await openNatsBroker({ url }, setupOptions('_DENIED'));
      const pull = broker.pull({ messages: 1, bytes: 1, waitMs: 10_000 }, () => {});
      await expect(pull).rejects.toThrow(/pull: permissions violation .*CONSUMER\.MSG\.NEXT/i);
      await expect(broker.append(part, 0)).rejects.toThrow(/publish: permissions violation .*"out_denied\.1"/i);
      await broker.close();
    } finally {
      await other.remove();
    }
  });
});

if (!hasNatsServer()) it(SKIPPED, ({ skip }) => skip(SKIPPED));
