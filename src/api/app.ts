/**
 * The lookup API as a Fastify app that does not listen yet.
 *
 * A request takes one path: Fastify's router, the key, the rate limit, the lookup, the {@link Responder}. It reads the
 * release once and is answered in the same turn of the event loop, so a release can be replaced and closed between any
 * two requests.
 */
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { MAX_BODY_BYTES, MAX_HEADER_BYTES } from '../limits.js';
import { BodyError, bodyIsExpected, isEncoded, parseJsonBody, wireErrorOf } from './body.js';
import type { TrustedProxies } from './caller.js';
import { hold, release } from './http-server.js';
import { type KeyParameter, keyParameter, originError, presentedKey } from './keys/auth.js';
import { type ActiveKey, type KeyFinder, KeysUnavailableError } from './keys/key-cache.js';
import type { KeyDesk, KeyOutcome } from './keys/sign-up.js';
import { type AccessLog, errorFields, type Log } from './log.js';
import { type RequestMetrics, UNMATCHED_ROUTE } from './metrics.js';
import { attributionOf, type BaseUrls, definition, openApiDocument, serverUrl, wireSchema } from './openapi.js';
import { askedAddress, Page, type PageSettings, requestedUrl, wantsHtml } from './page/page.js';
import type { PageKeys } from './page/page-keys.js';
import type { RateLimiter, RateState } from './rates/rate-limit.js';
import type { ServedRelease } from './releases/served-release.js';
import { type Headers, Responder } from './responses.js';
import { allowedMethods, decodableTarget, needsKey, pathOf, ROUTES, type RouteName } from './routes.js';

/** `predrain`: answers as usual, but `/readyz` fails; `closing`: each response ends its connection. */
export type Phase = 'serving' | 'predrain' | 'closing';

export interface AppDeps {
  /** The current release, or undefined if none is loaded. */
  release(): ServedRelease | undefined;
  /** The keys that are stored; the server is not ready while they cannot be read. */
  keys: KeyFinder & { readonly isReadable: boolean };
  limiter: RateLimiter;
  /** Addresses a minute for a key without a rate of its own; 0 for no limit. */
  defaultRate: number;
  proxies: TrustedProxies;
  log: Log;
  /** How far the shutdown is; by default `serving`. */
  phase?(): Phase;
  metrics?: RequestMetrics | undefined;
  accessLog?: AccessLog | undefined;
  /** Sent as `X-Served-By`. */
  region?: string | undefined;
  /** Whether this is a server of the EU base address. */
  eu?: boolean | undefined;
  /** Where clients find the service, for the OpenAPI document and the page. */
  baseUrls?: BaseUrls | undefined;
  pageKeys: PageKeys;
  page: PageSettings;
  /** Makes and revokes keys of people who sign up. */
  keyDesk: KeyDesk;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The key of a request to a route that needs one; null before it is checked. */
    apiKey: ActiveKey | null;
  }
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => undefined | Promise<undefined>;

/**
 * Builds the app.
 *
 * @param deps everything it uses; it reads no configuration, and no files other than the schemas
 */
export function buildApp(deps: AppDeps): FastifyInstance {
  const { region, phase = () => 'serving' } = deps;
  const responder = new Responder({ region, isClosing: () => phase() === 'closing' });
  const app = createFastify(responder);
  app.decorateRequest('apiKey', null);
  addErrors(app, deps, responder);
  addObservers(app, deps);
  const page = new Page({ ...deps.page, baseUrls: deps.baseUrls ?? {} }, responder);
  page.addFiles(app, () => phase() === 'closing');
  addRoutes(app, deps, responder, page);
  return app;
}

function createFastify(responder: Responder): FastifyInstance {
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: {
      // A path that is as long as the headers may be is an address that is not valid, not an error of its own.
      maxParamLength: MAX_HEADER_BYTES,
      querystringParser: (query) => ({ apikey: keyParameter(query) }),
    },
    rewriteUrl: (request) => decodableTarget(request.url!),
    // A number in a batch is an error; it must not become a string.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
    frameworkErrors: (_error, request, reply) =>
      responder.error(request as FastifyRequest, reply as unknown as FastifyReply, 'bad_request'),
    genReqId: () => '',
  });
  app.addSchema(wireSchema());
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseJsonBody);
  return app;
}

