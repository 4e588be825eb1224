/** The addresses of a batch with their results, in columns: a million of them take some 30 MB. */
import { formatIPv4, formatIPv6Full } from '../address/format.js';
import { parseAddress } from '../address/parse.js';
import { type CountryNames, namesIn } from '../country/names.js';
import type { Country } from '../database/results.js';
import type { CountryCount, Row } from './results.js';

/** Which rows are shown: all, those in the Union, without a country, or not an address; or the code of a country. */
export type Filter = 'all' | 'union' | 'none' | 'invalid' | (string & {});

export type SortColumn = 'line' | 'address' | 'country' | 'union' | 'network';

export interface Order {
  column: SortColumn;
  descending: boolean;
}

/** Country numbers of entries that are not looked up yet, and of texts that are not addresses. */
const PENDING = 0xffff;
const INVALID = 0xfffe;

const FIRST_CAPACITY = 1_024;
/** Bytes that are free at least before a text is added: the longest one that is kept, in UTF-8. */
const MAX_TEXT_BYTES = 400;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const words = new Uint32Array(4);

function grown<Column extends Uint8Array | Uint16Array | Uint32Array>(column: Column, length: number): Column {
  const larger = new (column.constructor as new (length: number) => Column)(2 * length);
  larger.set(column);
  return larger;
}

/** Returns an address in its canonical form. */
function canonical(text: string): string {
  return parseAddress(text, words) === 4 ? formatIPv4(words[0]!) : formatIPv6Full(words);
}

export class Entries {
  length = 0;
  #lines = new Uint32Array(FIRST_CAPACITY);
  /** Where each text ends in #texts. */
  #ends = new Uint32Array(FIRST_CAPACITY);
  #countries = new Uint16Array(FIRST_CAPACITY);
  #texts = new Uint8Array(16 * FIRST_CAPACITY);
  /** By country number; countries that are equal are the same object. */
  readonly #list: Country[] = [];
  readonly #counts: number[] = [];
  readonly #numbers = new Map<Country, number>();
  readonly #nameOf: CountryNames;
  readonly #order: Intl.Collator;
  /** Texts that are not addresses, and addresses that were looked up so far. */
  invalid = 0;
  located = 0;
  inUnion = 0;

  /** @param lang the language of the names of countries, by whose rules they are sorted */
  constructor(lang: string) {
    this.#nameOf = namesIn(lang);
    this.#order = new Intl.Collator(lang);
  }

