/** Options whose value is a whole number. */
import { misuse } from '../errors.js';
import { type OptionValues, text } from './command.js';

export const MAX_PORT = 65_535;
/** Of addresses a minute. */
export const MAX_RATE = 1e12;

/** Returns the number that an option gives, or undefined if it is not given. @throws AtlasError E_USAGE */
export function wholeNumber(values: OptionValues, name: string, least: number, most: number): number | undefined {
  const value = text(values, name);
  if (value === undefined) return undefined;
  const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw misuse(`--${name} is ${JSON.stringify(value)}; write a whole number from ${least} to ${most}`);
}
