/** The kernel accepts a line as a JSON object if and only if JSON.parse does. */
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { randomWords } from '../../bench/measure.js';
import { openDatabase } from '../../src/database/database.js';
import { RANGE_FILE } from '../../src/database/release.js';
import { emptyCounts } from '../../src/enrich/counts.js';
import { Kernel, Slot } from '../../src/enrich/kernel/kernel.js';
import { type KernelLayout, layOut } from '../../src/enrich/kernel/layout.js';
import { MemoryPlan } from '../../src/enrich/kernel/memory-plan.js';
import { kernelModule } from '../../src/enrich/kernel/module.js';
import { parseFields } from '../../src/enrich/options.js';
import { openRangeFile, type RangeFile } from '../../src/rangefile/reader.js';
import { parseAdd } from '../support/add.js';
import { jsonTestSuite } from '../support/json-test-suite.js';
import { smallRelease } from '../support/release.js';

/** Lines that are mutated; a million by "make soak". */
const MUTATIONS = Number(process.env.FUZZ_RUNS ?? 8) * 250;

const BLOCK_BYTES = 262_144;

const files = await jsonTestSuite();
/** The placements of a text in a line: as the line itself, as a value, in nested containers, as a key. */
const PLACEMENTS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `{"ip":"8.8.8.8","a":${text}}`,
  (text) => `{"a":[{"b":${text}},${text}],"ip":"8.8.8.8"}`,
  (text) => `{${text}:{"ip":"8.8.8.8"}}`,
];

let dataDir: string;
let file: RangeFile;
let layout: KernelLayout | undefined;
beforeAll(async () => {
  dataDir = await smallRelease();
  file = openRangeFile(join(openDatabase(dataDir).dir, RANGE_FILE));
});

/** Returns a kernel that knows nothing about earlier lines, so that it tries all its paths; the memory is always the same. */
function newKernel(): { kernel: Kernel; slot: Slot } {
  layout = layOut({
    plan: new MemoryPlan(false, layout?.memory),
    file,
    options: { fields: parseFields(['ip', 'a.ip', 'client.ip']), add: parseAdd('country_code'), onInvalid: 'keep' },
    threadCount: 1,
    slotCount: 1,
    chunkBytes: BLOCK_BYTES,
    maxLineBytes: BLOCK_BYTES,
    keepsRejects: true,
  });
  return { kernel: new Kernel(layout, kernelModule(layout)), slot: new Slot(layout, layout.slots[0]!) };
}

