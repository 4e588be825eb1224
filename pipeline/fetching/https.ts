/** Downloads over HTTPS: conditional requests, retries, and a limit on everything a server can do to us. */
import { createWriteStream } from 'node:fs';
import path from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expBackoff } from 'zx';
import { messageOf } from '../../src/errors.js';
import { MAX_REDIRECTS } from '../../src/limits.js';
import { PLACEHOLDER, urlProblem } from '../config/sources.js';

/** Limits of a download; defaults are in `src/limits.ts`. Times in milliseconds. */
export interface DownloadLimits {
  maxDownloadBytes: number;
  /** Tries after the first. */
  retries: number;
  idleTimeoutMs: number;
  tryTimeoutMs: number;
  backoffMs: number;
  maxBackoffMs: number;
  maxRetryAfterMs: number;
}

/** What a server said a file's version is (RFC 9110 §8.8); empty where it did not. */
export interface Validators {
  etag: string;
  lastModified: string;
}

/** What a download needs besides its address. */
export interface DownloadContext {
  limits: DownloadLimits;
  /** Waits between tries. */
  wait: (milliseconds: number) => Promise<unknown>;
  note: (text: string) => void;
}

/** A failure that may be gone at the next try. */
class TransientError extends Error {
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number | undefined } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}

/**
 * Downloads a file, unless it is still the one that is at hand.
 *
 * @param url the address, complete; user and password in it are sent as Basic authentication (RFC 7617)
 * @param target where the file goes
 * @param known validators of the copy at hand, or undefined where there is none
 * @returns the validators of the new file, or 'unchanged'
 * @throws Error with the reason, once no further try makes sense; a system error where the target can't be written
 */
export async function download(
  url: string,
  target: string,
  known: Validators | undefined,
  context: DownloadContext,
): Promise<Validators | 'unchanged'> {
  const { limits, wait, note } = context;
  const delays = expBackoff(limits.maxBackoffMs, limits.backoffMs);
  for (let failures = 1; ; failures++) {
    try {
      return await tryDownload(url, target, known, limits);
    } catch (error) {
      if (!(error instanceof TransientError) || failures > limits.retries) throw error;
      const delay = error.retryAfterMs ?? withJitter(delays.next().value ?? limits.maxBackoffMs);
      note(`${error.message}; trying again in ${Math.ceil(delay / 1000)} s`);
      await wait(delay);
    }
  }
}

/** Between half of a delay and the whole, at random, so that many clients do not come back at the same moment. */
function withJitter(delay: number): number {
  return delay * (0.5 + Math.random() / 2);
}

async function tryDownload(
  url: string,
  target: string,
  known: Validators | undefined,
  limits: DownloadLimits,
): Promise<Validators | 'unchanged'> {
  const watch = watchdog(limits);
  try {
    const response = await request(url, known, watch.signal);
    if (response.status === 304 && known !== undefined) {
      await response.body?.cancel();
      return 'unchanged';
    }
    await checkStatus(response, limits);
    await saveBody(response, target, limits.maxDownloadBytes, watch.alive);
    return { etag: response.headers.get('etag') ?? '', lastModified: response.headers.get('last-modified') ?? '' };
  } finally {
    watch.stop();
  }
}

/** Aborts a try that was silent for too long, or takes too long in all. */
function watchdog(limits: DownloadLimits): { signal: AbortSignal; alive: () => void; stop: () => void } {
  const controller = new AbortController();
  const abortAfter = (milliseconds: number, what: string) =>
    setTimeout(() => controller.abort(new TransientError(`${what} for ${milliseconds / 1000} s`)), milliseconds);
  const idle = abortAfter(limits.idleTimeoutMs, 'the server was silent');
  const total = abortAfter(limits.tryTimeoutMs, 'the download was not done');
  const stop = () => {
    clearTimeout(idle);
    clearTimeout(total);
  };
  return { signal: controller.signal, alive: () => idle.refresh(), stop };
}

/** Sends the request and follows redirects, of which each must be to an address that could stand in sources.json. */
async function request(url: string, known: Validators | undefined, signal: AbortSignal): Promise<Response> {
  let at = new URL(url);
  let authorization = takeCredentials(at);
  for (let redirects = 0; ; redirects++) {
    const response = await send(at, headersFor(known, authorization), signal);
    const location = response.headers.get('location');
    if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return response;
    await response.body?.cancel();
    if (redirects === MAX_REDIRECTS) throw new Error(`more than ${MAX_REDIRECTS} redirects`);
    const next = redirectTarget(location, at);
    // Credentials are for the server they were given for (Fetch standard, HTTP-redirect fetch).
    if (next.origin !== at.origin) authorization = takeCredentials(next);
    at = next;
  }
}

