/** Values in the encoding of the MaxMind DB format, version 2.0, "Output Data Section". */

/** An unsigned integer of 16, 32 or 64 bits. */
export interface Unsigned {
  bits: 16 | 32 | 64;
  value: number;
}

export type MmdbValue = string | boolean | Unsigned | readonly MmdbValue[] | MmdbMap;
/** Keys are written in the order in which they stand. */
export type MmdbMap = ReadonlyMap<string, MmdbValue>;

/** Type numbers of the format. Above 7 the control byte says "extended", and the next byte is the number less 7. */
const TYPE = { pointer: 1, string: 2, unsigned16: 5, unsigned32: 6, map: 7, unsigned64: 9, array: 11, boolean: 14 };

/** Largest offsets that a pointer with one, two and three bytes behind its control byte reaches, exclusive. */
const POINTER_LIMITS = [2 ** 11, 2 ** 11 + 2 ** 19, 2 ** 11 + 2 ** 19 + 2 ** 27] as const;

/** A map of an object's members; undefined ones are left out. */
export function mapOf(members: Record<string, MmdbValue | undefined>): MmdbMap {
  return new Map(Object.entries(members).filter((member): member is [string, MmdbValue] => member[1] !== undefined));
}

/** A control byte, with the bytes that hold the rest of the size where it does not fit in five bits. */
function control(type: number, size: number): number[] {
  const extended = type > 7 ? [type - 7] : [];
  const top = type > 7 ? 0 : type << 5;
  if (size < 29) return [top | size, ...extended];
  if (size < 285) return [top | 29, ...extended, size - 29];
  if (size < 65_821) return [top | 30, ...extended, ...bigEndian(size - 285, 2)];
  return [top | 31, ...extended, ...bigEndian(size - 65_821, 3)];
}

function bigEndian(value: number, bytes: number): number[] {
  return Array.from({ length: bytes }, (_, index) => Math.floor(value / 256 ** (bytes - 1 - index)) % 256);
}

/** An integer without leading zero bytes: none at all for zero. */
function unsigned({ bits, value }: Unsigned): number[] {
  const type = { 16: TYPE.unsigned16, 32: TYPE.unsigned32, 64: TYPE.unsigned64 }[bits];
  let bytes = 0;
  while (value >= 256 ** bytes) bytes++;
  return [...control(type, bytes), ...bigEndian(value, bytes)];
}

function pointer(offset: number): number[] {
  const form = POINTER_LIMITS.findIndex((limit) => offset < limit);
  if (form < 0) return [(TYPE.pointer << 5) | (3 << 3), ...bigEndian(offset, 4)];
  const value = offset - (form === 0 ? 0 : POINTER_LIMITS[form - 1]!);
  const [top, ...rest] = bigEndian(value, form + 2);
  return [(TYPE.pointer << 5) | (form << 3) | top!, ...rest];
}

/** Appends values one behind the other. A string, map or array that stands there already is pointed at, where that is shorter. */
export class ValueWriter {
  readonly #bytes: number[] = [];
  /** Where each value stands that a pointer can name. */
  readonly #offsets = new Map<string, number>();
  readonly #sharing: boolean;

  /** @param sharing whether to use pointers. Metadata goes without: readers do not agree on where its offsets begin */
  constructor(sharing: boolean) {
    this.#sharing = sharing;
  }

  get bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  /**
   * Appends a value for a record of the tree to point at. One that stands there already is not written again.
   *
   * @returns its offset
   */
  append(value: MmdbValue): number {
    return this.#offsets.get(keyOf(value)) ?? this.#write(value);
  }

  #write(value: MmdbValue): number {
    const offset = this.#bytes.length;
    if (isUnsigned(value)) this.#push(unsigned(value));
    else if (typeof value === 'boolean') this.#push(control(TYPE.boolean, value ? 1 : 0));
    else if (typeof value === 'string') this.#writeString(value);
    else if (isMap(value)) {
      this.#push(control(TYPE.map, value.size));
      for (const [key, member] of value) {
        this.#writeShared(key);
        this.#writeShared(member);
      }
    } else {
      this.#push(control(TYPE.array, value.length));
      for (const element of value) this.#writeShared(element);
    }
    const key = keyOf(value);
    if (!this.#offsets.has(key)) this.#offsets.set(key, offset);
    return offset;
  }

  #writeString(text: string): void {
    const bytes = Buffer.from(text, 'utf8');
    this.#push(control(TYPE.string, bytes.length));
    this.#push(bytes);
  }

  #writeShared(value: MmdbValue): void {
    const offset = this.#sharing && !isUnsigned(value) ? this.#offsets.get(keyOf(value)) : undefined;
    const bytes = offset === undefined ? [] : pointer(offset);
    const isShorter = typeof value === 'string' ? bytes.length <= Buffer.byteLength(value) : typeof value === 'object';
    if (offset !== undefined && isShorter) this.#push(bytes);
    else this.#write(value);
  }

  #push(bytes: Iterable<number>): void {
    for (const byte of bytes) this.#bytes.push(byte);
  }
}

function isUnsigned(value: MmdbValue): value is Unsigned {
  return typeof value === 'object' && 'bits' in value;
}

function isMap(value: MmdbValue): value is MmdbMap {
  return value instanceof Map;
}

/** Equal for equal values only. */
function keyOf(value: MmdbValue): string {
  return JSON.stringify(value, (_, part) => (part instanceof Map ? { map: [...part] } : part));
}
