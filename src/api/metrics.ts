/** Prometheus metrics: of requests, by each worker and added up, and of the release, by the process that watches it. */
import { createServer, type Server } from 'node:http';
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { releaseAge } from '../database/age.js';
import { type PullState, readPullState, secondsToExpiry } from '../database/pull-state.js';
import type { Manifest } from '../database/release.js';
import { causedError, messageOf } from '../errors.js';
import type { Outcome, Outcomes } from './releases/served-release.js';

/** Upper bounds in seconds: a lookup takes some 20 µs, a batch a millisecond, and a slow client seconds. */
const LATENCY_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5, 20];

/** The route of requests that no route matches. */
export const UNMATCHED_ROUTE = 'unmatched';

/** The route of input that is not an HTTP request. */
export const UNPARSED_ROUTE = 'unparsed';

/** Adds the metrics of the process. */
export function addProcessMetrics(register: Registry): void {
  collectDefaultMetrics({ register });
  // Gauges whose names say that they are counters. Those by type have the same numbers.
  for (const what of ['handles', 'requests', 'resources']) register.removeSingleMetric(`nodejs_active_${what}_total`);
}

/** The metrics of one process that answers requests. */
export class RequestMetrics {
  readonly registry = new Registry();
  readonly #requests: Counter<'route' | 'status'>;
  readonly #latency: Histogram<'route'>;
  readonly #lookups: Counter<'outcome'>;
  readonly #forwardAuth: Counter<'rule' | 'decision'>;

  constructor() {
    const registers = [this.registry];
    this.#requests = new Counter({
      name: 'ipatlas_requests_total',
      help: 'Requests by route pattern and status.',
      labelNames: ['route', 'status'],
      registers,
    });
    this.#latency = new Histogram({
      name: 'ipatlas_request_duration_seconds',
      help: 'Time from the headers of a request to the end of its response, by route pattern.',
      labelNames: ['route'],
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.#lookups = new Counter({
      name: 'ipatlas_lookups_total',
      help: 'Addresses looked up, by outcome: found, no_country or invalid.',
      labelNames: ['outcome'],
      registers,
    });
    this.#forwardAuth = new Counter({
      name: 'ipatlas_forward_auth_total',
      help: 'Requests of proxies by rule and decision: allowed, refused, untrusted (not from a trusted proxy, or without an address) or unavailable (no database).',
      labelNames: ['rule', 'decision'],
      registers,
    });
    addProcessMetrics(this.registry);
  }

  /** Counts a decision of forward auth. */
  forwardAuth(rule: string, decision: 'allowed' | 'refused' | 'untrusted' | 'unavailable'): void {
    this.#forwardAuth.inc({ rule, decision });
  }

  /** Returns the values, to be added to those of other processes. */
  values(): Promise<WorkerMetrics> {
    return this.registry.getMetricsAsJSON();
  }

  /** Counts a request. @param seconds from its headers to the end of the response */
  request(route: string, status: number, seconds: number): void {
    this.#requests.inc({ route, status });
    this.#latency.observe({ route }, seconds);
  }

  /** Counts a lookup. */
  lookup(outcome: Outcome): void {
    this.#lookups.inc({ outcome });
  }

  /** Counts the lookups of a batch. */
  lookups(outcomes: Outcomes): void {
    this.#lookups.inc({ outcome: 'found' }, outcomes.found);
    this.#lookups.inc({ outcome: 'no_country' }, outcomes.no_country);
    this.#lookups.inc({ outcome: 'invalid' }, outcomes.invalid);
  }
}

/** Adds a gauge; it has no value while there is none to measure. */
function addGauge(registry: Registry, name: string, help: string, measure: () => number | undefined): void {
  const registers = [registry];
  new Gauge({
    ...{ name, help, registers },
    collect() {
      const value = measure();
      if (value === undefined) this.remove();
      else this.set(value);
    },
  });
}

/** Adds the metrics of pulls from a signed repository. They have no values if the data directory has had no pull. */
export function addPullMetrics(dataDir: string, registry: Registry): void {
  const add = (name: string, help: string, measure: (state: PullState) => number | undefined): void =>
    addGauge(registry, name, help, () => {
      const state = readPullState(dataDir);
      return state && measure(state);
    });
  add(
    'ipatlas_release_signature_expires_seconds',
    'Time until the first of the signatures of the repository expires that this node has seen; negative afterwards.',
    (state) => secondsToExpiry(state),
  );
  add('ipatlas_pull_failed', 'Whether the last pull from the repository failed: 1 or 0.', ({ problem }) =>
    problem === null ? 0 : 1,
  );
  add(
    'ipatlas_pull_success_age_seconds',
    'Time since the last pull after which the release of the repository was current.',
    ({ succeeded }) => (succeeded === null ? undefined : (Date.now() - Date.parse(succeeded)) / 1000),
  );
}

