/** Web addresses in sources.json: which are allowed, their placeholders, and how messages show them. */
import { parseIPv4 } from '../../src/address/parse.js';
import { AtlasError } from '../../src/errors.js';

/** `${NAME}` in an address: the environment variable NAME. `${date:…}` and `${file}` are filled in elsewhere. */
const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** `${date:YYYY-MM}` and `${date:YYYY-MM-DD}`. */
const DATE = /\$\{date:(YYYY-MM(?:-DD)?)\}/g;

/** Any placeholder. */
const PLACEHOLDER = /\$\{[^}]*\}/g;

/**
 * Returns what an address must be if it must not be downloaded from; undefined if it may. Plain HTTP can be altered on
 * the way, so it is only for this machine (a local mirror).
 */
export function addressProblem(text: string): string | undefined {
  const filled = text.replace(PLACEHOLDER, 'x');
  if (!URL.canParse(filled)) return 'a well-formed address';
  const url = new URL(filled);
  if (url.protocol === 'https:') return undefined;
  if (url.protocol === 'http:' && isLoopback(url.hostname)) return undefined;
  return 'an https:// address (http:// is only for this machine)';
}

/** Returns whether a URL's host is this machine: `localhost` (RFC 6761 §6.3), 127.0.0.0/8 or `::1`. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || parseIPv4(hostname) >>> 24 === 127;
}

/** Returns an address for messages and cache keys, without its user and password. */
export function withoutCredentials(address: string): string {
  return address.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1***@');
}

/**
 * Fills in environment variables, which keep keys and passwords out of sources.json.
 *
 * @param address an address with `${NAME}` in it
 * @param env the environment
 * @throws AtlasError E_CONFIG naming a variable that is not set
 */
export function fillVariables(address: string, env: NodeJS.ProcessEnv): string {
  return address.replace(VARIABLE, (placeholder, name: string) => {
    if (name === 'file' || name === 'url') return placeholder; // in the address of a checksum
    const value = env[name];
    if (value === undefined || value === '') {
      throw new AtlasError(
        'E_CONFIG',
        `the environment variable ${name} is not set; ${withoutCredentials(address)} needs it`,
      );
    }
    return encodeURIComponent(value);
  });
}

/** Returns whether an address contains a date. */
export function hasDate(address: string): boolean {
  return address.match(DATE) !== null;
}

/**
 * Fills in the date of an address.
 *
 * @param address with `${date:YYYY-MM}` or `${date:YYYY-MM-DD}`
 * @param day `YYYY-MM-DD`
 * @param back how many periods before: months, or days if the pattern has days
 * @returns the address, and the first day of its period; undefined if the address has no date
 */
export function fillDate(address: string, day: string, back: number): { address: string; date: string | undefined } {
  let filledDate: string | undefined;
  const filled = address.replace(DATE, (_placeholder, pattern: string) => {
    const date = new Date(`${day}T00:00:00Z`);
    if (pattern === 'YYYY-MM') date.setUTCMonth(date.getUTCMonth() - back, 1);
    else date.setUTCDate(date.getUTCDate() - back);
    filledDate = date.toISOString().slice(0, 10);
    return filledDate.slice(0, pattern.length);
  });
  return { address: filled, date: filledDate };
}
