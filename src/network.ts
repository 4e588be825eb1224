/** What all HTTP requests of ipatlas share: the proxies of the environment, and the reason of a failure. */
import { EnvHttpProxyAgent } from 'undici';
import { messageOf } from './errors.js';

/** Returns an agent that honors HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in either case. `fetch` of Node 20 ignores them. */
export function proxyAgent(env: NodeJS.ProcessEnv): EnvHttpProxyAgent {
  const variable = (name: string): string => env[name.toLowerCase()] ?? env[name.toUpperCase()] ?? '';
  return new EnvHttpProxyAgent({
    httpProxy: variable('http_proxy'),
    httpsProxy: variable('https_proxy'),
    noProxy: variable('no_proxy'),
  });
}

/** Returns why the network failed: fetch only says "fetch failed", and the innermost cause has the reason. */
export function networkReason(error: unknown): string {
  let cause: unknown;
  for (let inner = error; inner instanceof Error && inner.cause !== undefined; inner = inner.cause) cause = inner.cause;
  if (cause === undefined) return messageOf(error);
  // A host with several addresses fails with one error for each.
  const reasons = cause instanceof AggregateError ? cause.errors : [cause];
  return `${messageOf(error)}: ${reasons.map(messageOf).join(', ')}`;
}
