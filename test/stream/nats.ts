/** A real nats-server for tests: started, killed and started again on the same files. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type JetStreamManager, jetstreamManager, type StoredMsg } from '@nats-io/jetstream';
import { connect, type NatsConnection, RequestError } from '@nats-io/transport-node';
import { freePort } from '../support/ports.js';
import { temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';

export const SKIPPED =
  'SKIPPED: nats-server is not installed (scripts/ci-packages.sh installs it); streams are NOT tested';

export function hasNatsServer(): boolean {
  return spawnSync('nats-server', ['--version']).error === undefined;
}

export interface ServerOptions {
  /** Largest message in bytes. */
  maxPayload?: number;
  /** More lines of its configuration file. */
  config?: string;
}

export class NatsServerProcess {
  readonly url: string;
  readonly #dir: string;
  readonly #port: number;
  readonly #monitorPort: number;
  readonly #lines: string[];
  #child: ChildProcess | undefined;

  private constructor(dir: string, port: number, monitorPort: number, scheme: string, lines: string[]) {
    this.#dir = dir;
    this.#lines = lines;
    this.#port = port;
    this.#monitorPort = monitorPort;
    this.url = `${scheme}://127.0.0.1:${port}`;
  }

  /** Starts a server on a free port of the loopback address, with its files in a temporary folder. */
  static async start({ maxPayload = 1_048_576, config = '' }: ServerOptions = {}): Promise<NatsServerProcess> {
    const dir = temporaryDir();
    const port = await freePort();
    const monitorPort = await freePort();
    mkdirSync(join(dir, 'store'));
    const lines = [
      `listen: "127.0.0.1:${port}"`,
      `http: "127.0.0.1:${monitorPort}"`,
      `jetstream { store_dir: "${join(dir, 'store')}", max_file_store: 64GB }`,
      `max_payload: ${maxPayload}`,
      `log_file: "${join(dir, 'log')}"`,
    ];
    const server = new NatsServerProcess(dir, port, monitorPort, config.includes('tls') ? 'tls' : 'nats', lines);
    server.configure(config);
    await server.resume();
    return server;
  }

  /** Replaces the lines of the configuration that {@link start} was given; a server that runs takes them over. */
  configure(config: string): void {
    writeFileSync(join(this.#dir, 'nats.conf'), [...this.#lines, config].join('\n'));
    this.#child?.kill('SIGHUP');
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  /** Starts the server again and waits until it accepts connections and has recovered its streams and consumers. */
  async resume(): Promise<void> {
    const child = spawn('nats-server', ['-c', join(this.#dir, 'nats.conf')], { stdio: 'ignore' });
    this.#child = child;
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`nats-server ended (${child.exitCode}): ${this.#log()}`);
      return fetch(`http://127.0.0.1:${this.#monitorPort}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      );
    }, 'the start of nats-server');
  }

  #log(): string {
    return readFileSync(join(this.#dir, 'log'), 'utf8');
  }

  /** Sends a signal, such as SIGSTOP and SIGCONT. After SIGSTOP, all threads of the server have stopped (proc(5), state T). */
  signal(signal: NodeJS.Signals): void {
    this.#child!.kill(signal);
    if (signal !== 'SIGSTOP') return;
    const threads = `/proc/${this.#child!.pid}/task`;
    const isStopped = (thread: string): boolean => /\) T /.test(readFileSync(join(threads, thread, 'stat'), 'utf8'));
    while (!readdirSync(threads).every(isStopped)) {} // a few milliseconds, if the machine is busy
  }

  /** Kills the server and waits until it is gone. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill(signal);
    await once(this.#child, 'exit');
  }

  /**
   * Leaves the files of a killed server as if the kill had met the moment in which it writes the positions of the consumers:
   * it truncates a file before it writes it.
   *
   * @returns how many consumers there are
   */
  loseConsumerPositions(): number {
    const store = join(this.#dir, 'store');
    const files = readdirSync(store, { recursive: true, encoding: 'utf8' }).filter((path) =>
      /obs.[^/]+.o\.dat$/.test(path),
    );
    for (const path of files) writeFileSync(join(store, path), '');
    return files.length;
  }

  connect(): Promise<NatsConnection> {
    return connect({ servers: `127.0.0.1:${this.#port}`, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true });
  }
}

/** How often a message is published again that no stream took, and the pause before that in milliseconds. */
const PUBLISH_TRIES = 100;
const PUBLISH_PAUSE_MS = 100;

/** Publishes a message and waits until it is stored. While no stream listens, nothing is stored, so it tries again. */
async function publish(connection: NatsConnection, subject: string, message: string | Uint8Array): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      const { data } = await connection.request(subject, message, { timeout: 20_000 });
      const { error } = JSON.parse(Buffer.from(data).toString()) as { error?: unknown };
      if (error !== undefined) throw new Error(`${subject}: ${JSON.stringify(error)}`);
      return;
    } catch (error) {
      const isUnheard = error instanceof RequestError && error.isNoResponders();
      if (!isUnheard || tries === PUBLISH_TRIES) throw error;
      await sleep(PUBLISH_PAUSE_MS);
    }
  }
}

/**
 * Publishes messages in order and waits until each is stored. Where the server was started again, the connection may not be: what
 * is sent then is lost with its answer.
 */
export async function publishAll(connection: NatsConnection, subject: string, messages: (string | Uint8Array)[]) {
  const isConnected = () =>
    connection.rtt().then(
      () => true,
      () => false,
    );
  await until(isConnected, 'the connection');
  for (let from = 0; from < messages.length; from += 50) {
    await Promise.all(messages.slice(from, from + 50).map((message) => publish(connection, subject, message)));
  }
}

/** All messages of a stream, in its order. */
export async function messagesOf(connection: NatsConnection, stream: string): Promise<StoredMsg[]> {
  const manager = await managerOf(connection);
  const { state } = await manager.streams.info(stream);
  const messages: StoredMsg[] = [];
  for (let from = Math.max(1, state.first_seq); from <= state.last_seq; from += 50) {
    const batch = Array.from({ length: Math.min(50, state.last_seq - from + 1) }, (_, index) =>
      manager.streams.getMessage(stream, { seq: from + index }),
    );
    for (const message of await Promise.all(batch)) if (message !== null) messages.push(message);
  }
  return messages;
}

/** @param timeout of each request, in milliseconds */
export async function managerOf(connection: NatsConnection, timeout = 20_000): Promise<JetStreamManager> {
  return jetstreamManager(connection, { timeout, checkAPI: false });
}
