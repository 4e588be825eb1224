/** The rate limit: windows of a minute, in one process and over several. */
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RateLimiter, type RateState } from '../../src/api/rates/rate-limit.js';
import { forgetEnded, type RateStore, RateWindows, type Reservation } from '../../src/api/rates/rate-windows.js';
import { RATE_RESERVED_SHARE, RATE_WINDOW_MS } from '../../src/limits.js';

/** Returns the answer of a limiter whose store answers synchronously. */
function take(limiter: RateLimiter, cost: number, limit: number, key = 'key'): RateState {
  const state = limiter.take(key, cost, limit);
  if (state instanceof Promise) throw new Error('the limiter waits');
  return state;
}

describe('the limiter of one process', () => {
  it('agrees with a model that lists all addresses', () => {
    const pause = fc.constantFrom(0, 1, RATE_WINDOW_MS / 2, RATE_WINDOW_MS - 1, RATE_WINDOW_MS);
    const step = fc.record({ cost: fc.nat(12), pause });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.array(step, { maxLength: 40 }), (limit, steps) => {
        let now = 1_000_000;
        const limiter = new RateLimiter(undefined, 0, () => now);
        const taken: { at: number; cost: number }[] = [];
        for (const { cost, pause } of steps) {
          now += pause;
          // A window begins with the first address after the one before.
          let start = Number.NEGATIVE_INFINITY;
          for (const { at } of taken) if (at >= start + RATE_WINDOW_MS) start = at;
          const isLive = now < start + RATE_WINDOW_MS;
          const used = isLive ? taken.filter(({ at }) => at >= start).reduce((sum, { cost }) => sum + cost, 0) : 0;
          const isAllowed = used + Math.max(1, cost) <= limit;
          if (isAllowed && cost > 0) taken.push({ at: now, cost });
          const left = limit - used - (isAllowed ? cost : 0);
          const begins = isLive ? start : isAllowed && cost > 0 ? now : Number.NaN;
          const resetIn = Number.isNaN(begins) ? 0 : begins + RATE_WINDOW_MS - now;
          expect(take(limiter, cost, limit)).toEqual({ allowed: isAllowed, limit, remaining: left, resetIn });
        }
      }),
    );
  });

  it('counts each key separately, and applies a changed rate', () => {
    const limiter = new RateLimiter();
    expect(take(limiter, 3, 3, 'a').allowed).toBe(true);
    expect(take(limiter, 3, 3, 'b').allowed).toBe(true);
    expect(take(limiter, 1, 3, 'a').allowed).toBe(false);
    expect(take(limiter, 1, 5, 'a')).toMatchObject({ allowed: true, limit: 5, remaining: 1 });
    expect(take(limiter, 1, 2, 'a')).toMatchObject({ allowed: false, remaining: 0 });
  });

  it.each([
    ['set back', -3_600_000],
    ['set forward', 3_600_000],
  ])('does not depend on the clock of the machine: %s', (_, by) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { now } = Date;
    try {
      const limiter = new RateLimiter();
      expect(take(limiter, 10, 10)).toMatchObject({ allowed: true, remaining: 0 });
      Date.now = () => now() + by;
      expect(take(limiter, 1, 10)).toMatchObject({ allowed: false, resetIn: RATE_WINDOW_MS });
      vi.advanceTimersByTime(RATE_WINDOW_MS);
      expect(take(limiter, 5, 10)).toMatchObject({ allowed: true, remaining: 5 });
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

  constructor(store: RateStore) {
    this.#store = store;
  }

  reserve(keyId: string, limit: number, needed: number, upTo: number): Promise<Reservation> {
    this.asked++;
    return new Promise((resolve) => {
      const reservation = this.#store.reserve(keyId, limit, needed, upTo) as Reservation;
      this.waiting.push(() => resolve(reservation));
    });
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

describe('limiters of several processes with one store', () => {
  it('allow at most the rate, and all but what they have reserved', async () => {
    const request = fc.record({ worker: fc.nat(2), cost: fc.nat(40), deliver: fc.nat(5) });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 20_000 }),
        fc.array(request, { maxLength: 40 }),
        async (limit, requests) => {
          const store = new SlowStore(new RateWindows(() => 0));
          const workers = [0, 1, 2].map(() => new RateLimiter(store, RATE_RESERVED_SHARE, () => 0));
          let allowed = 0;
          let answers = 0;
          const takeOf = (worker: number, cost: number) =>
            Promise.resolve(workers[worker]!.take('key', cost, limit)).then((state) => {
              answers++;
              if (state.allowed) allowed += cost;
              return state;
            });
          for (const { worker, cost, deliver } of requests) {
            void takeOf(worker, cost);
            for (let i = 0; i < deliver; i++) await store.deliver(i);
          }
          await store.deliverAll();
          expect(answers).toBe(requests.length);
          expect(allowed).toBeLessThanOrEqual(limit);
          // What is left after each worker was refused one address.
          let isOver = [false, false, false];
          for (let i = 0; i <= limit && isOver.includes(false); i++) {
            isOver = [];
            for (const worker of [0, 1, 2]) {
              const state = takeOf(worker, Math.min(100, Math.max(1, limit - allowed)));
              await store.deliverAll();
              isOver.push(!(await state).allowed);
            }
          }
          for (const worker of [0, 1, 2]) {
            for (;;) {
              const state = takeOf(worker, 1);
              await store.deliverAll();
              if (!(await state).allowed) break;
            }
          }
          expect(allowed).toBe(limit);
        },
      ),
      { numRuns: 30 },
    );
  });

  it('ask once for all requests that wait, and rarely for those after them', async () => {
    const store = new SlowStore(new RateWindows(() => 0));
    const limiter = new RateLimiter(store, RATE_RESERVED_SHARE, () => 0);
    const states = Array.from({ length: 1_000 }, () => limiter.take('key', 1, 100_000));
    await store.deliverAll();
    expect((await Promise.all(states)).every(({ allowed }) => allowed)).toBe(true);
    // The first asks for its share of 100, the second for all that wait then.
    expect(store.asked).toBe(2);
  });

  it('answer the requests of a key in their order, and a batch that does not fit does not stop those after it', async () => {
    const store = new SlowStore(new RateWindows(() => 0));
    const limiter = new RateLimiter(store, RATE_RESERVED_SHARE, () => 0);
    const order: string[] = [];
    const ask = async (cost: number) => {
      const { allowed } = await limiter.take('key', cost, 100);
      order.push(`${cost} ${allowed}`);
    };
    const all = [60, 50, 40, 1].map(ask);
    await store.deliverAll();
    await Promise.all(all);
    expect(order).toEqual(['60 true', '50 false', '40 true', '1 false']);
  });

  it('refuse without asking until the window ends', async () => {
    let now = 0;
    const windows = new RateWindows(() => now);
    let asked = 0;
    const store: RateStore = {
      reserve: async (...demand) => {
        asked++;
        return windows.reserve(...demand);
      },
    };
    const limiter = new RateLimiter(store, RATE_RESERVED_SHARE, () => now);
    expect((await limiter.take('key', 10, 10)).allowed).toBe(true);
    for (let i = 0; i < 50; i++) {
      now += 1_000;
      const state = await limiter.take('key', 1 + (i % 3), 10);
      expect(state).toEqual({ allowed: false, limit: 10, remaining: 0, resetIn: RATE_WINDOW_MS - now });
    }
    expect(asked).toBe(1);
    now = RATE_WINDOW_MS;
    expect((await limiter.take('key', 10, 10)).allowed).toBe(true);
  });

  it('pass the error of a store on to each request, and ask it again', async () => {
    let isBroken = true;
    const windows = new RateWindows();
    const store: RateStore = {
      reserve: async (...demand) => {
        if (isBroken) throw new Error('broken');
        return windows.reserve(...demand);
      },
    };
    const limiter = new RateLimiter(store);
    await expect(limiter.take('key', 1, 10)).rejects.toThrow('broken');
    isBroken = false;
    expect((await limiter.take('key', 1, 10)).allowed).toBe(true);
  });
});

describe('counts', () => {
  afterEach(() => void vi.useRealTimers());

  it('are forgotten when their window is over', () => {
    const windows = new Map([0, 1, 2].map((endsAt) => [`key ${endsAt}`, { endsAt }]));
    forgetEnded(windows, 1);
    expect([...windows.keys()]).toEqual(['key 2']);
  });

  it('are looked through in each window, even if nobody comes', () => {
    vi.useFakeTimers();
    const now = vi.fn(() => 0);
    new RateWindows(now);
    vi.advanceTimersByTime(2 * RATE_WINDOW_MS);
    expect(now).toHaveBeenCalledTimes(2);
  });
});
