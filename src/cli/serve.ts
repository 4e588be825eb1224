/** `ipatlas serve`: the lookup API. */
import cluster from 'node:cluster';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { trustFunction } from '../api/caller.js';
import { runWorker } from '../api/cluster.js';
import { type GateRule, parseGateRule } from '../api/forward-auth.js';
import { createKey, isValidKey, requireWritableKeys } from '../api/keys/key-store.js';
import { createLog, errorFields, type Log } from '../api/log.js';
import { serverUrl } from '../api/openapi.js';
import { redisAddress } from '../api/rates/redis-rate-store.js';
import { verifyInThread } from '../api/releases/release-watcher.js';
import type { ServeSettings } from '../api/server.js';
import { runService } from '../api/service.js';
import { seedAnswers } from '../database/origin.js';
import { AtlasError, EXIT, writeError } from '../errors.js';
import { makeFolder, replaceFile } from '../files.js';
import { DEFAULT_RATE } from '../limits.js';
import { withPackages } from '../optional-packages.js';
import { watchStopSignals } from '../signals.js';
import { sqlite } from '../sqlite.js';
import { type Command, type Invocation, type OptionValues, print, text, usageError } from './command.js';
import { MAX_PORT, MAX_RATE, METRICS_HOST, metricsAddress, wholeNumber } from './number-flags.js';

const DEFAULT_PORT = 8080;
const MAX_WORKERS = 1_024;

const usage = (message: string): AtlasError => usageError(message, 'serve');

function workers(values: OptionValues): number {
  const count = wholeNumber(values, 'workers', 0, MAX_WORKERS) ?? 1;
  return count === 0 ? availableParallelism() : count;
}

function baseUrl(values: OptionValues, name: string): string | undefined {
  const value = text(values, name);
  if (value === undefined) return undefined;
  if (URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)) return value;
  throw usage(`--${name} ${JSON.stringify(value)} is not an http or https URL`);
}

/** Returns the URL of a host that has only one family of addresses, without `/api` and a slash at the end. */
function stackUrl(values: OptionValues, name: string): string | undefined {
  const url = baseUrl(values, name);
  if (url === undefined) return undefined;
  // The page's Content-Security-Policy has to name the host, and its grammar has no IPv6 addresses.
  if (new URL(url).hostname.startsWith('['))
    throw usage(`--${name} ${JSON.stringify(url)} must have the name of a host`);
  return serverUrl(url);
}

function trustProxy(values: OptionValues): string[] {
  const list = text(values, 'trust-proxy');
  if (list === undefined) return [];
  const cidrs = list.split(',').map((cidr) => cidr.trim());
  // Throws if one is not a CIDR block, before anything is started.
  trustFunction(cidrs);
  return cidrs;
}

function region(values: OptionValues): ServeSettings['region'] {
  const name = text(values, 'region');
  const country = text(values, 'country');
  const eu = values.eu === true;
  if (name === undefined && country === undefined && !eu) return undefined;
  if (name === undefined || country === undefined) throw usage('--region NAME and --country CC must be used together');
  // The name becomes the value of a header.
  if (!/^[\w.-]{1,64}$/.test(name)) {
    throw usage(
      `--region ${JSON.stringify(name)} must have at most 64 characters, all of them letters, digits, ".", "_" or "-"`,
    );
  }
  if (!/^[A-Z]{2}$/.test(country)) {
    throw usage(`--country ${JSON.stringify(country)} is not a country code such as DE`);
  }
  return { name, country, eu };
}

/** Returns the URL of Redis. It may have a password, which the environment hides from other users of the machine. */
function redisUrl(values: OptionValues): string | undefined {
  const url = text(values, 'redis') ?? process.env.IPATLAS_REDIS;
  if (url === undefined || url === '') return undefined;
  redisAddress(url);
  return url;
}

/** Without a name, a server does not know whether it is for the public: then only this machine needs no key. */
function keyless(values: OptionValues): ServeSettings['page']['keyless'] {
  const [everyone, nobody] = [values.keyless === true, values['no-keyless'] === true];
  if (everyone && nobody) throw usage('--keyless and --no-keyless exclude each other');
  if (nobody) return 'nobody';
  const hasName = ['base-url', 'eu-base-url', 'ipv4-url', 'ipv6-url'].some((name) => values[name] !== undefined);
  return everyone || hasName ? 'everyone' : 'loopback';
}

