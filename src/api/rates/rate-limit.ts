/**
 * The rate limit: addresses a minute for each key, in a window that slides.
 *
 * At no time have more addresses than the rate been counted in the last minute. A window that starts anew every minute
 * would allow twice the rate around its edge, and a token bucket twice the rate in its first minute.
 *
 * Own code, because a batch must count as many addresses as it has, and all of them or none: @fastify/rate-limit counts
 * requests and has no cost; rate-limiter-flexible has a cost, but counts what it refuses and asks a shared store for
 * each request. Here a process draws some addresses from the shared store ahead of time and uses them without asking.
 *
 * All times are of a monotonic clock, so a clock that is set changes nothing. Processes exchange durations only.
 */
import { RATE_LEASE_FREE_SHARE, RATE_LEASE_MS, RATE_STEP_MS, RATE_WINDOW_MS } from '../../limits.js';

/** The answer of a store. */
export interface Grant {
  /** Addresses that were taken out of the window; 0 if fewer than the least are free. */
  granted: number;
  /** Addresses that are still free. */
  remaining: number;
  /** Milliseconds until all addresses are free again if no more are taken. */
  resetIn: number;
  /** Milliseconds until the least may be free; 0 if they are free already. */
  retryIn: number;
  /** Milliseconds until it makes sense to ask again: less than `retryIn` if other processes may give addresses back. */
  askAgainIn: number;
}

/** The count of the addresses of each key that all processes share. */
export interface RateStore {
  /**
   * Takes addresses out of the window of a key, at least `least` or none.
   *
   * @param keyId the key
   * @param limit the key's rate, addresses a minute
   * @param least how many are needed; 0 only asks
   * @param most how many may be taken to be used within {@link RATE_LEASE_MS}; at least `least`
   */
  take(keyId: string, limit: number, least: number, most: number): Grant | Promise<Grant>;

  /** Puts addresses back that were taken and not used. */
  giveBack(keyId: string, count: number): void;
}

/** Addresses counted within one step; they become free together. */
interface Step {
  start: number;
  /** When the last of them was counted. */
  end: number;
  count: number;
}

/** The last minute of one key. */
interface Window {
  /** Oldest first. */
  steps: Step[];
  used: number;
  /** When the last address that was taken ahead is used or given back. */
  aheadUntil: number;
}

/** What was counted for a key in the last minute. */
export interface Counted {
  /** Oldest first: how long ago in milliseconds, and how many addresses. */
  steps: [age: number, addresses: number][];
  /** Milliseconds until the last address that was taken ahead is used or given back. */
  aheadFor: number;
}

/** A store in the memory of this process. */
export class MemoryRateStore implements RateStore {
  readonly #now: () => number;
  /** One for each key that was ever used; keys are few. */
  readonly #windows = new Map<string, Window>();

  /** @param now a monotonic clock in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  take(keyId: string, limit: number, least: number, most: number): Grant {
    const now = this.#now();
    const window = this.#window(keyId, now);
    const free = Math.max(0, limit - window.used);
    const ahead = Math.max(least, Math.min(most, Math.floor(free * RATE_LEASE_FREE_SHARE)));
    const granted = free >= least ? ahead : 0;
    if (granted > 0) count(window, granted, now);
    if (granted > least) window.aheadUntil = now + RATE_LEASE_MS;
    const remaining = free - granted;
    const missing = Math.max(1, least) - free;
    const retryIn = missing > 0 ? freeIn(window, window.used - limit + Math.max(1, least), now) : 0;
    const askAgainIn = window.aheadUntil > now ? Math.min(retryIn, window.aheadUntil - now) : retryIn;
    const last = window.steps.at(-1);
    const resetIn = last === undefined ? 0 : last.end + RATE_WINDOW_MS - now;
    return { granted, remaining, resetIn, retryIn, askAgainIn };
  }

  /**
   * Counts addresses that another store granted.
   *
   * @param ahead whether some of them are not used yet
   */
  count(keyId: string, addresses: number, ahead: boolean): void {
    const now = this.#now();
    const window = this.#window(keyId, now);
    count(window, addresses, now);
    if (ahead) window.aheadUntil = now + RATE_LEASE_MS;
  }

  /** Returns what is counted for a key. */
  counted(keyId: string): Counted {
    const now = this.#now();
    const { steps, aheadUntil } = this.#window(keyId, now);
    return {
      steps: steps.map(({ end, count }) => [Math.floor(now - end), count]),
      aheadFor: Math.max(0, Math.ceil(aheadUntil - now)),
    };
  }

