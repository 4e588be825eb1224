/**
 * Every error that a user can meet: by its stable code with the exit code of the command line, and those of requests with the HTTP
 * status. Nothing else in the project chooses an exit code or a status.
 */

import { MAX_BATCH, MAX_BODY_BYTES, MAX_HEADER_BYTES, MAX_REPORTED_PROBLEMS } from './limits.js';

/** Exit codes of the command line; scripts rely on them. */
export const EXIT = {
  ok: 0,
  /** A bug in ipatlas, or a disk that is full or fails. */
  fault: 1,
  usage: 2,
  refused: 3,
  badInput: 4,
  noDatabase: 5,
  fetchFailed: 6,
  /** The release is published. */
  afterFailed: 7,
  busy: 8,
  interrupted: 130,
} as const;

/** What each error code means, and its exit code. */
export const ERROR_TABLE = {
  E_FAULT: { exit: EXIT.fault, meaning: 'internal error (a bug in ipatlas); please report it' },
  E_DISK: {
    exit: EXIT.fault,
    meaning: 'an output or the data directory cannot be written because its disk is full or fails',
  },
  E_USAGE: { exit: EXIT.usage, meaning: 'unknown command, flag or argument' },
  E_CONFIG: {
    exit: EXIT.usage,
    meaning: 'a configuration file (sources.json, overrides.csv, nodes.json) is not valid, or a signing key is missing',
  },
  E_OUTPUT: { exit: EXIT.usage, meaning: 'an output cannot be written at the given path' },
  E_DATA_DIR: { exit: EXIT.usage, meaning: 'the data directory cannot be used or written' },
  E_BUSY: { exit: EXIT.busy, meaning: 'another build, pull, import or repo command is running in the directory' },
  E_INSTALL: {
    exit: EXIT.usage,
    meaning: 'a part of the installation is missing or does not fit this version of Node',
  },
  E_AFTER: {
    exit: EXIT.afterFailed,
    meaning: 'the release is published, but a step of "after" failed; "ipatlas after" tries it again',
  },
  E_REFUSED: { exit: EXIT.refused, meaning: 'a check or gate refused to publish; the current release stays' },
  E_BAD_INPUT: {
    exit: EXIT.badInput,
    meaning: 'input or a fetched source that cannot be read, under a policy that fails on it',
  },
  E_NO_DATABASE: { exit: EXIT.noDatabase, meaning: 'no published release in the data directory' },
  E_DAMAGED: {
    exit: EXIT.noDatabase,
    meaning: 'a release or a repository is truncated, altered or of an unknown version',
  },
  E_STREAM: {
    exit: EXIT.usage,
    meaning: 'a message broker cannot be reached, or a stream is missing or set up wrongly',
  },
  E_UNTRUSTED: {
    exit: EXIT.fetchFailed,
    meaning: 'the metadata or a file of a signed repository is not what its keys signed; the current release stays',
  },
  E_EXPIRED: {
    exit: EXIT.fetchFailed,
    meaning: 'the signed metadata of a repository has expired; the current release stays',
  },
  E_FETCH: { exit: EXIT.fetchFailed, meaning: 'a source, or a file of it, could not be fetched' },
} as const;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** An error with a stable code. The message says what is wrong, where, and what to do. */
export class AtlasError extends Error {
  override readonly name = 'AtlasError';
  readonly code: ErrorCode;

