/** Results of lookups as the page shows them: counts, the rows of a download, steps of color. */
import { truncatedAddress } from '../address/network.js';
import type { LookupResult } from '../database/results.js';

/** A lookup result of the API. */
export interface Result extends LookupResult {
  /** Who announces the address, and the largest block around it with the same answers: only if that was asked for and is known. */
  asn?: number | null;
  as_name?: string | null;
  anycast?: boolean | null;
  kind?: string | null;
  operator?: string | null;
  network?: string | null;
}

/** A period of an address's history. */
export interface Period {
  /** Its first and its last day; null if it goes on. */
  from: string;
  to: string | null;
  country?: string | null;
  country_code?: string | null;
  is_eu?: boolean;
  /** Instead of an answer: nothing is known. */
  error?: string;
}

export interface CountryCount {
  /** Undefined for addresses without a country. */
  code: string | undefined;
  name: string;
  isEu: boolean;
  count: number;
}

/** One address or other text of a batch, with its result. */
export interface Row {
  /** Number of the line in the input, from 1. */
  line: number;
  /** As it is in the input. */
  text: string;
  /** Undefined if the text is not an address, or not looked up yet. */
  result: Result | undefined;
  /** Why an address has no country, if that is known. */
  reason?: string | undefined;
}

/**
 * Returns a field of CSV (RFC 4180). Spreadsheets run text that begins with certain characters as a formula; an apostrophe
 * before it makes it text (OWASP, "CSV Injection").
 */
export function csvField(value: string): string {
  const safe = /^[=+\-@\t\r＝＋－＠]/.test(value) ? `'${value}` : value;
  return /[",\r\n;']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** How a download hides the addresses: not at all, cut to a /24 or /48, or left out. */
export type Hiding = '' | 'truncate' | 'drop';

/** Returns the fields of a row in a download, in their order. Both formats have the same. */
function fieldsOf({ line, text, result }: Row, hiding: Hiding): Record<string, string | number | boolean | null> {
  // A text that is no address may have one in it.
  if (result === undefined) return { line, text: hiding === '' ? text : null, error: 'invalid ip' };
  if (hiding === '') return { line, text, ...result };
  const ip = hiding === 'drop' ? null : truncatedAddress(result.ip);
  return { line, text: ip, ...result, ip };
}

/** Returns the names of the fields in their order. */
export function columnsOf(hasNetworks: boolean): string[] {
  const networks = hasNetworks ? ['asn', 'as_name'] : [];
  return ['line', 'text', 'ip', 'country', 'country_code', 'is_eu', ...networks, 'error'];
}

/** The formats to download. Both name the line of the input, so that the results can be joined to it. */
export const DOWNLOADS = {
  csv: {
    type: 'text/csv;charset=utf-8',
    head: (columns: string[]): string => `${columns.join(',')}\r\n`,
    row(row: Row, columns: string[], hiding: Hiding = ''): string {
      const fields = fieldsOf(row, hiding);
      return `${columns.map((name) => csvField(String(fields[name] ?? ''))).join(',')}\r\n`;
    },
  },
  jsonl: {
    type: 'application/x-ndjson',
    head: () => '',
    row: (row: Row, _columns: string[] = [], hiding: Hiding = ''): string =>
      `${JSON.stringify(fieldsOf(row, hiding))}\n`,
  },
} as const;

export type DownloadFormat = keyof typeof DOWNLOADS;

/** Steps of color on the map. */
export const LEVELS = 5;

/**
 * Returns the step of color for a count, 1 to {@link LEVELS}: each step is a factor, so that small counts can be told apart.
 *
 * @param count at least 1
 * @param most the largest count of a country
 */
export function levelOf(count: number, most: number): number {
  if (most <= 1) return LEVELS;
  return 1 + Math.min(LEVELS - 1, Math.floor((Math.log(count) / Math.log(most)) * LEVELS));
}

/** Returns the counts that each step of color begins with; a step that no count can have is left out. */
export function levelStarts(most: number): { level: number; from: number }[] {
  const starts: { level: number; from: number }[] = [];
  for (let level = 1; level <= LEVELS; level++) {
    let from = most <= 1 ? 1 : Math.max(1, Math.floor(most ** ((level - 1) / LEVELS)) - 1);
    while (from <= most && levelOf(from, most) < level) from++;
    if (from <= most && levelOf(from, most) === level) starts.push({ level, from });
  }
  return starts;
}
