/** The counts of an enrichment. */
import { pathText } from './field-path.js';
import { type FieldRequest, pathsOf } from './options.js';

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
  /** Fields with an address that have no result, because the date of the record is missing, no date, or not kept. */
  missing_date: number;
  /** Fields with an address that have no result, because the history of the date of the record is damaged. */
  damaged_history: number;
}

/** The counts of a run that hides addresses. */
export interface HidingCounts extends EnrichCounts {
  hidden: {
    /** Addresses that were hidden. */
    addresses: number;
    /** Records that were searched for addresses that are not hidden, and those of them that have one. */
    searched_records: number;
    records_with_others: number;
  };
}

/** @param isHiding whether addresses are hidden */
export function emptyCounts(isHiding = false): EnrichCounts {
  return {
    lines: 0,
    bytes: 0,
    found: 0,
    no_country: 0,
    invalid_address: 0,
    missing_field: 0,
    invalid_line: 0,
    missing_date: 0,
    damaged_history: 0,
    ...(isHiding && { hidden: { addresses: 0, searched_records: 0, records_with_others: 0 } }),
  };
}

/**
 * Returns a warning if a run has found no country, because then the fields or the format are probably wrong.
 *
 * @param fields the fields that were looked up, to name them; none for a format without fields
 * @param isLenient whether addresses in other text are found
 */
export function warningOf(
  counts: EnrichCounts,
  fields: readonly Pick<FieldRequest, 'path' | 'others'>[],
  isLenient: boolean,
): string | undefined {
  const { found, no_country, invalid_address, missing_field, invalid_line, missing_date, damaged_history } = counts;
  if (damaged_history > 0) return undefined;
  if (found === 0 && missing_date > 0) {
    return 'no date of a record is kept; is --at-field right? "ipatlas releases" shows the days that are kept';
  }
  const values = no_country + invalid_address + missing_field;
  if (found > 0 || values + invalid_line === 0) return undefined;
  if (values === 0) return 'all lines are invalid, and none was enriched; is the format right (--format)?';
  const names = fields.flatMap(pathsOf).map(pathText).join(', ');
  if (no_country > 0) return `no country was found for any address${names === '' ? '' : ` in ${names}`}`;
  const problem = missing_field > 0 ? 'missing or never an address' : 'never an address';
  const hint = isLenient || invalid_address === 0 ? '' : ' With a port or in a list, an address needs --lenient.';
  if (names === '') return `no address was found; is the format right (--format)?${hint}`;
  return `no address was found: ${names} is ${problem}; is the field right (--field)?${hint}`;
}