  /** Adds an entry that is not looked up yet. @param text up to 100 characters */
  add(line: number, text: string, isAddress: boolean): void {
    const at = this.length++;
    if (at === this.#lines.length) {
      this.#lines = grown(this.#lines, at);
      this.#ends = grown(this.#ends, at);
      this.#countries = grown(this.#countries, at);
    }
    const start = at === 0 ? 0 : this.#ends[at - 1]!;
    if (start + MAX_TEXT_BYTES > this.#texts.length) this.#texts = grown(this.#texts, this.#texts.length);
    this.#lines[at] = line;
    this.#ends[at] = start + encoder.encodeInto(text, this.#texts.subarray(start)).written;
    this.#countries[at] = isAddress ? PENDING : INVALID;
    if (!isAddress) this.invalid++;
  }

  isAddress(at: number): boolean {
    return this.#countries[at] !== INVALID;
  }

  text(at: number): string {
    return decoder.decode(this.#texts.subarray(at === 0 ? 0 : this.#ends[at - 1]!, this.#ends[at]!));
  }

  /** Keeps the result of an entry. @param country an object that all addresses of the country share; undefined if the text is not an address */
  setCountry(at: number, country: Country | undefined): void {
    if (country === undefined) {
      this.#countries[at] = INVALID;
      this.invalid++;
      return;
    }
    let number = this.#numbers.get(country);
    if (number === undefined) {
      const { country: name, country_code: code } = country;
      const named = name === null || code === null ? country : { ...country, country: this.#nameOf(code, name) };
      number = this.#list.push(named) - 1;
      this.#numbers.set(country, number);
      this.#counts.push(0);
    }
    this.#countries[at] = number;
    this.#counts[number]!++;
    if (country.country_code !== null) this.located++;
    if (country.is_eu) this.inUnion++;
  }

  #countryOf(at: number): Country | undefined {
    return this.#list[this.#countries[at]!];
  }

  row(at: number): Row {
    const text = this.text(at);
    const country = this.#countryOf(at);
    const result = country === undefined ? undefined : { ip: canonical(text), ...country };
    return { line: this.#lines[at]!, text, result };
  }

  /** Counts by country, the largest first. */
  counts(): CountryCount[] {
    const byCode = new Map<string | null, CountryCount>();
    for (const [number, { country, country_code, is_eu }] of this.#list.entries()) {
      const known = byCode.get(country_code);
      const count = this.#counts[number]! + (known?.count ?? 0);
      byCode.set(country_code, { code: country_code ?? undefined, name: country ?? 'No country', isEu: is_eu, count });
    }
    return [...byCode.values()].sort((a, b) => b.count - a.count || this.#order.compare(a.name, b.name));
  }

  /**
   * Returns the entries of a filter in an order. Entries that are not looked up yet are in none.
   *
   * @param end how many are done
   * @param asnOf returns the AS number of an address, if it has one
   */
  select(
    { filter, order: { column, descending } }: { filter: Filter; order: Order },
    end: number,
    asnOf: (address: string) => number | null | undefined,
  ): Uint32Array {
    const wanted = this.#list.map(({ country_code, is_eu }) => {
      if (filter === 'all') return true;
      if (filter === 'union') return is_eu;
      return filter === 'none' ? country_code === null : country_code === filter;
    });
    const takesInvalid = filter === 'all' || filter === 'invalid';
    const selected = new Uint32Array(end);
    let length = 0;
    for (let at = 0; at < end; at++) {
      const number = this.#countries[at]!;
      if (number === INVALID ? takesInvalid : wanted[number]) selected[length++] = at;
    }
    const rows = selected.subarray(0, length);
    if (column === 'line') return descending ? rows.reverse() : rows;
    const compare =
      column === 'address'
        ? this.#byAddress(rows)
        : column === 'network'
          ? this.#byNetwork(rows, asnOf)
          : this.#byCountry(column);
    const sign = descending ? -1 : 1;
    return rows.sort((a, b) => sign * compare(a, b) || a - b);
  }

  /** Orders by family and number; texts that are not addresses come last. */
  #byAddress(rows: Uint32Array): (a: number, b: number) => number {
    const keys = new Map<number, number>();
    const numbers = new Uint32Array(5 * rows.length);
    for (let i = 0; i < rows.length; i++) {
      const family = parseAddress(this.text(rows[i]!), words);
      keys.set(rows[i]!, 5 * i);
      numbers[5 * i] = family === 0 ? 16 : family;
      if (family !== 0) numbers.set(family === 4 ? words.subarray(0, 1) : words, 5 * i + 1);
    }
    return (a, b) => {
      const [atA, atB] = [keys.get(a)!, keys.get(b)!];
      for (let i = 0; i < 5; i++) {
        const difference = numbers[atA + i]! - numbers[atB + i]!;
        if (difference !== 0) return difference;
      }
      return 0;
    };
  }

  /** Orders by AS number; addresses without one come last. */
  #byNetwork(
    rows: Uint32Array,
    asnOf: (address: string) => number | null | undefined,
  ): (a: number, b: number) => number {
    const numbers = new Float64Array(this.length);
    for (const at of rows) numbers[at] = asnOf(this.text(at)) ?? 2 ** 32;
    return (a, b) => numbers[a]! - numbers[b]!;
  }

  /** Orders by name or membership; addresses without a country come after those with one, other texts last. */
  #byCountry(column: 'country' | 'union'): (a: number, b: number) => number {
    const names = this.#list.flatMap(({ country }) => country ?? []).sort(this.#order.compare);
    const places = this.#list.map(({ country, is_eu }) => {
      if (country === null) return names.length + 1;
      return column === 'country' ? names.indexOf(country) : is_eu ? 0 : 1;
    });
    const place = (at: number): number => places[this.#countries[at]!] ?? names.length + 2;
    return (a, b) => place(a) - place(b);
  }
}
