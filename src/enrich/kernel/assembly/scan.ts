/**
 * Finds out whether a line is a JSON object, exactly as JSON.parse does, and where in it the wanted values are. README.md
 * describes the method.
 *
 * The line is read in vectors of 64 bytes. Stage 1 makes masks of a vector: strings, structural characters, numbers and
 * literals. Stage 2 walks over the few bytes that need more than masks: the brackets and braces, for their nesting, and the
 * ends of the keys that may be wanted. Then the grammar of the whole vector is checked by masks.
 */
import {
  BACKSLASH,
  CASE_BIT,
  CLOSING_BRACE,
  CLOSING_BRACKET,
  COLON,
  COMMA,
  DOT,
  isBlank,
  NEWLINE,
  OPENING_BRACE,
  OPENING_BRACKET,
  QUOTE,
  skipBlanks,
  SPACE,
  ZERO,
} from './ascii';
import { addLine, dropLines, endOtherLine, flushBatch, isBatchFull } from './batch';
import { backslashes, escapeErrors, escapeOpen, findEscapes, resetEscapes } from './escapes';
import { clearValues, findEscapedKey, findKey, hasChildren, isResultKey, noteKey } from './keys';
import { literalBits } from './literals';
import {
  atMost,
  blankBytes,
  VECTOR,
  equal,
  equalEitherCase,
  hasByte,
  hasControl,
  inRange,
  nearBrackets,
  next,
  overBlanks,
  pastBlanks,
  prefixXor,
  spread,
} from './masks';
import { checkFractions, checkNumbers, lastLeadingZeros, numberOpen, resetNumbers } from './numbers';
import { comparesAllKeys, hides, keyLengths, maxDepth, stack, terminator } from './settings';
import { openingQuote } from './strings';
import { FORGOTTEN } from './values';

/** What an opening bracket or brace is in. From `NODE` on it is an object that belongs to a node of the key tree. */
const ARRAY: u32 = 0;
const OBJECT: u32 = 1;
const NODE: u32 = 2;

/** Returns the first terminator of a line at an address or after it; there must be one. */
export function terminatorFrom(at: usize): usize {
  const all = i8x16.splat(<i8>terminator);
  while (true) {
    const mask = i8x16.bitmask(i8x16.eq(v128.load(at), all));
    if (mask != 0) return at + ctz(mask);
    at += 16;
  }
}

/** Returns whether a line has nothing but white space. An item of a document must have something. */
function isBlankLine(start: usize, end: usize): bool {
  return skipBlanks(start) == end && terminator == NEWLINE;
}

/**
 * Processes lines. Valid ones at the end may still be in the batch.
 *
 * @param from first byte of the first line; @param end after the last terminator
 * @param inputEnd the end of the input: one byte less, if the last terminator is not part of the input
 * @returns `end`, or the first byte of the first line that was not processed: the output is full, or the policy is to fail
 */