/** A request target with the query parameter `eu`. */
const ASKS_FOR_EU = /[?&]eu(?:[=&#]|$)/;

/** Checks the key of a request; returns undefined if the request was refused. */
function authenticate(
  request: FastifyRequest,
  reply: FastifyReply,
  { keys, pageKeys }: AppDeps,
  responder: Responder,
): ActiveKey | undefined {
  const { apikey } = request.query as { apikey: KeyParameter };
  const presented = presentedKey(request.headers, apikey);
  if ('error' in presented) {
    responder.error(request, reply, presented.error);
    return undefined;
  }
  const key = keys.find(presented.key) ?? pageKeys.find(presented.key);
  const error = key === undefined ? 'key_invalid' : originError(key, request.headers.origin);
  if (error === undefined) return key;
  responder.error(request, reply, error);
  return undefined;
}

/** Answers requests that no route matches, and errors. */
function addErrors(app: FastifyInstance, deps: AppDeps, responder: Responder): void {
  function unmatched(request: FastifyRequest, reply: FastifyReply): void {
    const path = pathOf(request.raw.url!);
    const allowed = allowedMethods(path);
    if (request.method === 'OPTIONS') {
      responder.options(request, reply, allowed);
      return;
    }
    if (needsKey(path) && authenticate(request, reply, deps, responder) === undefined) return;
    if (allowed === undefined) responder.error(request, reply, 'not_found');
    else responder.error(request, reply, 'method_not_allowed', ['allow', allowed]);
  }

  // A context of its own, so that the requests of the routes do not call the hook.
  app.register(async (context) => {
    // Answered here, before Fastify reads a body that nobody uses.
    context.addHook('onRequest', (request, reply) => unmatched(request, reply));
    context.setNotFoundHandler(unmatched);
  });
  app.setErrorHandler((error, request, reply) => {
    const wire = error instanceof KeysUnavailableError ? 'keys_unavailable' : wireErrorOf(error, request.body);
    if (wire === 'internal') deps.log.error(errorFields(error), 'a request failed');
    // Fastify asks to end the connection if it did not read the body. A body that could not be parsed was read.
    const unread = reply.hasHeader('connection') && !(error instanceof BodyError);
    responder.error(request, reply, wire, unread ? ['connection', 'close'] : []);
  });
}

/** Adds metrics and the access log, if they are wanted. */
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

const RATE_USED_UP = 'Too many lookups; try again in a minute.';

/** For responses that must not be kept, such as keys. */
const NO_STORE = ['cache-control', 'no-store'];

/** The headers about a key's rate. */
function rateHeaders({ limit, remaining, resetIn }: RateState): string[] {
  const reset = Math.ceil((Date.now() + resetIn) / 1000);
  return [
    'x-ratelimit-limit',
    String(limit),
    'x-ratelimit-remaining',
    String(remaining),
    'x-ratelimit-reset',
    String(reset),
  ];
}

function addRoutes(app: FastifyInstance, deps: AppDeps, responder: Responder, page: Page): void {
  const { release, limiter, defaultRate, proxies, metrics, pageKeys, phase = () => 'serving' } = deps;

  function checkKey(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const key = authenticate(request, reply, deps, responder);
    if (key === undefined) return;
    request.apiKey = key;
    done();
  }

  /** Adds the check of the key to a handler. For requests without a body this does what a hook would do, in less time. */
  function withKey(handler: Handler): Handler {
    return (request, reply) => {
      const key = authenticate(request, reply, deps, responder);
      if (key === undefined) return undefined;
      request.apiKey = key;
      return handler(request, reply);
    };
  }

  /**
   * Counts addresses against the rate of the request's key, all or none.
   *
   * @param addresses how many; 0 only asks whether any are left
   * @param allowed called with the headers about the rate; not called if the request is refused
   * @param refused called with the headers if the request is refused; by default it answers the error
   */
  function countAddresses(
    request: FastifyRequest,
    reply: FastifyReply,
    addresses: number,
    allowed: (headers: string[]) => void,
    refused = (headers: string[]): void => responder.error(request, reply, 'rate_exceeded', headers),
  ): undefined | Promise<undefined> {
    const key = request.apiKey!;
    const limit = key.rate ?? defaultRate;
    if (limit === 0) {
      allowed([]);
      return undefined;
    }

    function proceed(state: RateState): undefined {
      const headers = rateHeaders(state);
      if (state.allowed) {
        allowed(headers);
        return;
      }
      const seconds = Math.max(1, Math.ceil(state.retryIn / 1000));
      refused([...headers, 'retry-after', String(seconds)]);
    }

    const state = (key.limiter ?? limiter).take(key.id, addresses, limit);
    return state instanceof Promise ? holdingConnection(request, state.then(proceed)) : proceed(state);
  }

  function withRelease(
    request: FastifyRequest,
    reply: FastifyReply,
    headers: string[],
    use: (served: ServedRelease, headers: Headers) => void,
  ): void {
    const served = release();
    if (served === undefined) responder.error(request, reply, 'no_database', headers);
    else {
      headers.push(...served.headers());
      use(served, headers);
    }
  }

  const lookUp = (request: FastifyRequest, reply: FastifyReply, ip: string) =>
    countAddresses(request, reply, 1, (rate) =>
      withRelease(request, reply, rate, (served, headers) => {
        const result = served.lookup(ip);
        metrics?.lookup(result);
        if (result === undefined) responder.error(request, reply, 'invalid_address', headers);
        else responder.json(request, reply, 200, served.json(result), headers, 'latin1');
      }),
    );

  function callerOf({ raw, headers }: FastifyRequest): string {
    // Without a peer address the client is gone, and nobody reads the response.
    return proxies.caller(raw.socket.remoteAddress ?? '', headers['x-forwarded-for'] as string | undefined);
  }

  const lookUpSelf = (request: FastifyRequest, reply: FastifyReply) => lookUp(request, reply, callerOf(request));

  /** Refuses a batch before its body is read if the rate is used up or the body cannot be used. */
  const checkBatch = (request: FastifyRequest, reply: FastifyReply) =>
    countAddresses(request, reply, 0, () => {
      if (isEncoded(request.headers)) {
        responder.error(request, reply, 'body_encoded', ['accept-encoding', 'identity', 'connection', 'close']);
      } else if (expectsContinue(request) && bodyIsExpected(request.headers)) {
        reply.raw.writeContinue();
      }
    });

  function lookUpBatch(request: FastifyRequest, reply: FastifyReply) {
    const ips = request.body as string[];
    const limit = request.apiKey!.rate ?? defaultRate;
    if (limit !== 0 && ips.length > limit) {
      responder.error(request, reply, 'batch_over_rate');
      return undefined;
    }
    return countAddresses(request, reply, ips.length, (rate) =>
      withRelease(request, reply, rate, (served, headers) => {
        const { json, outcomes } = served.batch(ips);
        metrics?.lookups(outcomes);
        responder.json(request, reply, 200, json, headers, 'latin1');
      }),
    );
  }

  function readiness(request: FastifyRequest, reply: FastifyReply): undefined {
    const served = release();
    if (phase() !== 'serving') responder.error(request, reply, 'stopping');
    else if (served === undefined) responder.error(request, reply, 'no_database');
    else if (!deps.keys.isReadable) responder.error(request, reply, 'keys_unavailable');
    else if (deps.eu !== true && ASKS_FOR_EU.test(request.raw.url!)) responder.error(request, reply, 'not_eu');
    else {
      const eu = deps.eu === true ? { eu: true } : {};
      responder.json(request, reply, 200, JSON.stringify({ status: 'ready', release: served.id, ...eu }));
    }
  }

  function showPage(request: FastifyRequest, reply: FastifyReply): undefined | Promise<undefined> {
    const served = release();
    const content = {
      baseUrl: deps.baseUrls?.default === undefined ? requestedUrl(request) : serverUrl(deps.baseUrls.default),
      manifest: served?.manifest,
      own: served?.lookup(callerOf(request)),
      lookup: undefined,
    };
    const ip = askedAddress(request.raw.url!);
    if (ip === undefined || served === undefined || !wantsHtml(request.headers.accept)) {
      page.send(request, reply, content);
      return undefined;
    }
    request.apiKey = pageKeys.visitor(callerOf(request));
    const refuse = (headers: string[]) =>
      page.send(request, reply, { ...content, lookup: { ip, result: undefined, problem: RATE_USED_UP } }, 429, headers);
    return countAddresses(
      request,
      reply,
      1,
      () => {
        const result = served.lookup(ip);
        metrics?.lookup(result);
        const problem = result === undefined ? { problem: 'This is not an IP address.' } : {};
        page.send(request, reply, { ...content, lookup: { ip, result, ...problem } }, result === undefined ? 400 : 200);
      },
      refuse,
    );
  }

  function issuePageKey(request: FastifyRequest, reply: FastifyReply): undefined {
    const key = pageKeys.issue(callerOf(request), request.headers.host);
    responder.json(request, reply, 200, JSON.stringify(key), NO_STORE);
  }

  /** Makes a key for programs and for the page itself, but not for pages of other origins. */
  function signUp(request: FastifyRequest, reply: FastifyReply) {
    const { origin, host } = request.headers;
    if (origin !== undefined && !pageKeys.isOrigin(origin, host)) {
      responder.error(request, reply, 'origin_refused');
      return undefined;
    }
    const outcome = deps.keyDesk({ do: 'create', network: pageKeys.networkOf(callerOf(request)) });
    return settle(request, outcome, (settled) => sendKeyOutcome(request, reply, settled));
  }

  function revokeKey(request: FastifyRequest, reply: FastifyReply) {
    const { id, selfIssued } = request.apiKey!;
    if (!selfIssued) {
      responder.error(request, reply, 'key_not_self_issued');
      return undefined;
    }
    return settle(request, deps.keyDesk({ do: 'revoke', id }), (settled) => sendKeyOutcome(request, reply, settled));
  }

  function sendKeyOutcome(request: FastifyRequest, reply: FastifyReply, outcome: KeyOutcome): void {
    if ('created' in outcome) responder.json(request, reply, 201, JSON.stringify(outcome.created), NO_STORE);
    else if ('revoked' in outcome) responder.json(request, reply, 200, JSON.stringify(outcome.revoked), NO_STORE);
    else {
      const { refused, retryIn } = outcome;
      const headers = retryIn === undefined ? [] : ['retry-after', String(Math.max(1, Math.ceil(retryIn / 1000)))];
      responder.error(request, reply, refused, headers);
    }
  }

  function showKey(request: FastifyRequest, reply: FastifyReply) {
    const key = request.apiKey!;
    const limit = key.rate ?? defaultRate;
    const json = JSON.stringify({ id: key.id, rate: limit, self_issued: key.selfIssued });
    const send = (headers: string[]) => responder.json(request, reply, 200, json, [...NO_STORE, ...headers]);
    return countAddresses(request, reply, 0, send, send);
  }

  function showAttribution(request: FastifyRequest, reply: FastifyReply): undefined {
    const served = release();
    if (served === undefined) responder.error(request, reply, 'no_database');
    else responder.json(request, reply, 200, JSON.stringify(attributionOf(served.manifest)));
  }

  /** The OpenAPI document, which names the sources of the current release. */
  let document = { release: '', json: JSON.stringify(openApiDocument(deps.baseUrls ?? {})) };
  function showOpenApi(request: FastifyRequest, reply: FastifyReply): undefined {
    const served = release();
    if (served !== undefined && served.id !== document.release) {
      const json = JSON.stringify(openApiDocument(deps.baseUrls ?? {}, served.manifest));
      document = { release: served.id, json };
    }
    responder.json(request, reply, 200, document.json);
  }

  const handlers: Record<RouteName, Handler> = {
    lookup: (request, reply) => lookUp(request, reply, (request.params as { ip: string }).ip),
    lookupSelf: lookUpSelf,
    lookupSelfBare: lookUpSelf,
    batch: lookUpBatch,
    health: (request, reply) => void responder.json(request, reply, 200, '{"status":"ok"}'),
    readiness,
    signUp,
    currentKey: showKey,
    revokeKey,
    attribution: showAttribution,
    openApi: showOpenApi,
    page: showPage,
    pageKey: issuePageKey,
    docs: (request, reply) => void page.sendDocs(request, reply),
  };
  for (const name of Object.keys(ROUTES) as RouteName[]) {
    const { method, path, needsKey } = ROUTES[name];
    const isBatch = name === 'batch';
    app.route({
      method,
      url: path,
      ...(isBatch ? { schema: { body: definition('BatchRequest') } } : {}),
      onRequest: needsKey && method !== 'GET' ? [checkKey] : [],
      // An asynchronous hook; Fastify stops after it if the request was answered.
      preParsing: isBatch ? [async (request, reply) => checkBatch(request, reply)] : [],
      handler: needsKey && method === 'GET' ? withKey(handlers[name]) : handlers[name],
    });
  }
}

/** Passes an outcome on, now or later. */
function settle<Value>(
  request: FastifyRequest,
  outcome: Value | Promise<Value>,
  use: (value: Value) => void,
): undefined | Promise<undefined> {
  if (outcome instanceof Promise) return holdingConnection(request, outcome.then(use)).then(() => undefined);
  use(outcome);
  return undefined;
}

/** Whether a client waits for 100 Continue before it sends the body. Node refuses any other expectation. */
function expectsContinue({ headers, raw }: FastifyRequest): boolean {
  return headers.expect !== undefined && raw.httpVersion === '1.1';
}

/**
 * Reads nothing from a request's connection until a promise is settled.
 *
 * A client may send its request and close its half of the connection. Node ends the connection when it reads that, and
 * the answer would be lost if it is not ready by then.
 */
async function holdingConnection<Value>({ raw: { socket } }: FastifyRequest, promise: Promise<Value>): Promise<Value> {
  hold(socket);
  try {
    return await promise;
  } finally {
    release(socket);
  }
}
