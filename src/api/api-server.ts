/** One process that answers requests: app, keys, release, HTTP server. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { openDatabase } from '../database/database.js';
import { AtlasError, messageOf, systemErrorCode } from '../errors.js';
import { KEYS_POLL_MS, PREDRAIN_MS } from '../limits.js';
import { buildListener, type Phase } from './app.js';
import { TrustedProxies } from './caller.js';
import { createHttpServer, drain, listen } from './http-server.js';
import { KeyRing } from './key-ring.js';
import { keysPath } from './keys.js';
import { type AccessLog, createAccessLog, type Log } from './log.js';
import { type RequestMetrics, UNPARSED_ROUTE } from './metrics.js';
import type { RateLimiter } from './rate-limit.js';
import { ServedRelease } from './served-release.js';
import type { ServeSettings } from './settings.js';

/** All addresses of the machine: of IPv6 and, mapped into it, of IPv4; and where there is no IPv6, of IPv4. */
const ALL_ADDRESSES = '::';
const ALL_IPV4_ADDRESSES = '0.0.0.0';
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL'];

export class ApiServer {
  readonly #settings: ServeSettings;
  readonly #log: Log;
  readonly #keys: KeyRing;
  readonly #accessLog: AccessLog | undefined;
  readonly #metrics: RequestMetrics | undefined;
  #app: FastifyInstance | undefined;
  #server: Server | undefined;
  #release: ServedRelease | undefined;
  #phase: Phase = 'serving';

  constructor(settings: ServeSettings, log: Log, metrics: RequestMetrics | undefined) {
    this.#settings = settings;
    this.#log = log;
    this.#metrics = metrics;
    this.#accessLog = settings.accessLog ? createAccessLog() : undefined;
    this.#keys = new KeyRing(keysPath(settings.dataDir), (problem) =>
      log.error({ problem }, 'the keys cannot be read; those known so far go on working'),
    );
  }

  /**
   * Answers from another release from now on.
   *
   * @param dir its directory; it is taken to be verified
   * @throws AtlasError where it cannot be opened; the old release then stays
   */
  useRelease(dir: string): void {
    const next = new ServedRelease(openDatabase(dir));
    const old = this.#release;
    this.#release = next;
    // No request is in the middle of the old one: each reads the release once and answers in the same turn.
    old?.close();
  }

  /**
   * Begins to answer.
   *
   * @returns the port
   * @throws AtlasError E_USAGE where it cannot listen there
   */
  async listen(limiter: RateLimiter): Promise<number> {
    const { trustProxy, rate, region, baseUrls } = this.#settings;
    this.#keys.start(KEYS_POLL_MS);
    const { app, listener } = await buildListener({
      release: () => this.#release,
      keys: this.#keys,
      limiter,
      defaultRate: rate,
      proxies: new TrustedProxies(trustProxy),
      log: this.#log,
      phase: () => this.#phase,
      metrics: this.#metrics,
      accessLog: this.#accessLog,
      region: region?.name,
      baseUrls,
    });
    this.#app = app;
    this.#server = createHttpServer(listener, {
      region: region?.name,
      onUnparsed: (status) => this.#metrics?.request(UNPARSED_ROUTE, status, 0),
    });
    await this.#bind(this.#server);
    return (this.#server.address() as AddressInfo).port;
  }

  async #bind(server: Server): Promise<void> {
    const { host, port } = this.#settings;
    try {
      await listen(server, host ?? ALL_ADDRESSES, port).catch((error: unknown) => {
        if (host !== undefined || !NO_IPV6.includes(systemErrorCode(error) ?? '')) throw error;
        return listen(server, ALL_IPV4_ADDRESSES, port);
      });
    } catch (error) {
      throw new AtlasError(
        'E_USAGE',
        `cannot listen on port ${port}: ${messageOf(error)}; choose another with --host and --port`,
        { cause: error },
      );
    }
  }

  /** Stops without dropping a request. Resolves to whether all were answered in time. */
  async stop(): Promise<boolean> {
    let inTime = true;
    if (this.#server?.listening) {
      // Whoever watches /readyz looks elsewhere by the time nobody listens here.
      this.#phase = 'leaving';
      await new Promise((resolve) => setTimeout(resolve, PREDRAIN_MS));
      inTime = await drain(this.#server, undefined, undefined, () => {
        this.#phase = 'closing';
      });
    }
    await this.#app?.close();
    this.#keys.stop();
    this.#release?.close();
    this.#accessLog?.flush();
    return inTime;
  }
}
