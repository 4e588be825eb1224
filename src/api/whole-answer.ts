/**
 * Hands Node's HTTP server an answer whose head is made already.
 *
 * `writeHead` checks every name and value of every answer anew, and `end` gives the socket two pieces, which the system is
 * asked to write by the slower of its two calls. For an answer of ten headers and eighty bytes that is a fifth of all that
 * is done for a request. So the answer goes where `writeHead` would put its head, and leaves in one piece.
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
 * Head and body together stand where Node looks for the head, so what is left for `end` is what it does for an answer
 * without a body: one write, which Node keeps back where the answer to an earlier request of the connection is still to
 * come, and leaves out where the connection is gone. (`write` and then `end` would be one write as well. But where the
 * connection is gone, Node then takes the answer for sent, finds that it was not its turn, and ends the process.)
 *
 * @param head from the status line to the empty line. It must name the body's length, and what becomes of the connection
 * @param body bytes, each as one character
 */
export function sendWhole(response: WithHead, head: string, body: string): void {
  response._header = head + body;
  response.end();
}
