/**
 * Logs, without anything personal.
 *
 * What the server does goes to stderr as JSON lines. Nothing that a request brought is ever passed to these functions,
 * not even an error's message, which may quote it: an error is logged by its kind, its code and where in the code it
 * arose. The access log, which is opt-in, goes to stdout and holds five fields a request.
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
  method: string;
  /** The pattern, such as `/api/lookup/:ip`; never the path that was asked for. */
  route: string;
  status: number;
  /** From the headers' arrival to the answer's hand-over, in milliseconds. */
  duration_ms: number;
}

export interface AccessLog {
  write(access: Access): void;
  /** Writes what is still held back. */
  flush(): void;
}

const STDOUT = 1;
const STDERR = 2;

/** Bytes of access log that are written together, and how long a line may wait, in milliseconds. */
const ACCESS_BUFFER_BYTES = 8_192;
const ACCESS_FLUSH_MS = 1_000;

/** @param stream where to; default stderr, each line written at once */
export function createLog(stream: DestinationStream = destination({ fd: STDERR, sync: true })): Log {
  return pino(
    { base: null, timestamp: stdTimeFunctions.isoTime, formatters: { level: (level) => ({ level }) } },
    stream,
  );
}

/** The access log on stdout, in blocks: a system call a request would cost more than the look-up. */
export function createAccessLog(): AccessLog {
  const stream = destination({
    fd: STDOUT,
    sync: false,
    minLength: ACCESS_BUFFER_BYTES,
    periodicFlush: ACCESS_FLUSH_MS,
  });
  return {
    write({ method, route, status, duration_ms }) {
      const time = new Date().toISOString();
      // Written by hand: a line of pino's would carry a level, which says nothing here.
      stream.write(`${JSON.stringify({ time, method, route, status, duration_ms: toMicroseconds(duration_ms) })}\n`);
    },
    flush: () => stream.flushSync(),
  };
}

/** Milliseconds cut to whole microseconds: more digits are noise. */
function toMicroseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

/** What may be logged of an error: its kind, its code, its place in the code. Not its message. */
export function errorFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { kind: typeof error };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return { kind: error.name, code: systemErrorCode(error), at: frames.map((line) => line.trim()) };
}
