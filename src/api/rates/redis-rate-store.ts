/**
 * The rate limit of several servers: a store in Redis, one counter for each key (schemas/rate-window.lua).
 *
 * If Redis does not answer, a server counts by itself, and allows each key the rate divided by the number of servers that
 * Redis last knew; what it allowed before in the same window counts. It counts with the others again one window after
 * Redis last failed to answer. Then all windows have ended of which Redis, or another server, knows only a part.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import type { CommandParser } from '@redis/client';
import { messageOf, misuse, systemErrorCode } from '../../errors.js';
import {
  RATE_SERVER_EXPIRES_MS,
  RATE_STORE_CHECK_MS,
  RATE_STORE_RECONNECT_MS,
  RATE_STORE_TIMEOUT_MS,
  RATE_WINDOW_MS,
} from '../../limits.js';
import { packageFile } from '../../package-root.js';
import { PERCENT_ADVICE, parseUrl } from '../../url.js';
import { waitAfter } from '../../waits.js';
import type { Log } from '../log.js';
import { type RateStore, RateWindows, type Reservation } from './rate-windows.js';

/** Names in Redis: other programs may use the same one. */
const RATE_PREFIX = 'ipatlas:rate:';
const SERVERS = 'ipatlas:servers';

/** Longest wait for a connection in milliseconds: shorter than that for the first check, which says why there is none. */
const RATE_STORE_CONNECT_MS = RATE_STORE_CHECK_MS / 2;

/** Checks in a row without an answer after which the connection is made anew: its other end may be gone silently. */
const CHECKS_UNTIL_RECONNECT = 5;

/**
 * Notes that a server runs.
 *
 * KEYS[1]: a sorted set of the servers by the time of their last note. ARGV: the server; milliseconds until one without
 * a note is forgotten. Returns the number of servers.
 */
const NOTE_SERVER = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + ARGV[2], '+inf')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])`;

/** The script that reserves addresses. */
function reserveScript(): string {
  return readFileSync(packageFile('schemas/rate-window.lua'), 'utf8');
}

/** Whether a URL is one that the client accepts: after the host only the number of a database may follow. */
function isRedisUrl({ protocol, hostname, pathname }: URL): boolean {
  return /^rediss?:$/.test(protocol) && hostname !== '' && /^(\/\d*)?$/.test(pathname);
}

/** Returns the host and port of the URL of a Redis server, without user and password. Throws AtlasError E_USAGE. */
export function redisAddress(url: string): string {
  const parsed = parseUrl(url);
  if (parsed === undefined || !isRedisUrl(parsed)) {
    throw misuse(`the address of Redis is not a URL such as redis://user:password@host:6379; ${PERCENT_ADVICE}`);
  }
  return `${parsed.hostname}:${parsed.port || '6379'}`;
}

/** Connects. `ready` resolves when it is connected for the first time. */
async function connect(url: string, onError: (error: Error) => void) {
  const { createClient, defineScript } = await import('@redis/client');
  const command = {
    NUMBER_OF_KEYS: 1,
    parseCommand(parser: CommandParser, key: string, args: string[]): void {
      parser.pushKey(key);
      parser.push(...args);
    },
  };
  const client = createClient({
    url,
    socket: {
      connectTimeout: RATE_STORE_CONNECT_MS,
      reconnectStrategy: (retries) => waitAfter(retries + 1, 1, RATE_STORE_RECONNECT_MS),
    },
    // A question about a rate is of no use later.
    disableOfflineQueue: true,
    maintNotifications: 'disabled',
    scripts: {
      reserve: defineScript({
        SCRIPT: reserveScript(),
        ...command,
        transformReply: (reply: unknown): number[] => reply as number[],
      }),
      noteServer: defineScript({
        SCRIPT: NOTE_SERVER,
        ...command,
        transformReply: (reply: unknown) => reply as number,
      }),
    },
  });
  client.on('error', onError);
  const ready = client.connect();
  // Rejects only if the client is destroyed before; other failures are events, and the client tries again.
  ready.catch(onError);
  return { ready, client };
}

