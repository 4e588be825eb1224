import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  type Grant,
  MemoryRateStore,
  RateLimiter,
  type RateState,
  type RateStore,
} from '../../src/api/rates/rate-limit.js';
import { RATE_LEASE_MS, RATE_LEASE_SHARE, RATE_STEP_MS, RATE_WINDOW_MS } from '../../src/limits.js';

/** Returns the answer of a limiter whose store answers synchronously. */
function take(limiter: RateLimiter, cost: number, limit: number, key = 'key'): RateState {
  const state = limiter.take(key, cost, limit);
  if (state instanceof Promise) throw new Error('the limiter waits');
  return state;
}

describe('the limiter with a store in memory', () => {
  it('agrees with a model that lists all requests of the last minute', () => {
    const pause = fc.constantFrom(0, 1, RATE_STEP_MS, RATE_WINDOW_MS / 2, RATE_WINDOW_MS - 1, RATE_WINDOW_MS);
    const step = fc.record({ cost: fc.nat(12), pause });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.array(step, { maxLength: 40 }), (limit, steps) => {
        let now = 1_000_000;
        const limiter = new RateLimiter(new MemoryRateStore(() => now), 0, () => now);
        const taken: { at: number; cost: number }[] = [];
        const usedSince = (start: number) =>
          taken.filter(({ at }) => at > start).reduce((sum, { cost }) => sum + cost, 0);
        for (const { cost, pause } of steps) {
          now += pause;
          const state = take(limiter, cost, limit);
          const needed = Math.max(1, cost);
          // Addresses that were counted within one step may become free up to one step late.
          expect(state.allowed || usedSince(now - RATE_WINDOW_MS - RATE_STEP_MS) + needed > limit).toBe(true);
          if (state.allowed) {
            expect(usedSince(now - RATE_WINDOW_MS) + needed).toBeLessThanOrEqual(limit);
            taken.push({ at: now, cost });
          } else {
            expect(state.retryIn).toBeGreaterThan(0);
          }
          expect(state.limit).toBe(limit);
          expect(state.remaining).toBeLessThanOrEqual(limit - usedSince(now - RATE_WINDOW_MS));
          expect(state.resetIn).toBeLessThanOrEqual(RATE_WINDOW_MS);
        }
      }),
    );
  });

  it('does not let twice the rate through around the end of a minute', () => {
    let now = 0;
    const limiter = new RateLimiter(new MemoryRateStore(() => now), 0, () => now);
    now = 59_000;
    for (let i = 0; i < 100; i++) expect(take(limiter, 1, 100).allowed).toBe(true);
    now = 61_000;
    expect(take(limiter, 1, 100)).toMatchObject({ allowed: false, remaining: 0, retryIn: 58_000 });
    now = 119_000;
    expect(take(limiter, 100, 100)).toMatchObject({ allowed: true, remaining: 0, resetIn: RATE_WINDOW_MS });
  });

  it('says when a request may succeed, and lets it succeed then', () => {
    let now = 0;
    const limiter = new RateLimiter(new MemoryRateStore(() => now), 0, () => now);
    for (let i = 0; i < 10; i++) {
      take(limiter, 10, 100);
      now += 5_000;
    }
    const { allowed, retryIn } = take(limiter, 25, 100);
    expect([allowed, take(limiter, 26, 100).retryIn]).toEqual([false, retryIn]);
    now += retryIn - 1;
    expect(take(limiter, 25, 100).allowed).toBe(false);
    now += 1;
    expect(take(limiter, 25, 100).allowed).toBe(true);
  });

  it('counts each key separately', () => {
    const limiter = new RateLimiter(new MemoryRateStore());
    expect(take(limiter, 3, 3, 'a').allowed).toBe(true);
    expect(take(limiter, 3, 3, 'b').allowed).toBe(true);
    expect(take(limiter, 1, 3, 'a').allowed).toBe(false);
  });

  it('applies a changed rate', () => {
    const limiter = new RateLimiter(new MemoryRateStore());
    expect(take(limiter, 3, 3).allowed).toBe(true);
    expect(take(limiter, 1, 3).allowed).toBe(false);
    expect(take(limiter, 1, 5)).toMatchObject({ allowed: true, limit: 5, remaining: 1 });
    expect(take(limiter, 1, 2)).toMatchObject({ allowed: false, remaining: 0 });
  });

  it('does not ask the store again after a refusal until addresses are free', () => {
    let now = 0;
    let asked = 0;
    const store = new MemoryRateStore(() => now);
    const counted: RateStore = {
      take: (...demand) => {
        asked++;
        return store.take(...demand);
      },
      giveBack: () => {},
    };
    const limiter = new RateLimiter(counted, 0, () => now);
    take(limiter, 10, 10);
    for (let i = 0; i < 100; i++) {
      now += 500;
      expect(take(limiter, 1 + (i % 3), 10).allowed).toBe(false);
    }
    expect(asked).toBe(2);
    now = RATE_WINDOW_MS;
    expect(take(limiter, 10, 10).allowed).toBe(true);
  });

  it('still asks for fewer addresses than were refused', () => {
    const limiter = new RateLimiter(new MemoryRateStore());
    take(limiter, 6, 10);
    expect(take(limiter, 5, 10).allowed).toBe(false);
    expect(take(limiter, 4, 10).allowed).toBe(true);
  });

  it.each([
    ['set back', -3_600_000],
    ['set forward', 3_600_000],
  ])('does not depend on the clock of the machine: %s', (_, by) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { now } = Date;
    try {
      const store = new MemoryRateStore();
      const limiter = new RateLimiter(store);
      expect(take(limiter, 10, 10)).toMatchObject({ allowed: true, remaining: 0 });
      expect(take(limiter, 1, 10)).toMatchObject({ allowed: false });
      Date.now = () => now() + by;
      // Another limiter has to ask the store.
      for (const each of [limiter, new RateLimiter(store)]) {
        expect(take(each, 1, 10)).toMatchObject({ allowed: false, retryIn: RATE_WINDOW_MS });
      }
      vi.advanceTimersByTime(RATE_WINDOW_MS);
      expect(take(limiter, 5, 10)).toMatchObject({ allowed: true, remaining: 5 });
      expect(take(new RateLimiter(store), 5, 10)).toMatchObject({ allowed: true, remaining: 0 });
    } finally {
      Date.now = now;
      vi.useRealTimers();
    }
  });
});

