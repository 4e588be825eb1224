/**
 * A short way for the request that the service gets most: `GET /api/lookup/<ip>` with the key in the header.
 *
 * Node's server alone takes most of a request's time; what Fastify adds for routes, hooks and replies is several times
 * what a look-up takes. So a look-up that will be answered with 200 is answered here, and whatever is out of the ordinary
 * goes the app's way: an address that is not valid or percent-encoded, a query, a browser's request, a key that is
 * missing or refused, a rate used up, a connection that ends. The answers are those of the app; a test compares them.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { LookupResult } from '../database/database.js';
import { KEEP_ALIVE_TIMEOUT_MS } from '../limits.js';
import { type Admission, resetSeconds } from './admission.js';
import { JSON_TYPE } from './answers.js';
import type { AppDeps } from './app.js';
import { KEY_HEADER } from './authenticate.js';
import { LOOKUP_ROUTE } from './paths.js';
import type { RateState } from './rate-limit.js';
import type { ServedRelease } from './served-release.js';
import { headerLine, sendWhole, takesHead } from './whole-answer.js';

const HEAD = LOOKUP_ROUTE.slice(0, LOOKUP_ROUTE.indexOf(':'));
const ORIGIN_HEADER = 'origin';

/**
 * The key of a request that carries exactly one, in the header, and comes from no browser; else undefined.
 *
 * Reads the headers as they came: in Node's object of them, two of a name are one.
 */
function plainKey(rawHeaders: readonly string[]): string | undefined {
  let key: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === KEY_HEADER.length && name.toLowerCase() === KEY_HEADER) {
      if (key !== undefined) return undefined;
      key = rawHeaders[i + 1]!;
    } else if (name.length === ORIGIN_HEADER.length && name.toLowerCase() === ORIGIN_HEADER) {
      return undefined;
    }
  }
  return key === '' ? undefined : key;
}

/** The lines about a key's rate; numbers, so nothing in them needs a check. */
function rateLines({ limit, remaining, resetAt }: RateState): string {
  return `x-ratelimit-limit: ${limit}\r\nx-ratelimit-remaining: ${remaining}\r\nx-ratelimit-reset: ${resetSeconds(resetAt)}\r\n`;
}

/** The heads of answers, in the order in which the app has their lines. What stays the same for a second is made once. */
class Heads {
  readonly #first: string;
  #release: ServedRelease | undefined;
  #second = -1;
  /** The lines about the release, and those about the connection. */
  #served = '';
  #connection = '';

  constructor(region: string | undefined) {
    const servedBy = region === undefined ? '' : headerLine('x-served-by', region);
    this.#first = `HTTP/1.1 200 OK\r\n${headerLine('access-control-allow-origin', '*')}${servedBy}`;
  }

  /** @param length of the body in bytes */
  head(release: ServedRelease, state: RateState | undefined, length: number): string {
    const second = Math.floor(Date.now() / 1000);
    if (release !== this.#release || second !== this.#second) this.#renew(release, second);
    const rate = state === undefined ? '' : rateLines(state);
    return `${this.#first}${rate}${this.#served}content-length: ${length}\r\n${this.#connection}\r\n`;
  }

  #renew(release: ServedRelease, second: number): void {
    this.#release = release;
    this.#second = second;
    this.#served =
      headerLine('x-database-release', release.id) +
      headerLine('x-database-age', release.age()) +
      headerLine('content-type', JSON_TYPE);
    this.#connection =
      headerLine('Date', new Date(second * 1000).toUTCString()) +
      headerLine('Connection', 'keep-alive') +
      headerLine('Keep-Alive', `timeout=${KEEP_ALIVE_TIMEOUT_MS / 1000}`);
  }
}

/** @returns a listener that answers the ordinary look-up itself and leaves everything else to the app */
export function withShortWay(app: FastifyInstance, deps: AppDeps, admission: Admission): RequestListener {
  if (!takesHead()) return app.routing;
  const { phase, metrics, accessLog } = deps;
  const heads = new Heads(deps.region);
  const observed = metrics !== undefined || accessLog !== undefined;

  function respond(
    response: ServerResponse,
    release: ServedRelease,
    result: LookupResult,
    state: RateState | undefined,
  ): void {
    const body = release.jsonCharacters(result);
    sendWhole(response, heads.head(release, state, body.length), body);
  }

  function observe(startedAt: number): void {
    const milliseconds = performance.now() - startedAt;
    metrics?.request(LOOKUP_ROUTE, 200, milliseconds / 1000);
    accessLog?.write({ method: 'GET', route: LOOKUP_ROUTE, status: 200, duration_ms: milliseconds });
  }

  /** Looks up the address of a request that is no more than that. */
  function lookUp(request: IncomingMessage, response: ServerResponse, release: ServedRelease | undefined) {
    const url = request.url!;
    if (request.method !== 'GET' || !url.startsWith(HEAD) || release === undefined) return undefined;
    if (!response.shouldKeepAlive || phase?.() === 'closing') return undefined;
    try {
      // What parses as an address holds no slash, percent sign or question mark: the whole target is understood then.
      return release.lookup(url.slice(HEAD.length));
    } catch {
      // The app will meet the same fault; it logs it and answers 500.
      return undefined;
    }
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    const startedAt = observed ? performance.now() : 0;
    const release = deps.release();
    const result = lookUp(request, response, release);
    const presented = result === undefined ? undefined : plainKey(request.rawHeaders);
    const key = presented === undefined ? undefined : admission.find(presented);
    if (key === undefined) {
      app.routing(request, response);
      return;
    }
    admission.count(key, 1, (state) => {
      // What was refused was not counted; the app will be refused too, and says so.
      if (state !== undefined && !state.allowed) {
        app.routing(request, response);
        return;
      }
      respond(response, release!, result!, state);
      if (!observed) return;
      metrics?.lookup(result);
      observe(startedAt);
    });
  };
}
