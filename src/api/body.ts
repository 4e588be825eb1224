/** The body of a batch request: what is taken, and what is said of anything else. */
import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import type { WireError } from '../errors.js';
import { MAX_BATCH } from '../limits.js';

/** A body that was read whole and cannot be used. */
export class BodyError extends Error {
  readonly wire: WireError;

  constructor(wire: WireError) {
    super(wire);
    this.wire = wire;
  }
}

/** JSON text as a value, or what is wrong with it. Only whole UTF-8 counts: the answer's keys must be what was sent. */
function decodeJson(body: Buffer): { value: unknown } | BodyError {
  if (body.length === 0) return new BodyError('body_empty');
  if (!isUtf8(body)) return new BodyError('body_not_json');
  try {
    return { value: JSON.parse(body.toString('utf8')) };
  } catch {
    return new BodyError('body_not_json');
  }
}

/** Fastify's parser for `application/json`. */
export function parseJsonBody(
  _request: FastifyRequest,
  body: Buffer,
  done: (error: Error | null, body?: unknown) => void,
): void {
  const decoded = decodeJson(body);
  if (decoded instanceof BodyError) done(decoded);
  // Fastify takes null for "no body"; it is JSON, and no array.
  else done(null, decoded.value ?? {});
}

/** What is wrong with a body that the schema of a batch refused. */
function schemaFault(body: unknown): WireError {
  if (body === undefined) return 'not_json_type';
  if (!Array.isArray(body)) return 'body_not_array';
  return body.length > MAX_BATCH ? 'too_many' : 'body_not_strings';
}

/** The wire's error for whatever Fastify or a handler threw. */
export function wireErrorOf(error: unknown, body: unknown): WireError {
  if (error instanceof BodyError) return error.wire;
  const { validation, code, statusCode } = error as { validation?: unknown; code?: string; statusCode?: number };
  if (validation !== undefined) return schemaFault(body);
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return 'body_too_large';
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return 'not_json_type';
  return statusCode !== undefined && statusCode >= 400 && statusCode < 500 ? 'bad_request' : 'internal';
}
