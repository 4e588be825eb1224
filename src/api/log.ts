/**
 * Logs, without anything personal.
 *
 * What the server does goes to stderr as JSON lines. Nothing from a request is ever passed to these functions, not even
 * the message of an error, which may quote it: an error is logged by its kind, its code and its place in the code. The
 * access log, which is opt-in, goes to stdout and has five fields for each request.
 */
import { write } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
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
  flush(): Promise<void>;
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

/** Wait in milliseconds before a write is tried again to which the reader of a pipe was not ready. */
const ACCESS_RETRY_MS = 10;

const writePart = promisify(write);

/** Writes all of a chunk; rejects with the system error if it cannot be written. */
async function writeAll(fd: number, chunk: Buffer): Promise<void> {
  for (let at = 0; at < chunk.length; ) {
    try {
      at += (await writePart(fd, chunk, at)).bytesWritten;
    } catch (error) {
      if (systemErrorCode(error) !== 'EAGAIN') throw error;
      await sleep(ACCESS_RETRY_MS);
    }
  }
}

/**
 * Returns the access log. It writes many lines at a time: a system call for each request would cost more than the lookup.
 *
 * Own code, because pino's destination never ends to try again when the process exits and the disk is full.
 *
 * @param log told, once for each time that it begins, that lines are lost
 * @param fd where to; by default stdout
 */
export function createAccessLog(log: Log, fd: number = STDOUT): AccessLog {
  let lines = '';
  let writing: Promise<void> | undefined;
  let problem: string | undefined;

  function report(code: string): void {
    if (code !== problem) log.error({ code }, 'the access log cannot be written; requests are still answered');
    problem = code;
  }

  async function writeLines(): Promise<void> {
    while (lines !== '') {
      const chunk = Buffer.from(lines);
      lines = '';
      try {
        await writeAll(fd, chunk);
        problem = undefined;
      } catch (error) {
        report(systemErrorCode(error) ?? 'unknown');
      }
    }
  }

  function flush(): Promise<void> {
    writing ??= writeLines().finally(() => {
      writing = undefined;
    });
    return writing;
  }

  setInterval(flush, ACCESS_FLUSH_MS).unref();
  return {
    write({ method, route, status, duration_ms }) {
      if (lines.length >= ACCESS_MAX_BYTES) {
        report('dropped');
        return;
      }
      const time = new Date().toISOString();
      // Not by pino: its lines have a level, which says nothing here.
      lines += `${JSON.stringify({ time, method, route, status, duration_ms: toMicroseconds(duration_ms) })}\n`;
      if (lines.length >= ACCESS_BUFFER_BYTES) void flush();
    },
    flush,
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
