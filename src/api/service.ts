/** The service as a whole: what serves, what looks for releases, what counts, and how it ends. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readManifest, releaseDir } from '../database/release.js';
import { AtlasError, messageOf } from '../errors.js';
import { RELEASE_POLL_MS } from '../limits.js';
import { singleProcess, WorkerFleet } from './fleet.js';
import type { Log } from './log.js';
import { clusterMetrics, ReleaseMetrics, RequestMetrics, serveMetrics, singleProcessMetrics } from './metrics.js';
import { requireInUnion } from './region.js';
import { ReleaseWatch, type VerifyRelease } from './release-watch.js';
import type { ServeSettings } from './settings.js';

export interface ServiceOptions {
  log: Log;
  verify: VerifyRelease;
  /** Called when requests are answered, with the address for people. */
  onListening(url: string): void;
  /** Resolves when the service is to stop. */
  untilStopped: Promise<unknown>;
}

/** An address to try the server at: what listens everywhere or on a loopback address answers to localhost. */
export function publicUrl(host: string | undefined, port: number): string {
  const local = host === undefined || ['::', '0.0.0.0', '::1', '127.0.0.1', 'localhost'].includes(host);
  const name = local ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/** Refuses what could not be promised: an EU base address outside the Union, by the current release. */
function checkRegion({ region, dataDir }: ServeSettings): void {
  if (region?.eu) requireInUnion(releaseDir(dataDir), region.country);
}

async function startMetrics(port: number, collect: () => Promise<string>): Promise<Server> {
  try {
    return await serveMetrics(port, collect);
  } catch (error) {
    throw new AtlasError('E_USAGE', `--metrics-port: cannot listen on port ${port}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/**
 * Serves until told to stop.
 *
 * Without a release it serves all the same: requests are answered 503 until one is published.
 *
 * @returns whether all requests were answered in time when it stopped
 * @throws AtlasError E_USAGE where it cannot listen, or `--eu` does not hold; E_NO_DATABASE where `--eu` cannot be checked
 */
export async function runService(settings: ServeSettings, options: ServiceOptions): Promise<boolean> {
  const { log, verify, onListening, untilStopped } = options;
  const { dataDir, region, workers, metricsPort } = settings;
  checkRegion(settings);

  const releases = new ReleaseMetrics();
  const requests = workers === 1 && metricsPort !== undefined ? new RequestMetrics() : undefined;
  const fleet = workers === 1 ? singleProcess(settings, log, requests) : new WorkerFleet(workers, log);
  const watch = new ReleaseWatch({
    dataDir,
    interval: RELEASE_POLL_MS,
    verify,
    onRelease(dir) {
      if (region?.eu) requireInUnion(dir, region.country);
      const { id, as_of } = readManifest(dir);
      fleet.useRelease(dir);
      releases.release(id, as_of);
      log.info({ release: id, as_of }, 'answering from this release');
    },
    onFailure(problem) {
      releases.failedReload();
      log.error({ problem }, 'the current release is not used; what was served before is served on');
    },
  });

  let metricsServer: Server | undefined;
  let inTime = true;
  try {
    await watch.start();
    if (!watch.found) log.warn({}, 'there is no release to serve: requests are answered 503 until one is published');
    if (metricsPort !== undefined) {
      const collect =
        requests === undefined ? clusterMetrics(releases) : () => singleProcessMetrics(requests, releases);
      metricsServer = await startMetrics(metricsPort, collect);
      const { port } = metricsServer.address() as AddressInfo;
      log.info({ url: `${publicUrl(undefined, port)}/metrics` }, 'metrics');
    }
    const url = publicUrl(settings.host, await fleet.listen());
    log.info({ url, workers }, 'listening');
    onListening(url);
    await untilStopped;
    log.info({}, 'stopping');
  } finally {
    watch.stop();
    inTime = await fleet.stop();
    metricsServer?.close();
    metricsServer?.closeAllConnections();
  }
  if (!inTime) log.warn({}, 'some requests were cut off: they took too long');
  return inTime;
}
