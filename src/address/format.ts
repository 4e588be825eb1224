/** Formats addresses as text. */

/** ASCII codes of the hexadecimal digits. */
const HEX = Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0));
const COLON = 58;

/** Formats an IPv4 address, 0 to 2^32 - 1, in dotted decimal. */
export function formatIPv4(address: number): string {
  return `${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`;
}

/**
 * Formats an IPv6 address in full: eight groups of four lower-case hex digits, as in lookup results.
 *
 * @param words four 32-bit words, most significant first
 */
export function formatIPv6Full(words: Uint32Array): string {
  const w0 = words[0]!;
  const w1 = words[1]!;
  const w2 = words[2]!;
  const w3 = words[3]!;
  // One call with all 39 characters takes a third of the time of joining eight strings. The array accesses are written out,
  // because V8 would not inline 32 calls of a function.
  // biome-ignore format: one line per pair of groups
  return String.fromCharCode(
    HEX[w0 >>> 28]!, HEX[(w0 >>> 24) & 15]!, HEX[(w0 >>> 20) & 15]!, HEX[(w0 >>> 16) & 15]!, COLON,
    HEX[(w0 >>> 12) & 15]!, HEX[(w0 >>> 8) & 15]!, HEX[(w0 >>> 4) & 15]!, HEX[w0 & 15]!, COLON,
    HEX[w1 >>> 28]!, HEX[(w1 >>> 24) & 15]!, HEX[(w1 >>> 20) & 15]!, HEX[(w1 >>> 16) & 15]!, COLON,
    HEX[(w1 >>> 12) & 15]!, HEX[(w1 >>> 8) & 15]!, HEX[(w1 >>> 4) & 15]!, HEX[w1 & 15]!, COLON,
    HEX[w2 >>> 28]!, HEX[(w2 >>> 24) & 15]!, HEX[(w2 >>> 20) & 15]!, HEX[(w2 >>> 16) & 15]!, COLON,
    HEX[(w2 >>> 12) & 15]!, HEX[(w2 >>> 8) & 15]!, HEX[(w2 >>> 4) & 15]!, HEX[w2 & 15]!, COLON,
    HEX[w3 >>> 28]!, HEX[(w3 >>> 24) & 15]!, HEX[(w3 >>> 20) & 15]!, HEX[(w3 >>> 16) & 15]!, COLON,
    HEX[(w3 >>> 12) & 15]!, HEX[(w3 >>> 8) & 15]!, HEX[(w3 >>> 4) & 15]!, HEX[w3 & 15]!,
  );
}

/**
 * Formats an IPv6 address in the canonical short form of RFC 5952: no leading zeros, and `::` for the longest run of at least
 * two zero groups, the first of equally long ones.
 */
export function formatIPv6(w0: number, w1: number, w2: number, w3: number): string {
  const groups = [w0 >>> 16, w0 & 0xffff, w1 >>> 16, w1 & 0xffff, w2 >>> 16, w2 & 0xffff, w3 >>> 16, w3 & 0xffff];
  let runAt = -1;
  let runLength = 1; // a single zero group is not shortened
  for (let i = 0; i < 8; ) {
    let end = i;
    while (end < 8 && groups[end] === 0) end++;
    if (end - i > runLength) {
      runAt = i;
      runLength = end - i;
    }
    i = Math.max(end, i + 1);
  }
  let text = '';
  for (let i = 0; i < 8; ) {
    if (i === runAt) {
      text += '::';
      i += runLength;
    } else {
      if (i > 0 && i !== runAt + runLength) text += ':';
      text += groups[i++]!.toString(16);
    }
  }
  return text;
}

/** Formats an address of either family in its short form: dotted decimal, or RFC 5952. */
export function formatAddress(family: 4 | 6, words: ArrayLike<number>, at = 0): string {
  if (family === 4) return formatIPv4(words[at]!);
  return formatIPv6(words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
}
