/** How the digits of an IPv4 address are moved, for each way that its three dots can stand. */

/** Bytes of a form: 16 of places, 8 of least numbers, 8 empty. */
const FORM_BYTES = 32;

/** Digits that each of the four numbers can have. */
const SIZES = [1, 2, 3];

/** The least number of so many digits: a smaller one would have a leading zero. */
const LEAST = [0, 0, 10, 100];

/** Where no digit is; such a place gets a zero. */
const NOWHERE = 0xff;

/**
 * The 81 forms, in the order of the numbers' sizes, the last number's varying fastest.
 *
 * A form says for 16 places from which byte of the text each is filled: four hundreds, four tens, four ones, four empty;
 * of each four the last number first, so that the numbers come out as the bytes of a little-endian word. Behind that
 * stands the least that each of the four numbers may be, 2 bytes each, in the same order.
 */
export function octetForms(): Uint8Array {
  const bytes = new Uint8Array(SIZES.length ** 4 * FORM_BYTES);
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
            view.setUint16(form + 16 + 2 * (3 - number), LEAST[size]!, true);
            end++; // the dot
          });
          form += FORM_BYTES;
        }
      }
    }
  }
  return bytes;
}
