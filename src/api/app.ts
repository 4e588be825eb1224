/**
 * The lookup API as a Fastify app, listening nowhere yet.
 *
 * Every answer is made at once, in one turn of the event loop: hooks and handlers take callbacks, and a request reads
 * the release once. So a release can be swapped and closed between any two requests.
 */
import type { RequestListener } from 'node:http';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { MAX_BODY_BYTES, MAX_HEADER_BYTES } from '../limits.js';
import { Admission } from './admission.js';
import { refuse, sendJson } from './answers.js';
import { BodyError, parseJsonBody, wireErrorOf } from './body.js';
import type { TrustedProxies } from './caller.js';
import type { KeyFinder } from './key-ring.js';
import { type AccessLog, errorFields, type Log } from './log.js';
import { type RequestMetrics, UNMATCHED_ROUTE } from './metrics.js';
import { type BaseUrls, openApiDocument } from './openapi.js';
import { decodableTarget, LOOKUP_ROUTE, methodsOf, needsKey, pathOf } from './paths.js';
import type { RateLimiter } from './rate-limit.js';
import type { ServedRelease } from './served-release.js';
import { withShortWay } from './short-way.js';
import { definition, wireSchema } from './wire-schema.js';

/** `leaving`: serves as ever, but asks to be sent nothing more; `closing`: each answer ends its connection. */
export type Phase = 'serving' | 'leaving' | 'closing';

export interface AppDeps {
  /** The release that answers now, or undefined while none is loaded. */
  release(): ServedRelease | undefined;
  keys: KeyFinder;
  limiter: RateLimiter;
  /** Addresses a minute for a key that has no rate of its own; 0 for no limit. */
  defaultRate: number;
  proxies: TrustedProxies;
  log: Log;
  /** How far the server is from its end; by default `serving`. */
  phase?(): Phase;
  metrics?: RequestMetrics | undefined;
  accessLog?: AccessLog | undefined;
  /** Goes out as `X-Served-By`. */
  region?: string | undefined;
  /** Where clients find the service, for the OpenAPI document. */
  baseUrls?: BaseUrls | undefined;
}

/** What a browser may send and read (Fetch standard, "CORS protocol"). Constant, so no plugin works it out per request. */
const CORS_METHODS = 'GET, HEAD, POST';
const CORS_REQUEST_HEADERS = 'X-API-Key, Content-Type';
const CORS_RESPONSE_HEADERS =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Database-Release, X-Database-Age, X-Served-By';
const CORS_MAX_AGE_S = '86400';

function preflight(reply: FastifyReply, allow: string | undefined): void {
  if (allow !== undefined) reply.header('allow', allow);
  reply.header('access-control-allow-methods', CORS_METHODS);
  reply.header('access-control-allow-headers', CORS_REQUEST_HEADERS);
  reply.header('access-control-max-age', CORS_MAX_AGE_S);
  reply.code(204).send();
}

function createFastify(): FastifyInstance {
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    // A path as long as the headers may be is an address that is not valid, not an error of its own.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES },
    rewriteUrl: (request) => decodableTarget(request.url!),
    // A number in a batch is a mistake, not a string.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
    frameworkErrors: (_error, _request, reply) => refuse(reply as unknown as FastifyReply, 'bad_request'),
    genReqId: () => '',
  });
  app.addSchema(wireSchema());
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseJsonBody);
  return app;
}

/**
 * Builds the app.
 *
 * @param deps all it needs; it reads no configuration, and no file but the schemas
 */
export function buildApp(deps: AppDeps): FastifyInstance {
  return assemble(deps, new Admission(deps.keys, deps.limiter, deps.defaultRate));
}

/** Builds the app and the listener of a server in front of it. */
export async function buildListener(deps: AppDeps): Promise<{ app: FastifyInstance; listener: RequestListener }> {
  const admission = new Admission(deps.keys, deps.limiter, deps.defaultRate);
  const app = assemble(deps, admission);
  await app.ready();
  return { app, listener: withShortWay(app, deps, admission) };
}

function assemble(deps: AppDeps, admission: Admission): FastifyInstance {
  const app = createFastify();
  addErrors(app, deps, admission);
  addObservers(app, deps);
  addLookups(app, deps, admission);
  addBatch(app, deps, admission);
  addOperations(app, deps);
  return app;
}