  /** Returns the keys that have counted addresses. */
  countedKeys(): string[] {
    return [...this.#windows.keys()].filter((keyId) => this.#window(keyId, this.#now()).used > 0);
  }

  giveBack(keyId: string, count: number): void {
    const window = this.#window(keyId, this.#now());
    let left = count;
    for (let step = window.steps.at(-1); step !== undefined && left > 0; step = window.steps.at(-1)) {
      const returned = Math.min(left, step.count);
      step.count -= returned;
      window.used -= returned;
      left -= returned;
      if (step.count === 0) window.steps.pop();
    }
  }

  /** The window of a key without the steps that are over. */
  #window(keyId: string, now: number): Window {
    let window = this.#windows.get(keyId);
    if (window === undefined) {
      window = { steps: [], used: 0, aheadUntil: 0 };
      this.#windows.set(keyId, window);
    }
    for (let step = window.steps[0]; step !== undefined && now >= step.end + RATE_WINDOW_MS; step = window.steps[0]) {
      window.used -= step.count;
      window.steps.shift();
    }
    return window;
  }
}

function count(window: Window, addresses: number, now: number): void {
  window.used += addresses;
  const last = window.steps.at(-1);
  if (last !== undefined && now - last.start < RATE_STEP_MS) {
    last.count += addresses;
    last.end = now;
  } else {
    window.steps.push({ start: now, end: now, count: addresses });
  }
}

/** Milliseconds until the given number of used addresses is free again; a minute if more are needed than are used. */
function freeIn(window: Window, addresses: number, now: number): number {
  let freed = 0;
  for (const { end, count } of window.steps) {
    if (freed >= addresses) break;
    freed += count;
    if (freed >= addresses) return end + RATE_WINDOW_MS - now;
  }
  return addresses <= 0 ? 0 : RATE_WINDOW_MS;
}

/** What the limiter answers a request. */
export interface RateState {
  allowed: boolean;
  /** The key's rate, addresses a minute. */
  limit: number;
  /** Addresses that are free, as far as this process knows. */
  remaining: number;
  /** Milliseconds until all addresses are free again if no more are taken. */
  resetIn: number;
  /** Milliseconds until the request may succeed; 0 if it was allowed. */
  retryIn: number;
}

/** A request that waits for the store. */
interface Waiting {
  cost: number;
  limit: number;
  resolve(state: RateState): void;
  reject(error: unknown): void;
}

/** A refusal of the store, so that it need not be asked again too early. */
interface Refusal {
  least: number;
  limit: number;
  retryAt: number;
  askAgainAt: number;
}

/** What this process knows of a key. */
interface KeyState {
  /** Addresses drawn and not used, and until when they may be used. */
  leased: number;
  leasedUntil: number;
  /** What the store had left when it was last asked, and when all would be free. */
  remaining: number;
  resetAt: number;
  refusal: Refusal | undefined;
  /** Requests that wait, in their order. While there are any, the store is being asked, once. */
  waiting: Waiting[];
  /** Gives back what is not used in time. */
  timer: NodeJS.Timeout | undefined;
}

export class RateLimiter {
  readonly #store: RateStore;
  readonly #share: number;
  readonly #now: () => number;
  readonly #keys = new Map<string, KeyState>();

  /**
   * @param store the shared count
   * @param share of a key's rate that is drawn at once. 0 asks the store for each request, which is right for a store in
   *   this process
   * @param now a monotonic clock in milliseconds
   */
  constructor(store: RateStore, share = 0, now: () => number = () => performance.now()) {
    this.#store = store;
    this.#share = share;
    this.#now = now;
  }

  /**
   * Counts addresses, all of them or none.
   *
   * @param cost number of addresses; 0 counts none, and is allowed if one more would be
   * @param limit the key's rate, addresses a minute
   * @returns a promise only if the store answers with one
   */
  take(keyId: string, cost: number, limit: number): RateState | Promise<RateState> {
    const key = this.#key(keyId);
    if (key.waiting.length === 0) {
      const now = this.#now();
      const local = this.#answerLocally(keyId, key, cost, limit, now);
      if (local !== undefined) return local;
      const least = this.#least(key, cost);
      const grant = this.#store.take(keyId, limit, least, this.#most(key, cost, limit, least));
      if (!(grant instanceof Promise)) return this.#answer(keyId, key, cost, limit, least, grant, now);
      const answer = this.#wait(key, cost, limit);
      void this.#serveWaiting(keyId, key, grant, least);
      return answer;
    }
    // One request to the store at a time: requests that arrive meanwhile would each draw a share of the rate.
    return this.#wait(key, cost, limit);
  }

