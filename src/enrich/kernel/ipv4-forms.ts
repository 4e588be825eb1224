/** The digit arrangements of dotted-decimal IPv4 addresses: one for each combination of the numbers' lengths. */
import { IPV4_FORM_BYTES, IPV4_FORM_LEAST } from './abi.js';

/** Digits that each of the four numbers can have. */
const SIZES = [1, 2, 3];

/** The least number of so many digits: a smaller one has a leading zero. */
const LEAST = [0, 0, 10, 100];

/** Source of a place without a digit: `swizzle` writes a zero for an index that is out of range. */
const NOWHERE = 0xff;

/**
 * Returns the 81 arrangements in the order of the numbers' lengths; the last number's varies fastest.
 *
 * An arrangement has the source positions of 16 bytes: four hundreds, four tens, four ones, four unused; of each four the
 * last number comes first, so that the result is a little-endian word. Then come the least values that the four numbers may
 * have, 2 bytes each, in the same order.
 */
export function ipv4Forms(): Uint8Array {
  const bytes = new Uint8Array(SIZES.length ** 4 * IPV4_FORM_BYTES);
  const view = new DataView(bytes.buffer);
  let form = 0;
  for (const a of SIZES) {
    for (const b of SIZES) {
      for (const c of SIZES) {
        for (const d of SIZES) {
          bytes.fill(NOWHERE, form, form + 16);
          let end = 0;
          [a, b, c, d].forEach((size, number) => {
            end += size;
            for (let digit = 0; digit < size; digit++) bytes[form + 4 * (2 - digit) + 3 - number] = end - 1 - digit;
            view.setUint16(form + IPV4_FORM_LEAST + 2 * (3 - number), LEAST[size]!, true);
            end++; // the dot
          });
          form += IPV4_FORM_BYTES;
        }
      }
    }
  }
  return bytes;
}
