/**
 * Logs, without anything personal.
 *
 * What the server does goes to stderr as JSON lines. Nothing from a request is ever passed to these functions, not even
 * the message of an error, which may quote it: an error is logged by its kind, its code and its place in the code. The
 * access log, which is opt-in, goes to stdout and has five fields for each request.
 */
import { type DestinationStream, destination, pino, stdTimeFunctions } from 'pino';
import { systemErrorCode } from '../errors.js';

export type LogFields = Record<string, string | number | boolean | string[] | null | undefined>;

/** A log for what the server does. */
export interface Log {
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** One answered request, as the access log shows it. */
export interface Access {
  /** Null for input that is not a request. */
  method: string | null;
  /** The pattern, such as `/api/lookup/:ip`; never the path that was requested. */
  route: string;
  status: number;
  /** From the arrival of the headers to the end of the response, in milliseconds. */
  duration_ms: number;
}

export interface AccessLog {
  write(access: Access): void;
  /** Writes what is still in the buffer. */
  flush(): void;
}

const STDOUT = 1;
const STDERR = 2;

/** Bytes of access log that are written together. */
const ACCESS_BUFFER_BYTES = 8_192;

/** Longest time in milliseconds that a line of the access log stays in the buffer. */
const ACCESS_FLUSH_MS = 1_000;

/** Most bytes of access log that wait to be written, as when the disk is full; lines beyond are dropped. */
const ACCESS_MAX_BYTES = 1_048_576;

/** Returns the log of the server. @param stream where to; by default stderr, each line written at once */
export function createLog(stream: DestinationStream = standardError()): Log {
  return pino(
    { base: null, timestamp: stdTimeFunctions.isoTime, formatters: { level: (level) => ({ level }) } },
    stream,
  );
}

function standardError(): DestinationStream {
  const stream = destination({ fd: STDERR, sync: true });
  // There is no other place to report that stderr cannot be written, and the server must go on.
  stream.on('error', () => {});
  return stream;
}

/**
 * Returns the access log on stdout. It writes many lines at a time: a system call for each request would cost more than
 * the lookup.
 *
 * @param log told, once for each time that it begins, that stdout cannot be written
 */
export function createAccessLog(log: Log): AccessLog {
  const stream = destination({
    fd: STDOUT,
    sync: false,
    minLength: ACCESS_BUFFER_BYTES,
    maxLength: ACCESS_MAX_BYTES,
    periodicFlush: ACCESS_FLUSH_MS,
  });
  let problem: string | undefined;
  const report = (error: unknown): void => {
    const code = systemErrorCode(error) ?? 'unknown';
    if (code === problem) return;
    problem = code;
    log.error({ code }, 'the access log cannot be written; requests are still answered');
  };
  stream.on('error', report);
  stream.on('write', () => {
    problem = undefined;
  });
  return {
    write({ method, route, status, duration_ms }) {
      const time = new Date().toISOString();
      // Not by pino: its lines have a level, which says nothing here.
      stream.write(`${JSON.stringify({ time, method, route, status, duration_ms: toMicroseconds(duration_ms) })}\n`);
    },
    flush() {
      try {
        stream.flushSync();
      } catch (error) {
        report(error);
      }
    },
  };
}

/** Rounds milliseconds to whole microseconds: more digits are noise. */
function toMicroseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

/** Returns what may be logged of an error: its kind, its code, its place in the code, but not its message. */
export function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { kind: typeof error };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return { kind: error.name, code: systemErrorCode(error), at: frames.map((line) => line.trim()) };
}
