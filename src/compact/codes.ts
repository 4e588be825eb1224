/** The parts of sections: variable-length numbers, and numbers as places in a list. See FORMAT.md. */

/** Collects bytes. */
export class ByteWriter {
  #bytes = new Uint8Array(1024);
  #length = 0;

  byte(value: number): void {
    if (this.#length === this.#bytes.length) {
      const larger = new Uint8Array(2 * this.#length);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes[this.#length++] = value;
  }

  /** Writes a number in groups of seven bits, the least significant first; all bytes but the last have the eighth bit. */
  varint(value: number | bigint): void {
    let rest = BigInt(value);
    for (; rest > 127n; rest >>= 7n) this.byte(Number(rest & 127n) | 128);
    this.byte(Number(rest));
  }

  /** Writes 32 bits, little-endian. */
  uint32(value: number): void {
    for (let shift = 0; shift < 32; shift += 8) this.byte((value >>> shift) & 255);
  }

  bytes(values: Uint8Array): void {
    for (const value of values) this.byte(value);
  }

  finish(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }
}

/** Reads 32 bits, little-endian. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}

/** Number of places in the list, and the code of a number that is in none of them. */
const PLACES = 255;

/**
 * How numbers become codes of one byte: the place in a list of 255 numbers, which begins as 0 to 254. If the list is `fixed`,
 * numbers below 255 are their own codes. If it is `recent`, each number that occurs moves to the front, so that the code is
 * small for numbers that occurred shortly before; this suits columns with far more than 255 numbers.
 */
export const LISTS = ['fixed', 'recent'] as const;
export type ListKind = (typeof LISTS)[number];

/** Moves the number at a place to the front; the place 254 also receives numbers that were not in the list. */
function moveToFront(list: Uint32Array, place: number, value: number): void {
  for (let i = place; i > 0; i--) list[i] = list[i - 1]!;
  list[0] = value;
}

const FIRST_LIST = Uint32Array.from({ length: PLACES }, (_, place) => place);

/** Writes the code of each number, then the numbers that are in no place of the list. */
export function encodeNumbers(values: ArrayLike<number>, kind: ListKind): { codes: Uint8Array; others: Uint8Array } {
  const list = FIRST_LIST.slice();
  const codes = new Uint8Array(values.length);
  const others = new ByteWriter();
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    const place = kind === 'recent' ? list.indexOf(value) : value < PLACES ? value : -1;
    codes[i] = place < 0 ? PLACES : place;
    if (place < 0) others.varint(value);
    if (kind === 'recent') moveToFront(list, place < 0 ? PLACES - 1 : place, value);
  }
  return { codes, others: others.finish() };
}

/**
 * Decodes what {@link encodeNumbers} wrote.
 *
 * @param others the numbers that are in no place of the list, each below `limit`
 * @param values receives the numbers: one for each code
 * @returns how many bytes of `others` were read; -1 if one of them does not exist
 */
export function decodeNumbers(
  codes: Uint8Array,
  others: Uint8Array,
  kind: ListKind,
  limit: number,
  values: Uint16Array | Uint32Array,
): number {
  const list = FIRST_LIST.slice();
  let at = 0;
  values.set(codes);
  for (let i = 0; i < codes.length; i++) {
    // In a fixed list, all other codes are the numbers themselves.
    if (kind === 'fixed') i = codes.indexOf(PLACES, i);
    if (i < 0) break;
    const code = codes[i]!;
    let value = list[code] ?? 0;
    for (let byte = code < PLACES ? 0 : 128, weight = 1; byte > 127; weight *= 128) {
      if (at === others.length || weight > limit) return -1;
      byte = others[at++]!;
      value += (byte & 127) * weight;
    }
    if (code === PLACES && value >= limit) return -1;
    values[i] = value;
    if (kind === 'recent') moveToFront(list, Math.min(code, PLACES - 1), value);
  }
  return at;
}
