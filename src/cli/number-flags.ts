/** Options whose value is a whole number. */
import { misuse } from '../errors.js';
import { type FlagTable, type OptionValues, text } from './command.js';

export const MAX_PORT = 65_535;
/** Of addresses a minute. */
export const MAX_RATE = 1e12;

/** The flag of commands that only one process may run at a time. */
export const WAIT_FLAG: FlagTable = {
  wait: {
    value: 'SECONDS',
    help: 'how long to wait if another such command is running, instead of exit code 8 at once',
  },
};

/** Returns the milliseconds of `--wait`; undefined if it is not given. @throws AtlasError E_USAGE */
export function parseWait(values: OptionValues): number | undefined {
  const seconds = wholeNumber(values, 'wait', 0, 999_999);
  return seconds === undefined ? undefined : 1000 * seconds;
}

/** Returns the number that an option gives, or undefined if it is not given. @throws AtlasError E_USAGE */
export function wholeNumber(values: OptionValues, name: string, least: number, most: number): number | undefined {
  const value = text(values, name);
  if (value === undefined) return undefined;
  const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw misuse(`--${name} is ${JSON.stringify(value)}; write a whole number from ${least} to ${most}`);
}

/** The flag beside --metrics-port. */
export const METRICS_HOST = { value: 'ADDRESS', help: 'the address for that (default 127.0.0.1; :: for all)' };

/** Returns where to serve metrics; undefined for nowhere. @throws AtlasError E_USAGE */
export function metricsAddress(values: OptionValues): { host: string; port: number } | undefined {
  const host = text(values, 'metrics-host');
  const port = wholeNumber(values, 'metrics-port', 0, MAX_PORT);
  if (host !== undefined && port === undefined) throw misuse('--metrics-host needs --metrics-port');
  return port === undefined ? undefined : { host: host ?? '127.0.0.1', port };
}
