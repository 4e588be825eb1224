/** Addresses written as one decimal integer, as IP2Location and others do. */

/** Digits of 2^128 - 1. */
const MAX_DIGITS = 39;

/** Digits processed together: a 32-bit word times 10^6 is below 2^53, so it is an exact number. */
const STEP_DIGITS = 6;

const WORD = 0x1_0000_0000;

/**
 * Parses an unsigned decimal integer of up to 128 bits.
 *
 * @param text digits only; leading zeros are allowed
 * @param words receives the value as four 32-bit words, most significant first; undefined content on failure
 * @returns false if the text is not such an integer
 */
export function parseDecimal(text: string, words: Uint32Array): boolean {
  const length = text.length;
  if (length === 0 || length > MAX_DIGITS) return false;
  words.fill(0, 0, 4);
  for (let at = 0; at < length; ) {
    const end = Math.min(at + STEP_DIGITS, length);
    let carry = 0;
    let scale = 1;
    for (; at < end; at++) {
      const digit = text.charCodeAt(at) - 48;
      if (!(digit >= 0 && digit <= 9)) return false;
      carry = carry * 10 + digit;
      scale *= 10;
    }
    for (let i = 3; i >= 0; i--) {
      const product = words[i]! * scale + carry;
      words[i] = product; // modulo 2^32, exactly: the product is an integer below 2^53
      carry = Math.floor(product / WORD);
    }
    if (carry !== 0) return false;
  }
  return true;
}
