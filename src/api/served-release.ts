/** A release as the API serves it: address text in, JSON text out. */
import { releaseAge } from '../database/age.js';
import type { Database, LookupResult } from '../database/database.js';

/** How look-ups came out, for the metrics. */
export interface Outcomes {
  found: number;
  no_country: number;
  invalid: number;
}

/** A batch's answer. */
export interface BatchAnswer {
  /** JSON in UTF-8. */
  json: Buffer;
  outcomes: Outcomes;
}

/** What stands behind the address in a result's JSON; the same for every address of a country. */
interface Tail {
  text: string;
  /** Its bytes in UTF-8, each as one character. */
  bytes: string;
}

const INVALID_ELEMENT = '{"error":"invalid ip"}';

/**
 * A text's bytes in UTF-8, each as one character.
 *
 * V8 keeps a text of such characters in one byte each, and it is turned into bytes by copying. One "Türkiye" in a batch
 * would make it two bytes each, and translating a hundred kilobytes take as long as the thousand look-ups.
 */
function utf8AsCharacters(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

export class ServedRelease {
  readonly id: string;
  /** `YYYY-MM-DD`. */
  readonly asOf: string;
  readonly #database: Database;
  /** By country code. There are some 250, so none is made twice. */
  readonly #tails = new Map<string | null, Tail>();

  constructor(database: Database) {
    this.#database = database;
    this.id = database.manifest.id;
    this.asOf = database.manifest.as_of;
  }

  /** @returns the result, or undefined where the text is no address */
  lookup(ip: string): LookupResult | undefined {
    return this.#database.lookup(ip);
  }

  /** Seconds since the as-of date began, as a header has it. */
  age(): string {
    return String(releaseAge(this.#database.manifest));
  }

  /** A result as JSON; the same text as JSON.stringify makes. */
  json(result: LookupResult): string {
    // The address is the formatter's own text: nothing in it needs an escape.
    return `{"ip":"${result.ip}${this.#tail(result).text}`;
  }

  /** The bytes of {@link json} in UTF-8, each as one character. */
  jsonCharacters(result: LookupResult): string {
    return `{"ip":"${result.ip}${this.#tail(result).bytes}`;
  }

  #tail(result: LookupResult): Tail {
    let tail = this.#tails.get(result.country_code);
    if (tail === undefined) {
      const text = JSON.stringify({ ...result, ip: '' }).slice('{"ip":"'.length);
      tail = { text, bytes: utf8AsCharacters(text) };
      this.#tails.set(result.country_code, tail);
    }
    return tail;
  }

  /**
   * A batch's results as one JSON object, in the order of the strings' first appearance.
   *
   * Written as text, member by member: an object would bring keys like "1" to the front, and lose "__proto__".
   *
   * @param ips any strings
   */
  batch(ips: readonly string[]): BatchAnswer {
    const outcomes: Outcomes = { found: 0, no_country: 0, invalid: 0 };
    const seen = new Set<string>();
    let json = '{';
    for (const ip of ips) {
      if (seen.has(ip)) continue;
      seen.add(ip);
      if (seen.size > 1) json += ',';
      const result = this.lookup(ip);
      if (result === undefined) {
        outcomes.invalid++;
        json += `${utf8AsCharacters(JSON.stringify(ip))}:${INVALID_ELEMENT}`;
      } else {
        if (result.country === null) outcomes.no_country++;
        else outcomes.found++;
        // What parses as an address consists of digits, letters a to f, dots and colons.
        json += `"${ip}":{"ip":"${result.ip}${this.#tail(result).bytes}`;
      }
    }
    return { json: Buffer.from(`${json}}`, 'latin1'), outcomes };
  }

  close(): void {
    this.#database.close();
  }
}
