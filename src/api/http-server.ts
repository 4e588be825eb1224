/** The HTTP server in front of the app: limits of size and time, and JSON for input that is not a request. */
import { once } from 'node:events';
import {
  type IncomingMessage,
  type RequestListener,
  Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { type Socket, Server as TcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { systemErrorCode, WIRE_ERRORS, type WireError } from '../errors.js';
import {
  DRAIN_GRACE_MS,
  DRAIN_TIMEOUT_MS,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_HEADER_BYTES,
  REFUSED_CONNECTION_MS,
  REQUEST_TIMEOUT_MS,
  SOCKET_TIMEOUT_MS,
} from '../limits.js';
import { ERROR_BODIES, JSON_TYPE } from './responses.js';
import { ALL_METHODS } from './routes.js';

/** How often Node looks for requests that are overdue, in milliseconds. */
const TIMEOUT_CHECK_MS = 1_000;

/** How often connections that became idle are closed while the server stops, in milliseconds. */
const IDLE_CHECK_MS = 20;

/** Most turns of the event loop in which connections are still accepted before the server stops listening. */
const MAX_ACCEPT_TURNS = 200;

/** A turn of the event loop that is shorter than this in milliseconds did nothing but look for connections. */
const QUIET_TURN_MS = 0.2;

/** The errors for bytes that are not a request, by the code of Node's parser; others are bad requests. */
const UNPARSED_ERRORS: Record<string, WireError> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'timeout',
};

/** The headers of a response that no route gives; it is the last of its connection. */
function headersOf(error: WireError, region: string | undefined): Record<string, string> {
  return {
    'access-control-allow-origin': '*',
    ...(region === undefined ? {} : { 'x-served-by': region }),
    ...(error === 'method_not_allowed' ? { allow: ALL_METHODS } : {}),
    'content-type': JSON_TYPE,
    'content-length': String(Buffer.byteLength(ERROR_BODIES[error])),
    connection: 'close',
  };
}

/** Times in milliseconds that a client has. */
const CLIENT_TIMES = {
  /** To send a request's headers. */
  headers: HEADERS_TIMEOUT_MS,
  /** To send a request. */
  request: REQUEST_TIMEOUT_MS,
  /** To receive the next part of a response. */
  socket: SOCKET_TIMEOUT_MS,
  /** Between two requests on a connection. */
  keepAlive: KEEP_ALIVE_TIMEOUT_MS,
  /** How often Node looks for requests that are overdue. */
  check: TIMEOUT_CHECK_MS,
  /** To close a connection after the response to something that is not a request. */
  refused: REFUSED_CONNECTION_MS,
};
export type ClientTimes = typeof CLIENT_TIMES;

export interface HttpServerOptions {
  /** Sent as `X-Served-By`. */
  region?: string | undefined;
  /** Called with the status of each response to something that the listener does not receive. */
  onUnparsed?: (status: number) => void;
  times?: ClientTimes;
}

/** The response that a connection gets now, or got last. A property, because a WeakMap takes longer for each request. */
const CURRENT = Symbol('current response');

/** The requests of a connection that wait for {@link CURRENT} to be sent. */
const WAITING = Symbol('waiting requests');

/** Reasons to read nothing from a connection for now. */
const HOLDS = Symbol('holds');

/** A request that waits; undefined for bytes that are not a request. */
interface Turn {
  request?: IncomingMessage;
  answer(): void;
}

type Connection = Duplex & { [CURRENT]?: ServerResponse; [WAITING]?: Turn[]; [HOLDS]?: number };

/** Whether Node is done with a response: all of it is written, and the socket is free for the next one. */
function isSent(response: ServerResponse): boolean {
  return response.writableFinished && response.socket === null;
}

function pauseAgain(this: Duplex): void {
  this.pause();
}

/** Reads nothing from a connection until {@link release} is called as often as this. */
export function hold(connection: Connection): void {
  const others = connection[HOLDS] ?? 0;
  connection[HOLDS] = others + 1;
  if (others > 0) return;
  // Node resumes a connection by itself when it has parsed a request or its body is read.
  connection.on('resume', pauseAgain);
  connection.pause();
}

/** Ends one {@link hold}. */
export function release(connection: Connection): void {
  const left = connection[HOLDS]! - 1;
  connection[HOLDS] = left;
  if (left > 0) return;
  connection.off('resume', pauseAgain);
  connection.resume();
}

/** Whether there is exactly one `Host` (RFC 9112 §3.2). @param rawHeaders names and values in turn */
function hasOneHost(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length === 4 && rawHeaders[i]!.toLowerCase() === 'host') hosts++;
  }
  return hosts === 1;
}

