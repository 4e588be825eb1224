/** Reads the day of a date, in the forms that logs have, and with it the state of the history that holds for a line. */
import { FORMAT_COMBINED, FORMAT_JSON, FORMAT_PAIRS, NO_STATE } from '../abi';
import { COLON, DOT, isBlank, MINUS, OPENING_BRACKET, PLUS, QUOTE, SLASH, SPACE, ZERO } from './ascii';
import { valueEnd } from './pairs';
import { dayCount, delimiter, firstDay, format, missingState, scratch, states } from './settings';
import { closingQuote, quoteOrBackslash, unescape } from './strings';

/** What is returned for a text that is no date. */
export const NO_DAY: i32 = i32.MIN_VALUE;

/** Bytes of the longest date: RFC 3339 allows any number of decimals. */
const LONGEST_DATE: usize = 64;

const LETTER_T: u32 = 0x74;
const LETTER_Z: u32 = 0x7a;
const LETTER_CASE: u32 = 32;

/** The value of two or four bytes that are not all digits: greater than any number in a date. */
const NO_NUMBER: u32 = 1_000_000;

const SECONDS_PER_DAY: i32 = 86_400;

@inline function digitAt(at: usize): u32 {
  const digit = <u32>load<u8>(at) - ZERO;
  return digit < 10 ? digit : NO_NUMBER;
}

@inline function twoDigits(at: usize): u32 {
  return 10 * digitAt(at) + digitAt(at + 1);
}

@inline function fourDigits(at: usize): u32 {
  const first = twoDigits(at);
  const second = twoDigits(at + 2);
  return first < 100 && second < 100 ? 100 * first + second : NO_NUMBER;
}

@inline function isByte(at: usize, byte: u32): bool {
  return <u32>load<u8>(at) == byte;
}

@inline function isLetter(at: usize, lower: u32): bool {
  return (<u32>load<u8>(at) | LETTER_CASE) == lower;
}

