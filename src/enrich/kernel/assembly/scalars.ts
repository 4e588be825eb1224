/** Numbers and literals, one at a time (RFC 8259, sections 3 and 6). */
import { CASE_BIT, DOT, MINUS, PLUS, ZERO } from './ascii';
import { literalBits } from './literals';

const LETTER_E: u32 = 0x65;

@inline function isDigit(byte: u32): bool {
  return byte - ZERO < 10;
}

/** Returns the end of a run of digits that must have at least one, or 0. */
@inline function digitsEnd(at: usize): usize {
  if (!isDigit(load<u8>(at))) return 0;
  do at++;
  while (isDigit(load<u8>(at)));
  return at;
}

/** Returns the end of the number or literal at an address, or 0 if there is none. */
export function anyScalarEnd(at: usize): usize {
  const literal = literalBits(at);
  if (literal != 0) return at + <usize>popcnt(literal);
  if (load<u8>(at) == <u8>MINUS) at++;
  // The digits of an integer end after a leading zero.
  let end = load<u8>(at) == <u8>ZERO ? at + 1 : digitsEnd(at);
  if (end != 0 && load<u8>(end) == <u8>DOT) end = digitsEnd(end + 1);
  if (end != 0 && (<u32>load<u8>(end) | CASE_BIT) == LETTER_E) {
    const sign: u32 = load<u8>(end, 1);
    end = digitsEnd(end + (sign == MINUS || sign == PLUS ? 2 : 1));
  }
  return end;
}