function forwardAuth(values: OptionValues): GateRule[] {
  const rules = ((values['forward-auth'] ?? []) as string[]).map(parseGateRule);
  const twice = rules.find(({ name }, index) => rules.findIndex((rule) => rule.name === name) < index);
  if (twice !== undefined) throw usage(`--forward-auth ${twice.name} is there twice`);
  if (rules.length > 0 && trustProxy(values).length === 0)
    throw usage('--forward-auth needs --trust-proxy with the addresses of the proxies that ask');
  return rules;
}

/** Returns the settings from the flags. Throws AtlasError E_USAGE if one is not valid. */
export function readSettings({ dataDir, seed, values }: Invocation): ServeSettings {
  return {
    dataDir,
    seed,
    host: text(values, 'host'),
    port: wholeNumber(values, 'port', 0, MAX_PORT) ?? DEFAULT_PORT,
    workers: workers(values),
    trustProxy: trustProxy(values),
    rate: wholeNumber(values, 'rate', 0, MAX_RATE) ?? DEFAULT_RATE,
    redis: redisUrl(values),
    accessLog: values['access-log'] === true,
    region: region(values),
    labels: values.labels === true,
    metrics: metricsAddress(values),
    baseUrls: { default: baseUrl(values, 'base-url'), eu: baseUrl(values, 'eu-base-url') },
    forwardAuth: forwardAuth(values),
    page: {
      ipv4Url: stackUrl(values, 'ipv4-url'),
      ipv6Url: stackUrl(values, 'ipv6-url'),
      signUp: values['sign-up'] === 'open',
      keyless: keyless(values),
      publicDb: values['no-public-db'] !== true,
    },
  };
}

/** Logs errors that nothing else handles. Node would print the message, which may quote a request. */
function reportInternalErrors(log: Log): void {
  process.on('uncaughtException', (error) => {
    log.error(errorFields(error), 'internal error (a bug in ipatlas), please report it; the process ends');
    process.exit(EXIT.fault);
  });
}

/**
 * Makes sure that a file has a valid key, for development. It is the only key that is stored as text; only its owner can
 * read the file.
 *
 * @throws AtlasError if the file cannot be written
 */
export function keepDevKey(dataDir: string, file: string): void {
  try {
    if (existsSync(file) && isValidKey(dataDir, readFileSync(file, 'utf8').trim())) return;
    makeFolder(dirname(file));
    const { key } = createKey(dataDir, { label: `for ${file}` });
    replaceFile(file, [`${key}\n`], { mode: 0o600 });
  } catch (error) {
    throw writeError(`--dev-key ${file}`, error);
  }
}

/** Returns what to try first: the page, and a line to paste into a shell. The key is not printed: the shell reads it. */
function firstSteps(url: string, keyFile: string): string {
  const quoted = resolve(keyFile).replaceAll("'", "'\\''");
  return `
The page:            ${url}/
The API's reference: ${url}/docs
Look an address up from another terminal:
curl -H "X-API-Key: $(cat '${quoted}')" ${url}/api/lookup/8.8.8.8
`;
}

async function run(invocation: Invocation): Promise<number> {
  const settings = readSettings(invocation);
  const log = createLog();
  reportInternalErrors(log);
  if (cluster.isWorker) return (await runWorker(settings, log)) ? EXIT.ok : EXIT.fault;

  const { dataDir } = settings;
  if (!statSync(dataDir, { throwIfNoEntry: false })?.isDirectory() && !seedAnswers(settings)) {
    throw new AtlasError(
      'E_NO_DATABASE',
      `there is no directory ${dataDir}; create it with "ipatlas build --offline --data ${dataDir}"`,
    );
  }
  // Keys are in SQLite: a native module that cannot be loaded must fail here, not as a 503 for each request.
  sqlite();
  if (settings.page.signUp) requireWritableKeys(dataDir);
  // Checked here, because a server without Redis would only log that it cannot connect.
  if (settings.redis !== undefined) await withPackages('serve --redis', () => import('@redis/client'));
  const devKey = text(invocation.values, 'dev-key');
  if (devKey !== undefined) keepDevKey(dataDir, devKey);
  await runService(settings, {
    log,
    verify: verifyInThread,
    onListening: (url) => {
      if (devKey !== undefined) void print(firstSteps(url, devKey));
    },
    untilStopped: once(watchStopSignals().signal, 'abort'),
  });
  return EXIT.ok;
}