/** What every request gets, and what is said to those that no route answers. */
function addErrors(app: FastifyInstance, { region, phase, log }: AppDeps, admission: Admission): void {
  function unrouted(request: FastifyRequest, reply: FastifyReply): void {
    const path = pathOf(request.raw.url!);
    const methods = methodsOf(path);
    if (request.method === 'OPTIONS') {
      preflight(reply, methods);
      return;
    }
    if (needsKey(path) && admission.authenticate(request, reply) === undefined) return;
    if (methods !== undefined) reply.header('allow', methods);
    refuse(reply, methods === undefined ? 'not_found' : 'method_not_allowed');
  }

  app.addHook('onRequest', (request, reply, done) => {
    reply.header('access-control-allow-origin', '*');
    // Only a browser's script needs to be told which headers it may read.
    if (request.headers.origin !== undefined) reply.header('access-control-expose-headers', CORS_RESPONSE_HEADERS);
    if (region !== undefined) reply.header('x-served-by', region);
    if (phase?.() === 'closing') reply.header('connection', 'close');
    // Answered here, before Fastify would read a body that nobody wants.
    if (request.is404) unrouted(request, reply);
    else done();
  });
  app.setNotFoundHandler(unrouted);
  app.setErrorHandler((error, request, reply) => {
    const wire = wireErrorOf(error, request.body);
    if (wire === 'internal') log.error(errorFields(error), 'a request failed');
    // Fastify ends the connection where a body could not be parsed; but such a body was read whole.
    if (error instanceof BodyError && phase?.() !== 'closing') reply.removeHeader('connection');
    refuse(reply, wire);
  });
}

/** Metrics and access log, where wanted. */
function addObservers(app: FastifyInstance, { metrics, accessLog }: AppDeps): void {
  if (metrics === undefined && accessLog === undefined) return;
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? UNMATCHED_ROUTE;
    const milliseconds = reply.elapsedTime;
    metrics?.request(route, reply.statusCode, milliseconds / 1000);
    accessLog?.write({
      method: request.method,
      route,
      status: reply.statusCode,
      duration_ms: milliseconds,
    });
    done();
  });
}

function addLookups(app: FastifyInstance, { release, proxies, metrics }: AppDeps, admission: Admission): void {
  const schema = { response: { 200: definition('LookupResult'), '4xx': definition('Error') } };
  const options = { schema, onRequest: admission.one };

  function answer(reply: FastifyReply, ip: string): void {
    const served = release();
    if (served === undefined) {
      refuse(reply, 'no_database');
      return;
    }
    reply.header('x-database-release', served.id).header('x-database-age', served.age());
    const result = served.lookup(ip);
    metrics?.lookup(result);
    if (result === undefined) refuse(reply, 'invalid_address');
    else sendJson(reply, served.json(result));
  }

  function answerSelf(request: FastifyRequest, reply: FastifyReply): void {
    // No peer: it has gone, and nobody will read the answer.
    const peer = request.raw.socket.remoteAddress ?? '';
    answer(reply, proxies.caller(peer, request.headers['x-forwarded-for'] as string | undefined));
  }

  app.get<{ Params: { ip: string } }>(LOOKUP_ROUTE, options, (request, reply) => answer(reply, request.params.ip));
  app.get('/api/lookup', options, answerSelf);
  app.get('/api/lookup/', options, answerSelf);
}

function addBatch(app: FastifyInstance, { release, metrics }: AppDeps, admission: Admission): void {
  const schema = {
    body: definition('BatchRequest'),
    response: { 200: definition('BatchResponse'), '4xx': definition('Error') },
  };
  app.post<{ Body: string[] }>('/api/batch', { schema, onRequest: admission.some }, (request, reply) => {
    admission.many(request as FastifyRequest, request.body.length, reply, () => {
      const served = release();
      if (served === undefined) {
        refuse(reply, 'no_database');
        return;
      }
      reply.header('x-database-release', served.id).header('x-database-age', served.age());
      const { json, outcomes } = served.batch(request.body);
      metrics?.lookups(outcomes);
      sendJson(reply, json);
    });
  });
}

/** Routes for whoever runs the service, without a key. */
function addOperations(app: FastifyInstance, { release, phase, baseUrls }: AppDeps): void {
  app.get('/healthz', (_request, reply) => sendJson(reply, '{"status":"ok"}'));
  app.get('/readyz', (_request, reply) => {
    const served = release();
    if ((phase?.() ?? 'serving') !== 'serving') refuse(reply, 'stopping');
    else if (served === undefined) refuse(reply, 'no_database');
    else sendJson(reply, JSON.stringify({ status: 'ready', release: served.id }));
  });
  const document = JSON.stringify(openApiDocument(baseUrls ?? {}));
  app.get('/openapi.json', (_request, reply) => sendJson(reply, document));
}
