/** Downloads over HTTPS: conditional requests, retries, and a limit on everything that a server controls. */
import { createHash } from 'node:crypto';
import { closeSync, createReadStream, openSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../../src/errors.js';
import { writePieces } from '../../src/files.js';
import { type GetOptions, get, NetworkError, type Receive } from '../../src/network.js';
import { parseUrl, takeCredentials } from '../../src/url.js';
import { waitAfter } from '../../src/waits.js';
import { baseName } from '../../src/wildcards.js';
import { addressProblem } from '../config/url.js';

/** Largest checksum file in bytes (1 MiB): a list of the hashes of a whole folder fits. */
const MAX_CHECKSUM_BYTES = 1_048_576;

/** Redirects followed for one download. More are a loop. */
export const MAX_REDIRECTS = 5;

/** Limits of a download; the defaults are in `stages/fetch.ts`. Times in milliseconds. */
export interface DownloadLimits {
  maxDownloadBytes: number;
  /** Attempts after the first. */
  retries: number;
  idleTimeoutMs: number;
  tryTimeoutMs: number;
  /** Of all attempts together; none if undefined. */
  deadlineMs?: number;
  backoffMs: number;
  maxBackoffMs: number;
  maxRetryAfterMs: number;
}

/** What a server says about the version of a file (RFC 9110 §8.8); empty if it says nothing. */
export interface Validators {
  etag: string;
  lastModified: string;
}

/** The outcome of a download. */
export interface Downloaded extends Validators {
  isUnchanged: boolean;
}

/** What a download needs besides its address. */
export interface DownloadContext {
  limits: DownloadLimits;
  /** Environment, for the proxy variables. */
  env: NodeJS.ProcessEnv;
  /** Waits between attempts. */
  wait: (milliseconds: number) => Promise<unknown>;
  /** Is told of each attempt that failed, and when the next one is. */
  retrying: (text: string) => void;
  /** Receives the time that a server says it is, in milliseconds since 1970, for each response that has a date. */
  serverTime?: (time: number) => void;
  /**
   * Whether to continue a target that an earlier attempt began (RFC 9110 §14.2), instead of starting again. The caller must
   * know that the file at the address never changes, and check its hash.
   */
  resume?: boolean;
  /** Whether the caller checks signatures of all content, so that a redirect from plain HTTP to plain HTTP is no danger. */
  isSigned?: boolean;
}

/** A failure that a later attempt may not have. */
export class TransientError extends Error {
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number | undefined } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The server answered with a status that another attempt does not change. */
export class StatusError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** The server has no such file. */
export class NotFoundError extends StatusError {}

/**
 * Downloads a file, unless it is unchanged.
 *
 * @param url the address; user and password in it are sent as Basic authentication (RFC 7617)
 * @param target path of the new file
 * @param known validators of the copy in the cache; undefined if there is none
 * @returns the validators of the file, and whether it is unchanged, so that nothing was downloaded
 * @throws NotFoundError if the server has no such file; StatusError for another status; Error with the reason for other
 *   failures, when no attempt is left;
 *   a system error if the target cannot be written
 */
export async function download(
  url: string,
  target: string,
  known: Validators | undefined,
  context: DownloadContext,
): Promise<Downloaded> {
  return withRetries(context, (tryTimeoutMs) =>
    tryDownload(url, target, known, { ...context, limits: { ...context.limits, tryTimeoutMs } }),
  );
}

/**
 * Tries something again, with growing waits, as long as it fails with a TransientError and the limits allow it.
 *
 * @param attempt receives how long it may take, in milliseconds
 * @throws what the last attempt throws
 */
export async function withRetries<Result>(
  { limits, wait, retrying }: Pick<DownloadContext, 'limits' | 'wait' | 'retrying'>,
  attempt: (timeoutMs: number) => Promise<Result>,
): Promise<Result> {
  const { deadlineMs = Number.POSITIVE_INFINITY } = limits;
  const start = performance.now();
  for (let failures = 1; ; failures++) {
    const left = deadlineMs - (performance.now() - start);
    try {
      return await attempt(Math.min(limits.tryTimeoutMs, left));
    } catch (error) {
      if (!(error instanceof TransientError) || failures > limits.retries) throw error;
      const delay = error.retryAfterMs ?? withJitter(waitAfter(failures, limits.backoffMs, limits.maxBackoffMs));
      if (performance.now() - start + delay >= deadlineMs) throw error;
      retrying(`${error.message}; trying again in ${Math.ceil(delay / 1000)} s`);
      await wait(delay);
    }
  }
}

/** Returns a random delay between half of `delay` and `delay`, so that many clients do not return at the same moment. */
function withJitter(delay: number): number {
  return delay * (0.5 + Math.random() / 2);
}

async function tryDownload(
  url: string,
  target: string,
  known: Validators | undefined,
  { limits, env, serverTime = () => {}, resume = false, isSigned = false }: DownloadContext,
): Promise<Downloaded> {
  const watchdog = startWatchdog(limits);
  const begun = resume ? (statSync(target, { throwIfNoEntry: false })?.size ?? 0) : 0;
  let isUnchanged = false;
  let fd: number | undefined;
  /** Checks the response, and opens the file that receives its body. */
  const receive = (response: IncomingMessage): Receive | undefined => {
    isUnchanged = response.statusCode === 304 && known !== undefined;
    if (isUnchanged) return undefined;
    const isContinued = begun > 0 && isRest(response, begun);
    if (!isContinued) {
      // What was begun does not fit to what the server has.
      if ([206, 416].includes(response.statusCode!)) rmSync(target, { force: true });
      checkStatus(response, limits);
    }
    let bytes = isContinued ? begun : 0;
    const tooLarge = new Error(`the download is larger than ${limits.maxDownloadBytes} bytes`);
    if (bytes + Number(response.headers['content-length'] ?? 0) > limits.maxDownloadBytes) throw tooLarge;
    const file = openSync(target, isContinued ? 'a' : 'w');
    fd = file;
    return (piece) => {
      watchdog.reset();
      bytes += piece.length;
      if (bytes > limits.maxDownloadBytes) throw tooLarge;
      writePieces(file, [piece]);
    };
  };
  try {
    const request = { headers: headersFor(known, begun), signal: watchdog.signal, env };
    const response = await follow(url, request, isSigned, (head) => {
      const time = timeOf(head);
      if (time !== undefined) serverTime(time);
      return receive(head);
    });
    // The headers of a 304 replace those of the copy (RFC 9111 §3.2): a publisher may confirm old content each day.
    const { etag, lastModified } = isUnchanged ? known! : { etag: '', lastModified: '' };
    return {
      isUnchanged,
      etag: response.headers.etag ?? etag,
      lastModified: response.headers['last-modified'] ?? lastModified,
    };
  } catch (error) {
    throw error instanceof NetworkError && !isPermanent(error)
      ? new TransientError(error.message, { cause: error.cause })
      : error;
  } finally {
    if (fd !== undefined) closeSync(fd);
    watchdog.stop();
  }
}

/** Starts timers that abort an attempt after a silence, and after a total time. */
function startWatchdog(limits: DownloadLimits): { signal: AbortSignal; reset: () => void; stop: () => void } {
  const controller = new AbortController();
  const abortAfter = (milliseconds: number, what: string) =>
    setTimeout(
      () => controller.abort(new TransientError(`${what} for ${Number((milliseconds / 1000).toFixed(3))} s`)),
      milliseconds,
    );
  const idle = abortAfter(limits.idleTimeoutMs, 'the server was silent');
  const total = abortAfter(limits.tryTimeoutMs, 'the download was not done');
  const stop = () => {
    clearTimeout(idle);
    clearTimeout(total);
  };
  return { signal: controller.signal, reset: () => idle.refresh(), stop };
}

/**
 * Sends the request and follows redirects. Each target is checked against the rules for addresses: https must not
 * become http.
 */
async function follow(
  url: string,
  { headers, ...options }: GetOptions,
  isSigned: boolean,
  receive: (response: IncomingMessage) => Receive | undefined,
): Promise<IncomingMessage> {
  let at = new URL(url);
  let authorization = takeCredentials(at);
  for (let redirects = 0; ; redirects++) {
    let next: URL | undefined;
    const all = { ...headers, ...(authorization !== '' && { authorization }) };
    const response = await get(at, { headers: all, ...options }, (head) => {
      const { location } = head.headers;
      if (![301, 302, 303, 307, 308].includes(head.statusCode!) || location === undefined) return receive(head);
      if (redirects === MAX_REDIRECTS) throw new Error(`more than ${MAX_REDIRECTS} redirects`);
      next = redirectTarget(location, at, isSigned);
      return undefined;
    });
    if (next === undefined) return response;
    const given = takeCredentials(next);
    // Credentials are only for the origin they were given for (Fetch standard, HTTP-redirect fetch).
    if (given !== '' || next.origin !== at.origin) authorization = given;
    at = next;
  }
}

/** Returns the time of a server (RFC 9110 §6.6.1), in milliseconds since 1970; a cache says how old its copy is (RFC 9111 §5.1). */
function timeOf({ headers: { date = '', age = '0' } }: IncomingMessage): number | undefined {
  const time = Date.parse(date) + 1000 * Number(age);
  return Number.isNaN(time) ? undefined : time;
}

function headersFor(known: Validators | undefined, begun: number): Record<string, string> {
  return {
    'user-agent': 'ipatlas',
    // Without content coding, Content-Length is the length of the file.
    'accept-encoding': 'identity',
    ...(begun > 0 && { range: `bytes=${begun}-` }),
    ...(known?.etag && { 'if-none-match': known.etag }),
    ...(known?.lastModified && { 'if-modified-since': known.lastModified }),
  };
}

/** Returns whether a failed request will fail again: the certificate is not valid. */
function isPermanent({ cause }: NetworkError): boolean {
  const { code = '' } = (cause ?? {}) as NodeJS.ErrnoException;
  return /CERT|^ERR_(TLS|SSL)|UNABLE_TO_|SELF_SIGNED|HOSTNAME_MISMATCH|^EPROTO$/.test(code);
}

/**
 * Returns the target of a redirect.
 *
 * @param location the header's value, absolute or relative
 * @param from the address that redirects
 * @param isSigned whether plain HTTP is allowed, see {@link DownloadContext.isSigned}
 * @throws Error if the target may not be downloaded from
 */
export function redirectTarget(location: string, from: URL, isSigned = false): URL {
  const next = parseUrl(location, from);
  if (next === undefined) throw new Error('redirected to an address that is not well-formed');
  const expected = isSigned && next.protocol === 'http:' ? undefined : addressProblem(next.href);
  const isDowngrade = from.protocol === 'https:' && next.protocol !== 'https:';
  if (expected === undefined && !isDowngrade) return next;
  throw new Error(`redirected to ${next.origin}; expected ${expected ?? 'an https:// address'}`);
}

/** Returns whether a response has the rest of a file after its first `begun` bytes (RFC 9110 §14.4). */
function isRest(response: IncomingMessage, begun: number): boolean {
  return response.statusCode === 206 && (response.headers['content-range'] ?? '').startsWith(`bytes ${begun}-`);
}

function checkStatus(response: IncomingMessage, limits: DownloadLimits): void {
  const { statusCode: status = 0, statusMessage = '' } = response;
  if (status === 200) return;
  const message = `the server answered ${status} ${statusMessage}`.trimEnd();
  if (status === 404 || status === 410) throw new NotFoundError(message, status);
  // A range that does not exist, or one that was not asked for: the next attempt asks for the whole file.
  if (status === 416 || status === 206) throw new TransientError(message);
  // 408 and 425 ask for another attempt, as 429 does (RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4).
  if (status >= 500 || [408, 425, 429].includes(status)) {
    throw new TransientError(message, { retryAfterMs: retryAfter(response, limits.maxRetryAfterMs) });
  }
  throw new StatusError(message, status);
}

/** Parses `Retry-After`, seconds or a date (RFC 9110 §10.2.3), into milliseconds, at most `max`; undefined if there is none. */
function retryAfter(response: IncomingMessage, max: number): number | undefined {
  const value = response.headers['retry-after']?.trim();
  if (value === undefined) return undefined;
  const milliseconds = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.min(Math.max(0, milliseconds), max);
}

/**
 * Checks a downloaded file against the checksum that its publisher puts beside it.
 *
 * @param file path of the download
 * @param fileName its name, as the checksum file may name it
 * @param checksumUrl address of the checksum file
 * @throws Error if the checksum cannot be had, or is that of another content
 */
export async function checkDownload(
  file: string,
  fileName: string,
  checksumUrl: string,
  context: DownloadContext,
): Promise<void> {
  const checksumFile = `${file}.checksum`;
  const limits = { ...context.limits, maxDownloadBytes: MAX_CHECKSUM_BYTES };
  try {
    await download(checksumUrl, checksumFile, undefined, { ...context, limits });
  } catch (error) {
    throw new Error(`its checksum cannot be downloaded: ${messageOf(error)}`, { cause: error });
  }
  const text = await readFile(checksumFile, 'latin1');
  const expected = parseChecksum(text, fileName);
  const hash = createHash(expected.algorithm);
  await pipeline(createReadStream(file), hash);
  const actual = hash.digest('hex');
  if (actual !== expected.hash) {
    throw new Error(`its ${expected.algorithm} is ${actual}, but its publisher says ${expected.hash}`);
  }
}

/** Returns the file name of an address: the last part of its path. */
export function nameOfUrl(url: string): string {
  return path.posix.basename(new URL(url).pathname) || 'download';
}

/** Hex digits of a SHA-256 or an MD5. */
const HASH = /(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![0-9a-f])/i;

export interface Checksum {
  algorithm: 'sha256' | 'md5';
  /** Hexadecimal, lower case. */
  hash: string;
}

/**
 * Reads the checksum of a file from the text beside it: the output of `sha256sum` or `md5sum`, its BSD form
 * (`MD5 (name) = hash`), or the hash alone. The number of digits tells the algorithm.
 *
 * @param text of the checksum file
 * @param fileName name of the file; a line with it is preferred, as a list may cover several files
 * @throws Error if the text has no checksum for the file
 */
export function parseChecksum(text: string, fileName: string): Checksum {
  const lines = text.split(/\r?\n/).filter((line) => HASH.test(line));
  const named = lines.find((line) => line.split(/[\s()*]+/).some((word) => baseName(word) === fileName));
  const line = named ?? (lines.length === 1 ? lines[0] : undefined);
  if (line === undefined) throw new Error(`the checksum file has no SHA-256 or MD5 of ${fileName}`);
  const hash = HASH.exec(line)![0].toLowerCase();
  return { algorithm: hash.length === 64 ? 'sha256' : 'md5', hash };
}
