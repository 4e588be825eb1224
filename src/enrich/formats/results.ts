/** Formats results for each format: the texts to insert. The kernel puts the text of the address where `ADDRESS` is. */
import type { CountryResult } from '../../database/engine.js';
import type { Addable } from '../options.js';

/** The placeholder of the text of the address: a character that is not in any country's name, and is written as it is in every format. */
export const ADDRESS = '\uffff';

/** A result, with the text of its address or the placeholder. */
export type AddressResult = CountryResult & { address?: string };

/**
 * @param result what the database returned for an address
 * @param add the members wanted, in order
 * @returns a JSON object without blanks, such as `{"country":"Germany","country_code":"DE","is_eu":true}`
 */
export function resultJson(result: AddressResult, add: readonly Addable[]): string {
  return `{${add.map((name) => `"${name}":${JSON.stringify(result[name] ?? null)}`).join(',')}}`;
}

/**
 * Returns a result as cells, each preceded by a delimiter. They are empty for null and if there is no result.
 *
 * @param delimiter the character between two cells
 */
export function resultCells(result: AddressResult | undefined, add: readonly Addable[], delimiter: string): string {
  return add.map((name) => delimiter + cellText(String(result?.[name] ?? ''), delimiter)).join('');
}

/** Returns a result as fields of an access log: quoted, each preceded by a space, with `-` for null and for no result. */
export function resultFields(result: AddressResult | undefined, add: readonly Addable[]): string {
  return add.map((name) => ` "${String(result?.[name] ?? '-').replaceAll(/["\\]/g, '\\$&')}"`).join('');
}

/** Returns a cell, quoted only if necessary (RFC 4180 §2). */
export function cellText(text: string, delimiter: string): string {
  const hasDelimiter = text === ADDRESS ? /[\d.:a-f]/i.test(delimiter) : text.includes(delimiter);
  const mustQuote = hasDelimiter || /["\r\n]/.test(text);
  return mustQuote ? `"${text.replaceAll('"', '""')}"` : text;
}
