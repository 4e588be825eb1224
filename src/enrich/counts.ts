/** What an enrichment counted. */

export interface EnrichCounts {
  /** Lines (records, items), blank ones included. */
  lines: number;
  /** Bytes read, before decompression where the input was compressed. */
  bytes: number;
  /** Fields whose address has a country. */
  found: number;
  /** Fields whose address is well formed but has none. */
  no_country: number;
  /** Fields whose value is no address. */
  invalid_address: number;
  /** Fields that were not there. */
  missing_field: number;
  /** Lines that are no record of the format. */
  invalid_line: number;
}

export function emptyCounts(): EnrichCounts {
  return { lines: 0, bytes: 0, found: 0, no_country: 0, invalid_address: 0, missing_field: 0, invalid_line: 0 };
}
