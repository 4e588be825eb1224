/** The HTTP server around the app: sizes, time-outs, and JSON for requests that never become one for the app. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { systemErrorCode, WIRE_ERRORS, type WireError } from '../errors.js';
import {
  DRAIN_GRACE_MS,
  DRAIN_TIMEOUT_MS,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_HEADER_BYTES,
  REQUEST_TIMEOUT_MS,
  SOCKET_TIMEOUT_MS,
} from '../limits.js';
import { ERROR_BODIES, JSON_TYPE } from './answers.js';
import { ALL_METHODS } from './paths.js';

/** How often Node looks for requests that are overdue, in milliseconds. */
const TIMEOUT_CHECK_MS = 1_000;

/** How often connections that became idle are closed while the server stops, in milliseconds. */
const IDLE_CHECK_MS = 20;

/** What is wrong with bytes that are no request, by the parser's error code. */
function unparsedError(error: Error): WireError {
  switch (systemErrorCode(error)) {
    case 'HPE_HEADER_OVERFLOW':
      return 'headers_too_large';
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'timeout';
    default:
      return 'bad_request';
  }
}

/** The answer to an earlier request of the connection that is still to come; Node keeps it there. */
type Answering = Duplex & { _httpMessage?: ServerResponse | null };

/** Sockets whose last answer is on its way, or waits for its turn: what else comes on them changes nothing. */
const ending = new WeakSet<Duplex>();

/** The headers of an answer that is no route's; the last of its connection. */
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

/** Answers on a socket, behind the answers to the requests before, and closes it. */
function answerSocket(socket: Answering, error: WireError, region: string | undefined): void {
  const earlier = socket._httpMessage;
  // A request that is not whole is the one that is answered here.
  if (earlier?.req.complete) {
    earlier.once('close', () => answerSocket(socket, error, region));
    return;
  }
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const { status } = WIRE_ERRORS[error];
  const lines = Object.entries(headersOf(error, region)).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${ERROR_BODIES[error]}`);
}

/** Times in milliseconds that a client has. */
export interface ClientTimes {
  /** To send a request's headers. */
  headers: number;
  /** To send a request. */
  request: number;
  /** To take the next part of an answer. */
  socket: number;
  /** Between two requests on a connection. */
  keepAlive: number;
  /** How often Node looks for requests that are overdue. */
  check: number;
}

const CLIENT_TIMES: ClientTimes = {
  headers: HEADERS_TIMEOUT_MS,
  request: REQUEST_TIMEOUT_MS,
  socket: SOCKET_TIMEOUT_MS,
  keepAlive: KEEP_ALIVE_TIMEOUT_MS,
  check: TIMEOUT_CHECK_MS,
};

export interface HttpServerOptions {
  /** Sent as `X-Served-By`. */
  region?: string | undefined;
  /** Told the status of each answer to something that never becomes a request for the listener. */
  onUnparsed?: (status: number) => void;
  times?: ClientTimes;
}

/** @param listener answers the requests */
export function createHttpServer(
  listener: RequestListener,
  { region, onUnparsed = () => {}, times = CLIENT_TIMES }: HttpServerOptions = {},
): Server {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: times.headers,
      requestTimeout: times.request,
      keepAliveTimeout: times.keepAlive,
      connectionsCheckingInterval: times.check,
      // Node's own answer to a request without Host would not be JSON, and nothing here depends on a host's name.
      requireHostHeader: false,
      noDelay: true,
    },
    listener,
  );
  server.timeout = times.socket;
  // Who sends a request and then closes that half of the connection still wants the answer, which may take a turn.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;

  function refuse(socket: Duplex, error: WireError): void {
    if (ending.has(socket)) return;
    ending.add(socket);
    onUnparsed(WIRE_ERRORS[error].status);
    answerSocket(socket, error, region);
  }
  server.on('clientError', (error: Error, socket: Duplex) => {
    // The other end is gone.
    if (systemErrorCode(error) === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    refuse(socket, unparsedError(error));
  });
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const { status } = WIRE_ERRORS.expectation;
    onUnparsed(status);
    response.writeHead(status, headersOf('expectation', region));
    response.end(ERROR_BODIES.expectation);
  });
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    // Node lets go of such a socket altogether: its errors and its end are to be seen to here.
    socket.on('error', () => socket.destroy());
    socket.setTimeout(times.keepAlive, () => socket.destroy());
    socket.resume();
    refuse(socket, 'method_not_allowed');
  });
  return server;
}

/** Listens; port 0 for any free one. */
export function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Ends a server without dropping a request.
 *
 * First it stops listening: whoever connects now is refused, and knows it. Connections that are there are served on, each
 * answer ending its connection (the app sees to that). After a while those are closed that nothing came on, and requests
 * under way are waited for.
 *
 * @param grace how long an idle connection may still bring a request, in milliseconds
 * @param patience how long requests under way are waited for after that, in milliseconds
 * @param onDeaf called once it no longer listens. Answers should end their connections from then on, not before: callers
 *   would connect anew at the very moment when that is in vain
 * @returns whether all were answered in time; those that were not are cut off
 */
export async function drain(
  server: Server,
  grace = DRAIN_GRACE_MS,
  patience = DRAIN_TIMEOUT_MS,
  onDeaf: () => void = () => {},
): Promise<boolean> {
  // Right behind the turn in which the connections that wait were accepted: what is not accepted yet is lost.
  await new Promise<void>((resolve) => setImmediate(resolve));
  let closed = false;
  // An HTTP server's own close() would close idle connections at once, in the face of a request that is on its way.
  NetServer.prototype.close.call(server, () => {
    closed = true;
  });
  onDeaf();
  const graceEnd = performance.now() + grace;
  const end = graceEnd + patience;
  while (!closed && performance.now() < end) {
    if (performance.now() >= graceEnd) server.closeIdleConnections();
    await sleep(IDLE_CHECK_MS);
  }
  server.closeAllConnections();
  server.close(() => {}); // ends Node's own look-out for overdue requests
  return closed;
}