/** A store whose answers arrive when the test says so, in any order. */
class SlowStore implements RateStore {
  readonly #store: RateStore;
  readonly waiting: (() => void)[] = [];
  asked = 0;
  givenBack = 0;

  constructor(store: RateStore) {
    this.#store = store;
  }

  take(keyId: string, limit: number, least: number, most: number): Promise<Grant> {
    this.asked++;
    return new Promise((resolve) => {
      const grant = this.#store.take(keyId, limit, least, most);
      this.waiting.push(() => resolve(grant));
    });
  }

  giveBack(keyId: string, count: number): void {
    this.givenBack += count;
    this.#store.giveBack(keyId, count);
  }

  /** Lets one answer arrive. */
  async deliver(index = 0): Promise<void> {
    this.waiting.splice(index % this.waiting.length, 1)[0]?.();
    await new Promise((resolve) => setImmediate(resolve));
  }

  async deliverAll(): Promise<void> {
    while (this.waiting.length > 0) await this.deliver();
  }
}

describe('limiters of several workers with one store', () => {
  it('allow the rate exactly, however the workers and requests are mixed', async () => {
    const request = fc.record({ worker: fc.nat(2), cost: fc.nat(40), deliver: fc.nat(5) });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 20_000 }),
        fc.array(request, { maxLength: 40 }),
        async (limit, requests) => {
          let now = 0;
          const store = new SlowStore(new MemoryRateStore(() => now));
          const workers = [0, 1, 2].map(() => new RateLimiter(store, RATE_LEASE_SHARE, () => now));
          let allowed = 0;
          let answers = 0;
          const count = (cost: number) => (state: RateState) => {
            answers++;
            if (state.allowed) allowed += cost;
          };
          for (const { worker, cost, deliver } of requests) {
            void Promise.resolve(workers[worker]!.take('key', cost, limit)).then(count(cost));
            for (let i = 0; i < deliver && store.waiting.length > 0; i++) await store.deliver(deliver + i);
          }
          await store.deliverAll();
          expect(answers).toBe(requests.length);
          expect(allowed).toBeLessThanOrEqual(limit);

          // What other workers drew ahead and did not use comes back; then one worker can use the whole rate.
          now += RATE_LEASE_MS;
          for (const worker of workers) {
            const question = Promise.resolve(worker.take('key', 0, limit));
            await store.deliverAll();
            await question;
          }
          const left = limit - allowed;
          const rest = Promise.resolve(workers[0]!.take('key', left, limit)).then(count(left));
          await store.deliverAll();
          await rest;
          expect(allowed).toBe(limit);
          const more = Promise.resolve(workers[1]!.take('key', 1, limit));
          await store.deliverAll();
          expect((await more).allowed).toBe(false);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('lease nothing for a batch without addresses', async () => {
    const store = new SlowStore(new MemoryRateStore());
    const [one, other] = [new RateLimiter(store, RATE_LEASE_SHARE), new RateLimiter(store, RATE_LEASE_SHARE)];
    const question = one.take('key', 0, 10);
    await store.deliverAll();
    expect(await question).toMatchObject({ allowed: true, remaining: 10 });
    const batch = other.take('key', 10, 10);
    await store.deliverAll();
    expect(await batch).toMatchObject({ allowed: true, remaining: 0 });
  });

  it('ask for one lease at a time, also for a thousand requests at once', async () => {
    const store = new SlowStore(new MemoryRateStore());
    const limit = 1_000_000;
    const [one, other] = [new RateLimiter(store, RATE_LEASE_SHARE), new RateLimiter(store, RATE_LEASE_SHARE)];
    const states = Promise.all(Array.from({ length: 1_000 }, () => one.take('key', 1, limit)));
    await store.deliverAll();
    expect((await states).every(({ allowed }) => allowed)).toBe(true);
    expect(store.asked).toBeLessThanOrEqual(2);
    const question = other.take('key', 0, limit);
    await store.deliverAll();
    expect((await question).remaining).toBeGreaterThanOrEqual(limit - 2 * limit * RATE_LEASE_SHARE);
  });

  it('ask once for a thousandth of a large rate', async () => {
    const store = new SlowStore(new MemoryRateStore(() => 0));
    const limiter = new RateLimiter(store, RATE_LEASE_SHARE, () => 0);
    let allowed = 0;
    for (let i = 0; i < 1_000; i++) {
      const state = limiter.take('key', 1, 1_000_000);
      await store.deliverAll();
      if ((await state).allowed) allowed++;
    }
    expect([allowed, store.asked]).toEqual([1_000, 1]);
  });

  it('return unused addresses without another request', async () => {
    const store = new SlowStore(new MemoryRateStore());
    const limiter = new RateLimiter(store, RATE_LEASE_SHARE);
    const state = limiter.take('key', 1, 1_000_000);
    await store.deliverAll();
    await state;
    await expect.poll(() => store.givenBack, { timeout: 20 * RATE_LEASE_MS }).toBe(999);
  });

  it('reject waiting requests if the store fails, and ask it again later', async () => {
    let fail = true;
    const store = new MemoryRateStore();
    const limiter = new RateLimiter({
      take: async (...demand) => {
        if (fail) throw new Error('the store is gone');
        return store.take(...demand);
      },
      giveBack: () => {},
    });
    const states = await Promise.allSettled([limiter.take('key', 1, 10), limiter.take('key', 1, 10)]);
    expect(states.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    fail = false;
    expect((await limiter.take('key', 1, 10)).allowed).toBe(true);
  });
});
