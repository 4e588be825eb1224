/**
 * The client library: `import { Client } from 'ipatlas/client'`. No dependency and nothing of Node's, so it runs in a
 * browser as well.
 *
 * ```ts
 * const client = new Client('<API_KEY>', { baseUrl: 'https://ip.example' });
 * await client.lookup('8.8.8.8'); // { ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false }
 * ```
 */
import { parseAddress } from '../address/parse.js';
import type { LookupResult } from '../database/database.js';
import { MAX_BATCH } from '../limits.js';

export type { LookupResult } from '../database/database.js';

/** Where `make run` and `ipatlas serve` serve. */
const DEFAULT_BASE_URL = 'http://localhost:8080';

/** Milliseconds until a request is given up. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** What the service says of a text that is no address. */
const INVALID_ADDRESS = 'Invalid IP address';

/** Requests of one `batch` call that are under way at a time: enough to hide the way there and back. */
const BATCH_CONCURRENCY = 4;

export interface ClientOptions {
  /** The service's address, or that of its servers inside the European Union; with or without `/api/` at the end. */
  baseUrl?: string;
  /** Instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /** Milliseconds until a request is given up; default 10 000, 0 for never. */
  timeout?: number;
}

/** What a batch says of a string that is no address. */
export interface InvalidElement {
  error: string;
}

/** What went wrong with a request. Each kind that a program may want to tell apart is a class of its own. */
export class ServiceError extends Error {
  override readonly name: string = 'ServiceError';
  /** The HTTP status; 0 where there was no answer. */
  readonly status: number;

  constructor(message: string, status: number, options?: { cause?: unknown }) {
    super(message, options);
    this.status = status;
  }
}

/** The key is missing (401) or not valid (403). */
export class AuthenticationError extends ServiceError {
  override readonly name = 'AuthenticationError';
}

/** The text is no IP address. */
export class InvalidAddressError extends ServiceError {
  override readonly name = 'InvalidAddressError';
}

/** The key's rate is used up (429). */
export class RateLimitError extends ServiceError {
  override readonly name = 'RateLimitError';
  /** Seconds after which a request may succeed again. */
  readonly retryAfter: number;

  constructor(message: string, retryAfter: number) {
    super(message, 429);
    this.retryAfter = retryAfter;
  }
}

/** No answer: the service cannot be reached, or took longer than the timeout. */
export class ConnectionError extends ServiceError {
  override readonly name = 'ConnectionError';
}

/** `https://eu.example/api/` and `https://eu.example` are the same service. */
function rootUrl(baseUrl: string): string {
  return baseUrl.replace(/\/+$/, '').replace(/\/api$/, '');
}

/** The `error` of an answer, where it has one. */
async function errorSentence(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { error?: unknown };
    if (typeof error === 'string') return error;
  } catch {
    // Not the service's own answer: that of a proxy, perhaps.
  }
  return `the service answered ${response.status}`;
}

async function errorOf(response: Response): Promise<ServiceError> {
  const { status } = response;
  const sentence = await errorSentence(response);
  if (status === 401 || status === 403) return new AuthenticationError(sentence, status);
  if (status === 400 && sentence === INVALID_ADDRESS) return new InvalidAddressError(sentence, status);
  if (status === 429) return new RateLimitError(sentence, Number(response.headers.get('retry-after') ?? 0));
  return new ServiceError(sentence, status);
}

export class Client {
  readonly #apiKey: string;
  readonly #root: string;
  readonly #fetch: typeof globalThis.fetch;
  readonly #timeout: number;

  /**
   * @param apiKey sent as the header `X-API-Key`
   * @throws TypeError where the key is empty
   */
  constructor(apiKey: string, options: ClientOptions = {}) {
    if (typeof apiKey !== 'string' || apiKey === '') throw new TypeError('an API key is needed');
    this.#apiKey = apiKey;
    this.#root = rootUrl(options.baseUrl ?? DEFAULT_BASE_URL);
    // Browsers want `fetch` called as a function of the window.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#timeout = options.timeout ?? DEFAULT_TIMEOUT_MS;
  }

  /**
   * Looks an address up.
   *
   * @param ip IPv4 in dotted decimal, or IPv6
   * @returns the result; nulls where the address has no country
   * @throws InvalidAddressError without a request; AuthenticationError, RateLimitError, ConnectionError, ServiceError
   */
  async lookup(ip: string): Promise<LookupResult> {
    // Checked here because "" and ".." would ask for something else: the own address, or another path.
    if (parseAddress(ip, new Uint32Array(4)) === 0) throw new InvalidAddressError(INVALID_ADDRESS, 400);
    return this.#request<LookupResult>(`/api/lookup/${ip}`);
  }

  /** Looks up the address that the request comes from. Throws as {@link lookup}. */
  async lookupSelf(): Promise<LookupResult> {
    return this.#request<LookupResult>('/api/lookup/');
  }

  /**
   * Looks many addresses up, in requests of up to 1,000.
   *
   * @param ips any strings; each is looked up once
   * @returns an object without prototype: each string is a key, its value the result, or `{ error }` where it is no
   *   address
   * @throws the first error of any of the requests; the others are given up. Otherwise as {@link lookup}
   */
  async batch(ips: Iterable<string>): Promise<Record<string, LookupResult | InvalidElement>> {
    const all = [...new Set(ips)];
    const parts: string[][] = [];
    for (let at = 0; at < all.length; at += MAX_BATCH) parts.push(all.slice(at, at + MAX_BATCH));
    const answers: Record<string, LookupResult | InvalidElement>[] = [];
    const failed = new AbortController();
    const next = parts.entries();
    const work = async (): Promise<void> => {
      for (const [index, part] of next) answers[index] = await this.#batchRequest(part, failed.signal);
    };
    try {
      await Promise.all(Array.from({ length: Math.min(BATCH_CONCURRENCY, parts.length) }, work));
    } catch (error) {
      failed.abort();
      throw error;
    }
    // Without a prototype even "__proto__" is a key like any other.
    return Object.assign(Object.create(null), ...answers);
  }

  #batchRequest(ips: string[], signal: AbortSignal): Promise<Record<string, LookupResult | InvalidElement>> {
    return this.#request('/api/batch', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(ips),
      signal,
    });
  }

  /** @returns the body of a successful answer */
  async #request<Body>(path: string, init: RequestInit = {}): Promise<Body> {
    const response = await this.#send(path, init);
    if (!response.ok) throw await errorOf(response);
    try {
      return (await response.json()) as Body;
    } catch (error) {
      throw new ServiceError('the answer is not JSON, or broke off', response.status, { cause: error });
    }
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    const signals = [init.signal, this.#timeout > 0 ? AbortSignal.timeout(this.#timeout) : undefined];
    try {
      return await this.#fetch(this.#root + path, {
        ...init,
        headers: { ...(init.headers as Record<string, string>), 'X-API-Key': this.#apiKey },
        signal: AbortSignal.any(signals.filter((signal) => signal != null)),
      });
    } catch (error) {
      const late = error instanceof Error && error.name === 'TimeoutError';
      const what = late ? `no answer within ${this.#timeout} ms` : 'the service cannot be reached';
      throw new ConnectionError(what, 0, { cause: error });
    }
  }
}
