/** Web addresses in sources.json: which are allowed, and their placeholders. */
import { dayOf } from '../../src/day.js';
import { AtlasError } from '../../src/errors.js';
import { isLoopback, parseUrl, withoutCredentials } from '../../src/url.js';

/** `${NAME}` in an address: the environment variable NAME. `${date:…}`, `${monday:…}` and `${file}` are filled in elsewhere. */
const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** The month `${date:YYYY-MM}`, the day `${date:YYYY-MM-DD}`, and the week `${monday:YYYYMMDD}`. */
const DATE = /\$\{(date:YYYY-MM|date:YYYY-MM-DD|monday:YYYYMMDD)\}/g;

/** Any placeholder. */
const PLACEHOLDER = /\$\{[^}]*\}/g;

/**
 * Returns what an address must be if it must not be downloaded from; undefined if it may. Plain HTTP can be altered on
 * the way, so it is only for this machine (a local mirror).
 */
export function addressProblem(text: string): string | undefined {
  const url = parseUrl(text.replace(PLACEHOLDER, 'x'));
  if (url === undefined) return 'a well-formed address';
  if (url.protocol === 'https:') return undefined;
  if (url.protocol === 'http:' && isLoopback(url.hostname)) return undefined;
  return 'an https:// address (http:// is only for this machine)';
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
 * @param address with a month, a day, or the Monday on which a week begins (ISO 8601)
 * @param day `YYYY-MM-DD`
 * @param back how many periods before: months, days or weeks
 * @returns the address, and the first day of its period; undefined if the address has no date
 */
export function fillDate(address: string, day: string, back: number): { address: string; date: string | undefined } {
  let filledDate: string | undefined;
  const filled = address.replace(DATE, (_placeholder, pattern: string) => {
    const date = new Date(`${day}T00:00:00Z`);
    if (pattern === 'date:YYYY-MM') date.setUTCMonth(date.getUTCMonth() - back, 1);
    else if (pattern === 'date:YYYY-MM-DD') date.setUTCDate(date.getUTCDate() - back);
    else date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7) - 7 * back);
    filledDate = dayOf(date.getTime());
    if (pattern === 'date:YYYY-MM') return filledDate.slice(0, 7);
    return pattern === 'date:YYYY-MM-DD' ? filledDate : filledDate.replaceAll('-', '');
  });
  return { address: filled, date: filledDate };
}
