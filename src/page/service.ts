/** Requests of the pages to the API. */
import { MAX_BATCH } from '../limits.js';
import { RequestError } from './problems.js';
import type { Period, Result } from './results.js';

/** The answer of `GET /page/key`. */
interface PageKey {
  key: string;
  /** Addresses a minute. */
  rate: number;
}

/** Returns whether an error means that its signal was aborted. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** The folder of the pages: the worker's own URL is in another one. */
let base = '';

/** Sets the URL that all paths are relative to. */
export function setBase(url: string): void {
  base = url;
}

function unreachable(): RequestError {
  return new RequestError('The server cannot be reached.', 0);
}

async function request(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(base === '' ? url : new URL(url, base), { ...init, cache: 'no-store', credentials: 'omit' });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw unreachable();
  }
}

async function bodyOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw unreachable();
  }
}

function retryAfterOf({ headers }: Response): number | undefined {
  const value = headers.get('Retry-After');
  return value === null ? undefined : Number(value);
}

/** Returns the body of a response. Throws RequestError if the server has refused the request. */
async function acceptedBody<Body>(response: Response): Promise<Body> {
  const { ok, status } = response;
  const body = await bodyOf(response);
  if (ok) return body as Body;
  const { error = status } = body as { error?: string };
  throw new RequestError(`The server answered: ${error}.`, status, retryAfterOf(response));
}

let current: Promise<PageKey> | undefined;

/** Returns the short-lived key of the page. @param fresh whether the last one is used up */
function pageKey(fresh: boolean): Promise<PageKey> {
  if (current === undefined || fresh) {
    current = request('page/key', {}).then((response) => acceptedBody<PageKey>(response));
    // The next request tries again.
    current.catch(() => {
      current = undefined;
    });
  }
  return current;
}

/** Returns what a promise resolves to; rejects with the reason of the signal once that is aborted. */
export async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  signal.throwIfAborted();
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Sends a request with the page's key, and with a new one if that has expired. */
async function withKey(url: string, init: RequestInit): Promise<Response> {
  for (let fresh = false; ; fresh = true) {
    const { key } = await pageKey(fresh);
    const response = await request(url, { ...init, headers: { ...init.headers, 'X-API-Key': key } });
    if (response.status !== 403 || fresh) return response;
  }
}

/** Returns how many addresses fit into one request. */
export async function batchSize(): Promise<number> {
  const { rate } = await pageKey(false);
  return rate === 0 ? MAX_BATCH : Math.min(MAX_BATCH, rate);
}

/** Returns the body of a response; waits if the rate is used up. @param onWait called with the seconds to wait */
async function whenAllowed(
  url: string,
  init: RequestInit & { signal: AbortSignal },
  onWait: (seconds: number) => void,
): Promise<unknown> {
  for (;;) {
    const response = await withKey(url, init);
    if (response.status !== 429) return acceptedBody(response);
    const seconds = retryAfterOf(response) ?? 1;
    onWait(seconds);
    await untilAborted(new Promise((resolve) => setTimeout(resolve, 1_000 * seconds)), init.signal);
  }
}

/**
 * Looks up addresses in one request; waits if the rate is used up.
 *
 * @param onWait called with the seconds to wait
 * @param query further parameters of the request: `include`, `at`
 * @returns for each address, as sent, its result
 * @throws RequestError, or the reason of the signal
 */
export async function lookUpBatch(
  addresses: readonly string[],
  signal: AbortSignal,
  onWait: (seconds: number) => void,
  query = new URLSearchParams(),
): Promise<Record<string, Result | { error: string }>> {
  const init = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(addresses),
    signal,
  };
  const url = query.size === 0 ? 'api/batch' : `api/batch?${query}`;
  return (await whenAllowed(url, init, onWait)) as Record<string, Result | { error: string }>;
}

/** Looks up one address; waits as {@link lookUpBatch}. @returns undefined if it is not an address */
export async function lookUp(
  address: string,
  signal: AbortSignal,
  onWait: (seconds: number) => void,
  query: URLSearchParams,
): Promise<Result | undefined> {
  const result = (await lookUpBatch([address], signal, onWait, query))[address];
  return result === undefined || 'error' in result ? undefined : result;
}

/** Returns the history of an address; waits as {@link lookUpBatch}. */
export async function historyOf(
  address: string,
  signal: AbortSignal,
  onWait: (seconds: number) => void,
): Promise<Period[]> {
  const { periods } = (await whenAllowed(`api/history/${address}`, { signal }, onWait)) as { periods: Period[] };
  return periods;
}

/** Looks up the address from which a server of the service sees this browser. @param base URL of that server */
export async function lookUpSelf(base: string, signal: AbortSignal): Promise<Result> {
  return acceptedBody(await withKey(`${base}/api/lookup/`, { signal }));
}

/** A key that was made by signing up. */
export interface NewKey {
  id: string;
  key: string;
  /** Addresses a minute; 0 for no limit. */
  rate: number;
}

/** Makes a key. Throws RequestError. */
export async function signUp(): Promise<NewKey> {
  return acceptedBody(await request('api/keys', { method: 'POST' }));
}

/** What a key's holder can see about it. */
export interface KeyState {
  id: string;
  rate: number;
  self_issued: boolean;
}

/** Asks about a key. Throws RequestError if it is not valid. */
export async function keyState(key: string): Promise<KeyState & { remaining: number | undefined }> {
  const response = await request('api/keys/current', { headers: { 'X-API-Key': key } });
  const remaining = response.headers.get('X-RateLimit-Remaining');
  return { ...(await acceptedBody<KeyState>(response)), remaining: remaining === null ? undefined : Number(remaining) };
}

/** Revokes a self-issued key. Throws RequestError. */
export async function revokeKey(key: string): Promise<void> {
  await acceptedBody(await request('api/keys/current', { method: 'DELETE', headers: { 'X-API-Key': key } }));
}
