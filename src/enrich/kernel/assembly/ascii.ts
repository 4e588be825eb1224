/** The bytes that JSON and addresses are made of. */
import { extraBlank } from './settings';

export const TAB: u32 = 9;
export const NEWLINE: u32 = 10;
export const CARRIAGE_RETURN: u32 = 13;
export const SPACE: u32 = 32;
export const QUOTE: u32 = 34;
export const COMMA: u32 = 44;
export const MINUS: u32 = 45;
export const PLUS: u32 = 43;
export const DOT: u32 = 46;
export const ZERO: u32 = 48;
export const COLON: u32 = 58;
export const OPENING_BRACKET: u32 = 91;
export const BACKSLASH: u32 = 92;
export const CLOSING_BRACKET: u32 = 93;
export const OPENING_BRACE: u32 = 123;
export const CLOSING_BRACE: u32 = 125;
export const ESCAPE: u32 = 27;
export const PERCENT: u32 = 37;
export const OPENING_PARENTHESIS: u32 = 40;
export const SLASH: u32 = 47;
export const SEMICOLON: u32 = 59;
export const EQUALS: u32 = 61;
export const GREATER: u32 = 62;
export const UNDERSCORE: u32 = 95;
export const LETTER_A: u32 = 97;
export const LETTER_U: u32 = 117;
export const PIPE: u32 = 124;

/** The bit in which letters differ from capitals, and braces from brackets. */
export const CASE_BIT: u32 = 32;

@inline export function isDigit(byte: u32): bool {
  return byte - ZERO < 10;
}

@inline export function isLetter(byte: u32): bool {
  return (byte | CASE_BIT) - LETTER_A < 26;
}

/** Returns whether a byte is in `from … to`. */
export function includes(from: usize, to: usize, byte: u32): bool {
  for (let at = from; at < to; at++) if (load<u8>(at) == <u8>byte) return true;
  return false;
}

/** Returns whether a byte is white space within a line of JSON (RFC 8259, section 2): a newline only if it does not end lines. */
@inline export function isBlank(byte: u32): bool {
  return byte <= SPACE && (byte == SPACE || byte == TAB || byte == CARRIAGE_RETURN || byte == extraBlank);
}

/** Returns the first byte at an address or after it that is not blank. */
@inline export function skipBlanks(at: usize): usize {
  while (isBlank(load<u8>(at))) at++;
  return at;
}

/** Returns whether a byte is ASCII white space: a tab, newline, vertical tab, form feed, carriage return or space. */
@inline export function isWhiteSpace(byte: u32): bool {
  return byte == SPACE || byte - TAB <= CARRIAGE_RETURN - TAB;
}

/** Returns the number of four hexadecimal digits, the first one in the lowest byte. A zero in place of a digit means 0. */
@inline export function hexNumber(text: u32): u32 {
  const values = (text & 0x0f0f_0f0f) + 9 * ((text >> 6) & 0x0101_0101);
  const pairs = (values << 4) | (values >> 8);
  return ((pairs & 0xff) << 8) | ((pairs >> 16) & 0xff);
}
