/** What stands in front of the API's routes: the key, then the rate limit. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { refuse } from './answers.js';
import { presentedKey } from './authenticate.js';
import type { ActiveKey, KeyFinder } from './key-ring.js';
import type { RateLimiter, RateState } from './rate-limit.js';

export class Admission {
  readonly #keys: KeyFinder;
  readonly #limiter: RateLimiter;
  readonly #defaultRate: number;
  /** The keys of requests whose addresses are still to be counted. */
  readonly #admitted = new WeakMap<FastifyRequest, ActiveKey>();

  /** @param defaultRate addresses a minute for a key without a rate of its own; 0 for no limit */
  constructor(keys: KeyFinder, limiter: RateLimiter, defaultRate: number) {
    this.#keys = keys;
    this.#limiter = limiter;
    this.#defaultRate = defaultRate;
  }

  /** @returns the key that a text is, or undefined where it is none that works */
  find(presented: string): ActiveKey | undefined {
    return this.#keys.find(presented);
  }

  /**
   * Counts addresses, all or none.
   *
   * @param addresses how many; 0 asks whether any are left
   * @param callback gets what the limiter says, or undefined where the key has no limit
   */
  count(key: ActiveKey, addresses: number, callback: (state: RateState | undefined) => void): void {
    const limit = key.rate ?? this.#defaultRate;
    if (limit === 0) callback(undefined);
    else this.#limiter.take(key.id, addresses, limit, callback);
  }

  /** @returns the request's key, or undefined where the request was refused for it */
  authenticate(request: FastifyRequest, reply: FastifyReply): ActiveKey | undefined {
    const presented = presentedKey(request.raw, (request.query as { apikey?: unknown }).apikey);
    if ('error' in presented) {
      refuse(reply, presented.error);
      return undefined;
    }
    const key = this.find(presented.key);
    if (key === undefined) refuse(reply, 'key_invalid');
    return key;
  }

  /** Hook of a route that looks one address up. */
  readonly one = (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const key = this.authenticate(request, reply);
    if (key !== undefined) this.#countOrRefuse(key, 1, reply, done);
  };

  /** Hook of a route that says later, by {@link many}, how many addresses it looks up. */
  readonly some = (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const key = this.authenticate(request, reply);
    if (key === undefined) return;
    this.#admitted.set(request, key);
    this.#countOrRefuse(key, 0, reply, done);
  };

  /** @param next called where the rate allows that many addresses */
  many(request: FastifyRequest, addresses: number, reply: FastifyReply, next: () => void): void {
    this.#countOrRefuse(this.#admitted.get(request)!, addresses, reply, next);
  }

  #countOrRefuse(key: ActiveKey, addresses: number, reply: FastifyReply, next: () => void): void {
    this.count(key, addresses, (state) => {
      if (state !== undefined) {
        reply.header('x-ratelimit-limit', String(state.limit));
        reply.header('x-ratelimit-remaining', String(state.remaining));
        reply.header('x-ratelimit-reset', String(resetSeconds(state.resetAt)));
        if (!state.allowed) {
          reply.header('retry-after', String(Math.max(1, Math.ceil((state.resetAt - Date.now()) / 1000))));
          refuse(reply, 'rate_exceeded');
          return;
        }
      }
      next();
    });
  }
}

/** When a window ends, in Unix seconds, from milliseconds. */
export function resetSeconds(resetAt: number): number {
  return Math.ceil(resetAt / 1000);
}
