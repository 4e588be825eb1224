/**
 * The client library: `import { Client } from 'ipatlas/client'`. It has no dependencies and uses nothing of Node,
 * so it also runs in a browser.
 *
 * ```ts
 * const client = new Client('<API_KEY>', { baseUrl: 'https://ip.example' });
 * await client.lookup('8.8.8.8'); // { ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false }
 * ```
 */
import { parseAddress } from '../address/parse.js';
import type { LookupResult } from '../database/results.js';
import { MAX_BATCH } from '../limits.js';

export type { LookupResult } from '../database/results.js';

/** The URL that `make run` and `ipatlas serve` listen on. */
const DEFAULT_BASE_URL = 'http://localhost:8080';

/** Milliseconds after which a request is aborted. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** The message of the service for a text that is not an address. */
const INVALID_ADDRESS = 'Invalid IP address';

/** Requests of one `batch` call that are sent at a time: enough to hide the round trip. */
const BATCH_CONCURRENCY = 4;

export interface ClientOptions {
  /** The URL of the service, or of its servers inside the European Union, with or without `/api/` at the end. */
  baseUrl?: string;
  /** Used instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /** Milliseconds after which a request is aborted; default 10,000, 0 for never. */
  timeout?: number;
}

/** Members that a result can have besides the four. */
export interface IncludedMembers {
  /** Number of the autonomous system that announces the address, or null. */
  asn?: number | null;
  /** Its name, or null. */
  as_name?: string | null;
  /** The largest CIDR block around the address with the same result, or null. */
  network?: string | null;
  /** `AF`, `AN`, `AS`, `EU`, `NA`, `OC`, `SA`, or null. */
  continent?: string | null;
  /** Whether the country is in the European Economic Area. */
  is_eea?: boolean;
  /** Whether the address is served from many places; null if the release does not tell. */
  anycast?: boolean | null;
  /** What operators' lists say of the address; `none` if no list has it, null if a list is missing. */
  kind?: 'cloud' | 'relay' | 'tor' | 'none' | null;
  /** Whose list has the address, such as `aws`; or null. */
  operator?: string | null;
  /** A label, if the server has labels. */
  [label: string]: string | number | boolean | null | undefined;
}

export interface LookupOptions {
  /** The members that results have besides the four. */
  include?: readonly (
    | 'asn'
    | 'as_name'
    | 'network'
    | 'continent'
    | 'is_eea'
    | 'anycast'
    | 'kind'
    | 'operator'
    | (string & {})
  )[];
  /** A day (UTC), `YYYY-MM-DD`, whose answers are wanted; by default those of now. */
  at?: string | undefined;
  /** The language of the countries' names, a tag such as `de` (BCP 47); default English. */
  lang?: string | undefined;
}

/** A result with the members that were asked for. */
export type IncludingResult = LookupResult & IncludedMembers;

/** The value in a batch result for a string that is not an address. */
export interface InvalidElement {
  error: string;
}

