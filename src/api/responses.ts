/**
 * Responses. Every response of a route, error or not, is written by one function.
 *
 * It hands `response.writeHead` a flat array of headers and writes the body with one `end`, after `reply.hijack()`: the
 * ways that Node and Fastify document for a response that is ready. `reply.header` and `reply.send` copy and inspect
 * each header and the body again, which takes as long as the lookup.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { WIRE_ERRORS, type WireError } from '../errors.js';

export const JSON_TYPE = 'application/json; charset=utf-8';

/** The body of each error. */
export const ERROR_BODIES = Object.fromEntries(
  Object.entries(WIRE_ERRORS).map(([name, { message }]) => [name, JSON.stringify({ error: message })]),
) as Record<WireError, string>;

/** What a browser may send and read (Fetch standard, "CORS protocol"). */
const CORS_METHODS = 'GET, HEAD, POST';
const CORS_REQUEST_HEADERS = 'X-API-Key, Content-Type';
const CORS_RESPONSE_HEADERS =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Database-Release, X-Database-Age, X-Served-By';
const CORS_MAX_AGE_S = '86400';

/** Header names and values in turn, as `response.writeHead` takes them. */
export type Headers = readonly string[];

const NO_HEADERS: Headers = [];

export interface ResponderOptions {
  /** Sent as `X-Served-By`. */
  region?: string | undefined;
  /** Returns whether each response must end its connection. */
  isClosing?: (() => boolean) | undefined;
}

/** Writes responses with the headers that all of them have. */
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
   * Sends JSON.
   *
   * @param json as text, or in UTF-8
   * @param headers besides those of every response
   * @throws TypeError if a header has an invalid character; nothing is sent then
   */
  json(
    request: FastifyRequest,
    reply: FastifyReply,
    status: number,
    json: string | Buffer,
    headers = NO_HEADERS,
  ): void {
    const all = this.#headers(request, headers);
    all.push('content-type', JSON_TYPE, 'content-length', String(Buffer.byteLength(json)));
    write(reply, status, all, request.method === 'HEAD' ? '' : json);
  }

  /**
   * Sends a document of the page. Scripts of other origins may not read it, because it shows the visitor's address.
   *
   * @param type value of `Content-Type`
   */
  document(
    request: FastifyRequest,
    reply: FastifyReply,
    status: number,
    type: string,
    body: string,
    headers: Headers,
  ): void {
    const all = this.#served.concat(headers);
    if (this.#isClosing()) all.push('connection', 'close');
    all.push('content-type', type, 'content-length', String(Buffer.byteLength(body)));
    write(reply, status, all, request.method === 'HEAD' ? '' : body);
  }

  /** Sends an error. */
  error(request: FastifyRequest, reply: FastifyReply, error: WireError, headers = NO_HEADERS): void {
    this.json(request, reply, WIRE_ERRORS[error].status, ERROR_BODIES[error], headers);
  }

  /**
   * Answers OPTIONS, which includes the preflight requests of browsers.
   *
   * @param allowed value of `Allow`, if the path has a route
   */
  options(request: FastifyRequest, reply: FastifyReply, allowed: string | undefined): void {
    const all = this.#headers(request, allowed === undefined ? NO_HEADERS : ['allow', allowed]);
    all.push('access-control-allow-methods', CORS_METHODS);
    all.push('access-control-allow-headers', CORS_REQUEST_HEADERS);
    all.push('access-control-max-age', CORS_MAX_AGE_S);
    write(reply, 204, all, '');
  }

  #headers(request: FastifyRequest, more: Headers): string[] {
    const common = request.headers.origin === undefined ? this.#common : this.#commonForBrowsers;
    const all = [...common, ...more];
    if (this.#isClosing()) all.push('connection', 'close');
    return all;
  }
}

function write(reply: FastifyReply, status: number, headers: string[], body: string | Buffer): void {
  // Throws before anything is sent if a header is invalid; Fastify's error handling still applies then.
  reply.raw.writeHead(status, headers);
  reply.hijack();
  reply.raw.end(body);
}
