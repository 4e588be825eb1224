import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { type Manifest, RANGE_FILE, releaseDir } from '../../src/database/release.js';
import { openReleaseRanges, STAMP_FILE } from '../../src/database/release-files.js';
import { decodeRangeFile } from '../../src/rangefile/reader.js';
import { ipatlas } from '../support/cli.js';
import { smallRelease } from '../support/release.js';

let dataDir: string;
let release: string;
let ranges: string;
let stamp: string;
beforeEach(async () => {
  dataDir = await smallRelease();
  release = releaseDir(dataDir);
  ranges = join(release, RANGE_FILE);
  stamp = join(release, STAMP_FILE);
});

/** Opens three seconds later by the clock, when the files are old enough for their hashes to be stored. */
function openWhenSettled(engine: 'binary' | 'sqlite' = 'binary'): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_000 });
  openDatabase(dataDir, { engine }).close();
  vi.useRealTimers();
  expect(JSON.parse(readFileSync(stamp, 'utf8'))).toHaveProperty([engine === 'binary' ? RANGE_FILE : 'ranges.sqlite']);
}

/** Flips a bit in place, without a new file. */
function flipBit(path: string, index: number, bit: number): void {
  const byte = readFileSync(path)[index]! ^ (1 << bit);
  const fd = openSync(path, 'r+');
  writeSync(fd, Uint8Array.of(byte), 0, 1, index);
  closeSync(fd);
}

const DAMAGED = expect.objectContaining({ code: 'E_DAMAGED' });

