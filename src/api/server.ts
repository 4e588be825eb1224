/** One process that answers requests: app, keys, release, HTTP server. */
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { openFound } from '../database/database.js';
import type { DataPlace } from '../database/origin.js';
import { causedError, systemErrorCode } from '../errors.js';
import { KEYS_POLL_MS, PREDRAIN_MS } from '../limits.js';
import { buildApp } from './app.js';
import type { GateRule } from './forward-auth.js';
import type { Phase } from './handlers/context.js';
import { ApiHttpServer, drain, listen } from './http-server.js';
import { KeyCache } from './keys/key-cache.js';
import { keysPath } from './keys/key-store.js';
import type { KeyOutcome, KeyService } from './keys/sign-up.js';
import { type AccessLog, createAccessLog, type Log } from './log.js';
import { type RequestMetrics, UNPARSED_ROUTE } from './metrics.js';
import type { BaseUrls } from './openapi.js';
import type { PageSettings } from './page/page.js';
import { PageKeys } from './page/page-keys.js';
import type { RateLimiter } from './rates/rate-limit.js';
import { PublicDatabase } from './releases/public-database.js';
import { Releases } from './releases/releases.js';
import { ServedRelease } from './releases/served-release.js';

/** What a server is configured with when it starts. */
export interface ServeSettings extends DataPlace {
  /** Undefined: all addresses, IPv6 and IPv4. */
  host: string | undefined;
  /** 0 for any free one. */
  port: number;
  /** Processes that answer. */
  workers: number;
  /** CIDR blocks of the proxies whose `X-Forwarded-For` is trusted. */
  trustProxy: string[];
  /** Addresses a minute for a key without a rate of its own; 0 for no limit. */
  rate: number;
  /** URL of the Redis that counts the rates of several servers; undefined if each counts by itself. */
  redis: string | undefined;
  accessLog: boolean;
  /** Where this server is; the name is sent as `X-Served-By`. */
  region: { name: string; country: string; eu: boolean } | undefined;
  /** Where metrics are served; undefined: nowhere. */
  metrics: { host: string; port: number } | undefined;
  /** Whether lookups may ask for the labels of the release. */
  labels: boolean;
  baseUrls: BaseUrls;
  /** Rules for proxies that ask whether a client may go on. */
  forwardAuth: GateRule[];
  page: PageSettings;
}

/** All addresses of the machine: IPv6 and, mapped into it, IPv4. On a machine without IPv6, all IPv4 addresses. */
const ALL_ADDRESSES = '::';
const ALL_IPV4_ADDRESSES = '0.0.0.0';
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL'];

export class ApiServer {
  readonly #settings: ServeSettings;
  readonly #log: Log;
  readonly #keys: KeyCache;
  readonly #accessLog: AccessLog | undefined;
  readonly #metrics: RequestMetrics | undefined;
  #app: FastifyInstance | undefined;
  #server: ApiHttpServer | undefined;
  #phase: Phase = 'serving';
  readonly #releases: Releases;

  constructor(settings: ServeSettings, log: Log, metrics: RequestMetrics | undefined) {
    this.#settings = settings;
    this.#releases = new Releases(settings.dataDir);
    this.#log = log;
    this.#metrics = metrics;
    this.#accessLog = settings.accessLog ? createAccessLog(log) : undefined;
    this.#keys = new KeyCache(keysPath(settings.dataDir), (problem) =>
      log.error({ problem }, 'the keys cannot be read; those that were used lately still work'),
    );
  }

  /**
   * Answers from another release from now on.
   *
   * @param dir its directory, which must have been verified; or the path of the seed
   * @throws AtlasError if it cannot be opened; the old release is kept then
   */
  useRelease(dir: string): void {
    this.#releases.use(new ServedRelease(openFound(dir), this.#settings.labels));
  }

  /**
   * Begins to answer.
   *
   * @param secret of the page's keys; the same in all processes of the server
   * @param keyService makes and revokes keys
   * @returns the port
   * @throws AtlasError E_USAGE if it cannot listen there
   */
  async listen(limiter: RateLimiter, secret: Buffer, keyService: KeyService): Promise<number> {
    const { trustProxy, rate, region, baseUrls, forwardAuth, page } = this.#settings;
    this.#keys.start(KEYS_POLL_MS);
    const origins = Object.values(baseUrls).filter((url) => url !== undefined);
    const app = buildApp({
      releases: this.#releases,
      keys: this.#keys,
      limiter,
      defaultRate: rate,
      trustProxy,
      log: this.#log,
      phase: () => this.#phase,
      metrics: this.#metrics,
      accessLog: this.#accessLog,
      region: region?.name,
      eu: region?.eu,
      baseUrls,
      forwardAuth,
      page,
      publicDatabase: new PublicDatabase(),
      pageKeys: new PageKeys({ secret, defaultRate: rate, origins: origins.map((url) => new URL(url).origin) }),
      keyService: (request) => {
        const outcome = keyService(request);
        return outcome instanceof Promise
          ? outcome.then((settled) => this.#afterKeys(settled))
          : this.#afterKeys(outcome);
      },
    });
    this.#app = app;
    await app.ready();
    this.#server = new ApiHttpServer(app.routing, {
      region: region?.name,
      onUnparsed: (status) => {
        this.#metrics?.request(UNPARSED_ROUTE, status, 0);
        this.#accessLog?.write({ method: null, route: UNPARSED_ROUTE, status, duration_ms: 0 });
      },
    });
    await this.#bind(this.#server);
    return (this.#server.address() as AddressInfo).port;
  }

  /** Makes a change of the keys effective in this process at once; other processes notice it by themselves. */
  #afterKeys(outcome: KeyOutcome): KeyOutcome {
    if (!('refused' in outcome)) this.#keys.refresh();
    return outcome;
  }

  async #bind(server: ApiHttpServer): Promise<void> {
    const { host, port } = this.#settings;
    try {
      await listen(server, host ?? ALL_ADDRESSES, port).catch((error: unknown) => {
        if (host !== undefined || !NO_IPV6.includes(systemErrorCode(error) ?? '')) throw error;
        return listen(server, ALL_IPV4_ADDRESSES, port);
      });
    } catch (error) {
      throw causedError('E_USAGE', `cannot listen on port ${port}`, error, 'choose another with --host and --port');
    }
  }

  /**
   * Stops without dropping a request.
   *
   * @param portFree called when this process no longer listens; resolves when no other one that is about to stop does
   * @returns whether all requests were answered in time
   */
  async stop(portFree: () => Promise<void> = async () => {}): Promise<boolean> {
    let inTime = true;
    if (this.#server?.listening) {
      // Load balancers that check /readyz have stopped sending requests when the server stops listening.
      this.#phase = 'predrain';
      await new Promise((resolve) => setTimeout(resolve, PREDRAIN_MS));
      const onClosing = (): void => {
        this.#phase = 'closing';
      };
      inTime = await drain(this.#server, undefined, undefined, onClosing, portFree);
    }
    await this.#app?.close();
    this.#keys.stop();
    this.#releases.close();
    await this.#accessLog?.flush();
    return inTime;
  }
}