  #wait(key: KeyState, cost: number, limit: number): Promise<RateState> {
    return new Promise((resolve, reject) => key.waiting.push({ cost, limit, resolve, reject }));
  }

  /** Answers the requests that wait, in their order. Asks the store as often as needed, for one request at a time. */
  async #serveWaiting(keyId: string, key: KeyState, firstGrant: Promise<Grant>, firstLeast: number): Promise<void> {
    let asked: { grant: Promise<Grant> | Grant; least: number } | undefined = { grant: firstGrant, least: firstLeast };
    for (let next = key.waiting[0]; next !== undefined; next = key.waiting[0]) {
      const { cost, limit, resolve, reject } = next;
      try {
        if (asked === undefined) {
          const local = this.#answerLocally(keyId, key, cost, limit, this.#now());
          if (local !== undefined) {
            key.waiting.shift();
            resolve(local);
            continue;
          }
          const least = this.#least(key, cost);
          const all = key.waiting.reduce((sum, request) => sum + request.cost, 0);
          asked = { grant: this.#store.take(keyId, limit, least, this.#most(key, all, limit, least)), least };
        }
        const { grant, least } = asked;
        asked = undefined;
        const answer = await grant;
        const state = this.#answer(keyId, key, cost, limit, least, answer, this.#now());
        key.waiting.shift();
        resolve(state);
      } catch (error) {
        asked = undefined;
        key.waiting.shift();
        reject(error);
      }
    }
  }

  /** How many addresses a request needs from the store. */
  #least(key: KeyState, cost: number): number {
    return cost === 0 ? 0 : cost - key.leased;
  }

  /** How many addresses to ask for at most: what all requests need that wait, and a share ahead. */
  #most(key: KeyState, all: number, limit: number, least: number): number {
    return this.#share === 0 || least === 0 ? least : Math.max(all - key.leased, Math.floor(limit * this.#share));
  }

  /** The answer to a request that the store was asked for. */
  #answer(
    keyId: string,
    key: KeyState,
    cost: number,
    limit: number,
    least: number,
    grant: Grant,
    now: number,
  ): RateState {
    key.leased += grant.granted;
    key.leasedUntil = now + RATE_LEASE_MS;
    key.remaining = grant.remaining;
    key.resetAt = now + grant.resetIn;
    const allowed = cost === 0 ? grant.remaining > 0 : grant.granted >= least;
    key.refusal = allowed
      ? undefined
      : { least: Math.max(1, least), limit, retryAt: now + grant.retryIn, askAgainAt: now + grant.askAgainIn };
    if (allowed) key.leased -= cost;
    if (key.leased > 0) key.timer ??= this.#giveBackLater(keyId, key);
    return this.#state(key, allowed, limit, now);
  }

  /** The answer to a request if the store need not be asked. */
  #answerLocally(keyId: string, key: KeyState, cost: number, limit: number, now: number): RateState | undefined {
    if (key.leased > 0 && now >= key.leasedUntil) this.#giveBack(keyId, key);
    const needed = Math.max(1, cost);
    if (key.leased >= needed) {
      key.leased -= cost;
      return this.#state(key, true, limit, now);
    }
    const { refusal } = key;
    if (refusal === undefined || refusal.limit !== limit || now >= refusal.askAgainAt) return undefined;
    return needed - key.leased >= refusal.least ? this.#state(key, false, limit, now) : undefined;
  }

  #state(key: KeyState, allowed: boolean, limit: number, now: number): RateState {
    return {
      allowed,
      limit,
      remaining: key.leased + key.remaining,
      resetIn: Math.max(0, key.resetAt - now),
      retryIn: allowed || key.refusal === undefined ? 0 : Math.max(0, key.refusal.retryAt - now),
    };
  }

  #giveBackLater(keyId: string, key: KeyState): NodeJS.Timeout {
    return setTimeout(() => {
      key.timer = undefined;
      if (key.leased === 0) return;
      // While the store is asked, what is leased is part of a request that waits.
      if (this.#now() >= key.leasedUntil && key.waiting.length === 0) this.#giveBack(keyId, key);
      else key.timer = this.#giveBackLater(keyId, key);
    }, RATE_LEASE_MS).unref();
  }

  #giveBack(keyId: string, key: KeyState): void {
    this.#store.giveBack(keyId, key.leased);
    key.remaining += key.leased;
    key.leased = 0;
  }

  #key(keyId: string): KeyState {
    let key = this.#keys.get(keyId);
    if (key === undefined) {
      key = {
        leased: 0,
        leasedUntil: 0,
        remaining: 0,
        resetAt: 0,
        refusal: undefined,
        waiting: [],
        timer: undefined,
      };
      this.#keys.set(keyId, key);
    }
    return key;
  }
}
