/** The HTTP server around the app: sizes, time-outs, and JSON for requests that never become one for the app. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
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

/** Answers on a socket, which is closed behind it. */
function answerSocket(socket: Duplex, error: WireError): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const { status } = WIRE_ERRORS[error];
  const body = ERROR_BODIES[error];
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${JSON_TYPE}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const body = ERROR_BODIES.expectation;
  response.writeHead(WIRE_ERRORS.expectation.status, {
    'content-type': JSON_TYPE,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  response.end(body);
}

/**
 * @param listener answers the requests
 * @param onUnparsed told the status of each answer to something that is no HTTP request
 */
export function createHttpServer(listener: RequestListener, onUnparsed: (status: number) => void): Server {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      // Node's own answer to a request without Host would not be JSON, and nothing here depends on a host's name.
      requireHostHeader: false,
      noDelay: true,
    },
    listener,
  );
  server.timeout = SOCKET_TIMEOUT_MS;
  server.on('clientError', (error: Error, socket: Duplex) => {
    // The other end is gone.
    if (systemErrorCode(error) === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const wire = unparsedError(error);
    onUnparsed(WIRE_ERRORS[wire].status);
    answerSocket(socket, wire);
  });
  server.on('checkExpectation', refuseExpectation);
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => answerSocket(socket, 'method_not_allowed'));
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
 * Stops a server without dropping a request.
 *
 * For a while requests are still taken, each answer ending its connection (the app sees to that), so that clients which
 * use their connections again leave of their own accord. Then no connection is accepted any more, idle ones are closed,
 * and requests under way are waited for.
 *
 * @returns whether all were answered in time; those that were not are cut off
 */
export async function drain(server: Server): Promise<boolean> {
  await sleep(DRAIN_GRACE_MS);
  const closed = new Promise<boolean>((resolve) => server.close(() => resolve(true)));
  const reaper = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), DRAIN_TIMEOUT_MS);
  });
  const inTime = await Promise.race([closed, overdue]);
  clearInterval(reaper);
  clearTimeout(timer);
  if (!inTime) server.closeAllConnections();
  return inTime;
}
