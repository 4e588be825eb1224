/** The body of a batch request: what is accepted, and the error for anything else. */
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { WireError } from '../errors.js';
import { MAX_BATCH, MAX_BODY_BYTES } from '../limits.js';

/** A body that was read completely and cannot be used. */
export class BodyError extends Error {
  readonly wire: WireError;

  constructor(wire: WireError) {
    super(wire);
    this.wire = wire;
  }
}

/** Returns whether the body has a coding, such as gzip (RFC 9110 §8.4). */
export function isEncoded({ 'content-encoding': encoding }: IncomingHttpHeaders): boolean {
  return encoding !== undefined && encoding.trim().toLowerCase() !== 'identity';
}

/** Returns whether the headers allow a body that can be used, so that a client may be asked to send it. */
export function bodyIsExpected({
  'content-type': type = '',
  'content-length': length = '0',
}: IncomingHttpHeaders): boolean {
  return /^application\/json\s*(;|$)/i.test(type) && Number(length) <= MAX_BODY_BYTES;
}

/** Parses JSON in UTF-8. Invalid UTF-8 is refused, because the answer's keys must be exactly what was sent. */
function decodeJson(body: Buffer): { value: unknown } | BodyError {
  if (body.length === 0) return new BodyError('body_empty');
  if (!isUtf8(body)) return new BodyError('body_not_json');
  try {
    return { value: JSON.parse(body.toString('utf8')) };
  } catch {
    return new BodyError('body_not_json');
  }
}

/** Parses a body of type `application/json` for Fastify. */
export function parseJsonBody(
  _request: FastifyRequest,
  body: Buffer,
  done: (error: Error | null, body?: unknown) => void,
): void {
  const decoded = decodeJson(body);
  if (decoded instanceof BodyError) done(decoded);
  // To Fastify, null means that there is no body. Here it is JSON that is not an array.
  else done(null, decoded.value ?? {});
}

/** The error for a body that does not match the schema of a batch. */
function schemaError(body: unknown): WireError {
  if (body === undefined) return 'not_json_type';
  if (!Array.isArray(body)) return 'body_not_array';
  return body.length > MAX_BATCH ? 'too_many' : 'body_not_strings';
}

/** Returns the error of the wire contract for anything that Fastify or a handler threw. */
export function wireErrorOf(error: unknown, body: unknown): WireError {
  if (error instanceof BodyError) return error.wire;
  const { validation, code, statusCode } = error as { validation?: unknown; code?: string; statusCode?: number };
  if (validation !== undefined) return schemaError(body);
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return 'body_too_large';
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return 'not_json_type';
  // The path of a folder among the files of the page.
  if (statusCode === 403) return 'not_found';
  return statusCode !== undefined && statusCode >= 400 && statusCode < 500 ? 'bad_request' : 'internal';
}
