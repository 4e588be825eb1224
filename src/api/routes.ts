/**
 * The routes of the API, in one table. Routing, `Allow`, 404 and 405, and the OpenAPI document follow from it.
 */
import type { WireError } from '../errors.js';
import { HISTORY_COST, MAX_BATCH } from '../limits.js';
import { percentDecoded } from '../url.js';

/** The groups of operations in the OpenAPI document. */
export const TAGS = {
  Lookup: 'Countries of addresses.',
  Keys: 'Keys that people make for themselves, if the operator opened sign-up.',
  Server: 'State and data of the server. No key is needed.',
  Gate: 'For reverse proxies, if the server has rules of `--forward-auth`. No key is needed.',
} as const;

export type Tag = keyof typeof TAGS;

/** The part of a route that only the OpenAPI document needs. */
export interface Operation {
  id: string;
  tag: Tag;
  summary: string;
  description: string;
  /** The parameter of the path. */
  parameter?: 'ip' | 'name';
  /** The name in schemas/wire.schema.json of the request body, if there is one. */
  request?: string;
  /** What success means, its status (200 by default), and the name of its schema, or the type of what is no JSON; neither without a body. */
  response: { description: string; status?: 201; schema?: string; media?: string };
  /** Whether the response has the headers of a lookup. */
  isLookup?: true;
  /** Names of other headers that all responses have. */
  headers?: readonly string[];
  /** Errors beside those of every route that needs a key. */
  errors: readonly WireError[];
}

export interface Route {
  /** By default GET; such a route also answers HEAD. */
  method?: 'GET' | 'POST' | 'DELETE';
  /** The path as Fastify's router takes it; also the label of metrics and the access log. */
  path: string;
  needsKey?: true;
  /** Whether a browser uses it without a key, so that `Host` must name this server. */
  checksHost?: true;
  /** Whether it answers about the caller's own address only. */
  isOwn?: true;
  /** Undefined for a route that the OpenAPI document leaves out. */
  operation?: Operation;
}

/** Errors about the day that a lookup asks for. */
const DAY_ERRORS = ['day_invalid', 'day_not_kept', 'history_busy'] as const;

/** A route of a compact form, which anyone may load. */
function publicFile(name: string, id: string, summary: string, description: string): Route {
  return {
    path: `/db/${name}`,
    operation: {
      ...{ id, tag: 'Server', summary, description },
      response: { description: 'The file.', media: 'application/octet-stream' },
      errors: ['not_found', 'no_database', 'internal', 'bad_request'],
    },
  };
}

export const ROUTES = {
  lookup: {
    path: '/api/lookup/:ip',
    needsKey: true,
    operation: {
      id: 'lookup',
      tag: 'Lookup',
      isLookup: true,
      summary: 'Look up an address',
      description: 'An IPv6 address is written in the path as it is; percent-encoding also works.',
      parameter: 'ip',
      response: { description: 'The result. An address without a country has nulls.', schema: 'LookupResult' },
      errors: ['invalid_address', 'include_unknown', 'lang_unknown', ...DAY_ERRORS],
    },
  },
  lookupSelf: { path: '/api/lookup/', needsKey: true, isOwn: true },
  // Documented once, without the trailing slash.
  lookupSelfBare: {
    path: '/api/lookup',
    needsKey: true,
    isOwn: true,
    operation: {
      id: 'lookupSelf',
      tag: 'Lookup',
      isLookup: true,
      summary: "Look up the caller's address",
      description:
        'The address is the one that the request comes from: usually the IPv6 address if the caller has one.',
      response: { description: 'The result. An address without a country has nulls.', schema: 'LookupResult' },
      errors: ['include_unknown', 'lang_unknown', ...DAY_ERRORS],
    },
  },
  batch: {
    method: 'POST',
    path: '/api/batch',
    needsKey: true,
    operation: {
      id: 'batch',
      tag: 'Lookup',
      isLookup: true,
      summary: 'Look up many addresses',
      description: `Up to ${MAX_BATCH} addresses. Each counts one against the rate limit.`,
      request: 'BatchRequest',
      response: { description: 'A result for each string.', schema: 'BatchResponse' },
      errors: [
        'include_unknown',
        'lang_unknown',
        'too_many',
        'batch_over_rate',
        'body_empty',
        'body_not_json',
        'body_not_array',
        'body_not_strings',
        'body_too_large',
        'not_json_type',
        'body_encoded',
        ...DAY_ERRORS,
      ],
    },
  },
  history: {
    path: '/api/history/:ip',
    needsKey: true,
    operation: {
      id: 'history',
      tag: 'Lookup',
      summary: 'Show the history of an address',
      description: `The periods in which it had one answer, as far as the server keeps its history. It counts as ${HISTORY_COST} addresses against the rate limit, or as all of a lower one.`,
      parameter: 'ip',
      response: { description: 'The periods, the oldest first.', schema: 'History' },
      errors: ['invalid_address', 'history_busy'],
    },
  },
  health: {
    path: '/healthz',
    operation: {
      id: 'health',
      tag: 'Server',
      summary: 'Is the server alive?',
      description: 'For supervisors, which restart a server that does not answer.',
      response: { description: 'Yes.', schema: 'Health' },
      errors: ['bad_request'],
    },
  },
  readiness: {
    path: '/readyz',
    operation: {
      id: 'readiness',
      tag: 'Server',
      summary: 'Is a database loaded?',
      description:
        'For load balancers: fails before the server stops. With the query parameter `eu`, also: is this a server of the EU base address?',
      response: { description: 'Yes.', schema: 'Readiness' },
      errors: ['no_database', 'keys_unavailable', 'stopping', 'not_eu', 'bad_request'],
    },
  },
  signUp: {
    method: 'POST',
    path: '/api/keys',
    checksHost: true,
    operation: {
      id: 'signUp',
      tag: 'Keys',
      summary: 'Make a key',
      description: 'Only if the operator opened sign-up. The key is shown once; no request body is read.',
      response: { status: 201, description: 'The key, and its rate in addresses a minute.', schema: 'NewKey' },
      errors: ['sign_up_closed', 'host_refused', 'origin_refused', 'sign_up_limit', 'keys_busy', 'internal'],
    },
  },
  currentKey: {
    path: '/api/keys/current',
    needsKey: true,
    operation: {
      id: 'currentKey',
      tag: 'Keys',
      summary: 'Show the key of this request',
      description: 'Counts nothing against the rate.',
      response: { description: 'The id and the rate of the key.', schema: 'Key' },
      errors: [],
    },
  },
  revokeKey: {
    method: 'DELETE',
    path: '/api/keys/current',
    needsKey: true,
    operation: {
      id: 'revokeKey',
      tag: 'Keys',
      summary: 'Revoke the key of this request',
      description: 'Only for keys that their holders made by signing up. It cannot be undone.',
      response: { description: 'The key is revoked.', schema: 'RevokedKey' },
      errors: ['key_not_self_issued', 'keys_busy'],
    },
  },
  attribution: {
    path: '/attribution',
    operation: {
      id: 'attribution',
      tag: 'Server',
      summary: 'Sources of the data, with licenses',
      description: 'Publishers of results must show the attribution of each source.',
      response: { description: 'The sources of the release that answers.', schema: 'Attribution' },
      errors: ['no_database', 'bad_request'],
    },
  },
  publicDb: publicFile(
    'country.ipc',
    'publicDatabase',
    'The countries of all addresses',
    'The compact form of the release, with gzip: 0.5 to 0.7 MB, for programs that look up addresses themselves, such as `load` of @ipatlas/lookup. It has an `ETag`. The operator can switch it off.',
  ),
  publicNetworks: publicFile(
    'networks.ipc',
    'publicNetworks',
    'The networks of all addresses',
    'The compact form of the networks of the release, with gzip: AS numbers and names, about two megabytes. Not found if the release has none.',
  ),
  publicKinds: publicFile(
    'kinds.ipc',
    'publicKinds',
    'The kinds of networks of all addresses',
    'The compact form of the kinds of networks of the release, with gzip: clouds, relays, Tor and anycast. Not found if the release does not say them.',
  ),
  openApi: { path: '/openapi.json' },
  page: { path: '/', checksHost: true },
  developersPage: { path: '/developers', checksHost: true },
  dataPage: { path: '/data', checksHost: true },
  pageKey: { path: '/page/key', checksHost: true },
  docs: { path: '/docs', checksHost: true },
} as const satisfies Record<string, Route>;

