/**
 * The lookup API as a Fastify app that does not listen yet.
 *
 * A request takes one path: Fastify's router, the key, the rate limit, the lookup, the {@link Responder}. It reads the
 * release once and is answered in the same turn of the event loop, so a release can be replaced and closed between any
 * two requests. Each group of routes has a file in handlers/.
 */
import { METHODS } from 'node:http';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { WIRE_ERRORS } from '../errors.js';
import { MAX_BODY_BYTES, MAX_HEADER_BYTES } from '../limits.js';
import { BodyError, parseJsonBody, wireErrorOf } from './body.js';
import { trustFunction } from './caller.js';
import { type AppDeps, Context, type Handler } from './handlers/context.js';
import { forwardAuthHandler } from './handlers/forward-auth.js';
import { keyHandlers } from './handlers/keys.js';
import { checkBatch, lookupHandlers } from './handlers/lookup.js';
import { pageHandlers } from './handlers/page.js';
import { serverHandlers } from './handlers/server.js';
import { hostCheck } from './host.js';
import { queryParameters } from './include.js';
import { KeysUnavailableError } from './keys/key-cache.js';
import { errorFields } from './log.js';
import { UNMATCHED_ROUTE } from './metrics.js';
import { definition, wireSchema } from './openapi.js';
import { hostHtml } from './page/host-html.js';
import { Page, requestedUrl, wantsHtml } from './page/page.js';
import { Responder } from './responses.js';
import {
  allowedMethods,
  decodableTarget,
  FORWARD_AUTH,
  needsKey,
  pathOf,
  ROUTES,
  type Route,
  type RouteName,
} from './routes.js';

/**
 * Builds the app.
 *
 * @param deps everything it uses; it reads no configuration, and no files other than the schemas
 */
export function buildApp(deps: AppDeps): FastifyInstance {
  const responder = new Responder({ region: deps.region, isClosing: () => context.phase === 'closing' });
  const context = new Context(deps, responder);
  const app = createFastify(context);
  app.decorateRequest('apiKey', null);
  addErrors(app, context);
  addObservers(app, deps);
  const page = new Page({ ...deps.page, baseUrls: deps.baseUrls ?? {} }, responder);
  page.addFiles(app, () => context.phase === 'closing');
  addRoutes(app, context, page, {
    ...lookupHandlers(context),
    ...keyHandlers(context),
    ...serverHandlers(context),
    ...pageHandlers(context, page),
  });
  if (deps.forwardAuth?.length) addForwardAuth(app, forwardAuthHandler(context));
  return app;
}

/** Adds the routes of forward auth, for all methods: some proxies pass on that of the client. */
function addForwardAuth(app: FastifyInstance, handler: Handler): void {
  for (const method of METHODS) {
    if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) app.addHttpMethod(method, { hasBody: true });
  }
  const common = ['GET', 'HEAD'];
  const others = app.supportedMethods.filter((method) => !common.includes(method));
  // Answered here, before Fastify reads a body that nobody uses.
  const onRequest = (request: FastifyRequest, reply: FastifyReply): void => void handler(request, reply);
  for (const url of [FORWARD_AUTH.path, `${FORWARD_AUTH.path}/*`]) {
    app.route({ method: common, url, handler });
    app.route({ method: others, url, onRequest, handler });
  }
}

function createFastify(context: Context): FastifyInstance {
  const { deps, responder } = context;
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    trustProxy: trustFunction(deps.trustProxy),
    routerOptions: {
      // A path that is as long as the headers may be is an address that is not valid, not an error of its own.
      maxParamLength: MAX_HEADER_BYTES,
      querystringParser: (query) => queryParameters(query, () => context.labelNames),
    },
    rewriteUrl: (request) => decodableTarget(request.url!),
    // A number in a batch is an error; it must not become a string.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
    frameworkErrors: (_error, _request, reply) => responder.error(reply as unknown as FastifyReply, 'bad_request'),
    genReqId: () => '',
  });
  app.addSchema(wireSchema());
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseJsonBody);
  return app;
}

/** Answers requests that no route matches, and errors. */
function addErrors(app: FastifyInstance, context: Context): void {
  const { deps, responder } = context;

  function unmatched(request: FastifyRequest, reply: FastifyReply): void {
    const path = pathOf(request.raw.url!);
    const allowed = allowedMethods(path);
    if (request.method === 'OPTIONS') {
      responder.options(reply, allowed);
      return;
    }
    if (needsKey(path) && context.authenticate(reply) === undefined) return;
    if (allowed === undefined) responder.error(reply, 'not_found');
    else responder.error(reply, 'method_not_allowed', ['allow', allowed]);
  }

  // A context of its own, so that the requests of the routes do not call the hook.
  app.register(async (unrouted) => {
    // Answered here, before Fastify reads a body that nobody uses.
    unrouted.addHook('onRequest', (request, reply) => unmatched(request, reply));
    unrouted.setNotFoundHandler(unmatched);
  });
  app.setErrorHandler((error, request, reply) => {
    const wire = error instanceof KeysUnavailableError ? 'keys_unavailable' : wireErrorOf(error, request.body);
    if (wire === 'internal') deps.log.error(errorFields(error), 'a request failed');
    // Fastify asks to end the connection if it did not read the body. A body that could not be parsed was read.
    const unread = reply.hasHeader('connection') && !(error instanceof BodyError);
    responder.error(reply, wire, unread ? ['connection', 'close'] : []);
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

function addRoutes(app: FastifyInstance, context: Context, page: Page, handlers: Record<RouteName, Handler>): void {
  const checkHost = hostCheck(context.deps.baseUrls ?? {}, context.deps.page);

  function checkKey(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const key = context.authenticate(reply);
    if (key === undefined) return;
    request.apiKey = key;
    done();
  }

  /** Adds the check of the key to a handler. For requests without a body this does what a hook would do, in less time. */
  function withKey(handler: Handler, isOwn: boolean): Handler {
    return (request, reply) => {
      const key = context.authenticate(reply, isOwn);
      if (key === undefined) return undefined;
      request.apiKey = key;
      return handler(request, reply);
    };
  }

  /** Adds the check of `Host` to a handler. */
  function withHost(handler: Handler): Handler {
    return (request, reply) => {
      if (checkHost(request.headers.host)) return handler(request, reply);
      if (!wantsHtml(request.headers.accept)) return context.responder.error(reply, 'host_refused');
      return page.sendHtml(reply, hostHtml(requestedUrl(request), page.assets), WIRE_ERRORS.host_refused.status);
    };
  }

  for (const [name, route] of Object.entries<Route>(ROUTES)) {
    const { method = 'GET', path, needsKey, checksHost, isOwn = false } = route;
    const handler = handlers[name as RouteName];
    const isBatch = name === 'batch';
    app.route({
      method,
      url: path,
      ...(isBatch ? { schema: { body: definition('BatchRequest') } } : {}),
      onRequest: needsKey && method !== 'GET' ? [checkKey] : [],
      // An asynchronous hook; Fastify stops after it if the request was answered.
      preParsing: isBatch ? [async (_, reply) => checkBatch(context, reply)] : [],
      handler: needsKey && method === 'GET' ? withKey(handler, isOwn) : checksHost ? withHost(handler) : handler,
    });
  }
}
