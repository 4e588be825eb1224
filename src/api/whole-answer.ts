/**
 * Hands Node's HTTP server an answer whose head is made already.
 *
 * `writeHead` checks every name and value of every answer anew, and `end` gives the socket two pieces, which the system is
 * asked to write by the slower of its two calls. For an answer of ten headers and eighty bytes that is a fifth of all that
 * is done for a request. So the head goes where `writeHead` would put it, and head and body leave together.
 */
import { IncomingMessage, ServerResponse, validateHeaderValue } from 'node:http';
import { Socket } from 'node:net';

/** Where Node keeps the head of an answer, as text; `headersSent`, which is documented, tells whether there is one. */
type WithHead = ServerResponse & { _header?: string };

/** Whether this Node takes a head that is made already. Should one not, it is to be answered by `writeHead`. */
export function takesHead(): boolean {
  const response: WithHead = new ServerResponse(new IncomingMessage(new Socket()));
  response._header = '\r\n';
  return response.headersSent;
}

/**
 * A header's line.
 *
 * @throws TypeError where the value holds what no header may: a line break would begin another header
 */
export function headerLine(name: string, value: string): string {
  validateHeaderValue(name, value);
  return `${name}: ${value}\r\n`;
}

/**
 * Answers.
 *
 * @param head from the status line to the empty line. It must name the body's length, and what becomes of the connection
 * @param body bytes, each as one character
 */
export function sendWhole(response: WithHead, head: string, body: string): void {
  response._header = head;
  response.write(body, 'latin1');
  // Written here, in one piece. `end` would put an empty piece behind it first. There is no socket while the answer to an
  // earlier request of the connection is still to come; then it is kept until that one is through.
  response.socket?.uncork();
  response.end();
}
