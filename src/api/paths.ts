/** The routes and paths there are, the latter for what the router does not answer: 404 or 405, with a key or without. */

/** The route of a look-up. */
export const LOOKUP_ROUTE = '/api/lookup/:ip';

const GET_METHODS = 'GET, HEAD, OPTIONS';

/** All methods there are. */
export const ALL_METHODS = 'GET, HEAD, POST, OPTIONS';

/** The methods of each path. */
const METHODS: Record<string, string> = {
  '/api/lookup': GET_METHODS,
  '/api/lookup/': GET_METHODS,
  '/api/batch': 'POST, OPTIONS',
  '/healthz': GET_METHODS,
  '/readyz': GET_METHODS,
  '/openapi.json': GET_METHODS,
};
const LOOKUP_PATH = /^\/api\/lookup\/[^/]+$/;
const API_PATH = /^\/api(\/|$)/;

/** The `Allow` of a path, or undefined where there is no such path. */
export function methodsOf(path: string): string | undefined {
  if (Object.hasOwn(METHODS, path)) return METHODS[path];
  return LOOKUP_PATH.test(path) ? GET_METHODS : undefined;
}

/** Whether a path lies where every request carries a key. */
export function needsKey(path: string): boolean {
  return API_PATH.test(path);
}

/**
 * The path of a request target, which may be in absolute form (RFC 9112 §3.2.2), as the router reads it.
 *
 * @param target a {@link decodableTarget}
 */
export function pathOf(target: string): string {
  return decodeURI(target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, ''));
}

/**
 * A target whose path cannot be percent-decoded, with its percent signs taken as they are. The router would refuse it
 * before the key is looked at; so it goes on as what it is, a text that is no address.
 */
export function decodableTarget(target: string): string {
  if (!target.includes('%')) return target;
  const query = target.indexOf('?');
  const path = query < 0 ? target : target.slice(0, query);
  try {
    decodeURIComponent(path);
    return target;
  } catch {
    return path.replaceAll('%', '%25') + target.slice(path.length);
  }
}
