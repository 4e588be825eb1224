/** What attackers and broken machines give a build: MMDB bombs, each in a process of its own, and clocks that step. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { DAY_MS, dayOf } from '../../src/day.js';
import { assemble } from '../../src/export/mmdb/mmdb.js';
import { leafOf, type Tree } from '../../src/export/mmdb/tree.js';
import { mapOf, ValueWriter } from '../../src/export/mmdb/values.js';
import { openArchive } from '../../src/history/archive.js';
import { finished, start } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { randomFrom, rounds } from '../support/seed.js';
import { writeSources } from '../support/sources.js';

const MEGABYTE = 2 ** 20;
const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');

/** A tree whose two leaves are the records at offsets of the data. */
const twoLeaves = (left = 0, right = left): Tree => ({
  count: 1,
  left: Int32Array.of(leafOf(left)),
  right: Int32Array.of(leafOf(right)),
});

/** Returns an MMDB file: its data follow 16 bytes after the tree, and its metadata are those of an honest writer by default. */
function mmdbFile(
  data: Buffer,
  tree = twoLeaves(),
  offsets: number[] = [0],
  metadata?: Buffer,
  ipVersion: 4 | 6 = 4,
): Buffer {
  const labels = { title: 't', databaseType: 't', asOf: '2026-01-01', ipVersion };
  const file = Buffer.concat([...assemble(tree, { bytes: data, offsets }, 32, labels)]);
  return metadata === undefined ? file : Buffer.concat([file.subarray(0, file.lastIndexOf(MARKER)), MARKER, metadata]);
}

/** A control byte with a size (MaxMind DB file format specification, Data Field Format). */
function control(type: number, size: number): Buffer {
  const head = type < 8 ? [(type << 5) | 31] : [31, type - 7];
  const rest = size - 65_821;
  return Buffer.from([...head, (rest >> 16) & 255, (rest >> 8) & 255, rest & 255]);
}
const [TEXT, BYTES, MAP, UINT128, ARRAY] = [2, 4, 7, 10, 11];

/** A pointer of four bytes to a place in the section. */
function pointer(at: number): Buffer {
  const bytes = Buffer.from([0x38, 0, 0, 0, 0]);
  bytes.writeUInt32BE(at, 1);
  return bytes;
}

/** Twelve levels of arrays or maps, each of 28 pointers to the one before it; the value is at the end. */
function levels(isMap: boolean): { bytes: Buffer; at: number } {
  const parts = [Buffer.from([0x41, 0x78])];
  let [at, length] = [0, 2];
  for (let level = 0; level < 12; level++) {
    const head = isMap ? Buffer.from([0xfc]) : Buffer.from([28, 4]);
    const each = (i: number): Buffer[] => [...(isMap ? [Buffer.from([0x41, 97 + i])] : []), pointer(at)];
    const value = Buffer.concat([head, ...Array.from({ length: 28 }, (_, i) => each(i)).flat()]);
    at = length;
    length += value.length;
    parts.push(value);
  }
  return { bytes: Buffer.concat(parts), at };
}

/** A record of pointers to one long text. */
function manyTexts(count: number): Buffer {
  const text = Buffer.concat([control(TEXT, MEGABYTE), Buffer.alloc(MEGABYTE, 120)]);
  const head = Buffer.from([30, 4, (count - 285) >> 8, (count - 285) & 255]);
  const array = Buffer.concat([head, ...Array.from({ length: count }, () => pointer(head.length + 5 * count))]);
  return Buffer.concat([array, text]);
}

/** Returns metadata with other values than an honest writer's. */
function metadataOf(other: Record<string, Buffer>): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([0x40 | value.length]), Buffer.from(value)]);
  const uint = (value: number): Buffer => Buffer.from([0xa2, value >> 8, value & 255]);
  const members = {
    ...{ node_count: uint(1), record_size: uint(32), ip_version: uint(4), binary_format_major_version: uint(2) },
    ...{
      database_type: text('t'),
      build_epoch: uint(1),
      languages: Buffer.from([0, 4]),
      description: Buffer.from([0xe0]),
    },
    ...other,
  };
  const entries = Object.entries(members).flatMap(([key, value]) => [text(key), value]);
  return Buffer.concat([Buffer.from([0xe0 | Object.keys(members).length]), ...entries]);
}
const double = (value: number): Buffer => {
  const bytes = Buffer.alloc(9, 0x68);
  bytes.writeDoubleBE(value, 1);
  return bytes;
};

