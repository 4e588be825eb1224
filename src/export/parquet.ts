/**
 * The format `parquet`: a table of ranges for warehouses. The bounds are text that sorts like the addresses of both families, and
 * the rows are sorted by them. docs/warehouses.md shows how to join it.
 */
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer';
import { continentTable } from '../country/continents.js';
import { chosenCountries, chosenNetworks, exportedRanges, type Selection } from './ranges.js';

/** Rows in a row group: readers skip whole groups by their bounds, and load others as a whole. */
const GROUP_ROWS = 50_000;

type ColumnType = 'STRING' | 'INT32' | 'INT64' | 'BOOLEAN';

/** The columns, their types, and whether they can be null. */
const COLUMNS = {
  start: ['STRING', false],
  end: ['STRING', false],
  family: ['INT32', false],
  country_code: ['STRING', true],
  country: ['STRING', true],
  is_eu: ['BOOLEAN', false],
  continent: ['STRING', true],
  asn: ['INT64', true],
  as_name: ['STRING', true],
} as const satisfies Record<string, readonly [ColumnType, isNullable: boolean]>;
type Columns = Record<string, readonly [ColumnType, isNullable: boolean]>;
type Row = Record<string, string | number | bigint | boolean | null>;

/** Returns the columns of a file. */
function columnsOfFile({ hasBoth, rows }: Selection): Columns {
  const { asn, as_name, ...columns } = COLUMNS;
  const more = rows?.names.map((name) => [name, [rows.flags.includes(name) ? 'BOOLEAN' : 'STRING', true]] as const);
  return { ...columns, ...(hasBoth === true && { asn, as_name }), ...Object.fromEntries(more ?? []) };
}

/** IPv4 addresses are IPv4-mapped IPv6 addresses (RFC 4291 §2.5.5.2), as 32 hex digits. */
const MAPPED = '00000000000000000000ffff';

/** Returns an address as 32 lower-case hex digits. */
function sortableText(words: Uint32Array): string {
  let text = words.length === 1 ? MAPPED : '';
  for (const word of words) text += word.toString(16).padStart(8, '0');
  return text;
}

function* rowsOf(selection: Selection): Generator<Row> {
  const countries = chosenCountries(selection);
  const networks = chosenNetworks(selection);
  const continents = continentTable();
  const values = countries.map((country, record) => {
    const network = networks[record];
    return {
      country_code: country?.code ?? null,
      country: country?.name ?? null,
      is_eu: country?.isEu ?? false,
      continent: continents.get(country?.code ?? '')?.code ?? null,
      asn: network === undefined ? null : BigInt(network.asn),
      as_name: network?.name || null,
      ...Object.fromEntries(
        selection.rows?.names.map((name, at) => [name, selection.rows!.values[record]![at]!]) ?? [],
      ),
    };
  });
  for (const family of selection.families) {
    for (const { first, last, record } of exportedRanges(selection, family)) {
      yield { start: sortableText(first), end: sortableText(last), family, ...values[record]! };
    }
  }
}

/** Returns rows as columns. */
function columnsOf(columns: Columns, rows: readonly Row[]): ColumnSource[] {
  return Object.entries(columns).map(([name, [type, nullable]]) => {
    return { name, type, nullable, data: rows.map((row) => row[name]) };
  });
}

/**
 * Returns a Parquet file; the same bytes for the same release and selection.
 *
 * @param title for its metadata; @param groupRows rows in a row group
 */
export async function parquet(selection: Selection, title: string, groupRows = GROUP_ROWS): Promise<Uint8Array> {
  const writer = new ByteWriter();
  const columns = columnsOfFile(selection);
  const schema = Object.entries(columns).map(([name, [type, isNullable]]) => {
    const repetition_type = isNullable ? ('OPTIONAL' as const) : ('REQUIRED' as const);
    if (type === 'STRING')
      return { name, type: 'BYTE_ARRAY' as const, converted_type: 'UTF8' as const, repetition_type };
    return { name, type, repetition_type };
  });
  const file = new ParquetWriter({
    writer,
    schema: [{ name: 'ranges', num_children: schema.length }, ...schema],
    // Whole bounds, so that a reader can skip a group: the default keeps half of an address.
    statisticsTruncateLength: 2 * MAPPED.length,
    kvMetadata: [{ key: 'title', value: title }],
    createdBy: 'ipatlas',
  });
  let rows: Row[] = [];
  const flush = (): void | Promise<void> =>
    file.write({ columnData: columnsOf(columns, rows), rowGroupSize: groupRows });
  for (const row of rowsOf(selection)) {
    rows.push(row);
    if (rows.length < groupRows) continue;
    await flush();
    rows = [];
  }
  if (rows.length > 0) await flush();
  await file.finish();
  return writer.getBytes();
}
