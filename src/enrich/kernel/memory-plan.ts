/**
 * Allocates the areas of the kernel's memory, and fills them.
 *
 * The memory has its final size before the kernel runs, with room for the longest line. Pages that are never touched (most of
 * the large slot and of the stacks) take address space only.
 */
import { misuse } from '../../errors.js';

/** WebAssembly memory has pages of this many bytes. */
const PAGE_BYTES = 65_536;

/** Pages of a memory that files are read into: 32 MB, more than the countries and networks of a release. */
const FIRST_PAGES = 512;

/** The first address in use; the compiler may place constants below it. */
const FIRST_ADDRESS = 1024;

/** Largest memory in bytes: what one typed array of V8 can surely have. */
const MAX_MEMORY_BYTES = 2 ** 31;
const MAX_PAGES = MAX_MEMORY_BYTES / PAGE_BYTES;

/** Areas begin at multiples of a cache line. */
const AREA_ALIGNMENT = 64;

/** Allocates areas from the bottom up and remembers their contents. */
export class MemoryPlan {
  readonly #isShared: boolean;
  #memory: WebAssembly.Memory | undefined;
  #end = FIRST_ADDRESS;
  readonly #contents: { at: number; bytes: Uint8Array }[] = [];
  /** What is copied within the memory. */
  readonly #moves: { at: number; from: number; length: number }[] = [];
  /** What must be zeros, if the memory was used before. */
  readonly #zeros: { at: number; bytes: number }[] | undefined;

  /**
   * @param isShared whether several threads will work in the memory
   * @param used a memory that is no longer used, if there is one: it grows as needed
   */
  constructor(isShared: boolean, used?: WebAssembly.Memory) {
    this.#isShared = isShared;
    this.#memory = used;
    this.#zeros = used && [{ at: 0, bytes: FIRST_ADDRESS }];
  }

  /**
   * Returns an area that exists at once, for a file to be read into; what is placed of it need not be copied. It is valid until the
   * memory is built. Files for which the first pages have no room are elsewhere: growing the memory would detach the others.
   */
  allocate(bytes: number): Buffer {
    const pages = Math.max(FIRST_PAGES, this.#pages() + Math.ceil(bytes / PAGE_BYTES));
    this.#memory ??= this.#newMemory(pages);
    if (this.#end + bytes > this.#memory.buffer.byteLength) return Buffer.allocUnsafeSlow(bytes);
    return Buffer.from(this.#memory.buffer, this.reserveBuffer(bytes), bytes);
  }

  /** Returns the address of an area of a number of bytes, which are 0. */
  reserve(bytes: number): number {
    this.#zeros?.push({ at: this.#end, bytes });
    return this.reserveBuffer(bytes);
  }

  /** Returns the address of an area of a number of bytes, which have any values: nothing reads them before it writes them. */
  reserveBuffer(bytes: number): number {
    const at = this.#end;
    this.#end = Math.ceil((at + bytes) / AREA_ALIGNMENT) * AREA_ALIGNMENT;
    return at;
  }

  /** Fills an area that was reserved. */
  fill(at: number, { buffer, byteOffset, byteLength }: Uint8Array | Uint32Array): void {
    this.#contents.push({ at, bytes: new Uint8Array(buffer, byteOffset, byteLength) });
  }

  /** Returns the address of an area that will hold an array: the array's own, if it is in this memory. */
  place(array: Uint8Array | Uint16Array | Uint32Array): number {
    return this.contains(array) ? array.byteOffset : this.copy(array);
  }

  /** Returns the address of an area that will hold a copy of an array. */
  copy(array: Uint8Array | Uint16Array | Uint32Array): number {
    const at = this.reserveBuffer(array.byteLength);
    const { buffer, byteOffset: from, byteLength: length } = array;
    if (this.contains(array)) this.#moves.push({ at, from, length });
    else this.#contents.push({ at, bytes: new Uint8Array(buffer, from, length) });
    return at;
  }

  /** The address of the next area. */
  get end(): number {
    return this.#end;
  }

  /**
   * Makes the memory and fills it.
   *
   * @throws AtlasError E_USAGE if it would be too large
   */
  build(): WebAssembly.Memory {
    const pages = Math.max(this.#pages(), (this.#memory?.buffer.byteLength ?? 0) / PAGE_BYTES);
    const memory = this.#memory ?? this.#newMemory(pages);
    // Growing detaches the arrays over a memory that is not shared, so what is in it is moved by address.
    memory.grow(pages - memory.buffer.byteLength / PAGE_BYTES);
    const all = new Uint8Array(memory.buffer);
    for (const { at, bytes } of this.#zeros ?? []) all.fill(0, at, at + bytes);
    for (const { at, from, length } of this.#moves) all.copyWithin(at, from, from + length);
    for (const { at, bytes } of this.#contents) all.set(bytes, at);
    return memory;
  }

  #newMemory(pages: number): WebAssembly.Memory {
    return new WebAssembly.Memory({ initial: pages, maximum: MAX_PAGES, shared: this.#isShared });
  }

  /** Returns whether an array is in the memory of {@link allocate}. */
  contains(array: Uint8Array | Uint16Array | Uint32Array): boolean {
    return array.buffer === this.#memory?.buffer;
  }

  #pages(): number {
    if (this.#end > MAX_MEMORY_BYTES) {
      const gigabytes = (this.#end / 2 ** 30).toFixed(1);
      throw misuse(`this would take ${gigabytes} GiB, and 2 is the most; use fewer jobs`);
    }
    return Math.ceil(this.#end / PAGE_BYTES);
  }
}
