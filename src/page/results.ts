/** The results of a batch: counts by country, and the files to download. */
import type { Entry } from './extract.js';

/** A lookup result of the API. */
export interface Result {
  ip: string;
  country: string | null;
  country_code: string | null;
  is_eu: boolean;
}

/** An entry with its result; undefined if the text is not an address. */
export interface Answered extends Entry {
  result: Result | undefined;
}

export interface CountryCount {
  /** Undefined for addresses without a country. */
  code: string | undefined;
  name: string;
  isEu: boolean;
  count: number;
}

const NO_COUNTRY = 'No country';

export class Results {
  readonly answered: Answered[] = [];
  readonly #counts = new Map<string | null, CountryCount>();
  /** Texts that are not addresses. */
  invalid = 0;
  /** Addresses with a country, and those of them in the European Union. */
  located = 0;
  inUnion = 0;

  add(entry: Entry, result: Result | undefined): void {
    this.answered.push({ ...entry, result });
    if (result === undefined) {
      this.invalid++;
      return;
    }
    const { country, country_code, is_eu } = result;
    if (country_code !== null) this.located++;
    if (is_eu) this.inUnion++;
    const known = this.#counts.get(country_code);
    if (known === undefined) {
      const name = country ?? NO_COUNTRY;
      this.#counts.set(country_code, { code: country_code ?? undefined, name, isEu: is_eu, count: 1 });
    } else {
      known.count++;
    }
  }

  /** Counts by country, the largest first. */
  counts(): CountryCount[] {
    return [...this.#counts.values()].sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
  }
}

/**
 * Returns a field of CSV (RFC 4180). Spreadsheets run text that begins with certain characters as a formula; an apostrophe
 * before it makes it text (OWASP, "CSV Injection").
 */
export function csvField(value: string): string {
  const safe = /^[=+\-@\t\r＝＋－＠]/.test(value) ? `'${value}` : value;
  return /[",\r\n;']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The formats to download. Both name the line of the input, so that the results can be joined to it. */
export const DOWNLOADS = {
  csv: {
    type: 'text/csv;charset=utf-8',
    head: 'line,ip,country,country_code,is_eu\r\n',
    row({ line, text, result }: Answered): string {
      const fields =
        result === undefined
          ? [text, '', '', '']
          : [text, result.country ?? '', result.country_code ?? '', String(result.is_eu)];
      return `${line},${fields.map(csvField).join(',')}\r\n`;
    },
  },
  jsonl: {
    type: 'application/x-ndjson',
    head: '',
    row({ line, text, result }: Answered): string {
      return `${JSON.stringify(result === undefined ? { line, ip: text, error: 'invalid ip' } : { line, ...result })}\n`;
    },
  },
} as const;

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
