/**
 * Numbers with a sign, a fraction or an exponent, a vector at a time (RFC 8259, section 6). Each rule is about a byte and the
 * one before it, except that a fraction must not contain a point, nor an exponent a point or another exponent.
 */
import { DOT, MINUS, PLUS } from './ascii';
import { equal, equalEitherCase, next } from './masks';

const LETTER_E: u32 = 0x65;

/** Whether the last vector ended within a number whose rest `checkNumbers` must see. */
export let numberOpen: bool = false;

// Carried from the last vector: whether its last byte was …
/** … a sign, a point or an exponent, after which a digit must follow; */
let markCarry: u64 = 0;
/** … the sign before a number; */
let minusCarry: u64 = 0;
/** … an exponent. */
let exponentCarry: u64 = 0;
// Whether a fraction or the digits of an exponent go on.
let fractionCarry: u64 = 0;
let powerCarry: u64 = 0;

/** Where the integers begin with a zero, in the vector that was checked last. */
export let lastLeadingZeros: u64 = 0;

/** Forgets a number that a line ended with. */
@inline export function resetNumbers(): void {
  numberOpen = false;
}

/**
 * Checks the numbers of a vector if they have no signs and no exponents, and no such number goes on from the vector before.
 *
 * @param digitBefore 1 if the byte before the vector is a digit
 * @returns where they break the rules, leading zeros aside
 */
@inline export function checkFractions(points: u64, digits: u64, digitBefore: u64): u64 {
  const afterPoints = points << 1;
  const ends = afterPoints + digits;
  markCarry = points >> 63;
  minusCarry = 0;
  exponentCarry = 0;
  powerCarry = 0;
  fractionCarry = markCarry | u64(ends < digits);
  numberOpen = fractionCarry != 0;
  return (points & ~next(digits, digitBefore)) | (afterPoints & ~digits) | (ends & ~digits & points);
}

/**
 * Checks the numbers of a vector.
 *
 * @param numerals the bytes of all numbers, or what is in their place; @param digits those that are digits
 * @param zeros where zeros are; @param starts the first bytes of numbers
 * @param digitBefore 1 if the byte before the vector is a digit
 * @returns where they break the rules, except that `lastLeadingZeros` must not be followed by digits
 */
export function checkNumbers(
  vector: usize,
  numerals: u64,
  digits: u64,
  zeros: u64,
  starts: u64,
  digitBefore: u64,
): u64 {
  if (!numberOpen) {
    markCarry = 0;
    minusCarry = 0;
    exponentCarry = 0;
    fractionCarry = 0;
    powerCarry = 0;
  }
  const a = v128.load(vector);
  const b = v128.load(vector, 16);
  const c = v128.load(vector, 32);
  const d = v128.load(vector, 48);
  const marks = numerals & ~digits;
  const points = equal(a, b, c, d, DOT) & marks;
  const exponents = equalEitherCase(a, b, c, d, LETTER_E) & marks;
  const minuses = equal(a, b, c, d, MINUS) & marks;
  const pluses = equal(a, b, c, d, PLUS) & marks;
  const afterDigits = next(digits, digitBefore);
  const afterExponents = next(exponents, exponentCarry);
  const powerSigns = (minuses | pluses) & afterExponents;
  const leadingMinuses = minuses & starts;

  let errors = marks & ~(((points | exponents) & afterDigits) | powerSigns | leadingMinuses);
  errors |= next(marks, markCarry) & ~(digits | powerSigns);
  const integerStarts = digits & (starts | next(leadingMinuses, minusCarry));
  lastLeadingZeros = integerStarts & zeros;

  const fractions = next(points, fractionCarry);
  const fractionEnds = fractions + digits;
  errors |= fractionEnds & ~digits & points;
  const powers = next(exponents | powerSigns, powerCarry);
  const powerEnds = powers + digits;
  errors |= powerEnds & ~digits & (points | exponents);

  markCarry = marks >> 63;
  minusCarry = leadingMinuses >> 63;
  exponentCarry = exponents >> 63;
  fractionCarry = (points >> 63) | u64(fractionEnds < digits);
  powerCarry = ((exponents | powerSigns) >> 63) | u64(powerEnds < digits);
  numberOpen = (markCarry | fractionCarry | powerCarry) != 0;
  return errors;
}