/** The metrics of the process that watches for releases. */
export class ReleaseMetrics {
  readonly registry = new Registry();
  readonly #info: Gauge<'release'>;
  readonly #failures: Counter;
  #served: { manifest: Manifest; isSeed: boolean } | undefined;

  constructor() {
    const registers = [this.registry];
    this.#info = new Gauge({
      name: 'ipatlas_release_info',
      help: 'The release that is served: 1, with its id as a label.',
      labelNames: ['release'],
      registers,
    });
    const add = addGauge.bind(undefined, this.registry);
    add(
      'ipatlas_release_age_seconds',
      'Age of the data of the release that is served: time since the day that it is from (its midnight, UTC); if that day is not known, since the as-of date.',
      () => this.#served && releaseAge(this.#served.manifest),
    );
    add(
      'ipatlas_source_date_problems',
      'Sources of the release that is served whose date is in the future or older than before, so that it does not count.',
      () => this.#served?.manifest.inputs.filter((input) => input.data_date_problem !== undefined).length ?? 0,
    );
    add(
      'ipatlas_serves_seed',
      '1 while there is no release yet and the database that comes with ipatlas answers, else 0.',
      () => Number(this.#served?.isSeed ?? false),
    );
    this.#failures = new Counter({
      name: 'ipatlas_failed_reloads_total',
      help: 'Times that the current release could not be used, for each reason: damaged, missing or unreadable.',
      registers,
    });
  }

  release(manifest: Manifest, isSeed = false): void {
    this.#served = { manifest, isSeed };
    this.#info.reset();
    this.#info.set({ release: manifest.id }, 1);
  }

  failedReload(): void {
    this.#failures.inc();
  }
}

/** Adds the metric of rates that several servers share. */
export function addSharedRateMetric(rates: { readonly isShared: boolean }, registry: Registry): void {
  const help = '1 while rates are counted in Redis together with the other servers, 0 while Redis does not answer.';
  addGauge(registry, 'ipatlas_rates_shared', help, () => (rates.isShared ? 1 : 0));
}

/** The metrics of one process that answers requests. */
export type WorkerMetrics = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** Returns the sums over some processes as text. @param silent processes that did not send theirs in time */
export function metricsText(processes: WorkerMetrics[], silent = 0): Promise<string> {
  const registry = AggregatorRegistry.aggregate(processes);
  const help = 'Worker processes whose requests are missing in these metrics, because they did not answer in time.';
  new Gauge({ name: 'ipatlas_workers_silent', help, registers: [registry] }).set(silent);
  return registry.metrics();
}

/** What operators get at a path. */
export interface OperatorText {
  /** Default: 200. */
  status?: number;
  text: string;
  type?: string;
}

/** Returns metrics as they are served. */
export function servedMetrics(text: string): OperatorText {
  return { text, type: Registry.PROMETHEUS_CONTENT_TYPE };
}

/**
 * Serves `/metrics`, and other texts for operators.
 *
 * @param port 0 for any free one
 * @param texts by path
 * @throws AtlasError E_USAGE if it cannot listen there
 */
export function serveTexts(
  { host, port }: { host: string; port: number },
  texts: Readonly<Record<string, () => OperatorText | Promise<OperatorText>>>,
): Promise<Server> {
  const server = createServer(async (request, response) => {
    const make = Object.hasOwn(texts, request.url!)
      ? texts[request.url!]!
      : () => ({ status: 404, text: 'not found\n' });
    const failed = (error: unknown): OperatorText => ({ status: 500, text: `${messageOf(error)}\n` });
    const { status = 200, text, type = 'text/plain' } = await Promise.resolve().then(make).catch(failed);
    response.writeHead(status, { 'content-type': type }).end(text);
  });
  return new Promise((resolve, reject) => {
    const where = `--metrics-port: cannot listen on ${host}, port ${port}`;
    server.once('error', (error) => reject(causedError('E_USAGE', where, error, 'choose another')));
    server.listen(port, host, () => resolve(server));
  });
}
