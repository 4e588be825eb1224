/**
 * Lines that are JSON objects and wait for their answers. They are dealt with some dozens at a time, step by step: all
 * addresses parsed, all looked up, all answers put out. Most of a look-up is waiting for memory, and those of several
 * addresses can wait at the same time.
 */
import { FOUND, fieldCount, fieldTargets, fragments, longestInsert, mostAnswers, outcomes, recordCount } from './config';
import { MAX_ADDRESS_LENGTH, parseAddress } from './address';
import { isBlank, putOtherMembers } from './line';
import { addQuery, answerQueries, startQueries } from './lookup';
import {
  answers,
  countFound,
  countInvalidAddress,
  countLine,
  countMissingField,
  countNoCountry,
  found,
  hasRoom,
  pending,
  put,
  putInputTo,
  scratch,
  skipInputTo,
} from './slot';
import { closingQuote, unescape } from './text';

/** Bytes that are kept of a line, see `addLine`. */
const LINE_BYTES: usize = 20;

const QUOTE: u32 = 34;
const BACKSLASH: u32 = 92;

/** The lines that wait. */
let count: u32 = 0;

/** Forgets lines that another run left. */
export function startPending(): void {
  count = 0;
}

/**
 * Adds a line; where its values stand is taken from `found`.
 *
 * @param start its first byte; @param open where its opening brace stands; @param close where the brace stands that closes it
 * @param put what has to fit into the output with its answers: the input up to here
 * @param empty whether nothing but blanks is between the braces
 * @param replaces whether a member stands there that has the name of an answer
 */
@inline export function addLine(start: usize, open: usize, close: usize, put: usize, empty: bool, replaces: bool): void {
  const line = pending + <usize>count * LINE_BYTES;
  store<u32>(line, <u32>start);
  store<u32>(line, <u32>open, 4);
  store<u32>(line, <u32>close, 8);
  store<u32>(line, <u32>put, 12);
  store<u32>(line, <u32>empty | (<u32>replaces << 1), 16);
  let answer = answers + ((<usize>(count * fieldCount)) << 2);
  for (let field: u32 = 0; field < fieldCount; field++) {
    store<u32>(answer, load<u32>(found + (<usize>load<u32>(fieldTargets + (<usize>field << 2)) << 2)));
    answer += 4;
  }
  count++;
}

/** Whether no further line can be added. */
@inline export function isPendingFull(): bool {
  return (count + 1) * fieldCount > mostAnswers;
}

/** Where the first byte stands that is a quote or a backslash, at most 48 bytes on. */
@inline function firstSpecial(at: usize): usize {
  for (let i: usize = 0; i < 48; i += 16) {
    const bytes = v128.load(at + i);
    const special = v128.or(
      i8x16.eq(bytes, i8x16.splat(<i8>QUOTE)),
      i8x16.eq(bytes, i8x16.splat(<i8>BACKSLASH)),
    );
    const mask = i8x16.bitmask(special);
    if (mask != 0) return at + i + ctz(mask);
  }
  return at + 48;
}

/** Asks for the address that the string says whose first byte is at `from`; returns whether it is one. */
@inline function askString(answer: usize, from: usize): bool {
  const end = firstSpecial(from);
  if (end - from > MAX_ADDRESS_LENGTH) return false;
  if (load<u8>(end) == QUOTE) return addQuery(answer, parseAddress(from, end));
  const plain = unescape(from, closingQuote(end), scratch, MAX_ADDRESS_LENGTH);
  return plain >= 0 && addQuery(answer, parseAddress(scratch, scratch + plain));
}

/** Makes a question of each colon in `answers`. A field that is missing gets `recordCount` + 1, what is no address one less. */
function ask(): void {
  startQueries();
  const end = answers + ((<usize>(count * fieldCount)) << 2);
  for (let answer = answers; answer < end; answer += 4) {
    let at: usize = load<u32>(answer);
    if (at == 0) {
      store<u32>(answer, recordCount + 1);
      continue;
    }
    do at++;
    while (isBlank(load<u8>(at)));
    if (load<u8>(at) != QUOTE || !askString(answer, at + 1)) store<u32>(answer, recordCount);
  }
}

@inline function countAnswer(record: u32): void {
  if (record > recordCount) countMissingField();
  else if (record == recordCount) countInvalidAddress();
  else if (load<u8>(outcomes + record) == FOUND) countFound();
  else countNoCountry();
}

/** Puts a line's answers out, each as `,"name":…`; the first without its comma where nothing stands before it. */
@inline function putAnswers(line: u32, first: bool): void {
  const answer = answers + ((<usize>(line * fieldCount)) << 2);
  for (let field: u32 = 0; field < fieldCount; field++) {
    const record = load<u32>(answer + (<usize>field << 2));
    countAnswer(record);
    const fragment = fragments + (<usize>(field * (recordCount + 1) + min(record, recordCount)) << 3);
    const skip: u32 = first && field == 0 ? 1 : 0;
    put(load<u32>(fragment) + skip, load<u32>(fragment, 4) - skip);
  }
}

/**
 * Deals with all lines that wait.
 *
 * @returns 0, or the first byte of the first line that does not fit into the output; the lines from there on are forgotten
 */
export function answerLines(): usize {
  ask();
  answerQueries();
  const lines = count;
  count = 0;
  for (let i: u32 = 0; i < lines; i++) {
    const line = pending + <usize>i * LINE_BYTES;
    if (!hasRoom(load<u32>(line, 12), longestInsert)) return load<u32>(line);
    const open: usize = load<u32>(line, 4);
    const close: usize = load<u32>(line, 8);
    const traits = load<u32>(line, 16);
    countLine();
    let first = (traits & 1) != 0;
    if ((traits & 2) == 0) putInputTo(close);
    else {
      putInputTo(open + 1);
      first = !putOtherMembers(open + 1, close);
      skipInputTo(close);
    }
    putAnswers(i, first);
  }
  return 0;
}
