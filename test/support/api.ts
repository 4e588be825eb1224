/** An app to inject requests into, or to serve, with a small real release. */
import { randomBytes } from 'node:crypto';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buildApp } from '../../src/api/app.js';
import type { AppDeps } from '../../src/api/handlers/context.js';
import { ApiHttpServer, type HttpServerOptions, listen } from '../../src/api/http-server.js';
import type { ActiveKey } from '../../src/api/keys/key-cache.js';
import type { Log, LogFields } from '../../src/api/log.js';
import { PageKeys, SECRET_BYTES } from '../../src/api/page/page-keys.js';
import { RateLimiter } from '../../src/api/rates/rate-limit.js';
import { PublicDatabase } from '../../src/api/releases/public-database.js';
import { Releases } from '../../src/api/releases/releases.js';
import { ServedRelease } from '../../src/api/releases/served-release.js';
import { openDatabase } from '../../src/database/database.js';

/** `release`: the current one, in place of that of the data directory. */
export type AppChanges = Partial<AppDeps> & { release?: () => ServedRelease | undefined };

export const KEY = 'ipa_key-of-the-tests';
export const OTHER_KEY = 'ipa_another-key-of-the-tests';

/** Returns a log that keeps its lines. */
export function keptLog(): Log & { lines: [LogFields, string][] } {
  const lines: [LogFields, string][] = [];
  const keep = (fields: LogFields, message: string): void => {
    lines.push([fields, message]);
  };
  return { lines, info: keep, warn: keep, error: keep };
}

/** Returns keys by their text, which work from every origin unless they say otherwise. */
export function fixedKeys(keys: Record<string, Pick<ActiveKey, 'id' | 'rate'> & Partial<ActiveKey>>) {
  const complete = new Map<string, ActiveKey>();
  for (const [text, key] of Object.entries(keys))
    complete.set(text, { origins: null, selfIssued: false, limiter: undefined, ...key });
  return { find: (presented: string) => complete.get(presented), isReadable: true };
}

/** Returns the dependencies of an app that serves the current release of a data directory. */
export function appDeps(dataDir: string, { release, ...changes }: AppChanges = {}): AppDeps {
  const releases = new Releases(dataDir);
  releases.use(new ServedRelease(openDatabase(dataDir)));
  if (release !== undefined) releases.current = release;
  return {
    releases,
    keys: fixedKeys({ [KEY]: { id: 'one', rate: null }, [OTHER_KEY]: { id: 'two', rate: null } }),
    limiter: new RateLimiter(),
    defaultRate: 1_000_000,
    trustProxy: [],
    log: keptLog(),
    pageKeys: new PageKeys({ secret: randomBytes(SECRET_BYTES), defaultRate: 1_000_000 }),
    page: { ipv4Url: undefined, ipv6Url: undefined, signUp: false, keyless: 'everyone', publicDb: true },
    publicDatabase: new PublicDatabase(),
    keyService: () => ({ refused: 'sign_up_closed' }),
    ...changes,
  };
}

export function testApp(dataDir: string, changes: AppChanges = {}) {
  return buildApp(appDeps(dataDir, changes));
}

/** Returns what a server calls for each request. */
export async function listenerOf(deps: AppDeps): Promise<RequestListener> {
  const app = buildApp(deps);
  await app.ready();
  return app.routing;
}

/** Starts a server for an app, on the IPv4 loopback address. */
export async function startServer(deps: AppDeps, options: HttpServerOptions = {}, port = 0): Promise<ApiHttpServer> {
  const server = new ApiHttpServer(await listenerOf(deps), options);
  await listen(server, '127.0.0.1', port);
  return server;
}

export function portOf(server: ApiHttpServer): number {
  return (server.address() as AddressInfo).port;
}
