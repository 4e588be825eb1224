import { describe, expect, it } from 'vitest';
import { ZstdFrameEnd } from '../../../src/enrich/input/zstd-frame.js';

/** Frames as RFC 8878 describes them: header, blocks (raw, run-length), checksum. */
const FRAMES: [what: string, hex: string][] = [
  ['single segment, one raw block', '28b52ffd 20 02 110000 6162'],
  ['window descriptor, checksum', '28b52ffd 04 58 110000 6162 01020304'],
  ['content size of 2 bytes, dictionary id of 1 byte', '28b52ffd 61 07 0100 090000 61'],
  ['content size of 8 bytes, dictionary id of 4 bytes', '28b52ffd e3 01020304 0100000000000000 090000 61'],
  ['a run-length block, then a raw one', '28b52ffd 20 09 420000 61 090000 62'],
  ['an empty last block', '28b52ffd 20 00 010000'],
  ['a skippable frame', '502a4d18 03000000 010203'],
  ['an empty skippable frame', '5f2a4d18 00000000'],
];

describe('the end of a zstd frame', () => {
  it.each(FRAMES)('is found: %s', (_, hex) => {
    const frame = Buffer.from(hex.replaceAll(' ', ''), 'hex');
    const more = Buffer.concat([frame, frame]);
    for (const size of [1, 2, 3, more.length]) {
      const end = new ZstdFrameEnd();
      let length = 0;
      for (let at = 0; at < more.length && !end.isReached; at += size) {
        length += end.add(more.subarray(at, at + size));
      }
      expect({ size, length, isReached: end.isReached }).toEqual({ size, length: frame.length, isReached: true });
    }
    const cut = new ZstdFrameEnd();
    expect(cut.add(frame.subarray(0, -1))).toBe(frame.length - 1);
    expect(cut.isReached).toBe(false);
  });

  it('is not looked for in other data', () => {
    expect(() => new ZstdFrameEnd().add(Buffer.from('garbage'))).toThrow('not zstd');
  });
});
