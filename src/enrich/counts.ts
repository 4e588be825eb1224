/** The counts of an enrichment. */

export interface EnrichCounts {
  /** Lines (records, items), including blank ones. */
  lines: number;
  /** Bytes read, before decompression. */
  bytes: number;
  /** Fields whose address has a country. */
  found: number;
  /** Fields whose address is valid but has no country. */
  no_country: number;
  /** Fields whose value is not an address. */
  invalid_address: number;
  /** Fields that are missing. */
  missing_field: number;
  /** Lines that are not records of the format. */
  invalid_line: number;
}

export function emptyCounts(): EnrichCounts {
  return { lines: 0, bytes: 0, found: 0, no_country: 0, invalid_address: 0, missing_field: 0, invalid_line: 0 };
}
