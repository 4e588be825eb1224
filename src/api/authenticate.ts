/** Which key a request carries, if it carries exactly one. */
import type { IncomingMessage } from 'node:http';
import type { WireError } from '../errors.js';

/** The query parameter's name is case-sensitive; header names never are. */
export const KEY_PARAMETER = 'apikey';
export const KEY_HEADER = 'x-api-key';

/**
 * @param raw the request
 * @param parameter what stands for `apikey` in its query: a text, several, or nothing
 * @returns the key's text, or what is wrong
 */
export function presentedKey(raw: IncomingMessage, parameter: unknown): { key: string } | { error: WireError } {
  const header = raw.headers[KEY_HEADER] as string | undefined;
  if (header !== undefined && parameter !== undefined) return { error: 'key_twice' };
  if (Array.isArray(parameter)) return { error: 'key_twice' };
  // A header that stands twice is the same as one with a comma (RFC 9110 §5.3), which no key holds.
  if (header?.includes(',')) return { error: 'key_twice' };
  const key = header ?? (parameter as string | undefined) ?? '';
  return key === '' ? { error: 'key_missing' } : { key };
}
