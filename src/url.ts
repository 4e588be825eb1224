/** URLs that people write: whether they are well-formed, name this machine, hold credentials, and how messages show them. */
import { isIPv4 } from 'node:net';

/** What messages advise if a URL cannot be parsed. */
export const PERCENT_ADVICE = 'in its user and password, "%" is written as %25';

/** Returns a text without its percent-encoding (RFC 3986 §2.1); undefined if it is malformed. */
export function percentDecoded(text: string): string | undefined {
  try {
    // The result must be used: bundlers remove a call whose only effect is that it throws.
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Parses a URL; returns undefined if it is malformed, its percent-encoded user and password included. */
export function parseUrl(text: string, base?: URL): URL | undefined {
  if (!URL.canParse(text, base?.href)) return undefined;
  const url = new URL(text, base);
  return percentDecoded(url.username + url.password) === undefined ? undefined : url;
}

/** Returns whether the host of a URL is this machine: `localhost` (RFC 6761 §6.3), 127.0.0.0/8 or `::1`. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || isLoopbackAddress(hostname.replace(/^\[(.*)\]$/, '$1'));
}

/** Returns whether an address, written as Node writes it, is in 127.0.0.0/8 (RFC 1122 §3.2.1.3) or `::1`. */
export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || (isIPv4(address) && address.startsWith('127.'));
}

/** Returns user and password of a URL from {@link parseUrl}; undefined if it has neither. */
export function credentialsOf({ username, password }: URL): { user: string; pass: string } | undefined {
  if (username === '' && password === '') return undefined;
  return { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
}

/**
 * Removes user and password from a URL from {@link parseUrl}: fetch refuses them there.
 *
 * @returns the value of the header `Authorization` (RFC 7617); empty if there are none
 */
export function takeCredentials(url: URL): string {
  const credentials = credentialsOf(url);
  url.username = '';
  url.password = '';
  return credentials === undefined
    ? ''
    : `Basic ${Buffer.from(`${credentials.user}:${credentials.pass}`).toString('base64')}`;
}

/** Returns an address for messages and cache keys, without its user and password. */
export function withoutCredentials(address: string): string {
  return address.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1***@');
}
