/** CRC-32 where there is no zlib, as in browsers, or where loading it, which takes 2 ms, is not worth it. */

import { zlibIfAny } from './builtins.js';

/** Fewer bytes are checked sooner than zlib is loaded. */
const MANY_BYTES = 65_536;

/** The remainders of all bytes by the polynomial of IEEE 802.3, bits reversed; signed, as the results of `^` are. */
const REMAINDERS = Int32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (0xedb88320 & -(remainder & 1));
  return remainder;
});

/** Returns the CRC-32 (IEEE 802.3) of bytes, as `zlib.crc32` of Node does. */
export function crc32(bytes: Uint8Array): number {
  const native = bytes.length < MANY_BYTES ? undefined : zlibIfAny()?.crc32;
  if (native !== undefined) return native(bytes);
  let crc = ~0;
  for (let i = 0; i < bytes.length; i++) crc = (crc >>> 8) ^ REMAINDERS[(crc ^ bytes[i]!) & 255]!;
  return ~crc >>> 0;
}
