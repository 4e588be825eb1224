/**
 * Responses. Every response of a route, error or not, is written by one function.
 *
 * It hands `response.writeHead` a flat array of headers, after which `reply.hijack()` tells Fastify that the response is
 * sent here. `reply.header` and `reply.send` copy and inspect each header and the body again, which takes as long as the
 * lookup.
 *
 * The body is written by `write`, between `cork` and `uncork`, and not by `end`: Node then passes headers and body to the
 * kernel as one string. `end` would add an empty string, and Node would copy both to memory of their own for a vectored
 * write, which costs a sixth of all processor time of a lookup.
 */
import type { FastifyReply } from 'fastify';
import { WIRE_ERRORS, type WireError } from '../errors.js';

export const JSON_TYPE = 'application/json; charset=utf-8';

/** The body of each error. */
export const ERROR_BODIES = Object.fromEntries(
  Object.entries(WIRE_ERRORS).map(([name, { message }]) => [name, JSON.stringify({ error: message })]),
) as Record<WireError, string>;

/** What a browser may send and read (Fetch standard, "CORS protocol"). */
const CORS_RESPONSE_HEADERS =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Database-Release, X-Database-Age, X-Served-By, ETag';

/** Header names and values in turn, as `response.writeHead` takes them. */
export type Headers = readonly string[];

const NO_HEADERS: Headers = [];
const CLOSING: Headers = ['connection', 'close'];
const PREFLIGHT: Headers = [
  ...['access-control-allow-methods', 'GET, HEAD, POST'],
  ...['access-control-allow-headers', 'X-API-Key, Content-Type'],
  ...['access-control-max-age', '86400'],
];

/**
 * For all JSON: an answer is only for the caller whose key and address it belongs to, and it differs by `Origin`. A shared
 * cache with a default lifetime would give it to others (RFC 9111 §4.2.2).
 */
const PRIVATE: Headers = ['cache-control', 'private, no-store', 'vary', 'Origin'];
const PRIVATE_EMPTY: Headers = [...PRIVATE, 'content-length', '0'];
const PRIVATE_JSON: Headers = [...PRIVATE, 'content-type', JSON_TYPE, 'content-length'];

export interface ResponderOptions {
  /** Sent as `X-Served-By`. */
  region?: string | undefined;
  /** Returns whether each response must end its connection. */
  isClosing?: (() => boolean) | undefined;
}

/** Writes responses with the headers that all of them have. Its methods return what a handler returns that has answered. */
export class Responder {
  readonly #served: Headers;
  readonly #common: Headers;
  readonly #commonForBrowsers: Headers;
  readonly #isClosing: () => boolean;

  constructor({ region, isClosing = () => false }: ResponderOptions) {
    const origin = ['access-control-allow-origin', '*'];
    const served = region === undefined ? [] : ['x-served-by', region];
    this.#served = served;
    this.#common = [...origin, ...served];
    // Only a script in a browser needs to be told which headers it may read.
    this.#commonForBrowsers = [...origin, 'access-control-expose-headers', CORS_RESPONSE_HEADERS, ...served];
    this.#isClosing = isClosing;
  }

  /**
   * Sends JSON, which no cache may keep.
   *
   * @param headers besides those of every response
   * @param encoding `latin1` if each character of `json` is a byte of its UTF-8
   * @throws TypeError if a header has an invalid character; nothing is sent then
   */
  json(
    reply: FastifyReply,
    status: number,
    json: string,
    headers = NO_HEADERS,
    encoding: 'utf8' | 'latin1' = 'utf8',
  ): undefined {
    const all = this.#headers(reply, headers, PRIVATE_JSON);
    all.push(String(Buffer.byteLength(json, encoding)));
    write(reply, status, all, reply.request.method === 'HEAD' ? '' : json, encoding);
  }

  /**
   * Sends something of the page. Scripts of other origins may not read it, because it shows the visitor's address.
   *
   * @param type value of `Content-Type`
   */
  document(reply: FastifyReply, status: number, type: string, body: string, headers: Headers): undefined {
    const all = this.#withClosing(this.#served, headers);
    all.push('content-type', type, 'content-length', String(Buffer.byteLength(body)));
    write(reply, status, all, reply.request.method === 'HEAD' ? '' : body);
  }

  /** Sends a file that any page may read, with the same headers to all: shared caches may keep it. */
  bytes(reply: FastifyReply, bytes: Uint8Array, headers: Headers): undefined {
    const all = this.#withClosing(this.#commonForBrowsers, headers);
    all.push('content-type', 'application/octet-stream', 'content-length', String(bytes.length));
    reply.raw.writeHead(200, all);
    reply.hijack();
    reply.raw.end(reply.request.method === 'HEAD' ? undefined : bytes);
  }

  /** Sends a response without a body, which no cache may keep. */
  empty(reply: FastifyReply, status: number, headers: Headers): undefined {
    write(reply, status, this.#headers(reply, headers, PRIVATE_EMPTY), '');
  }

  /** Tells a client that it has the file of {@link bytes} already. */
  notModified(reply: FastifyReply, headers: Headers): undefined {
    write(reply, 304, this.#withClosing(this.#commonForBrowsers, headers), '');
  }

  /** Sends an error. @param more to say, which must not have anything of the request */
  error(reply: FastifyReply, error: WireError, headers = NO_HEADERS, more?: string): undefined {
    const { status, message } = WIRE_ERRORS[error];
    const body = more === undefined ? ERROR_BODIES[error] : JSON.stringify({ error: `${message}; ${more}` });
    this.json(reply, status, body, headers);
  }

  /**
   * Answers OPTIONS, which includes the preflight requests of browsers.
   *
   * @param allowed value of `Allow`, if the path has a route
   */
  options(reply: FastifyReply, allowed: string | undefined): undefined {
    const headers = allowed === undefined ? NO_HEADERS : ['allow', allowed];
    write(reply, 204, this.#headers(reply, headers, PREFLIGHT), '');
  }

  #headers({ request }: FastifyReply, more: Headers, last: Headers): string[] {
    const common = request.headers.origin === undefined ? this.#common : this.#commonForBrowsers;
    return this.#withClosing(common, more, last);
  }

  #withClosing(common: Headers, more: Headers, last = NO_HEADERS): string[] {
    return [...common, ...more, ...(this.#isClosing() ? CLOSING : NO_HEADERS), ...last];
  }
}

/** Sends a response; the head of this file says why in this way. */
function write(
  reply: FastifyReply,
  status: number,
  headers: string[],
  body: string,
  encoding: 'utf8' | 'latin1' = 'utf8',
): void {
  const response = reply.raw;
  // Throws before anything is sent if a header is invalid; Fastify's error handling still applies then.
  response.writeHead(status, headers);
  reply.hijack();
  // Node drops what is written to a connection that is closed, and would then take the response for sent.
  if (body === '' || response.socket?.writable !== true) {
    response.end(body, encoding);
    return;
  }
  response.cork();
  response.write(body, encoding);
  response.uncork();
  response.end();
}
