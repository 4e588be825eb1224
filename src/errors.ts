/**
 * Every error a user can meet, in one table: its stable code, the exit code of the command line and, where a request can
 * cause it, the HTTP status. Nothing else in the project decides on an exit code or a status.
 */

import { MAX_BATCH, MAX_BODY_BYTES, MAX_HEADER_BYTES } from './limits.js';

/** Exit codes of the command line; scripts rely on them. */
export const EXIT = {
  ok: 0,
  fault: 1,
  usage: 2,
  refused: 3,
  badInput: 4,
  noDatabase: 5,
  fetchFailed: 6,
  interrupted: 130,
} as const;

/** What each error code means, its exit code, and its HTTP status (500 unless a request can be the cause). */
export const ERROR_TABLE = {
  E_FAULT: { exit: EXIT.fault, status: 500, meaning: 'a fault in ipatlas itself; please report it' },
  E_USAGE: { exit: EXIT.usage, status: 500, meaning: 'a command, flag or argument that is not understood' },
  E_CONFIG: {
    exit: EXIT.usage,
    status: 500,
    meaning: 'a configuration file (sources.json, overrides.csv) is not valid',
  },
  E_OUTPUT: { exit: EXIT.usage, status: 500, meaning: 'an output cannot be written' },
  E_DISK_FULL: { exit: EXIT.fault, status: 500, meaning: 'the disk of an output is full, or a quota is reached' },
  E_DATA_DIR: { exit: EXIT.usage, status: 500, meaning: 'the data directory cannot be written, or its disk is full' },
  E_BUSY: { exit: EXIT.usage, status: 500, meaning: 'another build holds the lock of this data directory' },
  E_REFUSED: {
    exit: EXIT.refused,
    status: 500,
    meaning: 'a check or gate refused to publish; the current release stands',
  },
  E_BAD_INPUT: {
    exit: EXIT.badInput,
    status: 400,
    meaning: 'input that cannot be read, under a policy that fails on it',
  },
  E_NO_DATABASE: {
    exit: EXIT.noDatabase,
    status: 503,
    meaning: 'there is no published release where one was looked for',
  },
  E_DAMAGED: {
    exit: EXIT.noDatabase,
    status: 503,
    meaning: 'a release is truncated, altered or of an unknown version',
  },
  E_FETCH: { exit: EXIT.fetchFailed, status: 500, meaning: 'a source could not be fetched or read' },
} as const;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** An error with a stable code. The message says what is wrong, where, and what to do. */
export class AtlasError extends Error {
  override readonly name = 'AtlasError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  /** Exit code of the command line for this error. */
  get exitCode(): number {
    return ERROR_TABLE[this.code].exit;
  }

  /** HTTP status for this error where a request meets it. */
  get status(): number {
    return ERROR_TABLE[this.code].status;
  }
}

/**
 * Every error that the API answers: its HTTP status and its one sentence, which never holds anything of the request.
 * The first part is fixed by the wire contract; the second covers what HTTP itself can go wrong with.
 */
export const WIRE_ERRORS = {
  invalid_address: { status: 400, sentence: 'Invalid IP address' },
  too_many: { status: 400, sentence: `Too many IPs. Maximum batch size is ${MAX_BATCH}.` },
  body_empty: { status: 400, sentence: 'The body is empty, not a JSON array of strings' },
  body_not_json: { status: 400, sentence: 'The body is not valid JSON' },
  body_not_array: { status: 400, sentence: 'The body is JSON but not an array; send an array of strings' },
  body_not_strings: { status: 400, sentence: 'The body is an array with an element that is not a string' },
  key_twice: { status: 400, sentence: 'Provide the API key once, as apikey or X-API-Key' },
  key_missing: { status: 401, sentence: 'Missing API key' },
  key_invalid: { status: 403, sentence: 'Invalid API key' },
  not_found: { status: 404, sentence: 'Not found' },
  method_not_allowed: { status: 405, sentence: 'Method not allowed' },
  body_too_large: { status: 413, sentence: `The body is larger than ${MAX_BODY_BYTES} bytes` },
  not_json_type: { status: 415, sentence: 'Content-Type must be application/json' },
  rate_exceeded: { status: 429, sentence: 'Rate limit exceeded' },
  internal: { status: 500, sentence: 'Internal error' },
  no_database: { status: 503, sentence: 'Database not loaded' },

  bad_request: { status: 400, sentence: 'Bad request' },
  timeout: { status: 408, sentence: 'Request not received in time' },
  expectation: { status: 417, sentence: 'Expectation not supported' },
  headers_too_large: { status: 431, sentence: `The headers are larger than ${MAX_HEADER_BYTES} bytes` },
  stopping: { status: 503, sentence: 'Shutting down' },
} as const;

export type WireError = keyof typeof WIRE_ERRORS;

/** The `code` of a Node system error (`ENOENT`, `ENOSPC`, …), or undefined for anything else. */
export function systemErrorCode(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
