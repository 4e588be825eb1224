/** Formats tables and numbers as plain text. */

/**
 * Formats rows as an aligned table, with a line end after each row.
 *
 * @param rows the first is the header; all have the same number of cells
 * @param right indexes of the columns that are aligned to the right, such as numbers
 */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const align = (cell: string, column: number): string =>
    right.includes(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!);
  return rows.map((row) => `${row.map(align).join('  ').trimEnd()}\n`).join('');
}

/** Formats a whole number with its digits in groups of three: `16,777,216`. */
export function grouped(value: number | bigint): string {
  return value.toLocaleString('en-US');
}

/** Formats a share, 0 to 1, in percent with three significant digits: `12.3 %`. */
export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}