export function processAnyLines(from: usize, end: usize, inputEnd: usize): usize {
  clearValues();
  let vector = from;
  let lineStart = from;
  let lineOpen: usize = 0;
  // Members of the line that have the key of a result, and the first one's opening quote.
  let replacedCount: u32 = 0;
  let firstReplaced: usize = 0;
  // The innermost open object or array, and how many are open.
  let context: u32 = OBJECT;
  let depth: u32 = 0;
  // The last key that has keys below it in the tree, and its colon.
  let parentKey: u32 = 0;
  let parentColon: usize = 0;

  // Carried from vector to vector. All ones: a string is open.
  let inString: u64 = 0;
  let opensBefore: u64 = 0;
  // One bit each: an escape is in the open string; the open string is a key; the vector ended with a scalar, a digit, a leading
  // zero, a literal; it ended after a colon or newline, a key, or any token that a value must follow.
  let escapedCarry: u64 = 0;
  let keyCarry: u64 = 0;
  let scalarCarry: u64 = 0;
  let digitCarry: u64 = 0;
  let leadingZeroCarry: u64 = 0;
  let literalCarry: u64 = 0;
  let colonCarry: u64 = 1;
  let keyEndCarry: u64 = 0;
  let dueCarry: u64 = 1;
  // The bytes of the next vector that belong to a literal.
  let literalRest: u64 = 0;
  resetEscapes();
  resetNumbers();

  while (true) {
    // Stage 1.
    const a = v128.load(vector);
    const b = v128.load(vector, 16);
    const c = v128.load(vector, 32);
    const d = v128.load(vector, 48);

    let quotes = equal(a, b, c, d, QUOTE);
    let errors: u64 = 0;
    let escapes: u64 = 0;
    if (hasByte(a, b, c, d, BACKSLASH) || escapeOpen) {
      quotes &= ~findEscapes(vector);
      errors = escapeErrors;
      escapes = backslashes;
    }
    const hasControls = hasControl(a, b, c, d);
    if ((quotes | escapes | errors) == 0 && inString != 0 && !hasControls) {
      // Nothing but the text of a string.
      opensBefore = 0;
      vector += VECTOR;
      continue;
    }
    const strings = prefixXor(quotes) ^ inString;
    const opens = quotes & strings;
    const closes = quotes & ~strings;
    const outside = ~(strings | quotes);

    // The bytes of the vector that belong to the lines.
    const live: u64 = end - vector < VECTOR ? ((<u64>1) << <u64>(end - vector)) - 1 : -1;
    let newlines: u64 = 0;
    let controls: u64 = 0;
    if (hasControls) {
      newlines = equal(a, b, c, d, terminator);
      controls = atMost(a, b, c, d, 31);
      errors |= controls & strings;
    }
    const colons = equal(a, b, c, d, COLON) & outside;
    const commas = equal(a, b, c, d, COMMA) & outside;
    const brackets = nearBrackets(a, b, c, d) & outside;
    const openers = brackets != 0 ? equalEitherCase(a, b, c, d, OPENING_BRACE) & outside : 0;
    const digits = inRange(a, b, c, d, ZERO, 10) & outside;
    const zeros = equal(a, b, c, d, ZERO);

    // Numbers and literals. If nothing but digits is left, only a leading zero can be wrong.
    let scalars = outside & ~(colons | commas | brackets | newlines);
    let blanks: u64 = 0;
    let scalarStarts: u64 = 0;
    let leadingZeros: u64 = 0;
    if (((scalars & ~digits & live) | literalRest) == 0 && !numberOpen) {
      scalarStarts = scalars & ~next(scalars, scalarCarry);
      leadingZeros = scalarStarts & zeros;
      errors |= (next(leadingZeros, leadingZeroCarry) | literalCarry) & digits;
      literalCarry = 0;
    } else {
      blanks = equal(a, b, c, d, SPACE) & outside;
      if ((controls & ~newlines) != 0) blanks = blankBytes(a, b, c, d) & outside;
      scalars &= ~blanks;
      scalarStarts = scalars & ~next(scalars, scalarCarry);
      let literals = literalRest;
      literalRest = 0;
      let candidates = scalarStarts & ~digits & live;
      do {
        const bit = ctz(candidates);
        const literal = candidates != 0 ? literalBits(vector + <usize>bit) : 0;
        literals |= literal << bit;
        literalRest |= (literal >> 1) >> (63 - bit);
        candidates &= candidates - 1;
      } while (candidates != 0);
      const numerals = scalars & ~literals;
      const numberStarts = scalarStarts & ~literals;
      errors |= next(literals, literalCarry) & numerals;
      literalCarry = literals >> 63;
      const points = equal(a, b, c, d, DOT) & numerals;
      if ((numerals & ~(digits | points) & live) == 0 && !numberOpen) {
        errors |= checkFractions(points, digits, digitCarry);
        leadingZeros = numberStarts & zeros;
      } else {
        errors |= checkNumbers(vector, numerals, digits, zeros, numberStarts, digitCarry);
        leadingZeros = lastLeadingZeros;
      }
      errors |= next(leadingZeros, leadingZeroCarry) & digits;
    }
    scalarCarry = scalars >> 63;
    digitCarry = digits >> 63;
    leadingZeroCarry = leadingZeros >> 63;

    // Stage 2.
    let keyEnds: u64 = 0;
    let escapedEnds: u64 = 0;
    for (let left = keyLengths; left != 0; left &= left - 1) {
      const length = ctz(left);
      keyEnds |= (opens << (length + 1)) | (opensBefore >> (63 - length));
    }
    if ((escapes | escapedCarry) != 0) {
      const marked = (escapes & strings) | escapedCarry;
      const sum = marked + strings;
      escapedEnds = sum & closes;
      escapedCarry = u64(sum < strings);
      keyEnds |= escapedEnds;
    }
    if (comparesAllKeys) {
      keyEnds = closes;
      escapedEnds = closes;
    }
    keyEnds &= closes & (((colons | blanks) >> 1) | ((<u64>1) << 63));
    // The newlines that end a line after its object.
    let lineEnds: u64 = 0;
    // The bytes whose innermost container is an array.
    let inArray: u64 = context == ARRAY ? ~(<u64>0) : 0;
    for (let left = (keyEnds | brackets) & live; left != 0; left &= left - 1) {
      const bit = ctz(left);
      const at = vector + <usize>bit;
      const byte: u32 = load<u8>(at);
      if (byte == QUOTE) {
        if (context < NODE) continue;
        const colon = skipBlanks(at + 1);
        if (load<u8>(colon) != COLON) continue;
        const hasEscape = ((escapedEnds >> bit) & 1) != 0;
        let open: usize = 0;
        if (hasEscape) open = openingQuote(at);
        else {
          const below = opens & (((<u64>1) << bit) - 1);
          open = below != 0 ? vector + 63 - <usize>clz(below) : vector - 1 - <usize>clz(opensBefore);
        }
        const key = hasEscape ? findEscapedKey(context - NODE, open, at) : findKey(context - NODE, open, at);
        if (key < 0) continue;
        if (noteKey(key, colon) && hides != 0) replacedCount |= FORGOTTEN;
        if (isResultKey(key)) {
          if (firstReplaced == 0) firstReplaced = open;
          replacedCount++;
        }
        if (hasChildren(key)) {
          parentKey = key;
          parentColon = colon;
        }
      } else if ((byte | CASE_BIT) == OPENING_BRACE) {
        if (depth == 0) lineOpen = skipBlanks(lineStart);
        if (depth == 0 ? at != lineOpen || byte == OPENING_BRACKET : depth >= maxDepth) {
          errors |= left & (0 - left);
          break;
        }
        store<u16>(stack + (<usize>depth << 1), context);
        depth++;
        const isArray = byte == OPENING_BRACKET;
        if (isArray != (context == ARRAY)) inArray ^= (<u64>-2) << bit;
        if (isArray) context = ARRAY;
        else {
          context = OBJECT;
          if (depth == 1) context = NODE;
          else if (parentColon != 0) {
            let before = at - 1;
            while (isBlank(load<u8>(before))) before--;
            if (before == parentColon) context = NODE + parentKey;
          }
        }
      } else {
        if (depth == 0 || byte != (context == ARRAY ? CLOSING_BRACKET : CLOSING_BRACE)) {
          errors |= left & (0 - left);
          break;
        }
        depth--;
        const outer: u32 = load<u16>(stack + (<usize>depth << 1));
        if ((outer == ARRAY) != (context == ARRAY)) inArray ^= (<u64>-2) << bit;
        context = outer;
        if (depth > 0) continue;
        const newline = skipBlanks(at + 1);
        if (<u32>load<u8>(newline) != terminator) {
          errors |= left & (0 - left);
          break;
        }
        addLine(lineStart, lineOpen, at, min(newline + 1, inputEnd), firstReplaced, replacedCount);
        clearValues();
        firstReplaced = 0;
        replacedCount = 0;
        parentColon = 0;
        lineStart = newline + 1;
        if (newline - vector < VECTOR) lineEnds |= (<u64>1) << <u64>(newline - vector);
      }
    }

    // The grammar. A value is due after a newline, a colon, a comma or an opening bracket, and nowhere else.
    const starters = colons | newlines;
    const due = starters | commas | openers;
    const values = opens | scalarStarts | openers;
    let afterDue = next(due, dueCarry);
    let afterColons = next(starters, colonCarry);
    let keyCloses: u64 = 0;
    let afterKeys: u64 = 0;
    if (blanks == 0) {
      dueCarry = due >> 63;
      colonCarry = starters >> 63;
    } else {
      dueCarry = (due >> 63) | overBlanks(afterDue, blanks);
      colonCarry = (starters >> 63) | overBlanks(afterColons, blanks);
      afterDue = pastBlanks(afterDue, blanks);
      afterColons = pastBlanks(afterColons, blanks);
    }
    let misplaced = afterDue ^ values;
    if ((misplaced & brackets & live) != 0) {
      // A bracket may close right after it was opened.
      for (let left = afterDue & brackets & ~openers & live; left != 0; left &= left - 1) {
        let before = vector + <usize>ctz(left) - 1;
        while (isBlank(load<u8>(before))) before--;
        if ((load<u8>(before) | CASE_BIT) == OPENING_BRACE) misplaced ^= left & (0 - left);
      }
    }
    errors |= misplaced;
    // In an object, what follows a comma or the opening brace is a key, and only keys are followed by colons.
    const keysDue = afterDue & ~(afterColons | inArray);
    errors |= keysDue & values & ~opens;
    const keySums = ((keysDue & opens) | keyCarry) + strings;
    keyCloses = keySums & ~strings;
    afterKeys = next(keyCloses, keyEndCarry);
    keyEndCarry = keyCloses >> 63;
    if (blanks != 0) {
      keyEndCarry |= overBlanks(afterKeys, blanks);
      afterKeys = pastBlanks(afterKeys, blanks);
    }
    errors |= afterKeys ^ colons;
    errors = (errors | (newlines & ~lineEnds)) & live;
    let isRestart = lineStart > vector + VECTOR;
    if (errors != 0) {
      const first = vector + <usize>ctz(errors);
      const start = dropLines(first);
      if (start != 0) lineStart = start;
      const newline = terminatorFrom(first);
      const stopped = endOtherLine(lineStart, min(newline + 1, inputEnd), isBlankLine(lineStart, newline));
      if (stopped != 0) return stopped;
      lineStart = newline + 1;
      clearValues();
      isRestart = true;
    } else if (isBatchFull()) {
      const full = flushBatch();
      if (full != 0) return full;
    }
    if (lineStart >= end) return end;
    if (isRestart) {
      vector = lineStart;
      firstReplaced = 0;
      replacedCount = 0;
      context = OBJECT;
      depth = 0;
      parentColon = 0;
      inString = 0;
      opensBefore = 0;
      escapedCarry = 0;
      keyCarry = 0;
      scalarCarry = 0;
      digitCarry = 0;
      leadingZeroCarry = 0;
      literalCarry = 0;
      colonCarry = 1;
      keyEndCarry = 0;
      dueCarry = 1;
      literalRest = 0;
      resetEscapes();
      resetNumbers();
      continue;
    }
    inString = spread(strings);
    opensBefore = opens;
    keyCarry = u64(keySums < strings);
    vector += VECTOR;
  }
}
