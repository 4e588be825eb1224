/**
 * What the enrichment of a table should do, computed in another way: csv-parse reads one record after the other, each from a
 * text that begins with it.
 */
import { CsvError, parse } from 'csv-parse/sync';
import type { Database } from '../../src/database/database.js';
import { type EnrichCounts, emptyCounts } from '../../src/enrich/counts.js';
import type { EnrichOptions, TableInput } from '../../src/enrich/options.js';
import { selects } from '../../src/enrich/query.js';
import { findAddress } from './lenient-twin.js';

interface TableRecord {
  /** One character for each byte, with the line ending. */
  text: string;
  /** Undefined for a line on which a record begins that cannot be read. */
  cells: string[] | undefined;
}

const MARK = '\xef\xbb\xbf';

/** Returns the first record of a text, or undefined if a quote is not closed. */
function firstRecord(text: string, delimiter: string): { cells: string[]; length: number } | undefined {
  try {
    const [first] = parse(Buffer.from(text, 'latin1'), {
      delimiter,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      relax_quotes: true,
      to: 1,
      info: true,
    }) as unknown as { record: string[]; info: { bytes: number } }[];
    return { cells: first!.record, length: first!.info.bytes };
  } catch (error) {
    if (error instanceof CsvError && error.code === 'CSV_QUOTE_NOT_CLOSED') return undefined;
    throw error;
  }
}

/** Splits a table into records. */
function splitTable(text: string, delimiter: string, maxRecordBytes: number): TableRecord[] {
  const records: TableRecord[] = [];
  const mark = text.startsWith(MARK) ? MARK.length : 0;
  for (let at = mark; at < text.length; ) {
    const record = firstRecord(text.slice(at), delimiter);
    const size = record === undefined ? 0 : text.slice(0, at + record.length).replace(/\n$/, '').length;
    if (record === undefined || size - at > maxRecordBytes) {
      const newline = text.indexOf('\n', at);
      const end = newline < 0 ? text.length : newline + 1;
      records.push({ text: text.slice(at, end), cells: undefined });
      at = end;
    } else {
      records.push({ text: text.slice(at, at + record.length), cells: record.cells });
      at += record.length;
    }
  }
  return records;
}

export interface TableExpectation {
  /** One character for each byte. */
  output: string;
  rejects: string;
  counts: EnrichCounts;
  /** The line of the record that the run fails at. */
  failsAt: number | undefined;
  /** Addresses by country, for a query. */
  countries: Record<string, number>;
}

const quoted = (text: string, delimiter: string): string =>
  text.includes(delimiter) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/** @param table one character for each byte; begins with a header that can be read and has all columns of the fields */
export function expectTable(
  database: Database,
  table: string,
  options: EnrichOptions & { input: TableInput },
  maxRecordBytes: number,
): TableExpectation {
  const { fields, add, onInvalid, query, input } = options;
  const { delimiter } = input;
  const counts = { ...emptyCounts(), bytes: table.length };
  const countries: Record<string, number> = {};
  let output = table.startsWith(MARK) ? MARK : '';
  let rejects = '';
  let line = 1;
  let columns: string[] | undefined;
  const others = query === undefined || (query.kind === 'filter' && query.isInverted);
  const bytes = (text: string): string => Buffer.from(text).toString('latin1');

  for (const { text, cells } of splitTable(table, delimiter, maxRecordBytes)) {
    const [, body, ending] = /^(.*?)((?:\r?\n)?)$/s.exec(text) as unknown as [string, string, string];
    const from = line;
    line += text.split('\n').length - 1;
    if (cells !== undefined && body === '') {
      counts.lines++;
      if (others) output += text;
      continue;
    }
    if (columns === undefined && cells !== undefined) {
      columns = cells;
      if (input.hasHeader) {
        const names = fields.flatMap(({ name }) => add.map((part) => delimiter + quoted(`${name}_${part}`, delimiter)));
        output += query === undefined ? body + bytes(names.join('')) + ending : text;
        continue;
      }
    }
    counts.lines++;
    if (cells === undefined || cells.length !== columns!.length) {
      counts.invalid_line++;
      // A line that cannot be read may be very long, and is not kept until the run fails.
      if (cells !== undefined || onInvalid !== 'fail') rejects += text;
      if (onInvalid === 'fail') return { output, rejects, counts, failsAt: from, countries };
      if (onInvalid === 'keep') output += text;
      continue;
    }
    const values = fields.map(({ path }) => {
      const name = path.join('.');
      return cells[input.hasHeader ? columns!.indexOf(name) : Number(name) - 1]!;
    });
    const results = values.map((value) => {
      const address = options.lenient === true ? findAddress(value) : value;
      const result = address === undefined ? undefined : database.lookupWithReason(address);
      if (value === '') counts.missing_field++;
      else if (result === undefined) counts.invalid_address++;
      else if (result.country_code === null) counts.no_country++;
      else counts.found++;
      if (result?.country_code != null) countries[result.country_code] = (countries[result.country_code] ?? 0) + 1;
      return result && { ...result, address };
    });
    if (query !== undefined) {
      const isSelected = results.some((result) => result && query.kind === 'filter' && selects(query, result, ''));
      if (query.kind === 'filter' && isSelected !== query.isInverted) output += text;
      continue;
    }
    const added = results.flatMap((result) =>
      add.map(
        (part) => delimiter + quoted(String((result as Record<string, unknown> | undefined)?.[part] ?? ''), delimiter),
      ),
    );
    output += body + bytes(added.join('')) + ending;
  }
  return { output, rejects, counts, failsAt: undefined, countries };
}