/** 128 levels of nodes whose two records lead to the next, so that a kilobyte has 2^128 networks. */
const endless: Tree = {
  count: 128,
  left: Int32Array.from({ length: 128 }, (_, i) => (i < 127 ? i + 1 : leafOf(0))),
  right: Int32Array.from({ length: 128 }, (_, i) => (i < 127 ? i + 1 : leafOf(1))),
};
/** A whole tree of 2^17 leaves. */
const wide = (leaf: (i: number) => number): Tree => {
  const inner = 2 ** 17 - 1;
  const child = (i: number): number => (i < inner ? i : leaf(i - inner));
  return {
    count: inner,
    left: Int32Array.from({ length: inner }, (_, i) => child(2 * i + 1)),
    right: Int32Array.from({ length: inner }, (_, i) => child(2 * i + 2)),
  };
};

const honest = (): Buffer => {
  const data = new ValueWriter(true);
  data.append(mapOf({ country_code: 'DE' }));
  return Buffer.from(data.bytes);
};
const [arrays, maps] = [levels(false), levels(true)];
const inMetadata = ({ bytes, at }: typeof arrays): Buffer => Buffer.concat([pointer(5 + at), bytes]);
/** As many records as the wide tree has leaves: each is a pointer to the same 4,000 values. */
const LEAVES = 2 ** 17;
const overlapping = (): Buffer => {
  const pointers = Array.from({ length: LEAVES }, () => pointer(5 * LEAVES));
  return Buffer.concat([
    ...pointers,
    Buffer.from([30, 4, (4000 - 285) >> 8, (4000 - 285) & 255]),
    Buffer.alloc(4000, 0x40),
  ]);
};

const BOMBS: [what: string, file: () => Buffer][] = [
  ['arrays of pointers, twelve levels', () => mmdbFile(arrays.bytes, twoLeaves(), [arrays.at])],
  ['maps of pointers, twelve levels', () => mmdbFile(maps.bytes, twoLeaves(), [maps.at])],
  ['the same in its metadata', () => mmdbFile(honest(), twoLeaves(), [0], inMetadata(arrays))],
  ['maps in its metadata', () => mmdbFile(honest(), twoLeaves(), [0], inMetadata(maps))],
  [
    'metadata before a second marker',
    () => mmdbFile(honest(), twoLeaves(), [0], Buffer.concat([inMetadata(arrays), MARKER, Buffer.alloc(40, 0x6d)])),
  ],
  ['one long text, 4,000 times', () => mmdbFile(manyTexts(4000))],
  ...(
    [
      ['text', TEXT],
      ['bytes', BYTES],
      ['map', MAP],
      ['number', UINT128],
      ['array', ARRAY],
    ] as const
  ).flatMap(([name, type]): [string, () => Buffer][] => [
    [`a ${name} of 16 MB that is not there`, () => mmdbFile(control(type!, 16 * MEGABYTE))],
    [
      `a ${name} of 16 MB that is there`,
      () => mmdbFile(Buffer.concat([control(type!, 16 * MEGABYTE), Buffer.alloc(16 * MEGABYTE)])),
    ],
  ]),
  ['a pointer to itself', () => mmdbFile(pointer(0))],
  ['pointers to each other', () => mmdbFile(Buffer.concat([pointer(5), pointer(0)]))],
  ['an array that has itself', () => mmdbFile(Buffer.concat([Buffer.from([1, 4]), pointer(0)]))],
  ['arrays in arrays', () => mmdbFile(Buffer.alloc(200_000, Buffer.from([1, 4])))],
  ['no value after the pointer', () => mmdbFile(pointer(0xffffffff))],
  ['a type that does not exist', () => mmdbFile(Buffer.from([0, 255]))],
  ['2^128 networks', () => mmdbFile(Buffer.concat([honest(), honest()]), endless, [0, honest().length], undefined, 6)],
  [
    'a hundred thousand records of 4,000 values',
    () =>
      mmdbFile(
        overlapping(),
        wide(leafOf),
        Array.from({ length: LEAVES }, (_, i) => 5 * i),
      ),
  ],
  ...[-1, 0, 0.5, 2 ** 31, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY].flatMap((value): [string, () => Buffer][] =>
    ['node_count', 'record_size', 'ip_version'].map((name) => [
      `${name} ${value}`,
      () => mmdbFile(honest(), twoLeaves(), [0], metadataOf({ [name]: double(value) })),
    ]),
  ),
  [
    'node_count is a text',
    () => mmdbFile(honest(), twoLeaves(), [0], metadataOf({ node_count: Buffer.from([0x43, 49, 101, 57]) })),
  ],
  [
    'record_size is an array',
    () => mmdbFile(honest(), twoLeaves(), [0], metadataOf({ record_size: Buffer.from([0, 4]) })),
  ],
];

