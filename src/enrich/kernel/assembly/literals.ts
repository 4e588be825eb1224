/** The literals `true`, `false` and `null` (RFC 8259, section 3). */

// The first four bytes of the literals.
const TRUE: u32 = 0x65757274;
const NULL: u32 = 0x6c6c756e;
const FALS: u32 = 0x736c6166;
const LETTER_E: u32 = 0x65;

/** Returns as many one bits as the literal at an address has bytes: none, four or five. Without branches, which would be mispredicted. */
@inline export function literalBits(at: usize): u64 {
  const word = load<u32>(at);
  const isFour = u64(word == TRUE) | u64(word == NULL);
  const isFive = u64(word == FALS) & u64(load<u8>(at, 4) == <u8>LETTER_E);
  return isFour * 15 + isFive * 31;
}
