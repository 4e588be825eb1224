/** Answers: JSON always, errors by their name in the wire contract. */
import type { FastifyReply } from 'fastify';
import { WIRE_ERRORS, type WireError } from '../errors.js';

export const JSON_TYPE = 'application/json; charset=utf-8';

/** The body of each error, made once. */
export const ERROR_BODIES = Object.fromEntries(
  Object.entries(WIRE_ERRORS).map(([name, { message }]) => [name, JSON.stringify({ error: message })]),
) as Record<WireError, string>;

/** @param json JSON, as text or in UTF-8 */
export function sendJson(reply: FastifyReply, json: string | Buffer): void {
  reply.header('content-type', JSON_TYPE).send(json);
}

export function refuse(reply: FastifyReply, error: WireError): void {
  sendJson(reply.code(WIRE_ERRORS[error].status), ERROR_BODIES[error]);
}
