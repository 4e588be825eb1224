/** Numbers and literals, one at a time (RFC 8259, sections 3 and 6). */
import { CASE_BIT, DOT, isDigit, MINUS, PLUS, ZERO } from './ascii';
import { literalBits } from './literals';

const LETTER_E: u32 = 0x65;

@inline function isExponent(at: usize): bool {
  return (<u32>load<u8>(at) | CASE_BIT) == LETTER_E;
}

/** Returns the end of a run of digits that must have at least one, or 0. */
@inline function digitsEnd(at: usize): usize {
  if (!isDigit(load<u8>(at))) return 0;
  do at++;
  while (isDigit(load<u8>(at)));
  return at;
}

/** Returns the end of the number or literal at an address, or 0 if there is none. */
function anyScalarEnd(at: usize): usize {
  const literal = literalBits(at);
  if (literal != 0) return at + <usize>popcnt(literal);
  if (load<u8>(at) == <u8>MINUS) at++;
  // The digits of an integer end after a leading zero.
  let end = load<u8>(at) == <u8>ZERO ? at + 1 : digitsEnd(at);
  if (end != 0 && load<u8>(end) == <u8>DOT) end = digitsEnd(end + 1);
  if (end != 0 && isExponent(end)) {
    const sign: u32 = load<u8>(end, 1);
    end = digitsEnd(end + (sign == MINUS || sign == PLUS ? 2 : 1));
  }
  return end;
}

/** The same, faster for numbers of up to 15 bytes without a sign and an exponent, which most are. */
@inline export function scalarEnd(at: usize): usize {
  // Moves the digits to the greatest signed numbers.
  const moved = i8x16.add(v128.load(at), i8x16.splat(127 - 57));
  const others = ~(<u32>i8x16.bitmask(i8x16.gt_s(moved, i8x16.splat(127 - 10))));
  const count: u32 = ctz(others);
  if (count - 1 < 14 && (load<u8>(at) != <u8>ZERO || count == 1)) {
    let end = at + <usize>count;
    if (load<u8>(end) == <u8>DOT) {
      const fraction: u32 = ctz(others >> 1 >> count);
      end = fraction != 0 && count + fraction < 15 ? end + 1 + <usize>fraction : 0;
    }
    if (end != 0 && !isExponent(end)) return end;
  }
  return anyScalarEnd(at);
}
