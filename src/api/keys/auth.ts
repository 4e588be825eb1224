/** The API key that a request carries. */
import type { IncomingHttpHeaders } from 'node:http';
import type { WireError } from '../../errors.js';
import type { Parameter } from '../include.js';
import type { ActiveKey } from './key-cache.js';

const KEY_HEADER = 'x-api-key';

/**
 * Returns the key of a request, which must carry exactly one.
 *
 * @param headers of the request
 * @param parameter value of `apikey` in its query
 * @returns the key's text, or the error
 */
export function presentedKey(
  headers: IncomingHttpHeaders,
  parameter: Parameter,
): { key: string } | { error: WireError } {
  const header = headers[KEY_HEADER] as string | undefined;
  if (header !== undefined && parameter !== undefined) return { error: 'key_twice' };
  if (Array.isArray(parameter)) return { error: 'key_twice' };
  // Node joins a repeated header with commas (RFC 9110 §5.3), which no key contains.
  if (header?.includes(',')) return { error: 'key_twice' };
  const key = header ?? parameter ?? '';
  if (key !== '') return { key };
  return { error: /^bearer /i.test(headers.authorization ?? '') ? 'key_bearer' : 'key_missing' };
}

/**
 * Returns the origin of the page that sent a request. Browsers send `Origin` with every request to another origin (Fetch standard,
 * "`Origin` header"), and leave it out of a GET request to the page's own one, which `Sec-Fetch-Site` tells (Fetch Metadata). Pages can
 * change neither; other programs can send what they like. The scheme is not known then: a proxy may have decrypted the request.
 */
export function originOf({ origin, host, 'sec-fetch-site': site }: IncomingHttpHeaders): string | undefined {
  return origin ?? (site === 'same-origin' ? `http://${host}` : undefined);
}

/** Returns the error if a key must not be used from an origin. @param origin as {@link originOf} returns it */
export function originError({ origins }: ActiveKey, origin: string | undefined): WireError | undefined {
  if (origins === null) return undefined;
  return origin !== undefined && origins.includes(origin) ? undefined : 'origin_refused';
}
