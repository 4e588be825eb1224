/** Splits the first lines of a table into rows and cells. */

/** Most lines of a title before the header of a table. */
export const MAX_TITLES = 30;

/** Cells of a record, and the text of the last one if its quotes are open. */
interface Cells {
  cells: string[];
  open?: string;
}

/** Splits a record of a table into its cells; a cell that begins with a quote is open until the number of its quotes is even. */
export function cellsOf(record: string, delimiter: string): Cells {
  const cells: string[] = [];
  for (let at = 0; at <= record.length; at++) {
    const start = at;
    let end = record.indexOf(delimiter, at);
    if (end < 0) end = record.length;
    if (record[start] !== '"') {
      cells.push(record.slice(start, end));
      at = end;
      continue;
    }
    let isOpen = false;
    for (; at < record.length && (isOpen || record[at] !== delimiter); at++) if (record[at] === '"') isOpen = !isOpen;
    if (isOpen) return { cells, open: record.slice(start) };
    const cell = record.slice(start, at);
    cells.push(cell.endsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
  }
  return { cells };
}

/** Returns whether a cell whose quotes are open before a line is open after it. */
function staysOpen(line: string, delimiter: string): boolean {
  const parts = line.split('"');
  return parts.length % 2 === 1 && parts.every((part, at) => at % 2 === 0 || !part.includes(delimiter));
}

/**
 * Returns the rows of lines. A cell in quotes may have several lines; one that is never closed makes its line a row of its own. Each
 * line is read a few times at most.
 */
export function rowsOf(lines: readonly string[], delimiter: string): string[][] {
  const rows: string[][] = [];
  let joins = true;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    // As the kernel reads it.
    const escaped = line.includes('\\"') ? cellsOf(line.replaceAll('\\"', '""'), delimiter) : undefined;
    const isEscaped = escaped?.open === undefined && rows.some(({ length }) => length === escaped?.cells.length);
    const { cells, ...first } = isEscaped ? escaped! : cellsOf(line, delimiter);
    let { open } = first;
    let last = at;
    while (joins && open !== undefined && last + 1 < lines.length) {
      const parts = [open];
      do parts.push(lines[++last]!);
      while (last + 1 < lines.length && staysOpen(parts.at(-1)!, delimiter));
      const next = cellsOf(parts.join('\n'), delimiter);
      cells.push(...next.cells);
      open = next.open;
    }
    rows.push(cells);
    if (open !== undefined) joins = false;
    else at = last;
  }
  return rows;
}

/** Returns where the first row after the header ends, -1 if it has not. */
export function firstRowEnd(text: string, header: string, delimiter: string): number {
  const start = text.indexOf('\n', text.indexOf(header)) + 1;
  if (start === 0) return -1;
  let isOpen = false;
  for (let end = text.indexOf('\n', start), at = start; end >= 0; end = text.indexOf('\n', at)) {
    const line = text.slice(at, end);
    isOpen = isOpen ? staysOpen(line, delimiter) : cellsOf(line, delimiter).open !== undefined;
    at = end + 1;
    if (!isOpen) return at;
  }
  return -1;
}
