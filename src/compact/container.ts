/** The container of the compact form: named sections, each with a checksum. See FORMAT.md. */
import { crc32 } from '../crc32.js';
import { AtlasError, RESTORE } from '../errors.js';

/** `\x89IPC\r\n\x1a\n`. */
export const MAGIC = Uint8Array.of(0x89, 0x49, 0x50, 0x43, 0x0d, 0x0a, 0x1a, 0x0a);
const MAJOR_VERSION = 1;
const MINOR_VERSION = 0;

/** Size of the header in bytes, and the offsets of its fields. */
export const HEADER_BYTES = 24;
const HEADER = { major: 8, minor: 10, sections: 12, size: 16, crc32: 20 } as const;

/** Size of an entry of the section table in bytes, and the offsets of its fields. */
export const ENTRY_BYTES = 24;
const ENTRY = { name: 0, length: 16, crc32: 20 } as const;
const NAME_BYTES = 16;

/** The sections of a container, by name, in file order. */
export type Sections = ReadonlyMap<string, Uint8Array>;

/** Returns the error for a compact form that is not as FORMAT.md says. */
export function damaged(name: string, what: string): AtlasError {
  return new AtlasError('E_DAMAGED', `${name}: ${what}; get the file again, or ${RESTORE}`);
}

/** Returns the CRC-32 of the header and the section table, the field of the checksum itself taken as zero. */
function headChecksum(bytes: Uint8Array, headEnd: number): number {
  const head = new Uint8Array(bytes.subarray(0, headEnd)); // a copy: slice() of a Buffer is none
  head.fill(0, HEADER.crc32, HEADER.crc32 + 4);
  return crc32(head);
}

/**
 * Returns the size of a container from its first bytes, so that a caller can limit what it receives or unpacks.
 *
 * @param bytes at least the header
 * @param name of the file, for messages
 * @throws AtlasError E_DAMAGED if it is not a container, or of an unknown major version
 */
export function containerSize(bytes: Uint8Array, name: string): number {
  if (bytes.length < HEADER_BYTES) throw damaged(name, `${bytes.length} bytes are not enough for a compact form`);
  if (!MAGIC.every((byte, i) => bytes[i] === byte)) throw damaged(name, 'not a compact form (no magic number)');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const major = view.getUint16(HEADER.major, true);
  if (major !== MAJOR_VERSION) {
    const which = major < MAJOR_VERSION ? 'an older' : 'a newer';
    throw damaged(
      name,
      `made by ${which} version of ipatlas (format version ${major}, this one reads ${MAJOR_VERSION})`,
    );
  }
  return view.getUint32(HEADER.size, true);
}

/**
 * A container whose header and section table were checked. A section's checksum is checked when it is read, so that
 * sections that a reader skips cost it nothing.
 */
export class Container {
  readonly #name: string;
  readonly #sections = new Map<string, { bytes: Uint8Array; checksum: number }>();

  /**
   * Opens a container.
   *
   * @param bytes the whole file, not compressed; sections share its memory
   * @param name of the file, for messages
   * @throws AtlasError E_DAMAGED if its structure is not that of FORMAT.md
   */
  constructor(bytes: Uint8Array, name: string) {
    this.#name = name;
    const size = containerSize(bytes, name);
    if (size !== bytes.length) throw damaged(name, `${bytes.length} bytes long, but its header says ${size}`);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const count = view.getUint32(HEADER.sections, true);
    let offset = HEADER_BYTES + count * ENTRY_BYTES;
    if (offset > size) throw damaged(name, `a table of ${count} sections does not fit`);
    if (headChecksum(bytes, offset) !== view.getUint32(HEADER.crc32, true)) {
      throw damaged(name, 'the checksum of its header is wrong');
    }
    for (let i = 0; i < count; i++) {
      const entry = HEADER_BYTES + i * ENTRY_BYTES;
      const length = view.getUint32(entry + ENTRY.length, true);
      const tag = bytes.subarray(entry, entry + NAME_BYTES);
      const tagEnd = tag.indexOf(0);
      const section = String.fromCharCode(...tag.subarray(0, tagEnd < 0 ? NAME_BYTES : tagEnd));
      if (offset + length > size) throw damaged(name, `section ${section} (${length} bytes) is not inside the file`);
      if (this.#sections.has(section)) throw damaged(name, `section ${section} occurs twice`);
      const checksum = view.getUint32(entry + ENTRY.crc32, true);
      this.#sections.set(section, { bytes: bytes.subarray(offset, offset + length), checksum });
      offset += length;
    }
    if (offset !== size) throw damaged(name, `${size - offset} bytes follow its last section`);
  }

  /** Names of the sections in file order. */
  get names(): string[] {
    return [...this.#sections.keys()];
  }

  has(section: string): boolean {
    return this.#sections.has(section);
  }

  /** Returns the size of a section in bytes; 0 if there is none of the name. */
  length(section: string): number {
    return this.#sections.get(section)?.bytes.length ?? 0;
  }

  /**
   * Returns the bytes of a section.
   *
   * @throws AtlasError E_DAMAGED if there is none of the name or its checksum is wrong
   */
  section(section: string): Uint8Array {
    const found = this.#sections.get(section);
    if (found === undefined) throw this.damaged(`section ${section} is missing`);
    if (crc32(found.bytes) !== found.checksum) throw this.damaged(`the checksum of section ${section} is wrong`);
    return found.bytes;
  }

  /** Returns the error for a section that is not as FORMAT.md says. */
  damaged(what: string): AtlasError {
    return damaged(this.#name, what);
  }
}

/**
 * Writes a container.
 *
 * @param sections by name: 1 to 16 ASCII characters
 * @returns the bytes of the file; the same for the same sections in the same order
 */
export function writeContainer(sections: Sections): Uint8Array {
  const headEnd = HEADER_BYTES + sections.size * ENTRY_BYTES;
  let size = headEnd;
  for (const bytes of sections.values()) size += bytes.length;
  const file = new Uint8Array(size);
  const view = new DataView(file.buffer);
  file.set(MAGIC);
  view.setUint16(HEADER.major, MAJOR_VERSION, true);
  view.setUint16(HEADER.minor, MINOR_VERSION, true);
  view.setUint32(HEADER.sections, sections.size, true);
  view.setUint32(HEADER.size, size, true);
  let entry = HEADER_BYTES;
  let offset = headEnd;
  for (const [name, bytes] of sections) {
    if (!/^[\x21-\x7e]{1,16}$/.test(name)) throw new RangeError(`${JSON.stringify(name)} cannot name a section`);
    for (let i = 0; i < name.length; i++) file[entry + ENTRY.name + i] = name.charCodeAt(i);
    view.setUint32(entry + ENTRY.length, bytes.length, true);
    view.setUint32(entry + ENTRY.crc32, crc32(bytes), true);
    file.set(bytes, offset);
    entry += ENTRY_BYTES;
    offset += bytes.length;
  }
  view.setUint32(HEADER.crc32, headChecksum(file, headEnd), true);
  return file;
}