/** An error of a request. Each kind that a program may want to handle is a separate class. */
export class ServiceError extends Error {
  override readonly name: string = 'ServiceError';
  /** The HTTP status; 0 if there was no response. */
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

/** The text is not an IP address. */
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

/** No response: the service cannot be reached, or took longer than the timeout. */
export class ConnectionError extends ServiceError {
  override readonly name = 'ConnectionError';
}

/** Returns the base URL without `/api`: `https://eu.example/api/` and `https://eu.example` are the same service. */
function rootUrl(baseUrl: string): string {
  return baseUrl.replace(/\/+$/, '').replace(/\/api$/, '');
}

/** Returns whether a request or the reading of its body ended by the timeout. */
function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

/** Returns the `error` of a response body, if it has one. */
async function errorSentence(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { error?: unknown };
    if (typeof error === 'string') return error;
  } catch {
    // Not a response of the service, but perhaps of a proxy.
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

function queryOf({ include = [], at, lang }: LookupOptions): string {
  const given = { include: include.length === 0 ? undefined : include.join(), at, lang };
  const parameters = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`;
}

export class Client {
  readonly #apiKey: string;
  readonly #root: string;
  readonly #fetch: typeof globalThis.fetch;
  readonly #timeout: number;

  /**
   * @param apiKey sent as the header `X-API-Key`
   * @throws TypeError if the key is empty
   */
  constructor(apiKey: string, options: ClientOptions = {}) {
    if (typeof apiKey !== 'string' || apiKey === '') throw new TypeError('an API key is needed');
    this.#apiKey = apiKey;
    this.#root = rootUrl(options.baseUrl ?? DEFAULT_BASE_URL);
    // Browsers require `fetch` to be called as a function of the window.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#timeout = options.timeout ?? DEFAULT_TIMEOUT_MS;
  }

  /**
   * Looks up an address.
   *
   * @param ip IPv4 in dotted decimal, or IPv6
   * @param options which further members the result has: `{ include: ['asn', 'as_name'] }`
   * @returns the result; with nulls if the address has no country
   * @throws InvalidAddressError without a request; AuthenticationError, RateLimitError, ConnectionError, ServiceError
   */
  async lookup(ip: string, options: LookupOptions = {}): Promise<IncludingResult> {
    // Checked here because "" and ".." would request something else: the caller's address, or another path.
    if (parseAddress(ip, new Uint32Array(4)) === 0) throw new InvalidAddressError(INVALID_ADDRESS, 400);
    return this.#request(`/api/lookup/${ip}${queryOf(options)}`);
  }

  /** Looks up the address that the request comes from. Throws as {@link lookup}. */
  async lookupSelf(options: LookupOptions = {}): Promise<IncludingResult> {
    return this.#request(`/api/lookup/${queryOf(options)}`);
  }

  /**
   * Looks up many addresses, in requests of up to 1,000.
   *
   * @param ips any strings; each is looked up once
   * @param options as for {@link lookup}
   * @returns an object without prototype: each string is a key, its value the result, or `{ error }` if it is not
   *   an address
   * @throws the first error of any of the requests; the others are aborted. Otherwise as {@link lookup}
   */
  async batch(
    ips: Iterable<string>,
    options: LookupOptions = {},
  ): Promise<Record<string, IncludingResult | InvalidElement>> {
    const all = [...new Set(ips)];
    const parts: string[][] = [];
    for (let at = 0; at < all.length; at += MAX_BATCH) parts.push(all.slice(at, at + MAX_BATCH));
    const path = `/api/batch${queryOf(options)}`;
    const answers: Record<string, IncludingResult | InvalidElement>[] = [];
    const failed = new AbortController();
    const next = parts.entries();
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, signal: failed.signal };
    const work = async (): Promise<void> => {
      for (const [index, part] of next) {
        answers[index] = await this.#request(path, { ...init, body: JSON.stringify(part) });
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(BATCH_CONCURRENCY, parts.length) }, work));
    } catch (error) {
      failed.abort();
      throw error;
    }
    // Without a prototype, even "__proto__" is an ordinary key.
    return Object.assign(Object.create(null), ...answers);
  }

  /** Sends a request; returns the body of a successful response. */
  async #request<Body>(path: string, init: RequestInit = {}): Promise<Body> {
    const response = await this.#send(path, init);
    if (!response.ok) throw await errorOf(response);
    try {
      return (await response.json()) as Body;
    } catch (error) {
      if (isTimeout(error)) throw this.#timeoutError(error);
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
      if (isTimeout(error)) throw this.#timeoutError(error);
      throw new ConnectionError(`${this.#shown} cannot be reached`, 0, { cause: error });
    }
  }

  /** The base URL, without the user and password that it may have. */
  get #shown(): string {
    return this.#root.replace(/\/\/[^/]*@/, '//');
  }

  #timeoutError(cause: unknown): ConnectionError {
    return new ConnectionError(`no answer of ${this.#shown} within ${this.#timeout} ms`, 0, { cause });
  }
}
