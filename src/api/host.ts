/**
 * The names of this server, for the routes that a browser uses without a key.
 *
 * A page of another site can let its name resolve to this server's address (DNS rebinding), and is then of the same origin
 * to the visitor's browser. It cannot choose `Host`, which is still its own name. Programs can send any.
 */
import { isLoopback } from '../url.js';
import type { BaseUrls } from './openapi.js';
import type { PageSettings } from './page/page.js';

/** Returns the names that a server was given, beside those of loopback. */
export function serverNames({ default: base, eu }: BaseUrls, { ipv4Url, ipv6Url }: PageSettings): string[] {
  const configured = [base, eu, ipv4Url, ipv6Url].filter((url) => url !== undefined);
  return [...new Set(configured.map((url) => new URL(url).hostname))];
}

/** Returns a function that tells whether the header `Host` names this server; the port does not count. */
export function hostCheck(baseUrls: BaseUrls, page: PageSettings): (host: string | undefined) => boolean {
  const names = new Set(serverNames(baseUrls, page));
  return (host) => {
    const name = host?.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
    // The names of loopback always mean the machine of the caller itself.
    return name !== undefined && (isLoopback(name) || names.has(name));
  };
}