/** Takes user and password out of an address, as fetch refuses them there, and gives them as a header's value. */
function takeCredentials(url: URL): string {
  const { username, password } = url;
  url.username = '';
  url.password = '';
  if (username === '' && password === '') return '';
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

function headersFor(known: Validators | undefined, authorization: string): Record<string, string> {
  return {
    'user-agent': 'ipatlas',
    // The file as it is: a coding on the way would only hide its length.
    'accept-encoding': 'identity',
    ...(authorization !== '' && { authorization }),
    ...(known?.etag && { 'if-none-match': known.etag }),
    ...(known?.lastModified && { 'if-modified-since': known.lastModified }),
  };
}

async function send(url: URL, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, { headers, signal, redirect: 'manual' });
  } catch (error) {
    throw new TransientError(networkReason(error), { cause: error });
  }
}

/**
 * Where a redirect leads.
 *
 * @param location the header's value, absolute or relative
 * @param from the address it came from
 * @throws Error where it is not well-formed, or leads to plain HTTP from HTTPS or on another machine
 */
export function redirectTarget(location: string, from: URL): URL {
  if (!URL.canParse(location, from.href)) throw new Error('redirected to an address that is not well-formed');
  const next = new URL(location, from.href);
  const problem = urlProblem(next.href);
  const downgraded = from.protocol === 'https:' && next.protocol !== 'https:';
  if (problem === undefined && !downgraded) return next;
  throw new Error(`redirected to ${next.origin}; expected ${problem ?? 'an https:// address'}`);
}

async function checkStatus(response: Response, limits: DownloadLimits): Promise<void> {
  const { status } = response;
  if (status === 200) return;
  await response.body?.cancel();
  const message = `the server answered ${status} ${response.statusText}`.trimEnd();
  // 408 and 425 ask to come again, as 429 does (RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4).
  if (status >= 500 || [408, 425, 429].includes(status)) {
    throw new TransientError(message, { retryAfterMs: retryAfter(response, limits.maxRetryAfterMs) });
  }
  throw new Error(message);
}

/** `Retry-After` in milliseconds, as seconds or as a date (RFC 9110 §10.2.3), at most `max`; undefined where there is none. */
function retryAfter(response: Response, max: number): number | undefined {
  const value = response.headers.get('retry-after')?.trim();
  if (value === undefined) return undefined;
  const milliseconds = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.min(Math.max(0, milliseconds), max);
}

/** Writes the body to a file. A body that ends before its announced length is an error of the connection. */
async function saveBody(response: Response, target: string, maxBytes: number, alive: () => void): Promise<void> {
  const tooLarge = new Error(`the download is larger than ${maxBytes} bytes`);
  if (Number(response.headers.get('content-length')) > maxBytes) {
    await response.body?.cancel();
    throw tooLarge;
  }
  let bytes = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      alive();
      bytes += chunk.length;
      if (bytes > maxBytes) done(tooLarge);
      else done(null, chunk);
    },
  });
  const body = response.body === null ? Readable.from([]) : Readable.fromWeb(response.body as never);
  try {
    await pipeline(body, meter, createWriteStream(target));
  } catch (error) {
    // A body breaks off with a TypeError (Fetch standard); anything else is a limit, or our own disk.
    throw error instanceof TypeError ? new TransientError(networkReason(error), { cause: error }) : error;
  }
}

/** Why the network failed: fetch itself says no more than "fetch failed" and keeps the reason as the cause. */
function networkReason(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause === undefined) return messageOf(error);
  // A host with several addresses fails with one error for each.
  const reasons = cause instanceof AggregateError ? cause.errors : [cause];
  return `${messageOf(error)}: ${reasons.map(messageOf).join(', ')}`;
}

/**
 * Puts environment variables into an address, for keys that must not stand in a file.
 *
 * @param url an address with `${NAME}` in it
 * @param env the environment
 * @throws Error naming a variable that is not set
 */
export function fillPlaceholders(url: string, env: NodeJS.ProcessEnv): string {
  return url.replace(PLACEHOLDER, (_all, name: string) => {
    const value = env[name];
    if (value === undefined || value === '') throw new Error(`the environment variable ${name} is not set`);
    return encodeURIComponent(value);
  });
}

/** The name of the file an address is about: the last part of its path. */
export function nameOfUrl(url: string): string {
  return path.posix.basename(new URL(url).pathname) || 'download';
}