/** Rejects if a promise is not settled in time. @param timeout in milliseconds */
async function inTime<Value>(promise: Promise<Value>, timeout: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(async () => {
      // If this process was busy, the answer has arrived already and is read in this turn.
      await turn();
      reject(new Error(`no answer within ${timeout} ms`));
    }, timeout);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export interface RedisRateOptions {
  /** `redis://` or `rediss://`, with user and password if needed. Never logged. */
  url: string;
  log: Log;
  /** Longest wait for an answer in milliseconds; by default {@link RATE_STORE_TIMEOUT_MS}. */
  timeout?: number;
  /** A monotonic clock in milliseconds. */
  now?: () => number;
}

export class RedisRateStore implements RateStore {
  readonly #url: string;
  readonly #address: string;
  readonly #log: Log;
  readonly #timeout: number;
  readonly #server = randomUUID();
  readonly #now: () => number;
  /** What this server counted. */
  readonly #own: RateWindows;
  #redis: Awaited<ReturnType<typeof connect>> | undefined;
  #isShared = false;
  /** Servers that Redis last knew, this one included. */
  #servers = 1;
  /** When this server may count with the others again. */
  #shareAgainAt = 0;
  #failedChecks = 0;
  /** Why there is no connection, and why the last request failed. */
  #connectionProblem: string | undefined;
  #problem = '';
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> = Promise.resolve();
  #isStopped = false;

  /** @throws AtlasError E_USAGE if the URL is not one of Redis */
  constructor({ url, log, timeout, now = () => performance.now() }: RedisRateOptions) {
    this.#url = url;
    this.#address = redisAddress(url);
    this.#log = log;
    this.#timeout = timeout ?? RATE_STORE_TIMEOUT_MS;
    this.#now = now;
    this.#own = new RateWindows(now);
  }

  /** Whether this server counts with the others. */
  get isShared(): boolean {
    return this.#isShared;
  }

  /** Servers that share the rates, as far as is known. */
  get servers(): number {
    return this.#servers;
  }

  /** Connects. If Redis cannot be reached, this is logged, and tried again for ever. */
  async start(): Promise<void> {
    await this.#connect();
    const timeout = new AbortController();
    const longest = sleep(RATE_STORE_CHECK_MS, undefined, { signal: timeout.signal }).catch(() => {});
    await Promise.race([this.#redis!.ready.catch(() => {}), longest]);
    timeout.abort();
    await this.check();
    if (!this.#isShared) this.#logFallBack();
    this.#checkLater();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#checking;
    const redis = this.#redis;
    if (redis === undefined) return;
    // If Redis does not answer, the server is forgotten later.
    await inTime(redis.client.zRem(SERVERS, this.#server), this.#timeout).catch(() => {});
    redis.client.destroy();
  }

  async reserve(keyId: string, limit: number, needed: number, upTo: number): Promise<Reservation> {
    if (this.#isShared) {
      try {
        const reservation = await this.#ask(keyId, limit, needed, upTo);
        this.#own.count(keyId, reservation.reserved, reservation.resetIn);
        return reservation;
      } catch (error) {
        this.#fallBack(error);
      }
    }
    const share = Math.ceil(limit / this.#servers);
    const own = this.#own.reserve(keyId, share, needed, upTo);
    // The rest belongs to the others.
    return { ...own, used: own.used + limit - share };
  }

  async #ask(keyId: string, limit: number, needed: number, upTo: number): Promise<Reservation> {
    const args = [limit, needed, upTo, RATE_WINDOW_MS].map(String);
    const answer = await inTime(this.#redis!.client.reserve(RATE_PREFIX + keyId, args), this.#timeout);
    const [reserved, used, resetIn] = answer as [number, number, number];
    return { reserved, used, resetIn };
  }

  #checkLater(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#checking = this.check().finally(() => this.#checkLater());
    }, RATE_STORE_CHECK_MS);
    this.#timer.unref();
  }

  /** Tells Redis that this server runs; counts with the others again if Redis was away. */
  async check(): Promise<void> {
    try {
      const note = this.#redis!.client.noteServer(SERVERS, [this.#server, String(RATE_SERVER_EXPIRES_MS)]);
      const servers = await inTime(note, this.#timeout);
      this.#failedChecks = 0;
      this.#connectionProblem = undefined;
      // A Redis that was restarted does not know all servers at once.
      this.#servers = this.#isShared ? servers : Math.max(servers, this.#servers);
      if (this.#isShared || this.#now() < this.#shareAgainAt) return;
      this.#isShared = true;
      this.#log.info({ redis: this.#address, servers }, 'rates are counted together with the other servers');
    } catch (error) {
      this.#fallBack(error);
      if (++this.#failedChecks % CHECKS_UNTIL_RECONNECT === 0) await this.#connect();
    }
  }

  /** Counts by itself from now on. */
  #fallBack(error: unknown): void {
    this.#shareAgainAt = this.#now() + RATE_WINDOW_MS;
    this.#problem = this.#connectionProblem ?? messageOf(error);
    if (!this.#isShared) return;
    this.#isShared = false;
    this.#logFallBack();
  }

  #logFallBack(): void {
    this.#log.warn(
      { redis: this.#address, problem: this.#problem, servers: this.#servers },
      'Redis does not answer; until it does, this server allows each key its rate divided by the number of servers. Check its address: rediss:// is for TLS, redis:// for none',
    );
  }

  async #connect(): Promise<void> {
    this.#redis?.client.destroy();
    this.#redis = await connect(this.#url, (error) => {
      // An error that Node collected from several addresses has no message.
      this.#connectionProblem = messageOf(error) || systemErrorCode(error) || 'no connection';
    });
  }
}
