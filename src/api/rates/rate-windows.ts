/**
 * Counts of addresses in windows of a minute. The window of a key begins with its first address, and the next one with the
 * first address after its end: so a count is one number, and nothing is known of keys that are not used.
 *
 * All times are of a monotonic clock, so a clock that is set changes nothing. Processes exchange durations only.
 */
import { RATE_WINDOW_MS } from '../../limits.js';

/** The answer of a store. */
export interface Reservation {
  /** Addresses that are counted for the caller now: at least as many as it needs, or none. */
  reserved: number;
  /** Addresses that are counted in the window, these included. */
  used: number;
  /** Milliseconds until the window ends; 0 if none has begun. */
  resetIn: number;
}

/** The counts of the keys that several processes share. */
export interface RateStore {
  /**
   * Counts addresses in the window of a key.
   *
   * @param keyId the key
   * @param limit the key's rate, addresses a minute
   * @param needed how many are needed, all or none; 0 only asks
   * @param upTo how many may be reserved for later in the same window; at least `needed`
   */
  reserve(keyId: string, limit: number, needed: number, upTo: number): Reservation | Promise<Reservation>;
}

interface Window {
  used: number;
  endsAt: number;
}

/** Deletes what has ended. */
export function forgetEnded(windows: Map<string, { endsAt: number }>, now: number): void {
  for (const [key, { endsAt }] of windows) if (endsAt <= now) windows.delete(key);
}

/** The counts in the memory of this process. */
export class RateWindows implements RateStore {
  readonly #now: () => number;
  readonly #windows = new Map<string, Window>();

  /** @param now a monotonic clock in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    setInterval(() => forgetEnded(this.#windows, this.#now()), RATE_WINDOW_MS).unref();
  }

  reserve(keyId: string, limit: number, needed: number, upTo: number): Reservation {
    const now = this.#now();
    const { used, endsAt } = this.#window(keyId, now);
    const free = Math.max(0, limit - used);
    const reserved = needed <= free ? Math.max(needed, Math.min(upTo, free)) : 0;
    this.count(keyId, reserved, endsAt - now);
    return { reserved, used: used + reserved, resetIn: used + reserved === 0 ? 0 : endsAt - now };
  }

  /**
   * Counts addresses that another store granted.
   *
   * @param resetIn milliseconds until their window ends
   */
  count(keyId: string, addresses: number, resetIn: number): void {
    if (addresses === 0) return;
    const now = this.#now();
    this.#windows.set(keyId, { used: this.#window(keyId, now).used + addresses, endsAt: now + resetIn });
  }

  /** The window of a key: the one that has not ended, or one that begins now. */
  #window(keyId: string, now: number): Window {
    const window = this.#windows.get(keyId);
    return window !== undefined && now < window.endsAt ? window : { used: 0, endsAt: now + RATE_WINDOW_MS };
  }
}