describe('opening a release', () => {
  it('does not store the hash of a file that may still change within the same clock step', () => {
    const soon = new Date(Date.now() + 3_600_000);
    utimesSync(ranges, soon, soon);
    openDatabase(dataDir).close();
    expect(existsSync(stamp)).toBe(false);
  });

  it('stores the hash of a file two seconds after its last change', () => {
    const changed = statSync(ranges).ctimeMs;
    const { now } = Date;
    try {
      Date.now = () => Math.floor(changed) + 1_900;
      openDatabase(dataDir).close();
      expect(existsSync(stamp)).toBe(false);
      Date.now = () => Math.ceil(changed) + 2_100;
      openDatabase(dataDir).close();
      expect(existsSync(stamp)).toBe(true);
    } finally {
      Date.now = now;
    }
  });

  it('refuses each flipped bit of the range file, whether its hash is stored or not', () => {
    const { size } = statSync(ranges);
    const flips = fc.sample(fc.tuple(fc.nat(size - 1), fc.nat(7)), 300);
    for (const phase of ['not stored', 'stored']) {
      if (phase === 'stored') openWhenSettled();
      for (const [index, bit] of flips) {
        const { atime, mtime } = statSync(ranges);
        flipBit(ranges, index, bit);
        // Setting the time back does not help: the ctime changes as well.
        utimesSync(ranges, atime, mtime);
        expect(() => openReleaseRanges(release), `bit ${bit} of byte ${index}, ${phase}`).toThrow(DAMAGED);
        flipBit(ranges, index, bit);
      }
      openDatabase(dataDir).close();
    }
  });

  it('refuses a flipped bit in every command that reads the range file', async () => {
    openWhenSettled();
    flipBit(ranges, statSync(ranges).size >> 1, 0);
    for (const args of [
      ['lookup', '8.8.8.8'],
      ['enrich'],
      ['export', 'csv'],
      ['diff', 'current', 'current'],
      ['verify'],
    ]) {
      const result = await ipatlas([...args, '--data', dataDir], { input: '{"ip":"8.8.8.8"}\n' });
      expect(result, args.join(' ')).toMatchObject({ code: 5, stdout: '' });
      expect(result.stderr).toMatch(/does not match the SHA-256/);
    }
  });

  it('refuses a damaged mirror', () => {
    const mirror = join(release, 'ranges.sqlite');
    openWhenSettled('sqlite');
    flipBit(mirror, statSync(mirror).size - 1, 0);
    expect(() => openDatabase(dataDir, { engine: 'sqlite' })).toThrow(DAMAGED);
  });

  it('hashes again if the manifest names another hash', () => {
    openWhenSettled();
    const path = join(release, 'manifest.json');
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
    const file = manifest.outputs.find(({ name }) => name === RANGE_FILE)!;
    writeFileSync(path, JSON.stringify(manifest).replace(file.sha256, '0'.repeat(64)));
    expect(() => openDatabase(dataDir)).toThrow(DAMAGED);
  });

  it('checks the manifest again if it has changed', () => {
    openWhenSettled();
    const path = join(release, 'manifest.json');
    const text = readFileSync(path, 'utf8');
    const changes: [from: string, to: string, message: RegExp][] = [
      ['"as_of": "2026-01-01"', '"as_of": "2026-01-02"', /id is .*, which is not that of its date and inputs/],
      ['"manifest_version": 1', '"manifest_version": 2', /manifest_version/],
      ['{', '', /is not JSON/],
    ];
    for (const [from, to, message] of changes) {
      expect(text).toContain(from);
      writeFileSync(path, text.replace(from, to));
      expect(() => openDatabase(dataDir)).toThrow(message);
      expect(() => openDatabase(dataDir, { engine: 'sqlite' })).toThrow(message);
    }
    writeFileSync(path, text);
    openDatabase(dataDir).close();
  });

  it('refuses a release under the name of another, even if its manifest was checked before', () => {
    openWhenSettled();
    const other = join(release, '..', '2026-01-01-0123456789ab');
    renameSync(release, other);
    expect(() => openDatabase(other)).toThrow(/but its directory is 2026-01-01-0123456789ab/);
  });

  it('hashes again if the file was replaced', () => {
    openWhenSettled();
    const content = readFileSync(ranges);
    content[content.length - 1]! ^= 1;
    writeFileSync(`${ranges}.new`, content);
    renameSync(`${ranges}.new`, ranges);
    expect(() => openDatabase(dataDir)).toThrow(DAMAGED);
  });

  it.each(['', 'null', '[]', '{"ranges.ipr":1}', '{', '\0'])('ignores a stamp file that contains %j', (content) => {
    writeFileSync(stamp, content);
    openDatabase(dataDir).close();
    flipBit(ranges, 200, 3);
    expect(() => openDatabase(dataDir)).toThrow(DAMAGED);
  });

  it('checks again if the stamp was written by a version that checked the hash alone', () => {
    openWhenSettled();
    const stamps = JSON.parse(readFileSync(stamp, 'utf8')) as Record<string, string>;
    const stored = stamps[RANGE_FILE]!;
    const earlier = stored.slice(stored.indexOf(' ') + 1);
    writeFileSync(stamp, JSON.stringify({ [RANGE_FILE]: earlier }));
    openWhenSettled();
    expect(JSON.parse(readFileSync(stamp, 'utf8'))).toEqual({ [RANGE_FILE]: stored });
  });

  it('refuses columns that are out of bounds at each opening, even if the hash is right', () => {
    const content = readFileSync(ranges);
    const file = decodeRangeFile(content, ranges);
    const damaged = Buffer.from(content);
    damaged.fill(
      0xff,
      file.record4.byteOffset - file.bytes.byteOffset,
      file.record4.byteOffset - file.bytes.byteOffset + 2,
    );
    writeFileSync(ranges, damaged);
    const path = join(release, 'manifest.json');
    const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
    writeFileSync(path, readFileSync(path, 'utf8').replace(sha256(content), sha256(damaged)));
    const { now } = Date;
    try {
      Date.now = () => now() + 60_000;
      for (let time = 0; time < 2; time++) {
        expect(() => openReleaseRanges(release)).toThrow(/names a record that does not exist/);
      }
    } finally {
      Date.now = now;
    }
    expect(existsSync(stamp)).toBe(false);
  });

  it('works if the stamp cannot be written', () => {
    rmSync(stamp, { force: true });
    mkdirSync(stamp); // neither readable as a file nor replaceable by one
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_000 });
    openDatabase(dataDir).close();
    vi.useRealTimers();
    expect(readdirSync(release).filter((name) => name.endsWith('.part'))).toEqual([]);
  });
});
