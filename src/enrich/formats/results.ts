/** Looks up field values, counts, and formats results. Shared by all formats. */
import { findAddress } from '../../address/lenient.js';
import type { CountryResult } from '../../database/engine.js';
import type { ReasonedResult } from '../../database/results.js';
import type { Addable } from '../options.js';
import { type RecordQuery, selects } from '../query.js';
import { asByteText, type FormatContext } from './format.js';

/** The value of a field that is missing, and of one that is not a string and so cannot be an address. */
export const MISSING = Symbol('missing');
export const NOT_TEXT = Symbol('not text');
export type FieldValue = string | typeof MISSING | typeof NOT_TEXT;

/** Looks up the value of a field, counts it, and returns the result as text, one character per byte. */
export type ResultFormatter = (value: FieldValue) => string;

/**
 * @param result what the database returned for an address
 * @param add the members wanted, in order
 * @returns a JSON object without blanks, such as `{"country":"Germany","country_code":"DE","is_eu":true}`
 */
export function resultJson(result: CountryResult, add: readonly Addable[]): string {
  return `{${add.map((name) => `"${name}":${JSON.stringify(result[name] ?? null)}`).join(',')}}`;
}

/**
 * Returns a result as cells, each preceded by a delimiter. They are empty for null and if there is no result.
 *
 * @param delimiter the character between two cells
 */
export function resultCells(result: CountryResult | undefined, add: readonly Addable[], delimiter: string): string {
  return add.map((name) => delimiter + cellText(String(result?.[name] ?? ''), delimiter)).join('');
}

/** Returns a result as fields of an access log: quoted, each preceded by a space, with `-` for null and for no result. */
export function resultFields(result: CountryResult | undefined, add: readonly Addable[]): string {
  return add.map((name) => ` "${String(result?.[name] ?? '-').replaceAll(/["\\]/g, '\\$&')}"`).join('');
}

/** Returns the result of the address in a text, or undefined if it has none. */
function resultOf({ database, options }: FormatContext, text: string): ReasonedResult | undefined {
  const address = options.lenient === true ? findAddress(text) : text;
  return address === undefined ? undefined : database.lookupWithReason(address);
}

/**
 * Returns the value of a field that has several: the first address with a country, otherwise the first address, otherwise
 * any value.
 */
export function bestValue(context: FormatContext, values: readonly FieldValue[]): FieldValue {
  if (values.length === 1) return values[0]!;
  let best: FieldValue = values[0] ?? MISSING;
  let hasAddress = false;
  for (const value of values) {
    const result = typeof value === 'string' ? resultOf(context, value) : undefined;
    if (result === undefined) continue;
    if (result.country_code !== null) return value;
    if (!hasAddress) best = value;
    hasAddress = true;
  }
  return best;
}

/** Looks up the value of a field and counts it. Returns undefined if it is missing or not an address. */
function lookUp(context: FormatContext, value: FieldValue): ReasonedResult | undefined {
  const { counts } = context;
  if (value === MISSING) {
    counts.missing_field++;
    return undefined;
  }
  const result = value === NOT_TEXT ? undefined : resultOf(context, value);
  if (result === undefined) counts.invalid_address++;
  else if (result.country_code === null) counts.no_country++;
  else counts.found++;
  return result;
}

/**
 * Returns a function that applies a query to a record, given the values of its fields, and returns whether the record is
 * passed on.
 */
export function recordQuery(context: FormatContext, query: RecordQuery): (values: readonly FieldValue[]) => boolean {
  return (values) => {
    let isSelected = false;
    for (const value of values) {
      const result = lookUp(context, value);
      if (result === undefined) continue;
      if (query.kind === 'summarize') query.summary.add(result);
      else if (selects(query, result)) isSelected = true;
    }
    return query.kind === 'filter' && isSelected !== query.isInverted;
  };
}

/** Formats results as JSON values; `null` if there is none. */
export function jsonResults(context: FormatContext): ResultFormatter {
  // About 250 countries, each with a few values of the confidence, and a dozen reasons: each text is made once. A country
  // code has two upper-case letters, a reason has lower-case letters, so they do not collide.
  const texts = new Map<string, string>();

  function textOf(result: ReasonedResult): string {
    const key = `${result.country_code ?? result.reason}${result.confidence ?? ''}`;
    let text = texts.get(key);
    if (text === undefined) {
      text = asByteText(resultJson(result, context.options.add));
      texts.set(key, text);
    }
    return text;
  }

  return (value) => {
    const result = lookUp(context, value);
    return result === undefined ? 'null' : textOf(result);
  };
}

/** Returns a cell, quoted only if necessary (RFC 4180 §2). */
export function cellText(text: string, delimiter: string): string {
  const mustQuote = text.includes(delimiter) || /["\r\n]/.test(text);
  return mustQuote ? `"${text.replaceAll('"', '""')}"` : text;
}
