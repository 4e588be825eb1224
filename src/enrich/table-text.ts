/** Splits the first lines of a table into rows and cells. */

/** Splits a record of a table into its cells; a cell that begins with a quote is open until the number of its quotes is even. */
export function cellsOf(record: string, delimiter: string): { cells: string[]; isOpen: boolean } {
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
    if (isOpen) return { cells, isOpen };
    const cell = record.slice(start, at);
    cells.push(cell.endsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
  }
  return { cells, isOpen: false };
}

/** Returns the rows of lines. A cell in quotes may have several lines; one that is never closed makes its line a row of its own. */
export function rowsOf(lines: readonly string[], delimiter: string): string[][] {
  const rows: string[][] = [];
  let joins = true;
  for (let at = 0; at < lines.length; at++) {
    let record = cellsOf(lines[at]!, delimiter);
    let text = lines[at]!;
    let last = at;
    while (joins && record.isOpen && last + 1 < lines.length) {
      text += `\n${lines[++last]!}`;
      record = cellsOf(text, delimiter);
    }
    rows.push(record.cells);
    if (record.isOpen) joins = false;
    else at = last;
  }
  return rows;
}
