/** A real redis-server for tests, without persistence: killed, stopped, and started again on the same port. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createClient } from '@redis/client';
import { freePort } from './ports.js';
import { temporaryDir } from './release.js';
import { until } from './serve.js';

export const REDIS_SKIPPED =
  'SKIPPED: redis-server is not installed (scripts/ci-packages.sh installs it); shared rate limits are NOT tested';

export function hasRedis(): boolean {
  return spawnSync('redis-server', ['--version']).error === undefined;
}

export class RedisProcess {
  readonly port: number;
  readonly #args: string[];
  /** Where it would write files. */
  readonly #dir = temporaryDir();
  #child: ChildProcess | undefined;

  private constructor(port: number, args: string[]) {
    this.port = port;
    this.#args = args;
  }

  /** @param args more options of redis-server */
  static async start(...args: string[]): Promise<RedisProcess> {
    const port = await freePort();
    const redis = new RedisProcess(port, ['--port', `${port}`, ...args]);
    await redis.resume();
    return redis;
  }

  /** Starts one that only speaks TLS and has the password `of-the-test`. */
  static async startTls(certificate: string, key: string): Promise<RedisProcess> {
    const port = await freePort();
    const tls = ['--port', '0', '--tls-port', `${port}`, '--tls-cert-file', certificate, '--tls-key-file', key];
    const redis = new RedisProcess(port, [...tls, '--tls-auth-clients', 'no', '--requirepass', 'of-the-test']);
    await redis.resume();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts it again, without data. */
  async resume(): Promise<void> {
    const own = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const child = spawn('redis-server', [...own, '--dir', this.#dir, ...this.#args], { stdio: 'ignore' });
    this.#child = child;
    await until(() => {
      if (child.exitCode !== null) throw new Error(`redis-server ended with exit code ${child.exitCode}`);
      return spawnSync('bash', ['-c', `exec 3<>/dev/tcp/127.0.0.1/${this.port}`]).status === 0;
    }, 'the start of redis-server');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child!.kill(signal);
  }

  /** Kills it and waits until it is gone. */
  async kill(): Promise<void> {
    const child = this.#child!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Kills it for good. */
  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true });
  }

  /** A connection of the test's own. */
  async client() {
    const client = createClient({ url: this.url });
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  /** Calls of scripts since the start. */
  async scriptCalls(): Promise<number> {
    const client = await this.client();
    const stats = String(await client.info('commandstats'));
    client.destroy();
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }
}
