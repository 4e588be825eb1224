/**
 * Short-lived keys for the page, so that visitors can look up addresses without a key of their own.
 *
 * Such a key is not stored. It carries its end, a hash of the visitor's network, and the host of the page, with a message
 * authentication code. All worker processes of a server know the secret, which is made anew at each start.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { networkOf } from '../../address/network.js';
import { PAGE_KEY_MS, PAGE_RATE } from '../../limits.js';
import type { ActiveKey } from '../keys/key-cache.js';
import { RateLimiter } from '../rates/rate-limit.js';

const PREFIX = 'page_';
export const SECRET_BYTES = 32;

/** The layout of a key after its prefix: end in Unix seconds, hash of the network, code, host. */
const END_BYTES = 4;
const NETWORK_BYTES = 8;
const CODE_BYTES = 16;
const CODE_AT = END_BYTES + NETWORK_BYTES;
const HOST_AT = CODE_AT + CODE_BYTES;

/** A host name or address and a port. */
const HOST = /^[\w.:[\]-]{1,255}$/;

export interface PageKey {
  key: string;
  /** Addresses a minute for all keys of the visitor's network together. */
  rate: number;
  /** Seconds until the key expires. */
  expires_in: number;
}

export interface PageKeysOptions {
  secret: Buffer;
  /** Addresses a minute for a key without a rate of its own; 0 for no limit. */
  defaultRate: number;
  /** Origins of the page besides that of its host, such as that of a proxy that changes the host. */
  origins?: readonly string[];
  /** The time in milliseconds since 1970. */
  now?: () => number;
}

export class PageKeys {
  readonly #secret: Buffer;
  readonly #rate: number;
  readonly #origins: readonly string[];
  readonly #now: () => number;
  /** Counts the addresses of visitors in this process. */
  readonly #limiter = new RateLimiter();

  constructor({ secret, defaultRate, origins = [], now = Date.now }: PageKeysOptions) {
    this.#secret = secret;
    this.#rate = defaultRate === 0 ? PAGE_RATE : Math.min(PAGE_RATE, defaultRate);
    this.#origins = origins;
    this.#now = now;
  }

  /**
   * Returns a hash of a visitor's network, hexadecimal: the IPv4 address, or the first 64 bits of the IPv6 address, which
   * a visitor can choose freely within its network.
   *
   * @param caller the visitor's address
   */
  #networkOf(caller: string): string {
    return createHmac('sha256', this.#secret)
      .update(networkOf(caller, 64))
      .digest('hex')
      .slice(0, 2 * NETWORK_BYTES);
  }

  /** The visitor as a key, for lookups that this process makes for it. */
  visitor(caller: string): ActiveKey {
    return this.#active(this.#networkOf(caller), this.#origins);
  }

  /**
   * Makes a key.
   *
   * @param caller the visitor's address
   * @param host the header `Host` of the page
   */
  issue(caller: string, host: string | undefined): PageKey {
    const head = Buffer.alloc(CODE_AT);
    head.writeUInt32BE(Math.floor((this.#now() + PAGE_KEY_MS) / 1000));
    head.write(this.#networkOf(caller), END_BYTES, 'hex');
    const hostBytes = Buffer.from(host !== undefined && HOST.test(host) ? host.toLowerCase() : '', 'latin1');
    const key = PREFIX + Buffer.concat([head, this.#code(head, hostBytes), hostBytes]).toString('base64url');
    return { key, rate: this.#rate, expires_in: PAGE_KEY_MS / 1000 };
  }

  /**
   * Returns the key if it is valid and was made for the caller's network, so that a stolen key of
   * a visitor is of no use elsewhere. Visitors may also ask about their own address from another network: that of the other family.
   *
   * @param callerOf returns the address of the caller
   * @param isOwn whether the request is about the caller's own address
   */
  find(presented: string, callerOf: () => string, isOwn: boolean): ActiveKey | undefined {
    if (!presented.startsWith(PREFIX)) return undefined;
    const bytes = Buffer.from(presented.slice(PREFIX.length), 'base64url');
    if (bytes.length < HOST_AT) return undefined;
    const head = bytes.subarray(0, CODE_AT);
    const hostBytes = bytes.subarray(HOST_AT);
    if (!timingSafeEqual(bytes.subarray(CODE_AT, HOST_AT), this.#code(head, hostBytes))) return undefined;
    if (head.readUInt32BE() * 1000 <= this.#now()) return undefined;
    const network = this.#networkOf(callerOf());
    if (network !== head.toString('hex', END_BYTES) && !isOwn) return undefined;
    return this.#active(network, this.#originsOf(hostBytes.toString('latin1')));
  }

  /** Returns whether an origin is that of the page. @param host the header `Host` of the request */
  isOrigin(origin: string, host = ''): boolean {
    return this.#originsOf(host.toLowerCase()).includes(origin);
  }

  #originsOf(host: string): string[] {
    // The scheme is not known: a proxy may have decrypted the request.
    return host === '' ? [...this.#origins] : [`https://${host}`, `http://${host}`, ...this.#origins];
  }

  #active(network: string, origins: readonly string[]): ActiveKey {
    return { id: network, rate: this.#rate, origins, selfIssued: false, limiter: this.#limiter };
  }

  #code(head: Buffer, host: Buffer): Buffer {
    return createHmac('sha256', this.#secret).update(head).update(host).digest().subarray(0, CODE_BYTES);
  }
}
