/** What can go wrong on the pages, and how it is told. */
import { messageOf } from '../errors.js';

/** A problem whose message is for people. */
export class PageError extends Error {}

/** A request that failed. */
export class RequestError extends PageError {
  /** HTTP status; 0 if the server cannot be reached. */
  readonly status: number;
  /** Seconds after which the server wants to be asked again, if it says so. */
  readonly retryAfter: number | undefined;

  constructor(message: string, status: number, retryAfter?: number) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Returns what is wrong, for people. An error that nothing expects is a bug, which the console shows, too. */
export function problemOf(error: unknown): string {
  if (error instanceof PageError) return error.message;
  console.error(error);
  return `Internal error (bug): ${messageOf(error)}.`;
}
