/** Looks up addresses in the SQLite mirror, one query per address: for comparison with the binary engine. */
import { EMBEDDED_SCHEMES, type EmbeddedScheme, embeddedIPv4 } from '../address/embedded.js';
import type { Reason } from '../country/assignment.js';
import { openMirror } from '../mirror/reader.js';
import { noConfidence } from '../rangefile/confidence.js';
import { MAX_CONFIDENCE } from '../rangefile/layout.js';
import { type CountryResult, type Engine, sharedCountry } from './engine.js';
import type { Country } from './results.js';

interface Row {
  country: string | null;
  country_code: string | null;
  is_eu: number | null;
  reason: Reason | EmbeddedScheme | null;
  /** Missing unless the confidence is wanted; null if the lineages agree. */
  percent?: number | null;
}

const FIND = (family: 4 | 6, confidence: boolean): string => `
  SELECT name AS country, country_code, is_eu, reason ${confidence ? ', percent' : ''}
  FROM (SELECT first, country_code, reason FROM ipv${family}_range WHERE first <= ? ORDER BY first DESC LIMIT 1)
  LEFT JOIN country ON code = country_code
  ${confidence ? `LEFT JOIN ipv${family}_confidence USING (first)` : ''}`;

function toResult({ country, country_code, is_eu, reason, percent }: Row): CountryResult {
  const result = { country, country_code, is_eu: is_eu === 1, reason: reason as Reason | null };
  if (percent === undefined) return result;
  return { ...result, confidence: country_code === null ? null : (percent ?? MAX_CONFIDENCE) };
}

/**
 * Opens the mirror for lookups.
 *
 * @param path of the SQLite file; opened read-only
 * @param confidence whether results have the confidence
 * @throws AtlasError E_NO_DATABASE or E_DAMAGED; E_USAGE if the mirror has no confidence
 */
export function openSqliteEngine(path: string, confidence = false): Engine {
  const database = openMirror(path);
  const exists = database.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ipv4_confidence'");
  if (confidence && exists.get() === undefined) {
    database.close();
    throw noConfidence(path);
  }
  const find4 = database.prepare<[number], Row>(FIND(4, confidence));
  const find6 = database.prepare<[Buffer], Row>(FIND(6, confidence));
  const key = Buffer.alloc(16);
  const lookupIPv4 = (address: number): CountryResult => toResult(find4.get(address >>> 0)!);
  const lookupIPv6 = (words: Uint32Array): CountryResult => {
    for (let i = 0; i < 4; i++) key.writeUInt32BE(words[i]!, 4 * i);
    const row = find6.get(key)!;
    const embedded = row.reason !== null && EMBEDDED_SCHEMES.includes(row.reason as EmbeddedScheme);
    return embedded ? lookupIPv4(embeddedIPv4(row.reason as EmbeddedScheme, words)) : toResult(row);
  };
  const countries = new Map<string | null, Country>();
  const countryOf = (result: CountryResult): Country => {
    const known = countries.get(result.country_code) ?? sharedCountry(result);
    countries.set(result.country_code, known);
    return known;
  };
  return {
    lookupIPv4,
    lookupIPv6,
    countryIPv4: (address) => countryOf(lookupIPv4(address)),
    countryIPv6: (words) => countryOf(lookupIPv6(words)),
    close: () => {
      database.close();
    },
  };
}
