/** Masks over 64 bytes: bit n of a mask stands for byte n. */

/** Four vectors of bytes, each byte all ones or all zeros, as a mask. */
@inline export function bits(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    <u64>(<u32>i8x16.bitmask(a) | (<u32>i8x16.bitmask(b) << 16)) |
    (<u64>(<u32>i8x16.bitmask(c) | (<u32>i8x16.bitmask(d) << 16)) << 32)
  );
}

/** Where a byte stands. */
@inline export function equal(a: v128, b: v128, c: v128, d: v128, byte: i8): u64 {
  const all = i8x16.splat(byte);
  return bits(i8x16.eq(a, all), i8x16.eq(b, all), i8x16.eq(c, all), i8x16.eq(d, all));
}

/** Each bit the exclusive or of itself and all below. */
@inline export function prefixXor(mask: u64): u64 {
  mask ^= mask << 1;
  mask ^= mask << 2;
  mask ^= mask << 4;
  mask ^= mask << 8;
  mask ^= mask << 16;
  return mask ^ (mask << 32);
}

/** The bytes that backslashes escape; a backslash that is itself escaped escapes nothing. */
export function escapedBy(backslashes: u64, carry: u64): u64 {
  let escaped = carry;
  let left = backslashes & ~carry;
  while (left != 0) {
    const bit = left & (0 - left);
    escaped |= bit << 1;
    left &= ~(bit | (bit << 1));
  }
  return escaped;
}