export const command: Command = {
  usage: ['serve [options]'],
  description: `Serves the lookup API from the current release. A newer release is noticed within two seconds, verified, and served
from then on. Without a release, it waits for one and answers 503, if a data directory is named with --data or
IPATLAS_DATA; otherwise, and with --seed, it answers from the database that comes with ipatlas until there is one. Stops on SIGTERM or Ctrl-C, after the requests that
are being processed.`,
  options: {
    host: { value: 'HOST', help: 'listen on this address (default ::, all addresses of IPv6 and IPv4)' },
    port: { value: 'PORT', help: `listen on this port (default ${DEFAULT_PORT}; 0 for any free port)` },
    workers: { value: 'N', help: 'processes that answer (default 1; 0 for one per core)' },
    'trust-proxy': {
      value: 'LIST',
      help: 'CIDR blocks, separated by commas, of proxies whose X-Forwarded-For is trusted (default none)',
    },
    'forward-auth': {
      value: 'RULE',
      repeatable: true,
      help: 'answer a proxy that asks at /forward-auth/NAME whether a client may go on: NAME=allow:LIST or NAME=deny:LIST of country codes, EU, EEA, AS13335 and none; then ;private=deny and ;fail=open if wanted. Needs --trust-proxy; repeatable',
    },
    rate: {
      value: 'N',
      help: `addresses a minute for a key without a rate of its own (default ${DEFAULT_RATE}; 0 for no limit)`,
    },
    redis: {
      value: 'URL',
      help: 'count the rates together with other servers in Redis: redis://USER:PASSWORD@HOST:6379, or rediss:// for TLS (default: the variable IPATLAS_REDIS, else none)',
    },
    'access-log': { help: 'write one JSON line per request to stdout: time, method, route, status, duration' },
    region: { value: 'NAME', help: 'where this server is; sent as X-Served-By. Needs --country CC' },
    country: { value: 'CC', help: 'the country where this server is, such as DE' },
    eu: { help: 'a server of the base address for the EU: refuses to start if CC is not in the European Union' },
    labels: {
      help: 'results have the labels of the release if they are asked for with include; visitors of the page can ask, too, unless there is --no-keyless',
    },
    'metrics-port': { value: 'PORT', help: 'Prometheus metrics on http://127.0.0.1:PORT/metrics (default none)' },
    'metrics-host': METRICS_HOST,
    'base-url': {
      value: 'URL',
      help: 'where clients find the service, for /openapi.json and the page. Browsers use the page under this name only, and localhost',
    },
    'eu-base-url': {
      value: 'URL',
      help: 'where clients find its servers inside the European Union, for /openapi.json and the page',
    },
    'ipv4-url': {
      value: 'URL',
      help: 'where the service has only an IPv4 address: the page shows visitors their IPv4 address, too',
    },
    'ipv6-url': { value: 'URL', help: 'the same for IPv6' },
    'sign-up': {
      value: 'MODE',
      choices: ['open', 'closed'],
      help: '"open": visitors of the page can make keys for themselves (default "closed")',
    },
    keyless: {
      help: 'all visitors of the page can look up addresses without a key (default: if one of the four URLs above is given; else those on this machine)',
    },
    'no-keyless': { help: 'visitors of the page cannot look up addresses: only holders of keys can' },
    'no-public-db': {
      help: 'do not let anyone load /db/country.ipc, the countries of all addresses, with which browsers look up lists themselves (default: anyone can)',
    },
    'dev-key': {
      value: 'FILE',
      help: 'keep a valid key in FILE, and print what to try: the page, and a curl line that uses the key',
    },
  },
  examples: {
    'ipatlas serve --trust-proxy 127.0.0.1 --forward-auth shop=allow:EU,CH':
      'also answers a proxy on this machine whether a client is in the European Union or in Switzerland',
    'ipatlas serve': 'listens on port 8080, on all addresses',
    'ipatlas serve --host 127.0.0.1 --port 9000 --trust-proxy 127.0.0.1 --workers 0':
      'one process per core, after a proxy on this machine',
  },
  answersFromSeed: true,
  run,
};