export type RouteName = keyof typeof ROUTES;

/** Only servers with rules have it. It answers all methods, and all paths below its own. */
export const FORWARD_AUTH: Route = {
  path: '/forward-auth/:name',
  operation: {
    id: 'forwardAuth',
    tag: 'Gate',
    summary: 'May this client go on?',
    description:
      'For `auth_request` of nginx, ForwardAuth of Traefik, `forward_auth` of Caddy and `ext_authz` of Envoy. Any method, also for paths below it; the query is ignored. The client is the right-most address in `X-Forwarded-For` that is not a trusted proxy.',
    parameter: 'name',
    response: { description: 'Yes. Without a body.' },
    headers: ['X-Country-Code', 'X-In-EU', 'X-ASN'],
    errors: ['client_refused', 'client_unknown', 'not_found', 'no_database'],
  },
};

/** What the method of a route adds to `Allow`. */
const ALLOWED = { GET: 'GET, HEAD', POST: 'POST', DELETE: 'DELETE' } as const;

/** All methods that some route answers. */
export const ALL_METHODS = 'GET, HEAD, POST, DELETE, OPTIONS';

/** Each route's path as a pattern: a parameter is one segment that is not empty. */
const PATTERNS = Object.values<Route>(ROUTES).map(({ path, method = 'GET' }) => ({
  pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')}$`),
  allowed: ALLOWED[method],
}));

/** Returns the value of `Allow` for a path, or undefined if no route has this path. */
export function allowedMethods(path: string): string | undefined {
  const methods = PATTERNS.filter(({ pattern }) => pattern.test(path)).map(({ allowed }) => allowed);
  return methods.length === 0 ? undefined : [...methods, 'OPTIONS'].join(', ');
}

/** Returns whether requests for a path need a key, whether a route answers it or not. */
export function needsKey(path: string): boolean {
  return /^\/api(\/|$)/.test(path);
}

/**
 * Returns the decoded path of a request target, as the router reads it. The target may be in absolute form
 * (RFC 9112 §3.2.2).
 *
 * @param target a {@link decodableTarget}
 */
export function pathOf(target: string): string {
  return decodeURI(target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, ''));
}

/**
 * Returns a request target whose path can be percent-decoded.
 *
 * The router refuses a malformed percent sign before the key is checked. Such percent signs are therefore escaped, and
 * the path is treated as text that is not an address.
 */
export function decodableTarget(target: string): string {
  if (!target.includes('%')) return target;
  const query = target.indexOf('?');
  const path = query < 0 ? target : target.slice(0, query);
  return percentDecoded(path) === undefined ? path.replaceAll('%', '%25') + target.slice(path.length) : target;
}
