import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Grant, MemoryRateStore, RateLimiter, type RateState, type RateStore } from '../../src/api/rate-limit.js';
import { RATE_LEASE_SHARE, RATE_WINDOW_MS } from '../../src/limits.js';

function take(limiter: RateLimiter, cost: number, limit: number, key = 'key'): RateState {
  let state: RateState | undefined;
  limiter.take(key, cost, limit, (given) => {
    state = given;
  });
  return state!;
}

describe('the limiter over a store in memory', () => {
  it('counts as a plain sum would, window by window', () => {
    const step = fc.record({ cost: fc.nat(12), pause: fc.constantFrom(0, 1, RATE_WINDOW_MS - 1, RATE_WINDOW_MS) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.array(step, { maxLength: 40 }), (limit, steps) => {
        let now = 1_000_000;
        const limiter = new RateLimiter(new MemoryRateStore(() => now), 0, () => now);
        let windowEnd = 0;
        let used = 0;
        for (const { cost, pause } of steps) {
          now += pause;
          if (now >= windowEnd) {
            windowEnd = now + RATE_WINDOW_MS;
            used = 0;
          }
          const fits = cost === 0 ? used < limit : used + cost <= limit;
          if (fits) used += cost;
          expect(take(limiter, cost, limit)).toEqual({
            allowed: fits,
            limit,
            remaining: limit - used,
            resetAt: windowEnd,
          });
        }
      }),
    );
  });

  it('counts keys apart', () => {
    const limiter = new RateLimiter(new MemoryRateStore());
    expect(take(limiter, 3, 3, 'a').allowed).toBe(true);
    expect(take(limiter, 3, 3, 'b').allowed).toBe(true);
    expect(take(limiter, 1, 3, 'a').allowed).toBe(false);
  });

  it('follows a rate that is changed', () => {
    const limiter = new RateLimiter(new MemoryRateStore());
    expect(take(limiter, 3, 3).allowed).toBe(true);
    expect(take(limiter, 1, 5)).toMatchObject({ allowed: true, limit: 5, remaining: 1 });
    expect(take(limiter, 1, 2)).toMatchObject({ allowed: false, remaining: 0 });
  });
});

/** A store that answers later, in an order of the test's choosing. */
class SlowStore implements RateStore {
  readonly #store: RateStore;
  readonly waiting: (() => void)[] = [];
  asked = 0;

  constructor(store: RateStore) {
    this.#store = store;
  }

  lease(keyId: string, limit: number, least: number, most: number, callback: (grant: Grant) => void): void {
    this.asked++;
    this.#store.lease(keyId, limit, least, most, (grant) => this.waiting.push(() => callback(grant)));
  }

  /** Lets one answer arrive. */
  deliver(index: number): void {
    this.waiting.splice(index % this.waiting.length, 1)[0]?.();
  }
}

describe('limiters of several workers over one store', () => {
  it('never allow more than the rate, and leave at most their shares of it unused', () => {
    const request = fc.record({ worker: fc.nat(2), cost: fc.integer({ min: 1, max: 40 }), deliver: fc.nat(5) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20_000 }), fc.array(request, { maxLength: 60 }), (limit, requests) => {
        const store = new SlowStore(new MemoryRateStore(() => 0));
        const workers = [0, 1, 2].map(() => new RateLimiter(store, RATE_LEASE_SHARE, () => 0));
        let allowed = 0;
        let smallestRefused = Number.POSITIVE_INFINITY;
        let answers = 0;
        for (const { worker, cost, deliver } of requests) {
          workers[worker]!.take('key', cost, limit, (state) => {
            answers++;
            if (state.allowed) allowed += cost;
            else smallestRefused = Math.min(smallestRefused, cost);
          });
          for (let i = 0; i < deliver && store.waiting.length > 0; i++) store.deliver(deliver + i);
        }
        while (store.waiting.length > 0) store.deliver(0);
        expect(answers).toBe(requests.length);
        expect(allowed).toBeLessThanOrEqual(limit);
        // What was refused did not fit, but for what other workers had drawn ahead.
        const ahead = 2 * Math.max(0, Math.floor(limit * RATE_LEASE_SHARE) - 1);
        expect(allowed + smallestRefused + ahead).toBeGreaterThan(limit);
      }),
      { numRuns: 300 },
    );
  });

  it('ask once for a thousandth of a great rate', () => {
    const store = new SlowStore(new MemoryRateStore());
    const limiter = new RateLimiter(store, RATE_LEASE_SHARE);
    let allowed = 0;
    for (let i = 0; i < 1_000; i++) {
      limiter.take('key', 1, 1_000_000, ({ allowed: yes }) => {
        if (yes) allowed++;
      });
      while (store.waiting.length > 0) store.deliver(0);
    }
    expect([allowed, store.asked]).toEqual([1_000, 1]);
  });
});
