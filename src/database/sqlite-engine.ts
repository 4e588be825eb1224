/** Looks up addresses in the SQLite mirror, one query per address: for comparison with the binary engine. */
import { EMBEDDED_SCHEMES, type EmbeddedScheme, embeddedIPv4 } from '../address/embedded.js';
import type { Reason } from '../country/assignment.js';
import { openMirror } from '../mirror/reader.js';
import type { CountryResult, Engine } from './engine.js';

interface Row {
  country: string | null;
  country_code: string | null;
  is_eu: number | null;
  reason: Reason | EmbeddedScheme | null;
}

const FIND = (table: string): string => `
  SELECT name AS country, country_code, is_eu, reason
  FROM (SELECT country_code, reason FROM ${table} WHERE first <= ? ORDER BY first DESC LIMIT 1)
  LEFT JOIN country ON code = country_code`;

function toResult(row: Row): CountryResult {
  const { country, country_code, is_eu, reason } = row;
  return { country, country_code, is_eu: is_eu === 1, reason: reason as Reason | null };
}

/**
 * Opens the mirror for lookups.
 *
 * @param path of the SQLite file; opened read-only
 * @throws AtlasError E_NO_DATABASE or E_DAMAGED
 */
export function openSqliteEngine(path: string): Engine {
  const database = openMirror(path);
  const find4 = database.prepare<[number], Row>(FIND('ipv4_range'));
  const find6 = database.prepare<[Buffer], Row>(FIND('ipv6_range'));
  const key = Buffer.alloc(16);
  const lookupIPv4 = (address: number): CountryResult => toResult(find4.get(address >>> 0)!);
  return {
    lookupIPv4,
    lookupIPv6(words) {
      for (let i = 0; i < 4; i++) key.writeUInt32BE(words[i]!, 4 * i);
      const row = find6.get(key)!;
      const embedded = row.reason !== null && EMBEDDED_SCHEMES.includes(row.reason as EmbeddedScheme);
      return embedded ? lookupIPv4(embeddedIPv4(row.reason as EmbeddedScheme, words)) : toResult(row);
    },
    close: () => {
      database.close();
    },
  };
}
