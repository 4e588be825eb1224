/** The formats of inputs, and the ways to choose among addresses. */

/**
 * The formats of inputs: JSON lines, a JSON document, JSON objects one after the other, tables with commas or tabs, W3C Extended Log Format, logs of Zeek, lines with
 * keys and values, lists of addresses, access logs in the combined format of Apache and nginx, and any text.
 */
export const FORMAT_NAMES = [
  'jsonl',
  'json',
  'json-seq',
  'csv',
  'tsv',
  'w3c',
  'zeek',
  'logfmt',
  'list',
  'combined',
  'text',
] as const;
export type FormatName = (typeof FORMAT_NAMES)[number];
/** Also tables without a header, whose columns data/logs.json names. */
export type InputFormat = FormatName | 'columns';

/**
 * Which address counts where there are several, in free text and with `[]` in a path: the first one that has a country, or else
 * the first; always the first; or the last.
 */
export const PICKS = ['public', 'first', 'last'] as const;
export type AddressPick = (typeof PICKS)[number];
