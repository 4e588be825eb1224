/**
 * The second step: walks the separators of each line, checks that they and the values between them come in an order that
 * JSON allows, and notes where the values stand that are wanted.
 *
 * | separator | where it is allowed |
 * |---|---|
 * | `{` `[` | behind `:`, `[` or an array's `,`; at the top of a line once, and only the brace |
 * | `}` `]` | where its own kind is open: behind a value or a closing bracket, or right behind the opening one |
 * | `:` | in an object, behind a string that stands behind `{` or `,` |
 * | `,` | in an object behind a member's value, in an array behind a value |
 * | newline | where nothing is open, and nothing but blanks stands before it or behind the object |
 */
import { maxDepth, targetCount } from './config';
import { findKey, hasChildren, isAnswerName, noteKey } from './keys';
import { isBlank } from './line';
import { addLine, answerLines, isPendingFull } from './pending';
import { BREACH, escapes, findSeparators, startSeparators } from './separators';
import { countLine, found, hasRoom, index, indexEntries, refuseLine, stack } from './slot';

const NEWLINE: u32 = 0x0a;
const QUOTE: u32 = 0x22;
const COMMA: u32 = 0x2c;
const COLON: u32 = 0x3a;
/** An opening bracket with bit 5 set is an opening brace. */
const BRACE: u32 = 0x7b;
const CLOSING_BRACKET: u32 = 0x5d;
const CLOSING_BRACE: u32 = 0x7d;

/** What a separator stands in. From `NODE` on it is an object at that node of the tree of keys. */
const ARRAY: u32 = 0;
const OBJECT: u32 = 1;
const NODE: u32 = 2;
/** Outside of all brackets. */
const TOP: u32 = 0xffff;

/**
 * Looks up the key before a colon.
 *
 * @param before the separator before the key; @param close its closing quote
 * @returns the key's node, or -1
 */
@inline function keyBetween(node: u32, before: usize, close: usize): i32 {
  let open = before + 1;
  while (isBlank(load<u8>(open))) open++;
  return findKey(node, open + 1, close - open - 1, escapes);
}

/** The last byte in `after … at` (both without) that is not blank, or `after`. */
@inline function lastBefore(at: usize, after: usize): usize {
  let last = at - 1;
  if (load<u8>(last) > 32) return last;
  while (last > after && isBlank(load<u8>(last))) last--;
  return last;
}

// The line at hand.
let lineStart: usize = 0;
/** Whether it was seen to be no JSON object. */
let bad: bool = false;
/** Where its object opens and closes (0: not yet), and whether that has no members. */
let open: usize = 0;
let close: usize = 0;
let empty: bool = false;
/** Whether a member stands in it that has the name of an answer. */
let replaces: bool = false;

// Where in the line the walk is.
let depth: u32 = 0;
let context: u32 = TOP;
/** The last separator, and whether it was a closing bracket. */
let before: usize = 0;
let closed: bool = false;
/** In an object: whether a key comes next, and the node of the last one. */
let wantsKey: bool = false;
let key: i32 = -1;

function beginLine(at: usize): void {
  lineStart = at;
  bad = false;
  open = 0;
  replaces = false;
  depth = 0;
  context = TOP;
  closed = false;
  wantsKey = false;
  for (let target: u32 = 0; target < targetCount; target++) store<u32>(found + (<usize>target << 2), 0);
}

@inline function onComma(behindValue: bool): void {
  if (behindValue == closed || wantsKey || context == TOP) bad = true;
  wantsKey = context != ARRAY;
  closed = false;
}

@inline function onColon(at: usize, last: usize): void {
  if (!wantsKey || last <= before || load<u8>(last) != QUOTE) bad = true;
  else if (context >= NODE && !bad) {
    // Where the line is bad, `context` may be none that has a node.
    key = keyBetween(context - NODE, before, last);
    if (key >= 0) {
      noteKey(key, at);
      if (depth == 1 && isAnswerName(key)) replaces = true;
    }
  }
  wantsKey = false;
}

export function onOpener(at: usize, byte: u32, behindValue: bool): void {
  if (behindValue || closed || wantsKey || depth >= maxDepth) {
    bad = true;
    return;
  }
  store<u16>(stack + (<usize>depth << 1), context);
  depth++;
  if (byte != BRACE) {
    if (context == TOP) bad = true;
    context = ARRAY;
    return;
  }
  if (context == TOP) {
    open = at;
    context = NODE;
  } else if (context >= NODE && key >= 0 && hasChildren(key)) context = NODE + <u32>key;
  else context = OBJECT;
  wantsKey = true;
}

export function onCloser(at: usize, byte: u32, behindValue: bool): void {
  const isEmpty = !behindValue && (load<u8>(before) | 32) == BRACE;
  const isDue = behindValue ? !closed && !wantsKey : closed || isEmpty;
  if (depth == 0 || byte != (context == ARRAY ? CLOSING_BRACKET : CLOSING_BRACE) || !isDue) {
    bad = true;
    return;
  }
  depth--;
  context = load<u16>(stack + (<usize>depth << 1));
  wantsKey = false;
  closed = true;
  if (depth == 0) {
    close = at;
    empty = isEmpty;
  }
}

/**
 * Deals with a line that is no JSON object, or blank: all before it has to be put out first.
 *
 * @returns `next`, or the first byte of the first line that was not dealt with
 */
function endOddLine(put: usize, next: usize, isBlankLine: bool): usize {
  const full = answerLines();
  if (full != 0) return full;
  if (!hasRoom(put, 0)) return lineStart;
  if (isBlankLine) countLine();
  else if (!refuseLine(lineStart, put)) return lineStart;
  return next;
}

/** @returns the first byte of the next line, or of the first that was not dealt with */
export function onNewline(at: usize, behindValue: bool, inputEnd: usize): usize {
  const next = at + 1;
  const put = min(next, inputEnd);
  const isObject = !bad && depth == 0 && !behindValue;
  if (isObject && open != 0) {
    addLine(lineStart, open, close, put, empty, replaces);
    const full = isPendingFull() ? answerLines() : 0;
    if (full != 0) return full;
  } else {
    const end = endOddLine(put, next, isObject);
    if (end != next) return end;
  }
  beginLine(next);
  return next;
}

/**
 * Works through lines.
 *
 * @param from first byte of the first line
 * @param end behind the last line's newline, which must be there
 * @param inputEnd the end of the input: before the last newline, where that was not in the input
 * @returns `end`, the last lines waiting for their answers; or, where the output is full or, under the policy `fail`, a line
 *   is no JSON object, the first byte of the first line that was not dealt with
 */
export function walk(from: usize, end: usize, inputEnd: usize): usize {
  startSeparators(from);
  beginLine(from);
  before = from - 1;
  while (lineStart < end) {
    const entriesEnd = findSeparators(index, indexEntries, end);
    for (let entry = index; entry < entriesEnd; entry += 4) {
      const at: usize = load<u32>(entry);
      if ((at & BREACH) != 0) {
        bad = true;
        continue;
      }
      const byte: u32 = load<u8>(at);
      const last = lastBefore(at, before);
      const behindValue = last > before;
      if (byte == COMMA) onComma(behindValue);
      else if (byte == COLON) onColon(at, last);
      else if (byte == NEWLINE) {
        const next = onNewline(at, behindValue, inputEnd);
        if (next != at + 1) return next;
        if (next >= end) break;
      } else if ((byte | 32) == BRACE) onOpener(at, byte, behindValue);
      else onCloser(at, byte, behindValue);
      before = at;
    }
  }
  return end;
}
