/**
 * The rate limit: addresses a minute for each key.
 *
 * Own code, because a batch must count as many addresses as it has, and all of them or none: @fastify/rate-limit counts
 * requests and has no cost; rate-limiter-flexible has a cost, but counts what it refuses and asks a shared store for
 * each request. Here a process reserves some addresses of a window and uses them without asking.
 */
import { RATE_WINDOW_MS } from '../../limits.js';
import { forgetEnded, type RateStore, RateWindows, type Reservation } from './rate-windows.js';

/** What the limiter answers a request. */
export interface RateState {
  allowed: boolean;
  /** The key's rate, addresses a minute. */
  limit: number;
  /** Addresses that are neither used nor reserved by any process: it falls only, whichever process answers. */
  remaining: number;
  /** Milliseconds until the window ends and all addresses are free again. */
  resetIn: number;
}

/** What this process knows of the window of a key. */
interface KeyState {
  /** Addresses that are counted for this process and not used. */
  reserved: number;
  /** Addresses that were counted when the store was last asked, by all processes. More may be now, never fewer. */
  used: number;
  endsAt: number;
  /** While the store is being asked. */
  asking: Promise<void> | undefined;
  /** Addresses of the requests that wait for this. */
  waiting: number;
}

export class RateLimiter {
  readonly #store: RateStore;
  readonly #share: number;
  readonly #now: () => number;
  readonly #keys = new Map<string, KeyState>();

  /**
   * @param store the count; by default in this process
   * @param share of a key's rate that is reserved at once. 0 asks the store for each request, which is right for a store in
   *   this process
   * @param now a monotonic clock in milliseconds
   */
  constructor(store?: RateStore, share = 0, now: () => number = () => performance.now()) {
    this.#store = store ?? new RateWindows(now);
    this.#share = share;
    this.#now = now;
    setInterval(() => forgetEnded(this.#keys, now()), RATE_WINDOW_MS).unref();
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
    if (key.asking === undefined) {
      const state = this.#answer(key, cost, limit);
      if (state !== undefined) return state;
      const asked = this.#ask(keyId, key, cost, limit);
      if (asked === undefined) return this.#answerAfter(key, cost, limit);
      key.asking = asked;
    }
    return this.#takeInTurn(keyId, key, cost, limit);
  }

  /** Waits while the store is asked: requests that arrive meanwhile would each reserve a share of the rate. */
  async #takeInTurn(keyId: string, key: KeyState, cost: number, limit: number): Promise<RateState> {
    key.waiting += cost;
    try {
      for (;;) {
        // Requests continue in the order in which they began to wait.
        while (key.asking !== undefined) await key.asking;
        const state = this.#answer(key, cost, limit);
        if (state !== undefined) return state;
        key.asking = this.#ask(keyId, key, cost, limit);
        if (cost > 0) continue;
        await key.asking;
        return this.#answerAfter(key, cost, limit);
      }
    } finally {
      key.waiting -= cost;
    }
  }

  /** Returns the answer if the store need not be asked. */
  #answer(key: KeyState, cost: number, limit: number): RateState | undefined {
    if (this.#now() >= key.endsAt) {
      key.reserved = 0;
      key.used = 0;
    }
    const isReserved = key.reserved >= Math.max(1, cost);
    if (isReserved) key.reserved -= cost;
    // The count of a window only grows: what did not fit does not fit later.
    return isReserved || Math.max(1, cost) > this.#free(key, limit) ? this.#state(key, isReserved, limit) : undefined;
  }

  /** Returns the answer of a store that was just asked. */
  #answerAfter(key: KeyState, cost: number, limit: number): RateState {
    return this.#answer(key, cost, limit) ?? this.#state(key, cost === 0, limit);
  }

  #ask(keyId: string, key: KeyState, cost: number, limit: number): Promise<void> | undefined {
    const needed = Math.max(0, cost - key.reserved);
    const all = Math.max(needed, key.waiting - key.reserved, Math.floor(limit * this.#share));
    const askedAt = this.#now();
    const note = ({ reserved, used, resetIn }: Reservation): void => {
      key.reserved += reserved;
      key.used = used;
      key.endsAt = askedAt + resetIn;
    };
    const reservation = this.#store.reserve(keyId, limit, needed, cost === 0 ? 0 : all);
    if (!(reservation instanceof Promise)) {
      note(reservation);
      return undefined;
    }
    return reservation.then(note).finally(() => {
      key.asking = undefined;
    });
  }

  /** Takes note of what another process reserved in the window of a key. */
  note(keyId: string, used: number): void {
    const key = this.#keys.get(keyId);
    // The count of a window only grows; that of the next one counts after the end of this one.
    if (key !== undefined && this.#now() < key.endsAt) key.used = Math.max(key.used, used);
  }

  #free(key: KeyState, limit: number): number {
    return Math.max(0, limit - key.used + key.reserved);
  }

  #state(key: KeyState, allowed: boolean, limit: number): RateState {
    return { allowed, limit, remaining: Math.max(0, limit - key.used), resetIn: Math.max(0, key.endsAt - this.#now()) };
  }

  #key(keyId: string): KeyState {
    let key = this.#keys.get(keyId);
    if (key === undefined) {
      key = { reserved: 0, used: 0, endsAt: 0, asking: undefined, waiting: 0 };
      this.#keys.set(keyId, key);
    }
    return key;
  }
}