function isLeapYear(year: u32): bool {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

function daysInMonth(year: u32, month: u32): u32 {
  if (month == 2) return isLeapYear(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/** Returns the number of days from 1970-01-01 to a day of the Gregorian calendar, or NO_DAY if there is no such day. */
function dayOfDate(year: u32, month: u32, day: u32): i32 {
  if (year > 9999 || month - 1 > 11 || day == 0 || day > daysInMonth(year, month)) return NO_DAY;
  // The leap day is the last day of a year that begins in March. 719,468 days are from 0000-03-01 to 1970-01-01.
  const shifted = year + 400 - u32(month <= 2);
  const ofYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
  return <i32>(365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + ofYear) - 146_097 - 719_468;
}

/**
 * Returns the UTC day of a time.
 *
 * @param time `HH:MM:SS`; a leap second counts as the second before it
 * @param offset minutes that local time is ahead of UTC
 */
function dayOfTime(day: i32, time: usize, offset: i32): i32 {
  const hour = twoDigits(time);
  const minute = twoDigits(time + 3);
  const second = twoDigits(time + 6);
  if (!isByte(time + 2, COLON) || !isByte(time + 5, COLON) || hour > 23 || minute > 59 || second > 60) return NO_DAY;
  const seconds = <i32>(3600 * hour + 60 * minute + min<u32>(second, 59)) - 60 * offset;
  if (seconds < 0) return day - 1;
  return seconds < SECONDS_PER_DAY ? day : day + 1;
}

/** What {@link offsetAt} returns for a text that is no offset. */
const NO_OFFSET: i32 = i32.MIN_VALUE;

/** Returns the minutes of the offset `+HH:MM` or `+HHMM` that a text is. */
function offsetAt(from: usize, to: usize): i32 {
  const sign: u32 = load<u8>(from);
  const hasColon = to - from == 6 && isByte(from + 3, COLON);
  if ((sign != PLUS && sign != MINUS) || (to - from != 5 && !hasColon)) return NO_OFFSET;
  const hours = twoDigits(from + 1);
  const minutes = twoDigits(from + 3 + usize(hasColon));
  if (hours > 23 || minutes > 59) return NO_OFFSET;
  const offset = <i32>(60 * hours + minutes);
  return sign == MINUS ? -offset : offset;
}

/** Reads `2026-01-01`, or `2026-01-01T00:00:00` with any decimals and offset (RFC 3339, section 5.6). Without an offset it is UTC. */
function dayOfIso(from: usize, to: usize): i32 {
  const day = isByte(from + 4, MINUS) ? dayOfDate(fourDigits(from), twoDigits(from + 5), twoDigits(from + 8)) : NO_DAY;
  if (to - from == 10 || day == NO_DAY) return day;
  if (to - from < 19 || (!isLetter(from + 10, LETTER_T) && !isByte(from + 10, SPACE))) return NO_DAY;
  let at = from + 19;
  if (at < to && isByte(at, DOT)) {
    const fraction = ++at;
    while (at < to && digitAt(at) < 10) at++;
    if (at == fraction) return NO_DAY;
  }
  if (at < to && isByte(at, SPACE)) at++;
  const isUtc = (at == to && !isByte(at - 1, SPACE)) || (at + 1 == to && isLetter(at, LETTER_Z));
  const offset = isUtc ? 0 : offsetAt(at, to);
  return offset == NO_OFFSET ? NO_DAY : dayOfTime(day, from + 11, offset);
}

/** Returns the number of a month, from 1, by its English name of three letters; 0 if there is none. */
function monthAt(at: usize): u32 {
  const name = <u32>load<u16>(at) | (<u32>load<u8>(at + 2) << 16);
  // The letters of each name, the first one lowest.
  if (name == 0x6e614a) return 1;
  if (name == 0x626546) return 2;
  if (name == 0x72614d) return 3;
  if (name == 0x727041) return 4;
  if (name == 0x79614d) return 5;
  if (name == 0x6e754a) return 6;
  if (name == 0x6c754a) return 7;
  if (name == 0x677541) return 8;
  if (name == 0x706553) return 9;
  if (name == 0x74634f) return 10;
  if (name == 0x766f4e) return 11;
  return name == 0x636544 ? 12 : 0;
}

/** Reads `01/Jan/2026:00:00:00 +0000`, the time of access logs. */
function dayOfApache(from: usize, to: usize): i32 {
  if (to - from != 26 || !isByte(from + 6, SLASH) || !isByte(from + 11, COLON) || !isByte(from + 20, SPACE)) return NO_DAY;
  const day = dayOfDate(fourDigits(from + 7), monthAt(from + 3), twoDigits(from));
  const offset = offsetAt(from + 21, to);
  return day == NO_DAY || offset == NO_OFFSET ? NO_DAY : dayOfTime(day, from + 12, offset);
}

/**
 * Reads a number: seconds since 1970, or milliseconds, microseconds or nanoseconds if it is so large that seconds would be after
 * the year 5138.
 */
function dayOfNumber(from: usize, to: usize): i32 {
  const isNegative = isByte(from, MINUS);
  let at = from + usize(isNegative);
  const start = at;
  let number: u64 = 0;
  while (at < to && digitAt(at) < 10) number = 10 * number + <u64>digitAt(at++);
  if (at == start || at - start > 19) return NO_DAY;
  let hasFraction = false;
  if (at < to && isByte(at, DOT)) {
    const fraction = ++at;
    for (; at < to && digitAt(at) < 10; at++) if (digitAt(at) != 0) hasFraction = true;
    if (at == fraction) return NO_DAY;
  }
  if (at != to) return NO_DAY;
  let perDay: u64 = SECONDS_PER_DAY;
  if (number >= 100_000_000_000_000_000) perDay *= 1_000_000_000;
  else if (number >= 100_000_000_000_000) perDay *= 1_000_000;
  else if (number >= 100_000_000_000) perDay *= 1000;
  if (!isNegative) return <i32>(number / perDay);
  return -(<i32>((number + u64(hasFraction) + perDay - 1) / perDay));
}

/** Returns the day of a date in days since 1970, or NO_DAY if the text is none. */
export function dayOfText(from: usize, to: usize): i32 {
  const length = to - from;
  if (length == 0 || length > LONGEST_DATE) return NO_DAY;
  if (length >= 10 && isByte(from + 7, MINUS)) return dayOfIso(from, to);
  if (length >= 10 && isByte(from + 2, SLASH)) return dayOfApache(from, to);
  return dayOfNumber(from, to);
}

/** Returns the end of a run of bytes that a date can have: no white space, comma or bracket. */
@inline function wordEnd(at: usize): usize {
  while (digitAt(at) < 10 || isByte(at, MINUS) || isByte(at, DOT)) at++;
  return at;
}

/** Returns the day of the value of a member of JSON, whose colon is at an address. */
function dayOfMember(at: usize): i32 {
  do at++;
  while (isBlank(load<u8>(at)));
  if (!isByte(at, QUOTE)) {
    const end = wordEnd(at);
    const next = <u32>load<u8>(end) | LETTER_CASE;
    return next == 0x65 ? NO_DAY : dayOfText(at, end); // a number with an exponent
  }
  const end = quoteOrBackslash(at + 1);
  if (isByte(end, QUOTE)) return dayOfText(at + 1, end);
  const length = unescape(at + 1, closingQuote(end), scratch, <u32>LONGEST_DATE);
  return length < 0 ? NO_DAY : dayOfText(scratch, scratch + length);
}

/** Returns the day of a cell of a table. */
function dayOfCell(from: usize, close: usize): i32 {
  const isQuoted = from < close && isByte(from, QUOTE);
  const limit = min(close, from + LONGEST_DATE + 2);
  let end = from + usize(isQuoted);
  const last = isQuoted ? QUOTE : delimiter;
  while (end < limit && !isByte(end, last)) end++;
  if (!isQuoted) return dayOfText(from, end);
  const isClosed = end < close && isByte(end, QUOTE) && (end + 1 == close || isByte(end + 1, delimiter));
  return isClosed ? dayOfText(from + 1, end) : NO_DAY;
}

/** Returns the day of a line of an access log, whose time is in brackets. A name before it may have brackets, too. */
function dayOfLine(from: usize, close: usize): i32 {
  for (let at = from; at + 27 < close; at++) {
    if (!isByte(at, OPENING_BRACKET)) continue;
    const day = dayOfText(at + 1, at + 27);
    if (day != NO_DAY) return day;
  }
  return NO_DAY;
}

/**
 * Returns the state of the history that holds for a line.
 *
 * @param at the offset of its date, or 0 if it has none; @param close the end of the text of a line without objects
 */
export function stateOfLine(at: usize, close: usize): u32 {
  let day = NO_DAY;
  if (at != 0) {
    if (format == FORMAT_JSON) day = dayOfMember(at);
    else if (format == FORMAT_PAIRS) day = dayOfText(at, valueEnd(at, close));
    else day = format == FORMAT_COMBINED ? dayOfLine(at, close) : dayOfCell(at, close);
  }
  const index = <u32>(day - firstDay);
  const state: u32 = day != NO_DAY && index < dayCount ? load<u16>(states + (<usize>index << 1)) : NO_STATE;
  return state == NO_STATE ? missingState : state;
}