/** Answers one request. */
type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** An HTTP server that can stop listening without closing idle connections, and knows the responses of a connection. */
export class ApiHttpServer extends Server {
  /** Connections whose last response is on its way. */
  readonly #refused = new WeakSet<Duplex>();
  readonly #options: Required<Omit<HttpServerOptions, 'region'>> & Pick<HttpServerOptions, 'region'>;

  /** @param listener answers the requests */
  constructor(listener: RequestListener, { region, onUnparsed = () => {}, times = CLIENT_TIMES }: HttpServerOptions) {
    const options: ServerOptions = {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: times.headers,
      requestTimeout: times.request,
      keepAliveTimeout: times.keepAlive,
      connectionsCheckingInterval: times.check,
      // Node's own response to a request without Host is not JSON.
      requireHostHeader: false,
      noDelay: true,
    };
    super(options);
    this.#options = { region, onUnparsed, times };
    const answer: Answer = (request, response) => {
      if (request.httpVersion === '1.1' && !hasOneHost(request.rawHeaders)) {
        this.#answerError(response, 'bad_request');
        return;
      }
      listener(request, response);
      // `server.timeout` would set a timer for each request. Most responses are in the hands of the kernel by now.
      if (!response.writableFinished) response.setTimeout(times.socket);
    };
    this.on('request', (request, response) => this.#inTurn(request, response, answer));
    // The app asks for the body with 100 Continue, if it wants it.
    this.on('checkContinue', (request, response) => this.#inTurn(request, response, answer));
    this.on('checkExpectation', (request, response) =>
      this.#inTurn(request, response, () => this.#answerError(response, 'expectation')),
    );
    this.on('clientError', (error: Error, socket: Duplex) => {
      // The client is gone.
      const code = systemErrorCode(error) ?? '';
      if (code === 'ECONNRESET') socket.destroy();
      else this.#refuse(socket, UNPARSED_ERRORS[code] ?? 'bad_request');
    });
    this.on('connect', (_request: IncomingMessage, socket: Socket) => {
      // Node no longer watches such a socket: its errors and its end are handled here.
      socket.on('error', () => socket.destroy());
      socket.resume();
      this.#refuse(socket, 'method_not_allowed');
    });
  }

  /**
   * Answers the requests of a connection one after the other. A client may send many without reading a response; none of
   * them makes a response before those before it are sent, and nothing more is read meanwhile: a block of input, at most 1,400
   * requests, waits in 2.5 MB. With Node's own pause alone, which stops reading but not the block that was read, 100 such
   * clients that ask for pages delay others for 50 s instead of 4, and take 1.9 GB instead of 0.4 (November 2026;
   * `scripts/hostile-clients.js readers`).
   */
  #inTurn(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
    const connection: Connection = request.socket;
    // A response ended the connection before this request was read.
    if (!connection.writable) return;
    const { [CURRENT]: current, [WAITING]: waiting } = connection;
    const answerNow = (): void => {
      connection[CURRENT] = response;
      answer(request, response);
    };
    if (waiting !== undefined) {
      waiting.push({ request, answer: answerNow });
    } else if (current === undefined || isSent(current)) {
      answerNow();
    } else {
      connection[WAITING] = [{ request, answer: answerNow }];
      hold(connection);
      this.#answerNext(connection);
    }
  }

  /** Answers the requests that wait, each in a turn of the event loop of its own: other connections get theirs. */
  #answerNext(connection: Connection): void {
    const next = (): void => {
      const waiting = connection[WAITING]!;
      // The response before ended the connection, or the client is gone.
      if (!connection.writable) return;
      waiting.shift()?.answer();
      if (waiting.length > 0) {
        this.#answerNext(connection);
        return;
      }
      delete connection[WAITING];
      release(connection);
    };
    connection[CURRENT]!.once('close', () => setImmediate(next));
  }

