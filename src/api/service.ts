/** The whole service: it starts the processes that answer, watches for releases, serves metrics, and stops. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { findDatabase, manifestOfDatabase, openRanges, seedAnswers, seedText } from '../database/origin.js';
import type { Manifest } from '../database/release.js';
import { seedPath } from '../database/seed.js';
import { misuse } from '../errors.js';
import { RELEASE_POLL_MS } from '../limits.js';
import { singleProcess, WorkerCluster } from './cluster.js';
import { ruleProblem } from './forward-auth.js';
import { serverNames } from './host.js';
import { type KeyRequest, SignUps } from './keys/sign-up.js';
import type { Log } from './log.js';
import {
  addPullMetrics,
  addSharedRateMetric,
  ReleaseMetrics,
  RequestMetrics,
  servedMetrics,
  serveTexts,
} from './metrics.js';
import { RedisRateStore } from './rates/redis-rate-store.js';
import { ReleaseWatcher, type VerifyRelease } from './releases/release-watcher.js';
import type { ServeSettings } from './server.js';

export interface ServiceOptions {
  log: Log;
  verify: VerifyRelease;
  /** Called when requests are answered, with a URL to try. */
  onListening(url: string): void;
  /** Resolves when the service is to stop. */
  untilStopped: Promise<unknown>;
}

/** Returns a URL to try the server: with the name localhost if it listens on all addresses, on 127.0.0.1 or on ::1. */
export function publicUrl(host: string | undefined, port: number): string {
  const local = host === undefined || ['::', '0.0.0.0', '::1', '127.0.0.1'].includes(host);
  const name = local ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/**
 * Checks that a country is in the European Union as of a release: an EU base address must be served from within it.
 *
 * @param dir the release's directory, or the path of the seed
 * @param country ISO 3166-1 alpha-2, upper case
 * @throws AtlasError E_USAGE if it is not, or if the release does not have the country
 */
export function requireInUnion(dir: string, country: string): void {
  const { records, asOf } = openRanges(dir).file;
  const record = records.find((one) => one.kind === 'country' && one.code === country);
  if (record?.kind === 'country' && record.isEu) return;
  const name = record?.kind === 'country' ? `${record.name} (${country})` : country;
  const problem = record === undefined ? 'is not in the database' : 'is not in the European Union';
  throw misuse(`--eu: ${name} ${problem} as of ${asOf}; serve the EU base address from a member state, or omit --eu`);
}

/**
 * Serves until it is told to stop. Without a release it answers from the seed, if that may answer, or 503
 * until one is published.
 *
 * @returns whether all requests were answered in time when it stopped
 * @throws AtlasError E_USAGE if it cannot listen or the country is not in the European Union; E_NO_DATABASE if that
 *   cannot be checked
 */
export async function runService(settings: ServeSettings, options: ServiceOptions): Promise<boolean> {
  const { log, verify, onListening, untilStopped } = options;
  const { dataDir, region, workers, metrics, redis } = settings;
  if (region?.eu) requireInUnion(findDatabase(settings), region.country);

  const releases = new ReleaseMetrics();
  addPullMetrics(dataDir, releases.registry);
  const requests = workers === 1 && metrics !== undefined ? new RequestMetrics() : undefined;
  const rates = redis === undefined ? undefined : new RedisRateStore({ url: redis, log });
  if (rates !== undefined) addSharedRateMetric(rates, releases.registry);
  const signUps = new SignUps({ dataDir, isOpen: settings.page.signUp, defaultRate: settings.rate, log });
  const keyService = (request: KeyRequest) => signUps.handle(request);
  const cluster =
    workers === 1
      ? singleProcess(settings, log, requests, keyService, rates)
      : new WorkerCluster(workers, log, undefined, rates, keyService);
  /** What keeps a rule of forward auth from being applied. */
  let gateProblem: string | undefined;
  /** Answers from a release or from the seed. */
  const use = (database: string): Manifest => {
    const manifest = manifestOfDatabase(database);
    [gateProblem] = settings.forwardAuth.flatMap((rule) => ruleProblem(rule, manifest) ?? []);
    if (gateProblem !== undefined) log.error({ problem: gateProblem }, 'this rule lets nobody in');
    cluster.useRelease(database);
    releases.release(manifest, database === seedPath());
    return manifest;
  };
  const watcher = new ReleaseWatcher({
    dataDir,
    interval: RELEASE_POLL_MS,
    verify,
    onRelease(dir) {
      if (region?.eu) requireInUnion(dir, region.country);
      const { id, as_of } = use(dir);
      log.info({ release: id, as_of }, 'serving this release');
    },
    onFailure(problem) {
      releases.failedReload();
      log.error({ problem }, 'the current release is not used; the one before is still served');
    },
  });

  let metricsServer: Server | undefined;
  let inTime = true;
  try {
    await watcher.start();
    if (!watcher.found && seedAnswers(settings)) {
      const manifest = use(seedPath());
      log.warn({ release: manifest.id, seed: true }, seedText(manifest));
    } else if (!watcher.found) {
      log.warn(
        {},
        'there is no release to serve; requests are answered 503 until "ipatlas build" or "ipatlas pull" publishes one',
      );
    }
    if (gateProblem !== undefined)
      throw misuse(`${gateProblem}; build one that has them, or leave them out of the rule`);
    await rates?.start();
    if (metrics !== undefined) {
      metricsServer = await serveTexts(metrics, {
        '/metrics': async () =>
          servedMetrics((await Promise.all([cluster.metrics(), releases.registry.metrics()])).join('')),
      });
      const { port } = metricsServer.address() as AddressInfo;
      log.info({ url: `${publicUrl(metrics.host, port)}/metrics` }, 'metrics');
    }
    const url = publicUrl(settings.host, await cluster.listen());
    log.info({ url, workers }, 'listening');
    const names = ['localhost', ...serverNames(settings.baseUrls, settings.page)];
    log.info(
      { names, without_key: settings.page.keyless },
      'browsers get the page under these names; --base-url adds one',
    );
    onListening(url);
    await untilStopped;
    log.info({}, 'stopping');
  } finally {
    watcher.stop();
    inTime = await cluster.stop();
    await rates?.stop();
    metricsServer?.close();
    metricsServer?.closeAllConnections();
  }
  if (!inTime) log.warn({}, 'some requests took too long and were cut off');
  return inTime;
}
