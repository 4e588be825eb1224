/** Formats tables and numbers as plain text, for terminals. */

/** What a terminal can take for a command: control characters but the line end, and those that change the direction of text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is searched for
const CONTROL = /[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** Returns a text that changes nothing but the characters on a terminal: others are written as `\u001b`. */
export function printable(text: string): string {
  return text.replaceAll(CONTROL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Returns a number with its noun: `1 line`, `1,000 lines`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(count)} ${count === 1 ? noun : plural}`;
}

/**
 * Formats rows as an aligned table, with a line end after each row.
 *
 * @param rows the first is the header; all have the same number of cells
 * @param right indexes of the columns that are aligned to the right, such as numbers
 */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string {
  const cells = rows.map((row) => row.map(printable));
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const align = (cell: string, column: number): string =>
    right.includes(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!);
  return cells.map((row) => `${row.map(align).join('  ').trimEnd()}\n`).join('');
}

/** Formats a number with its digits in groups of three: `16,777,216`. (`toLocaleString` would load the locales: 15 ms.) */
export function grouped(value: number | bigint): string {
  const [whole, ...fraction] = String(typeof value === 'bigint' ? value : Number(value.toFixed(3))).split('.');
  return [whole!.replaceAll(/\B(?=(\d{3})+$)/g, ','), ...fraction].join('.');
}

/** Formats a share, 0 to 1, in percent with three significant digits: `12.3 %`. */
export function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}
