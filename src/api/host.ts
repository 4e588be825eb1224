/**
 * The names of this server, for the routes that a browser uses without a key.
 *
 * A page of another site can let its name resolve to this server's address (DNS rebinding), and is then of the same origin
 * to the visitor's browser. It cannot choose `Host`, which is still its own name. Programs can send any.
 */
import { isLoopback } from '../url.js';
import type { BaseUrls } from './openapi.js';
import type { PageSettings } from './page/page.js';

/** Returns a function that tells whether the header `Host` names this server; the port does not count. */
export function hostCheck(
  { default: base, eu }: BaseUrls,
  { ipv4Url, ipv6Url }: PageSettings,
): (host: string | undefined) => boolean {
  const configured = [base, eu, ipv4Url, ipv6Url].filter((url) => url !== undefined);
  const names = new Set(configured.map((url) => new URL(url).hostname));
  return (host) => {
    const name = host?.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
    // The names of loopback always mean the machine of the caller itself.
    return name !== undefined && (isLoopback(name) || names.has(name));
  };
}
