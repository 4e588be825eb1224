/** What all HTTP requests of ipatlas share: the request itself, and the proxies of the environment. */
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { messageOf, systemErrorCode } from './errors.js';
import { takeCredentials } from './url.js';

/** A request that failed on the way: no connection, or a response that is not HTTP or breaks off. */
export class NetworkError extends Error {}

/** Receives a piece of a body; it must use or copy it before it returns. */
export type Receive = (piece: Buffer) => void;

export interface GetOptions {
  headers: Record<string, string>;
  signal: AbortSignal;
  /** Environment, for HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in either case. */
  env: NodeJS.ProcessEnv;
}

/**
 * Sends a GET request on a connection of its own. Redirects are not followed.
 *
 * @param onResponse returns what receives the body; undefined if the body is not wanted
 * @returns the status and headers, when the body is complete
 * @throws NetworkError; the reason of an aborted signal; what `onResponse` and the receiver throw
 */
export async function get(
  url: URL,
  { headers, signal, env }: GetOptions,
  onResponse: (response: http.IncomingMessage) => Receive | undefined,
): Promise<http.IncomingMessage> {
  const failed = (error: unknown): never => {
    throw signal.aborted ? signal.reason : new NetworkError(networkReason(error), { cause: error });
  };
  signal.throwIfAborted();
  const proxy = proxyOf(url, env);
  const socket = proxy && (await openTunnel(proxy, url, signal).catch(failed));
  const request = clientOf(url).get(url, {
    headers,
    signal,
    ...(socket ? throughSocket(socket, url) : { agent: false }),
  });
  try {
    const [response] = (await once(request, 'response').catch(failed)) as [http.IncomingMessage];
    const receive = onResponse(response);
    const pieces: AsyncIterator<Buffer> = response[Symbol.asyncIterator]();
    while (receive !== undefined) {
      const { done, value } = await pieces.next().catch(failed);
      if (done) break;
      receive(value);
    }
    return response;
  } finally {
    // What else fails on a connection that is no longer needed is of no interest.
    request.on('error', () => {}).destroy();
  }
}

const clientOf = ({ protocol }: URL) => (protocol === 'https:' ? https : http);

const portOf = ({ port, protocol }: URL): string => port || (protocol === 'https:' ? '443' : '80');

/** Returns the proxy for a URL; undefined if there is none. Agents of Node 24 do that by themselves (`proxyEnv`). */
function proxyOf(url: URL, env: NodeJS.ProcessEnv): URL | undefined {
  const variable = (name: string): string => env[name] ?? env[name.toUpperCase()] ?? '';
  const proxy = variable(url.protocol === 'https:' ? 'https_proxy' : 'http_proxy');
  const isDirect = variable('no_proxy')
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      // A domain, with or without a leading dot or "*.", stands for the names in it, too.
      const [, domain = '', port = portOf(url)] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry)!;
      return entry === '*' || (port === portOf(url) && `.${url.hostname}`.endsWith(`.${domain}`) && domain !== '');
    });
  if (proxy === '' || isDirect) return undefined;
  return new URL(proxy.includes('://') ? proxy : `http://${proxy}`);
}

/** Opens a connection to the host of a URL through a proxy (CONNECT, RFC 9110 §9.3.6). Throws the reason if the proxy refuses. */
async function openTunnel(proxy: URL, url: URL, signal: AbortSignal): Promise<Socket> {
  const target = `${url.hostname}:${portOf(url)}`;
  const authorization = takeCredentials(proxy);
  const headers = { host: target, ...(authorization !== '' && { 'proxy-authorization': authorization }) };
  const request = clientOf(proxy).request(proxy, { method: 'CONNECT', path: target, headers, signal, agent: false });
  const [{ statusCode }, socket] = (await once(request.end(), 'connect')) as [http.IncomingMessage, Socket];
  if (statusCode === 200) return socket;
  socket.destroy();
  throw new Error(`the proxy answered ${statusCode}`);
}

/** Returns the options of a request that uses a connection to the host of a URL. */
function throughSocket(socket: Socket, { protocol, hostname }: URL): http.RequestOptions {
  const host = hostname.replace(/^\[|\]$/g, '');
  const servername = isIP(host) === 0 ? host : '';
  return { createConnection: () => (protocol === 'https:' ? connectTls({ socket, host, servername }) : socket) };
}

/** Returns why the network failed: the innermost cause has the reason. */
function networkReason(error: unknown): string {
  let cause = error;
  while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause;
  // A host with several addresses fails with one error for each.
  const reasons = cause instanceof AggregateError ? cause.errors : [cause];
  return reasons.map(reasonText).join(', ');
}

/** Certificates of an authority that is not known (OpenSSL, X509_STORE_CTX_get_error). */
const UNKNOWN_AUTHORITY = /SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)/;

function reasonText(reason: unknown): string {
  const code = systemErrorCode(reason) ?? '';
  if (code === 'ECONNRESET') return 'the connection was closed too early';
  const advice = ' (NODE_EXTRA_CA_CERTS=FILE names an authority of your own)';
  return `${messageOf(reason)}${UNKNOWN_AUTHORITY.test(code) ? advice : ''}`;
}