/** Returns whether a line, each character a byte, is a JSON object or blank. */
function isAccepted(line: string): boolean {
  if (/^[ \t\r]*$/.test(line)) return true;
  try {
    const value: unknown = JSON.parse(Buffer.from(line, 'latin1').toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Returns the lines that the kernel rejects. */
function rejectedLines(lines: readonly string[]): string {
  const { kernel, slot } = newKernel();
  const input = Buffer.from(lines.map((line) => `${line}\n`).join(''), 'latin1');
  slot.input.set(input);
  // What follows the input must not matter.
  slot.input.fill('{"', input.length);
  slot.begin(input.length);
  const rejected: Buffer[] = [];
  const counts = emptyCounts();
  for (let done = false; !done; ) {
    slot.clear();
    done = kernel.run(slot.place);
    rejected.push(Buffer.from(slot.rejects));
    slot.addCountsTo(counts);
  }
  expect(counts.lines).toBe(lines.length);
  return Buffer.concat(rejected).toString('latin1');
}

/** Compares with JSON.parse; names the first line on which the two differ. */
function expectSame(lines: readonly string[]): void {
  const expected = lines.filter((line) => !isAccepted(line)).map((line) => `${line}\n`);
  const actual = rejectedLines(lines);
  if (actual === expected.join('')) return;
  for (const line of lines) {
    expect({ line, rejected: rejectedLines([line]) !== '' }).toEqual({ line, rejected: !isAccepted(line) });
  }
  expect(actual, 'the lines together').toBe(expected.join(''));
}

describe('acceptance', () => {
  // Each alone and between the others: json-test-suite.test.ts. The longest are as long as a block.
  const texts = files.map(({ text }) => text.replaceAll('\n', '\r')).filter(({ length }) => length < 1000);
  const placed = PLACEMENTS.flatMap((place) => texts.map(place));

  it('does not depend on where in a block of 64 bytes a line begins', () => {
    for (let shift = 1; shift < 64; shift++) {
      const filler = `{"n":"${'x'.repeat(shift)}"}`;
      expectSame([filler, ...placed.filter((_, index) => index % 14 === shift % 14)]);
      const padded = placed.map((line) => line.replace('{', `{"p":"${'x'.repeat(shift)}",`));
      expectSame(padded.filter((_, index) => index % 22 === shift % 22));
    }
  });

  /** Makes a line long enough for the kernel to keep using its template. */
  const withPadding = (line: string): string => line.replace('{', `{"p":"${'x'.repeat(4096)}",`);

  /** Compares with JSON.parse, each line after one that is like it, and that the kernel has processed with a template. */
  const expectSameAfterAlike = (alike: string, lines: readonly string[]): void => {
    for (let at = 0; at < lines.length; at += 24) {
      const pairs = lines.slice(at, at + 24).flatMap((line) => [alike, line]);
      // The first line becomes the template, and the second one is processed without it.
      expectSame([alike, alike, ...pairs].map(withPadding));
    }
  };

  const templates = [
    '{"ip":"8.8.8.8","b":1.5,"c":-7,"":"x","d":null}',
    '{ "client" : {"ip": "2a00::1" , "list":[ 1 , "a" , {"x":true} ,[] ]} , "n" : 0.25e3 , "a_key_of_24_bytes_in_all":"y" }\r',
    '{"p":"\\\\b\\"\\u00e9","ip":"8.8.8.8"}',
    '{"a":{"ip":"8.8.8.8","é\\"\\u0041":[{},"é"]},"last":[false,"z"]}',
  ];

  it.each(templates)('is that of JSON.parse for lines like %s with one byte changed', (line) => {
    const bytes = '{}[]:,"\\ \t0159+-.eEnul/\0\x1f\x7f\xff';
    const changed = Array.from(line, (_, at) => [
      line.slice(0, at) + line.slice(at + 1),
      ...Array.from(bytes, (byte) => line.slice(0, at) + byte + line.slice(at)),
      ...Array.from(bytes, (byte) => line.slice(0, at) + byte + line.slice(at + 1)),
    ]).flat();
    const padded = changed.filter((one) => one.includes('{'));
    expect(padded.filter(isAccepted).length).toBeGreaterThan(100);
    expectSameAfterAlike(line, padded);
  });

  it('is that of JSON.parse for scalars at the place of others', () => {
    const digits = [1, 2, 13, 14, 15, 16, 17, 33].map((count) => '1234567890'.repeat(4).slice(-count));
    const numbers = digits.flatMap((run) => [run, `-${run}`, `0${run}`, `1.${run}`, `${run}.5`, `${run}.${run}`]);
    const starts = ['0', '-0', '00', '-', '', '.5', '+1', '0.0', 'true', 'false', 'null', 'nul', 'True', ...numbers];
    const endings = ['', '.', 'e', 'E5', 'e+', 'e-07', '.0e1', '-', 'x', '.5.5', ' ', '"', '\t', '\x80'];
    const scalars = starts.flatMap((start) => endings.map((ending) => start + ending));
    for (const form of [(scalar: string) => `{"a":${scalar},"b":[${scalar}]}`, (scalar: string) => `{"a":${scalar}}`]) {
      expectSameAfterAlike(form('1'), scalars.map(form));
    }
  });

  it('is that of JSON.parse for escapes in strings of a template', () => {
    const bytes = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).filter((byte) => byte !== '\n');
    const escapes = bytes.flatMap((byte) => [`\\${byte}`, ...['', '0', '0a', '0aF'].map((hex) => `\\u${hex}${byte}9`)]);
    const texts = escapes.flatMap((text) => [text, `${'x'.repeat(15)}${text}${'y'.repeat(31)}`]);
    const lines = texts.map((text) => `{"a":"${text}","ip":"8.8.8.8"}`);
    expect(lines.filter(isAccepted).length).toBeGreaterThan(100);
    expectSameAfterAlike('{"a":"","ip":"8.8.8.8"}', lines);
  });

  it('is that of JSON.parse for quotes, escapes and control characters at each place of a vector, in lines of a template', () => {
    const texts = [
      '\\"',
      '"',
      '\\\\',
      '\\\\\\"',
      '\\\\"',
      '\\',
      '\\u12"',
      '\\u00e9',
      '\\z',
      '\t',
      '\\\\'.repeat(40),
      `${'\\\\'.repeat(40)}\\`,
    ];
    const line = (before: number, text: string): string =>
      `{"a":"${'x'.repeat(before)}${text}","ip":"8.8.8.8","b":"c"}`;
    const lines = Array.from({ length: 65 }, (_, before) => texts.map((text) => line(before, text))).flat();
    expect(lines.filter(isAccepted).length).toBe(65 * 5);
    expectSameAfterAlike(line(0, ''), lines);
    expectSame([...lines.filter(isAccepted), ...lines]);
  });

  it('is that of JSON.parse for an escape at each place of a long string', () => {
    for (const text of ['\\z', '\\ ', '\\u12g4', '\\u000', '\\u00', '\\\\', '\\n', '\\u0041']) {
      // No two lines have the same keys, so that none is compared with a template.
      expectSame(
        Array.from({ length: 130 }, (_, before) => `{"${before}":"${'x'.repeat(before)}${text}${'y'.repeat(200)}"}`),
      );
    }
  });

  it('is that of JSON.parse on mutated lines', { timeout: 120_000 + MUTATIONS }, () => {
    const random = randomWords(20_261_122);
    const below = (limit: number): number => random() % limit;
    const seeds = [
      ...placed.filter((line) => isAccepted(line) && line.length < 150),
      '{"time":"2026-01-01T00:00:00.000Z","ip":"8.8.8.8","status":200,"ms":12.25,"bytes":-1.5e-7,"ok":true,"ref":null}',
      '{"ip":"8.8.8.8","n":123456789012345,"m":0.25,"x":1e5,"y":-12.5E-3,"geo":true,"text":"C:\\\\x \\u00e9","a":"b"}',
      '{ "client" : { "ip" : "2a00::1" , "tags" : [ "a\\"b" , "\\u00e9\\\\" , 0.5 , false ] } , "geo" : { "x" : [ ] } }',
      '{"a":{"ip":"8.8.8.8"},"p":"C:\\\\x\\\\y","l":[[1,2],[3,{"b":[]}],{}],"client_geo":1,"n":-0,"e":1E+2,"s":""}',
    ];
    const bytes = '{}[]:,"\\ \t\r0123456789+-.eEtrufalsn/b\0\x1f\x7f\x80\xc3\xa9\xff';
    const mutated = (seed: string): string => {
      let line = seed;
      for (let changes = below(4); changes >= 0; changes--) {
        const at = below(line.length + 1);
        const kind = below(4);
        const end = kind === 0 ? at : at + 1 + (kind === 1 ? below(4) : 0);
        const from = below(line.length + 1);
        const put = kind === 1 ? '' : kind === 3 ? line.slice(from, from + below(8)) : bytes[below(bytes.length)]!;
        line = line.slice(0, at) + put + line.slice(end);
      }
      return line;
    };
    let accepted = 0;
    for (let done = 0; done < MUTATIONS; done += 1000) {
      const lines = Array.from({ length: 1000 }, () => mutated(seeds[below(seeds.length)]!));
      accepted += lines.filter(isAccepted).length;
      expectSame(lines);
    }
    // Both sides are tried.
    expect(accepted).toBeGreaterThan(MUTATIONS / 20);
    expect(accepted).toBeLessThan(MUTATIONS / 2);
    for (let done = 0; done < MUTATIONS / 10; done += 24) {
      const seed = seeds[below(seeds.length)]!;
      const lines = Array.from({ length: 24 }, () => mutated(seed)).filter((line) => line.includes('{'));
      expectSameAfterAlike(seed, lines);
    }
  });
});
