/**
 * The rate limit: addresses a minute for each key, in windows of a minute that begin with the first address counted.
 *
 * Our own, because a batch must count as many addresses as it holds, and all of them or none: @fastify/rate-limit counts
 * requests and has no cost; rate-limiter-flexible has one, but counts what it refuses and asks a shared store once a
 * request. Here the limiter draws a share of the rate from its store ahead of time and spends it without asking.
 */
import { type RATE_LEASE_SHARE, RATE_WINDOW_MS } from '../limits.js';

/** What a store grants. */
export interface Grant {
  /** Addresses that may now be spent until `resetAt`; 0 where the store has fewer than the least asked for. */
  granted: number;
  /** Addresses that the store has left. */
  remaining: number;
  /** When the window ends, in milliseconds since 1970. */
  resetAt: number;
}

/** The common count of a key's addresses. In memory here; a shared one (of several machines) would do the same. */
export interface RateStore {
  /**
   * Takes addresses out of a key's window.
   *
   * @param keyId the key
   * @param limit the key's rate, addresses a minute
   * @param least how many are needed; 0 only asks what is left
   * @param most how many may be taken, at least `least`
   * @param callback called once, at once or later
   */
  lease(keyId: string, limit: number, least: number, most: number, callback: (grant: Grant) => void): void;
}

/** A store in the memory of this process. */
export class MemoryRateStore implements RateStore {
  readonly #now: () => number;
  /** By key; as many as there are keys, so nothing need be cleared away. */
  readonly #windows = new Map<string, { used: number; resetAt: number }>();

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  lease(keyId: string, limit: number, least: number, most: number, callback: (grant: Grant) => void): void {
    const now = this.#now();
    let window = this.#windows.get(keyId);
    if (window === undefined || now >= window.resetAt) {
      window = { used: 0, resetAt: now + RATE_WINDOW_MS };
      this.#windows.set(keyId, window);
    }
    const free = Math.max(0, limit - window.used);
    const granted = free >= least ? Math.min(free, most) : 0;
    window.used += granted;
    callback({ granted, remaining: free - granted, resetAt: window.resetAt });
  }
}

/** What the limiter says to a request. */
export interface RateState {
  allowed: boolean;
  /** The key's rate, addresses a minute. */
  limit: number;
  /** Addresses left in the window, as far as this process knows. */
  remaining: number;
  /** When the window ends, in milliseconds since 1970. */
  resetAt: number;
}

interface Lease {
  /** Addresses drawn and not spent. */
  left: number;
  /** What the store had left when last asked. */
  elsewhere: number;
  resetAt: number;
}

export class RateLimiter {
  readonly #store: RateStore;
  readonly #share: number;
  readonly #now: () => number;
  readonly #leases = new Map<string, Lease>();

  /**
   * @param store the common count
   * @param share of a key's rate that is drawn at once. 0 asks every time; more saves asking, and lets other processes
   *   find the rate used up while up to that share of it lies here unspent. A rate whose share is below two addresses is
   *   counted exactly, and so is any where this process alone uses the store.
   */
  constructor(store: RateStore, share: 0 | typeof RATE_LEASE_SHARE = 0, now: () => number = Date.now) {
    this.#store = store;
    this.#share = share;
    this.#now = now;
  }

  /**
   * Counts addresses, all of them or none.
   *
   * @param cost number of addresses; 0 counts none and is allowed as long as one more would be
   * @param limit the key's rate, addresses a minute
   * @param callback called once, at once where the store need not be asked or answers at once
   */
  take(keyId: string, cost: number, limit: number, callback: (state: RateState) => void): void {
    const lease = this.#leaseOf(keyId);
    const needed = Math.max(1, cost);
    if (lease.left >= needed) {
      lease.left -= cost;
      callback({ allowed: true, limit, remaining: lease.left + lease.elsewhere, resetAt: lease.resetAt });
      return;
    }
    const least = needed - lease.left;
    this.#store.lease(keyId, limit, least, Math.max(least, Math.floor(limit * this.#share)), (grant) => {
      // The window that was asked about may have ended meanwhile: the lease of the new one counts.
      const current = this.#leaseOf(keyId);
      current.left += grant.granted;
      current.elsewhere = grant.remaining;
      current.resetAt = grant.resetAt;
      if (current.left >= needed) {
        current.left -= cost;
        callback({ allowed: true, limit, remaining: current.left + current.elsewhere, resetAt: current.resetAt });
      } else if (grant.granted > 0) {
        // Another request spent of the same lease while this one waited.
        this.take(keyId, cost, limit, callback);
      } else {
        callback({ allowed: false, limit, remaining: current.left + current.elsewhere, resetAt: current.resetAt });
      }
    });
  }

  #leaseOf(keyId: string): Lease {
    let lease = this.#leases.get(keyId);
    if (lease === undefined) {
      lease = { left: 0, elsewhere: 0, resetAt: 0 };
      this.#leases.set(keyId, lease);
    } else if (this.#now() >= lease.resetAt) {
      lease.left = 0;
      lease.elsewhere = 0;
    }
    return lease;
  }
}