  /** By name: the commands are bundles, so there can be several copies of this class in a process. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && value.name === 'AtlasError';
  }

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Every error that the API answers: its HTTP status and its message, which never contains anything of the request. The
 * wire contract fixes the first part; the second covers errors of HTTP itself.
 */
export const WIRE_ERRORS = {
  invalid_address: { status: 400, message: 'Invalid IP address' },
  include_unknown: {
    status: 400,
    message:
      'include can be asn, as_name, network, continent, is_eea, anycast, kind, operator, with commas between them',
  },
  lang_unknown: {
    status: 400,
    message: 'lang is not the tag of a language that has names here, such as de, pt-BR or zh-Hant',
  },
  day_invalid: { status: 400, message: 'at is not a day; write it as 2026-01-31' },
  day_not_kept: { status: 400, message: 'There are no answers of this day' },
  too_many: { status: 400, message: `Too many IPs. Maximum batch size is ${MAX_BATCH}.` },
  batch_over_rate: { status: 400, message: 'The batch has more addresses than the rate of the key allows in a minute' },
  body_empty: { status: 400, message: 'The body is empty, not a JSON array of strings' },
  body_not_json: { status: 400, message: 'The body is not valid JSON' },
  body_not_array: { status: 400, message: 'The body is JSON but not an array; send an array of strings' },
  body_not_strings: { status: 400, message: 'The body is an array with an element that is not a string' },
  key_twice: { status: 400, message: 'Provide the API key once, as apikey or X-API-Key' },
  key_missing: { status: 401, message: 'Missing API key' },
  key_bearer: { status: 401, message: 'Missing API key: send it as X-API-Key or apikey' },
  key_invalid: { status: 403, message: 'Invalid API key' },
  sign_up_closed: { status: 403, message: 'Sign-up is closed; ask the operator for a key' },
  key_not_self_issued: { status: 403, message: 'Only the operator can revoke this key' },
  origin_refused: { status: 403, message: 'The API key must not be used from this origin' },
  client_refused: { status: 403, message: 'Not allowed from this address' },
  client_unknown: {
    status: 403,
    message: 'Only trusted proxies may ask, with the address of the client in X-Forwarded-For',
  },
  keyless_off: { status: 403, message: 'Lookups need an API key here' },
  not_found: { status: 404, message: 'Not found' },
  method_not_allowed: { status: 405, message: 'Method not allowed' },
  host_refused: { status: 421, message: 'This is not a name of the server; its operator names it with --base-url' },
  body_too_large: { status: 413, message: `The body is larger than ${MAX_BODY_BYTES} bytes` },
  not_json_type: { status: 415, message: 'Content-Type must be application/json' },
  body_encoded: { status: 415, message: 'The body must not be compressed; send it without Content-Encoding' },
  rate_exceeded: { status: 429, message: 'Rate limit exceeded' },
  sign_up_limit: { status: 429, message: 'Too many keys were made; try again later' },
  internal: { status: 500, message: 'Internal error' },
  history_busy: { status: 503, message: 'Too many past days and histories are asked for; try again later' },
  keys_busy: { status: 503, message: 'The keys are being changed; try again' },
  keys_unavailable: { status: 503, message: 'The keys cannot be read now; try again later' },
  no_database: { status: 503, message: 'Database not loaded' },

  bad_request: { status: 400, message: 'Bad request' },
  timeout: { status: 408, message: 'Request not received in time' },
  expectation: { status: 417, message: 'Expectation not supported' },
  headers_too_large: { status: 431, message: `The headers are larger than ${MAX_HEADER_BYTES} bytes` },
  stopping: { status: 503, message: 'Shutting down' },
  not_eu: { status: 503, message: 'This server does not serve the EU base address' },
} as const;

export type WireError = keyof typeof WIRE_ERRORS;

/** Returns the `code` of a Node system error (`ENOENT`, `ENOSPC`, …), or undefined for any other value. */
export function systemErrorCode(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** The message of a system error about files: code, description, system call, and the paths. */
const SYSTEM_MESSAGE = /^[A-Z][A-Z\d]+: (.+?), \w+(?: '(.*)')?$/s;

/** Returns the message of a thrown value. That of a system error is its description and path, without codes and system calls. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const [, description, path] = (systemErrorCode(error) && SYSTEM_MESSAGE.exec(error.message)) || [];
  if (description === undefined) return error.message;
  return path === undefined ? description : `${description}: ${path}`;
}

/** Returns the error for a wrong flag or argument. @param message what is wrong, and what to write instead */
export function misuse(message: string): AtlasError {
  return new AtlasError('E_USAGE', message);
}

/** Returns the error for a file that people write by hand. @param problems each on a line of its own; the first ones are named */
export function configError(problems: readonly string[]): AtlasError {
  const more = problems.length - MAX_REPORTED_PROBLEMS;
  const shown = [...problems.slice(0, MAX_REPORTED_PROBLEMS), ...(more > 0 ? [`… and ${more} more`] : [])];
  return new AtlasError('E_CONFIG', shown.join('\n'));
}

/** What to do about a damaged release. */
export const REBUILD = 'make it again with "ipatlas build", or go back with "ipatlas rollback"';

/** What to do about damage that nothing can rebuild. */
export const RESTORE = 'restore it from a copy';

/** What to do about damaged days of the history. */
export const RESTORE_DAYS = `${RESTORE}, or give up imported days with "ipatlas history remove"`;

/** Returns the error for a thread or a process that ended before its work did. @param what ended, and how */
export function endedEarly(what: string, cause?: unknown): AtlasError {
  const advice = 'run the command again; if that repeats, report it with the command line';
  return new AtlasError('E_FAULT', `${what}; ${advice}`, { cause });
}

/** Returns the error for a damaged release. @param what is wrong, and where */
export function damagedRelease(what: string): AtlasError {
  return new AtlasError('E_DAMAGED', `${what}; ${REBUILD}`);
}

/** Returns what to do about a file or folder that the system refuses. */
export function fileAdvice(error: unknown): string {
  return isDiskError(error) ? 'free space' : 'fix the path or its permissions';
}

/** Returns an error that another one caused. @param what is wrong, and where @param advice what to do next */
export function causedError(code: ErrorCode, what: string, cause: unknown, advice: string): AtlasError {
  return new AtlasError(code, `${what}: ${messageOf(cause)}; ${advice}`, { cause });
}

/** Runs a function. What it throws is the cause of an error as of {@link causedError}; an AtlasError stays as it is. */
export function orThrow<T>(run: () => T, code: ErrorCode, what: string, advice: string): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof AtlasError ? error : causedError(code, what, error, advice);
  }
}

