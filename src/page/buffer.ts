/** What the readers of records use of Node's Buffer, for browsers; see scripts/pack-page.js. */

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Characters that are joined at a time: a call has a limit of arguments. */
const STEP = 8_192;

class Bytes extends Uint8Array {
  equals(other: Uint8Array): boolean {
    return this.length === other.length && this.every((byte, at) => byte === other[at]);
  }

  override toString(encoding: 'utf8' | 'latin1' = 'utf8', from = 0, to = this.length): string {
    const bytes = this.subarray(from, to);
    if (encoding === 'utf8') return decoder.decode(bytes);
    let text = '';
    for (let at = 0; at < bytes.length; at += STEP) text += String.fromCharCode(...bytes.subarray(at, at + STEP));
    return text;
  }
}

export const Buffer = {
  from(source: string | ArrayLike<number> | ArrayBuffer, at?: string | number, length?: number): Bytes {
    if (source instanceof ArrayBuffer) return new Bytes(source, at as number, length);
    if (typeof source !== 'string') return new Bytes(source);
    return new Bytes(at === 'latin1' ? Array.from(source, (one) => one.charCodeAt(0)) : encoder.encode(source));
  },

  alloc: (length: number): Bytes => new Bytes(length),

  byteLength: (text: string): number => encoder.encode(text).length,

  concat(parts: readonly Uint8Array[]): Bytes {
    const all = new Bytes(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  },
};