describe('an MMDB file', () => {
  it.each(BOMBS)('with %s is refused or read, with little memory and time', async (_what, file) => {
    const dir = temporaryDir();
    const peak = join(dir, 'peak.cjs');
    writeFileSync(
      peak,
      `process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(join(dir, 'peak'))}, String(process.resourceUsage().maxRSS)))`,
    );
    const bytes = file();
    writeFileSync(join(dir, 'x.mmdb'), bytes);
    const source = { id: 'x', license: 'CC0-1.0', fetch: { file: 'x.mmdb' }, format: 'mmdb' };
    writeFileSync(join(dir, 'sources.json'), JSON.stringify({ gates: { maxWrongSentinels: 99 }, sources: [source] }));
    const args = ['build', '--sources', join(dir, 'sources.json'), '--data', join(dir, 'data')];
    const before = performance.now();
    const { code, stderr } = await finished(start(args, { env: { NODE_OPTIONS: `--require=${peak}` } }));
    const seconds = (performance.now() - before) / 1000;
    const megabytes = Number(readFileSync(join(dir, 'peak'), 'utf8')) / 1024;
    console.log(`${_what}: exit ${code}, ${seconds.toFixed(1)} s, ${Math.round(megabytes)} MB`);
    expect(stderr).not.toMatch(/internal error|heap/);
    if (code !== 0) expect([code, stderr]).toEqual([4, expect.stringMatching(/E_BAD_INPUT|x\.mmdb|source x/)]);
    expect(megabytes).toBeLessThan(200 + (20 * bytes.length) / MEGABYTE);
    expect(seconds).toBeLessThan(60);
  });
});

describe('a clock that steps', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('never spoils the history for good', async () => {
    const random = randomFrom();
    const HOUR = DAY_MS / 24;
    const steps = [2000, HOUR, DAY_MS, 30 * DAY_MS, -2000, -HOUR, -DAY_MS, 400 * DAY_MS, -400 * DAY_MS, 4000 * DAY_MS];
    for (let round = 0; round < rounds(20); round++) {
      const dir = temporaryDir();
      const dataDir = join(dir, 'data');
      const run = (...args: string[]) => ipatlas([...args, '--data', dataDir]);
      const build = (second: number, ...flags: string[]) =>
        run('build', '--sources', writeSources(dir, { one: `20.0.0.0,20.0.${second}.255,US\n` }), ...flags);
      const begin = Date.parse('2026-06-01T10:00:00Z');
      let now = begin;
      for (let night = 0; night < 12; night++) {
        vi.useFakeTimers({ toFake: ['Date'], now });
        const { code, stderr } = await build(night);
        expect([0, 5], stderr).toContain(code);
        if (code === 5) expect(stderr).toContain('"ipatlas history repair');
        const verified = await run('verify');
        expect([0, 5], verified.stderr).toContain(verified.code);
        if (verified.code === 5) expect(verified.stderr).toContain('of the future');
        now = Math.max(begin, now + steps[Math.floor(random() * steps.length)]!);
      }
      // The true time at last: what is of the future goes, and everything works again.
      vi.useFakeTimers({ toFake: ['Date'], now: begin + 365 * DAY_MS });
      expect((await run('history', 'repair')).code).toBe(0);
      expect((await run('verify')).code).toBe(0);
      expect((await build(200)).code).toBe(0);
      const today = dayOf(begin + 365 * DAY_MS);
      const entries = openArchive(dataDir).entries.map(({ time }) => dayOf(time));
      expect(entries).toEqual(entries.toSorted());
      expect(entries.at(-1)).toBe(today);
      const { stdout } = await run('lookup', '20.0.200.1', '--json', '--at', today);
      expect(JSON.parse(stdout).country_code).toBe('US');
    }
  });
});
