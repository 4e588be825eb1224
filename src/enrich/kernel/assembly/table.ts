/** Reads the records of a table and finds the wanted cells. cells.ts finds the separators. */
import {
  ANY_COLUMNS,
  INSERT_BYTES,
  NO_COLUMN,
  NO_TABS,
  SHAPE_COLUMNS,
  SHAPE_DELIMITER,
  SHAPE_STYLE,
  SHAPE_TAB_STYLE,
  SHAPE_TARGET_COUNT,
  SHAPE_TARGETS,
} from '../abi';
import { BACKSLASH, CARRIAGE_RETURN, QUOTE, TAB } from './ascii';
import { addPlainLine, endOtherLine, flushBatch } from './batch';
import { brokenEnd, recordEnds, separatorsOf, startCells } from './cells';
import { equal, VECTOR } from './masks';
import { delimiter, fieldCount, setDelimiter, shape, valueOffsets } from './settings';
import { setCells } from './slot';

/** The number of wanted columns; the columns, 4 bytes each. */
let wantedCount: u32 = 0;
let wantedColumns: usize = 0;
/** The number of the wanted column that comes next, in `wantedColumns`, and that column. */
let target: u32 = 0;
let wanted: u32 = 0;

@inline function wantedColumn(): u32 {
  return target < wantedCount ? load<u32>(wantedColumns + (<usize>target << 2)) : <u32>NO_COLUMN;
}

/** Notes that a wanted cell begins at an address. */
@inline function noteCell(at: usize): void {
  store<u32>(valueOffsets + (<usize>target << 2), <u32>at);
  target++;
  wanted = wantedColumn();
}

/** Starts a record. */
@inline function startRecord(at: usize): void {
  target = 0;
  wanted = wantedColumn();
  if (wanted == 0) noteCell(at);
}

/**
 * Notes the wanted cells among those that begin after some delimiters of a vector.
 *
 * @param column number of delimiters in the record before these
 */
@inline function noteCells(vector: usize, delimiters: u64, column: u32): void {
  const end = column + <u32>popcnt(delimiters);
  while (wanted <= end) {
    for (; column + 1 < wanted; column++) delimiters &= delimiters - 1;
    noteCell(vector + <usize>ctz(delimiters) + 1);
  }
}

/**
 * Notes the wanted cells of a record in which a quote after a backslash is text, as MySQL and others write it.
 *
 * @returns whether the record has such a quote, and as many cells as there are columns
 */
function noteEscapedCells(start: usize, close: usize, columnCount: u32): bool {
  startRecord(start);
  let hasEscape = false;
  let isOpen = false;
  let cell = start;
  let column: u32 = 0;
  for (let at = start; at < close; at++) {
    const byte: u32 = load<u8>(at);
    if (byte == BACKSLASH && isOpen) hasEscape = load<u8>(++at) == <u8>QUOTE || hasEscape;
    else if (byte == QUOTE) isOpen = isOpen != (load<u8>(cell) == <u8>QUOTE);
    else if (byte == delimiter && !isOpen) {
      cell = at + 1;
      if (++column == wanted) noteCell(cell);
    }
  }
  return hasEscape && !isOpen && column + 1 == columnCount;
}

/** Whether the records that are read have tabs between their cells, see `SHAPE_TAB_STYLE`. It is the same for most records of a file. */
let isTabbed: bool = false;
let tabStyle: u32 = NO_TABS;

/** Returns the tabs of a vector. */
@inline function tabsOf(vector: usize): u64 {
  return equal(v128.load(vector), v128.load(vector, 16), v128.load(vector, 32), v128.load(vector, 48), TAB);
}

/** Sets what is between the cells of the records that are read next. */
function setTabbed(tabbed: bool): void {
  isTabbed = tabbed;
  setDelimiter(tabbed ? TAB : load<u32>(shape, SHAPE_DELIMITER));
}

/** Returns the offset of the texts to insert. */
@inline function styleOffset(): usize {
  return <usize>((isTabbed ? tabStyle : load<u32>(shape, SHAPE_STYLE)) * fieldCount) * INSERT_BYTES;
}

/**
 * Processes records, the first of which begins at `from`.
 *
 * A record is read again if it turns out to have tabs between its cells, or to have none, unlike the one before it.
 *
 * @param end after the last newline; @param inputEnd the end of the input: one byte less if the last newline is not part of it
 * @returns `end`, or the first byte of the first record that was not processed: the output is full, or the policy is to fail
 */
export function processRecords(from: usize, end: usize, inputEnd: usize): usize {
  const columnCount = load<u32>(shape, SHAPE_COLUMNS);
  wantedCount = load<u32>(shape, SHAPE_TARGET_COUNT);
  wantedColumns = shape + SHAPE_TARGETS;
  tabStyle = load<u32>(shape, SHAPE_TAB_STYLE);
  const mayHaveTabs = tabStyle != <u32>NO_TABS;
  setTabbed(isTabbed && mayHaveTabs);
  let style = styleOffset();
  startCells();
  startRecord(from);
  let start = from;
  // The delimiters and, if it matters, the tabs of the record so far.
  let column: u32 = 0;
  let tabCount: u32 = 0;
  for (let vector = from; vector < end; ) {
    let separators = separatorsOf(vector, min(end - vector, VECTOR));
    let tabs = mayHaveTabs ? tabsOf(vector) : 0;
    let again = false;
    for (let ends = recordEnds | brokenEnd; ends != 0; ends &= ends - 1) {
      const newline = ends & (0 - ends);
      if (mayHaveTabs) {
        tabCount += <u32>popcnt(tabs & (newline - 1));
        tabs &= ~((newline << 1) - 1);
        again = (tabCount >= max<u32>(columnCount, 2) - 1) != isTabbed;
        tabCount = 0;
        if (again) break;
      }
      if (newline == brokenEnd) break;
      const delimiters = separators & (newline - 1);
      separators &= ~((newline << 1) - 1);
      noteCells(vector, delimiters, column);
      column += <u32>popcnt(delimiters);

      // A short record has no value of the one before.
      for (; target < wantedCount; target++) store<u32>(valueOffsets + (<usize>target << 2), 0);

      const at = vector + <usize>ctz(newline);
      // Only a newline of the input makes a carriage return part of the line ending.
      const isCrLf = at > start && at < inputEnd && load<u8>(at - 1) == <u8>CARRIAGE_RETURN;
      const close = at - usize(isCrLf);
      const after = min(at + 1, inputEnd);
      let full: usize = 0;
      if (close == start) full = endOtherLine(start, after, true);
      else if (column + 1 == columnCount || columnCount == ANY_COLUMNS || noteEscapedCells(start, close, columnCount)) {
        full = addPlainLine(start, close, after, style);
      } else {
        setCells(column + 1);
        full = endOtherLine(start, after, false);
      }
      if (full != 0) return full;
      start = at + 1;
      column = 0;
      startRecord(start);
    }
    if (again || brokenEnd != 0) {
      const quotesFrom: usize = again ? 0 : vector + <usize>ctz(brokenEnd) + 1;
      if (again) {
        // The cells of the batch have the delimiter of before.
        const full = flushBatch();
        if (full != 0) return full;
        setTabbed(!isTabbed);
        style = styleOffset();
      }
      vector = start;
      column = 0;
      startCells(quotesFrom);
      startRecord(start);
      continue;
    }
    noteCells(vector, separators, column);
    column += <u32>popcnt(separators);
    tabCount += <u32>popcnt(tabs);
    vector += VECTOR;
  }
  const full = flushBatch();
  return full != 0 ? full : end;
}
