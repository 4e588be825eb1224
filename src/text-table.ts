/** Tables for people, in plain text. */

/**
 * Rows as an aligned table, each line with its end.
 *
 * @param rows the first is the head; all have as many cells
 * @param right columns, from zero, whose cells are pushed to the right: numbers
 */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const align = (cell: string, column: number): string =>
    right.includes(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!);
  return rows.map((row) => `${row.map(align).join('  ').trimEnd()}\n`).join('');
}

/** A whole number with its digits in groups of three: `16,777,216`. */
export function grouped(value: number | bigint): string {
  return value.toLocaleString('en-US');
}

/** A share, 0 to 1, in percent with three digits: `12.3 %`. */
export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}