export function isAtlasError(error: unknown): error is AtlasError {
  return error instanceof AtlasError;
}

/** Runs a function. Returns another value if it throws an expected error. */
export function orElse<T, Other>(run: () => T, isExpected: (error: unknown) => boolean, other: Other): T | Other {
  try {
    return run();
  } catch (error) {
    if (isExpected(error)) return other;
    throw error;
  }
}

/** Returns a function that tells whether an error has one of these codes, of our own or of the system. */
export function hasCode(...codes: string[]): (error: unknown) => boolean {
  return (error) => codes.includes(systemErrorCode(error) ?? '');
}

/** Whether an error says that a file cannot be read, or that its text is not JSON. */
export function isUnreadable(error: unknown): boolean {
  return error instanceof SyntaxError || systemErrorCode(error) !== undefined;
}

/** A disk that is full or fails, in the codes of the system (errno(3)) and of SQLite (rescode.html). */
const DISK_ERROR = /^(ENOSPC|EDQUOT|EFBIG|EIO|SQLITE_FULL|SQLITE_IOERR(_.*)?)$/;

/** Whether an error means that a disk is full or fails, which is not the fault of the path that the user gave. */
export function isDiskError(error: unknown): boolean {
  return DISK_ERROR.test(systemErrorCode(error) ?? '');
}

/**
 * Returns the error to report for a failed write.
 *
 * @param what the file or directory that cannot be written, as the message names it
 * @param error what the write failed with; an AtlasError is returned as it is
 * @returns E_DISK if the disk is full or fails, otherwise E_OUTPUT
 */
export function writeError(what: string, error: unknown): AtlasError {
  if (error instanceof AtlasError) return error;
  return causedError(isDiskError(error) ? 'E_DISK' : 'E_OUTPUT', `${what} cannot be written`, error, fileAdvice(error));
}
