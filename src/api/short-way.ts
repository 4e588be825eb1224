/**
 * A short way for the request that the service gets most: `GET /api/lookup/<ip>` with the key in the header.
 *
 * Node's server alone takes most of a request's time; what Fastify adds for routes, hooks and replies is several times
 * what a look-up takes. So a look-up that will be answered with 200 is answered here, and whatever is out of the ordinary
 * goes the app's way: an address that is not valid or percent-encoded, a query, a browser's request, a key that is
 * missing or refused, a rate used up. The answers are those of the app; a test compares them.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { LookupResult } from '../database/database.js';
import { type Admission, resetSeconds } from './admission.js';
import { JSON_TYPE } from './answers.js';
import type { AppDeps } from './app.js';
import { KEY_HEADER } from './authenticate.js';
import { LOOKUP_ROUTE } from './paths.js';
import type { RateState } from './rate-limit.js';
import type { ServedRelease } from './served-release.js';

const HEAD = LOOKUP_ROUTE.slice(0, LOOKUP_ROUTE.indexOf(':'));
const ORIGIN_HEADER = 'origin';

/**
 * The key of a request that carries exactly one, in the header, and comes from no browser; else undefined.
 *
 * Reads the headers as they came. Node makes an object of them when asked, for more than the look-up costs.
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

/** @returns a listener that answers the ordinary look-up itself and leaves everything else to the app */
export function withShortWay(app: FastifyInstance, deps: AppDeps, admission: Admission): RequestListener {
  const { region, phase, metrics, accessLog } = deps;
  const observed = metrics !== undefined || accessLog !== undefined;

  function respond(
    response: ServerResponse,
    release: ServedRelease,
    result: LookupResult,
    state: RateState | undefined,
  ): void {
    const headers = [
      'access-control-allow-origin',
      '*',
      'x-database-release',
      release.id,
      'x-database-age',
      release.age(),
      'content-type',
      JSON_TYPE,
      'content-length',
      String(release.jsonBytes(result)),
    ];
    if (region !== undefined) headers.push('x-served-by', region);
    if (state !== undefined) {
      headers.push('x-ratelimit-limit', String(state.limit));
      headers.push('x-ratelimit-remaining', String(state.remaining));
      headers.push('x-ratelimit-reset', String(resetSeconds(state)));
    }
    response.writeHead(200, headers);
    response.end(release.json(result));
  }

  function observe(startedAt: number): void {
    const milliseconds = performance.now() - startedAt;
    metrics?.request(LOOKUP_ROUTE, 200, milliseconds / 1000);
    accessLog?.write({ method: 'GET', route: LOOKUP_ROUTE, status: 200, duration_ms: milliseconds });
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    const startedAt = observed ? performance.now() : 0;
    const url = request.url!;
    const release = deps.release();
    // What parses as an address holds no slash, percent sign or question mark: the whole target is understood then.
    const result =
      request.method === 'GET' && url.startsWith(HEAD) && release !== undefined && phase?.() !== 'closing'
        ? release.lookup(url.slice(HEAD.length))
        : undefined;
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