  /** Answers a request that the listener does not receive. It is the last one of its connection. */
  #answerError(response: ServerResponse, error: WireError): void {
    const { region, onUnparsed } = this.#options;
    const { status } = WIRE_ERRORS[error];
    onUnparsed(status);
    response.writeHead(status, headersOf(error, region));
    response.end(ERROR_BODIES[error]);
  }

  /**
   * Stops listening. Open connections stay open, idle ones too: a request may be on its way on each of them.
   *
   * @param closed called when the last connection is closed
   */
  stopListening(closed: () => void): void {
    // `close` of an HTTP server also closes idle connections; that of a TCP server, which it is, does not.
    TcpServer.prototype.close.call(this, closed);
  }

  /** Answers something that is not a request, after the responses to the requests before it, and ends the connection. */
  #refuse(socket: Connection, error: WireError): void {
    // The connection is being closed: further errors of the parser change nothing.
    if (this.#refused.has(socket) || socket.destroyed) return;
    this.#refused.add(socket);
    this.#options.onUnparsed(WIRE_ERRORS[error].status);

    const { [CURRENT]: current, [WAITING]: waiting } = socket;
    const end = (): void => this.#endWith(socket, error);
    if (waiting !== undefined) {
      // A request that is not complete is the one that is refused here.
      if (waiting.at(-1)?.request?.complete === false) waiting.pop();
      waiting.push({ answer: end });
    } else if (current === undefined || isSent(current) || !current.req.complete) end();
    else current.once('close', end);
  }

  #endWith(socket: Duplex, error: WireError): void {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const { region, times } = this.#options;
    const { status } = WIRE_ERRORS[error];
    const lines = Object.entries(headersOf(error, region)).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${ERROR_BODIES[error]}`);
    // A client that goes on sending would keep the connection open.
    const timer = setTimeout(() => socket.destroy(), times.refused);
    socket.once('close', () => clearTimeout(timer));
  }
}

/** Listens; port 0 for any free one. */
export async function listen(server: Server, host: string, port: number): Promise<void> {
  await once(server.listen({ host, port }), 'listening');
}

/**
 * Accepts the connections that wait, so that none is reset when the server stops listening.
 *
 * The event loop accepts one connection a turn. A turn in which none came, and which did no other work, ends just after
 * the queue was seen empty.
 */
async function acceptWaiting(server: Server): Promise<void> {
  let accepted = true;
  const onConnection = (): void => {
    accepted = true;
  };
  server.on('connection', onConnection);
  for (let turn = 0; turn < MAX_ACCEPT_TURNS; turn++) {
    const start = performance.now();
    accepted = false;
    await nextTurn();
    if (!accepted && performance.now() - start < QUIET_TURN_MS) break;
  }
  server.off('connection', onConnection);
}

/**
 * Stops a server without dropping a request.
 *
 * First it stops listening: clients that connect now are refused and know it. Requests on open connections are still
 * answered. When no other process that is about to stop listens on the port, each response ends its connection (the app
 * sees to that); earlier, clients would connect again to such a process. After the grace period idle
 * connections are closed, and requests that are being processed are waited for.
 *
 * @param grace how long an idle connection may still bring a request, in milliseconds
 * @param patience how long requests are waited for after that, in milliseconds
 * @param onClosing called when responses should end their connections
 * @param portFree called when this server no longer listens; resolves when no other process that is about to stop
 *   listens on the port. Waited for at most for the grace period
 * @returns whether all requests were answered in time; the others are cut off
 */
export async function drain(
  server: ApiHttpServer,
  grace = DRAIN_GRACE_MS,
  patience = DRAIN_TIMEOUT_MS,
  onClosing: () => void = () => {},
  portFree: () => Promise<void> | void = () => {},
): Promise<boolean> {
  await acceptWaiting(server);
  let closed = false;
  server.stopListening(() => {
    closed = true;
  });
  // The timer must not keep the process alive when the port is free.
  await Promise.race([portFree(), sleep(grace, undefined, { ref: false })]);
  onClosing();
  const graceEnd = performance.now() + grace;
  const end = graceEnd + patience;
  while (!closed && performance.now() < end) {
    if (performance.now() >= graceEnd) server.closeIdleConnections();
    await sleep(IDLE_CHECK_MS);
  }
  server.closeAllConnections();
  // Ends what an HTTP server has besides a TCP server: its search for overdue requests.
  server.close();
  return closed;
}
