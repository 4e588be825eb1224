/** What the handlers of all routes share: the key of a request, its caller, its rate, and the release. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isDate } from '../../country/country.js';
import { neededPartitions } from '../../database/fields.js';
import { HISTORY_RETRY_S } from '../../limits.js';
import { callerOf } from '../caller.js';
import type { GateRule } from '../forward-auth.js';
import { hold, release } from '../http-server.js';
import type { Include, Parameter, QueryParameters } from '../include.js';
import { originError, originOf, presentedKey } from '../keys/auth.js';
import type { ActiveKey, KeyFinder } from '../keys/key-cache.js';
import type { KeyService } from '../keys/sign-up.js';
import type { AccessLog, Log } from '../log.js';
import type { RequestMetrics } from '../metrics.js';
import type { BaseUrls } from '../openapi.js';
import type { PageSettings } from '../page/page.js';
import type { PageKeys } from '../page/page-keys.js';
import type { RateLimiter, RateState } from '../rates/rate-limit.js';
import type { Asker } from '../releases/history-queue.js';
import type { PublicDatabase } from '../releases/public-database.js';
import type { Answers, Releases } from '../releases/releases.js';
import type { Headers, Responder } from '../responses.js';

/** `predrain`: answers as usual, but `/readyz` fails; `closing`: each response ends its connection. */
export type Phase = 'serving' | 'predrain' | 'closing';

export interface AppDeps {
  releases: Releases;
  /** The keys that are stored; the server is not ready while they cannot be read. */
  keys: KeyFinder & { readonly isReadable: boolean };
  limiter: RateLimiter;
  /** Addresses a minute for a key without a rate of its own; 0 for no limit. */
  defaultRate: number;
  /** CIDR blocks of the proxies whose `X-Forwarded-For` is trusted. */
  trustProxy: readonly string[];
  log: Log;
  /** How far the shutdown is; by default `serving`. */
  phase?(): Phase;
  metrics?: RequestMetrics | undefined;
  accessLog?: AccessLog | undefined;
  /** Sent as `X-Served-By`. */
  region?: string | undefined;
  /** Whether this is a server of the EU base address. */
  eu?: boolean | undefined;
  /** Where clients find the service, for the OpenAPI document and the page. */
  baseUrls?: BaseUrls | undefined;
  pageKeys: PageKeys;
  /** Rules for proxies that ask whether a client may go on. */
  forwardAuth?: readonly GateRule[];
  page: PageSettings;
  publicDatabase: PublicDatabase;
  /** Makes and revokes keys of people who sign up. */
  keyService: KeyService;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The key of a request to a route that needs one; null before it is checked. */
    apiKey: ActiveKey | null;
  }
}

export type Handler = (request: FastifyRequest, reply: FastifyReply) => undefined | Promise<undefined>;

/** The headers about a key's rate. */
function rateHeaders({ limit, remaining, resetIn }: RateState): string[] {
  const reset = Math.ceil((Date.now() + resetIn) / 1000);
  return [
    'x-ratelimit-limit',
    String(limit),
    'x-ratelimit-remaining',
    String(remaining),
    'x-ratelimit-reset',
    String(reset),
  ];
}

/** The parts of the app that handlers use, and what they do alike. */
export class Context {
  readonly deps: AppDeps;
  readonly responder: Responder;

  constructor(deps: AppDeps, responder: Responder) {
    this.deps = deps;
    this.responder = responder;
  }

  get phase(): Phase {
    return this.deps.phase?.() ?? 'serving';
  }

  /** The names of the labels that requests may ask for. */
  get labelNames(): readonly string[] {
    return this.deps.releases.current()?.labelNames ?? [];
  }

  /** Answers an `include` with an unknown name, with the list of the known ones, or an unknown language. */
  refuseInclude(reply: FastifyReply, problem: Extract<Include, string>): undefined {
    const names = problem === 'include_unknown' ? this.labelNames : [];
    const more = names.length === 0 ? undefined : `without at also ${names.join(', ')}`;
    this.responder.error(reply, problem, [], more);
  }

  /**
   * Checks the key of a request.
   *
   * @param isOwn whether the request is about the caller itself, which a key of the page may ask from every network
   * @returns undefined if the request was refused
   */
  authenticate(reply: FastifyReply, isOwn = false): ActiveKey | undefined {
    const { request } = reply;
    const { keys, pageKeys } = this.deps;
    const { apikey } = request.query as QueryParameters;
    const presented = presentedKey(request.headers, apikey);
    if ('error' in presented) return this.responder.error(reply, presented.error);
    const key = keys.find(presented.key) ?? pageKeys.find(presented.key, () => callerOf(request), isOwn);
    const error = key === undefined ? 'key_invalid' : originError(key, originOf(request.headers));
    if (error === undefined) return key;
    return this.responder.error(reply, error);
  }

