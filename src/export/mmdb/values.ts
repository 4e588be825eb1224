/** Values in the encoding of the MaxMind DB format, version 2.0, "Output Data Section". */

/** An unsigned integer of 16, 32 or 64 bits. */
export interface Unsigned {
  bits: 16 | 32 | 64;
  value: number;
}

export type MmdbValue = string | boolean | Unsigned | readonly MmdbValue[] | MmdbMap;
/** Keys are written in the order of the map. */
export type MmdbMap = ReadonlyMap<string, MmdbValue>;

/** Type numbers of the format. Above 7, the control byte says "extended", and the next byte is the number minus 7. */
const TYPE = { pointer: 1, string: 2, unsigned16: 5, unsigned32: 6, map: 7, unsigned64: 9, array: 11, boolean: 14 };

/** Exclusive upper limits of the offsets that fit into one, two and three bytes after the control byte of a pointer. */
const POINTER_LIMITS = [2 ** 11, 2 ** 11 + 2 ** 19, 2 ** 11 + 2 ** 19 + 2 ** 27] as const;

/** Returns a map of the members of an object, without those that are undefined. */
export function mapOf(members: Record<string, MmdbValue | undefined>): MmdbMap {
  return new Map(Object.entries(members).filter((member): member is [string, MmdbValue] => member[1] !== undefined));
}

/** Returns a control byte, and the bytes for the rest of the size if it does not fit into five bits. */
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

/** Encodes an integer without leading zero bytes, so zero has no bytes. */
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

/** Appends values. A string, map or array that was written before becomes a pointer to it, if that is shorter. */
export class ValueWriter {
  readonly #bytes: number[] = [];
  /** Offset of each value by {@link keyOf}. */
  readonly #offsets = new Map<string, number>();
  readonly #sharing: boolean;

  /** @param sharing whether to use pointers. Metadata has none: readers disagree on the base of their offsets */
  constructor(sharing: boolean) {
    this.#sharing = sharing;
  }

  get bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  /**
   * Appends a value for nodes of the tree to refer to, unless it was written before.
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

/** Returns a text that is equal for equal values only. */
function keyOf(value: MmdbValue): string {
  return JSON.stringify(value, (_, part) => (part instanceof Map ? { map: [...part] } : part));
}