  /**
   * Counts addresses against the rate of the request's key, all or none.
   *
   * @param addresses how many; 0 only asks whether any are left
   * @param allowed called with the headers about the rate; not called if the request is refused
   * @param refused called with the headers if the request is refused; by default it answers the error
   */
  countAddresses(
    reply: FastifyReply,
    addresses: number,
    allowed: (headers: string[]) => unknown,
    refused = (headers: string[]): void => this.responder.error(reply, 'rate_exceeded', headers),
  ): undefined | Promise<undefined> {
    const key = reply.request.apiKey!;
    const limit = this.rateOf(key);
    if (limit === 0) return replyWhenReady(reply, [], allowed);
    const state = (key.limiter ?? this.deps.limiter).take(key.id, addresses, limit);
    return replyWhenReady(reply, state, (settled) => {
      const headers = rateHeaders(settled);
      if (settled.allowed) return allowed(headers);
      return refused([...headers, 'retry-after', String(Math.max(1, Math.ceil(settled.resetIn / 1000)))]);
    });
  }

  /** Addresses a minute of a key; 0 for no limit. */
  rateOf({ rate }: ActiveKey): number {
    return rate ?? this.deps.defaultRate;
  }

  /** Returns who asks for what takes long: what nobody waits for any more is not done. */
  asker(reply: FastifyReply): Asker {
    const controller = new AbortController();
    reply.raw.once('close', () => controller.abort());
    return { id: reply.request.apiKey!.id, signal: controller.signal };
  }

  /**
   * Counts the addresses of a request, passes on what answers them, now or on the day that the request names, with all
   * headers; or answers the error.
   *
   * @param at a day, `YYYY-MM-DD`; by default now
   */
  withAnswers(
    reply: FastifyReply,
    { addresses, at, include }: { addresses: number; at: Parameter; include: Include },
    use: (answers: Answers, headers: Headers) => void,
    refused?: (headers: string[]) => void,
  ): undefined | Promise<undefined> {
    const { releases } = this.deps;
    const pass = (answers: Answers, headers: string[]): void =>
      use(answers, 'served' in answers ? [...headers, ...answers.served.headers()] : headers);
    if (at === undefined || typeof at !== 'string' || !isDate(at)) {
      const served = releases.current();
      const answers: Answers =
        at !== undefined ? { error: 'day_invalid' } : served ? { served } : { error: 'no_database' };
      return this.countAddresses(reply, addresses, (headers) => pass(answers, headers), refused);
    }
    const key = reply.request.apiKey!;
    const limit = this.rateOf(key);
    const parts = typeof include === 'object' ? neededPartitions(include.members).map(({ name }) => name) : [];
    const cost = Math.max(addresses, Math.min(releases.costOf(at, parts, key.id), limit));
    const look = (headers: string[]): void | Promise<void> => {
      const answers = releases.at(at, parts, () => this.asker(reply));
      return answers instanceof Promise ? answers.then((settled) => pass(settled, headers)) : pass(answers, headers);
    };
    return this.countAddresses(reply, cost, look, refused);
  }

  /** Answers why there are no answers. */
  noAnswers(reply: FastifyReply, { error, more }: Extract<Answers, { error: unknown }>, headers: Headers): undefined {
    const retry = error === 'history_busy' ? ['retry-after', String(HISTORY_RETRY_S)] : [];
    this.responder.error(reply, error, [...headers, ...retry], more);
  }
}

/**
 * Passes an outcome on, now or later; `use` may take its time, too, and the connection is read meanwhile, so that the end of
 * a client that does not wait is noticed.
 */
export function replyWhenReady<Value>(
  reply: FastifyReply,
  outcome: Value | Promise<Value>,
  use: (value: Value) => unknown,
): undefined | Promise<undefined> {
  const used = outcome instanceof Promise ? holdingConnection(reply, outcome).then(use) : use(outcome);
  return used instanceof Promise ? used.then(() => undefined) : undefined;
}

/**
 * Reads nothing from a request's connection until a promise is settled.
 *
 * A client may send its request and close its half of the connection. Node ends the connection when it reads that, and
 * the answer would be lost if it is not ready by then.
 */
async function holdingConnection<Value>({ request }: FastifyReply, promise: Promise<Value>): Promise<Value> {
  const { socket } = request.raw;
  hold(socket);
  try {
    return await promise;
  } finally {
    release(socket);
  }
}
