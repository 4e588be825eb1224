/** Compares the kernel's address parser, search and tables with the library's. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { formatIPv4, formatIPv6, formatIPv6Full } from '../../src/address/format.js';
import { recordResult } from '../../src/database/binary-engine.js';
import { type Database, openDatabase } from '../../src/database/database.js';
import { RANGE_FILE } from '../../src/database/release.js';
import { Kernel, Slot } from '../../src/enrich/kernel/kernel.js';
import { layOut } from '../../src/enrich/kernel/layout.js';
import { MemoryPlan } from '../../src/enrich/kernel/memory-plan.js';
import { kernelModule } from '../../src/enrich/kernel/module.js';
import { type EnrichOptions, parseFields } from '../../src/enrich/options.js';
import { CountrySummary } from '../../src/enrich/query.js';
import type { RangeRecord } from '../../src/rangefile/layout.js';
import { decodeRangeFile, openRangeFile, type RangeFile } from '../../src/rangefile/reader.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import { encodeRangeFile } from '../../src/rangefile/writer.js';
import { parseAdd } from '../support/add.js';
import { ADDRESSES, NOT_ADDRESSES } from '../support/nasty-addresses.js';
import { smallRelease } from '../support/release.js';

/** Times each property is tried; set it high for a long soak. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 12) * 5;

/** Returns a kernel for a file, which is copied into its memory, and a slot; `plan` is of the memory that the file is in, if it is not. */
function kernelFor(file: RangeFile, options: EnrichOptions, chunkBytes: number, plan?: MemoryPlan) {
  const layout = layOut({
    ...{ plan, file, options, threadCount: 1, slotCount: 1, chunkBytes },
    maxLineBytes: 1024,
    keepsRejects: false,
  });
  return { layout, kernel: new Kernel(layout, kernelModule(layout)), slot: new Slot(layout, layout.slots[0]!) };
}

/** Returns a function that looks one address up and returns its record, which a query counts; -1 if it is none. */
function recordFinder(file: RangeFile, plan?: MemoryPlan): (text: string) => number {
  const query = { kind: 'summarize' as const, summary: new CountrySummary() };
  const options = { fields: parseFields([]), add: parseAdd(undefined), onInvalid: 'keep' as const, query };
  const { layout, kernel, slot } = kernelFor(file, options, 1024, plan);
  const counts = new BigUint64Array(layout.memory.buffer, layout.recordCounts![0], file.records.length);
  return (text) => {
    const line = Buffer.from(JSON.stringify({ ip: text }));
    slot.input.fill(0x31); // what follows the line must not matter: here, more digits
    slot.input.set(line);
    slot.begin(line.length);
    kernel.run(slot.place);
    const record = counts.indexOf(1n);
    counts.fill(0n);
    return record;
  };
}

/** Looks addresses up in one run, so that the kernel searches many at a time; returns their reasons. */
function reasonsOf(texts: readonly string[], file: RangeFile, plan?: MemoryPlan): string[] {
  const lines = Buffer.from(texts.map((ip) => `{"ip":"${ip}"}\n`).join(''));
  const options = { fields: parseFields([]), add: parseAdd('reason'), onInvalid: 'keep' as const };
  const { kernel, slot } = kernelFor(file, options, lines.length, plan);
  slot.input.set(lines);
  slot.begin(lines.length);
  let output = '';
  for (let isDone = false; !isDone; ) {
    slot.clear();
    isDone = kernel.run(slot.place);
    output += Buffer.from(slot.output).toString();
  }
  return output.split('\n', texts.length).map((line) => JSON.parse(line).geo.reason);
}

/** Returns a file that is read into the memory of a kernel, and the plan of it. */
function fileInPlace(content: Buffer, isShared: boolean): [RangeFile, MemoryPlan] {
  const plan = new MemoryPlan(isShared);
  const bytes = plan.allocate(content.length);
  content.copy(bytes);
  return [decodeRangeFile(bytes, 'test'), plan];
}

describe('the address parser', () => {
  let dataDir: string;
  let database: Database;
  let file: RangeFile;
  let recordOf: (text: string) => number;
  beforeAll(async () => {
    dataDir = await smallRelease();
    database = openDatabase(dataDir);
    file = openRangeFile(join(database.dir, RANGE_FILE));
    recordOf = recordFinder(file);
  });

  it.each([false, true])(
    "finds the same records if the file is read into the kernel's memory, shared: %s",
    (isShared) => {
      const inPlace = recordFinder(...fileInPlace(readFileSync(file.path), isShared));
      for (const text of [
        '8.8.8.8',
        '1.0.0.0',
        '255.255.255.255',
        '::',
        '2001:db8::1',
        '2a00:1450::1',
        'ffff::',
        'x',
      ]) {
        expect(inPlace(text), text).toBe(recordOf(text));
      }
    },
  );

  it('refuses a memory that is too large', () => {
    const layout = () =>
      layOut({
        file: file,
        options: { fields: parseFields([]), add: parseAdd(undefined), onInvalid: 'keep' },
        threadCount: 1,
        slotCount: 3_000,
        chunkBytes: 262_144,
        maxLineBytes: 262_144,
        keepsRejects: false,
      });
    expect(layout).toThrow(/this would take 2\.\d GiB, and 2 is the most; use fewer jobs/);
  });

  function expectSame(text: string): void {
    const result = database.lookupWithReason(text);
    const record = recordOf(text);
    const answer = record < 0 ? undefined : { ip: result?.ip, ...recordResult(file.records[record]!) };
    expect(answer, JSON.stringify(text)).toEqual(result);
  }

  const texts = [...NOT_ADDRESSES, ...ADDRESSES];
  it.each(texts)('%j', expectSame);

  it('agrees with the TypeScript parser on addresses in every spelling', () => {
    const words = fc.tuple(fc.nat(0xffffffff), fc.nat(0xffffffff), fc.nat(0xffffffff), fc.nat(0xffffffff));
    const blocks = fc.constantFrom<number[]>(
      [],
      [0x20020000],
      [0x0064ff9b, 0, 0],
      [0x20010000],
      [0, 0, 0xffff],
      [0x2a000001],
    );
    const styles = fc.constantFrom<(w: number[]) => string>(
      (w) => formatIPv4(w[0]!),
      (w) => formatIPv6(w[0]!, w[1]!, w[2]!, w[3]!),
      (w) => formatIPv6Full(Uint32Array.from(w)).toUpperCase(),
      (w) => `${formatIPv6Full(Uint32Array.from(w)).slice(0, 29)}:${formatIPv4(w[3]!)}`,
      (w) => formatIPv6(w[0]!, 0, 0, w[3]!),
    );
    fc.assert(
      fc.property(words, blocks, styles, (random, block, style) =>
        expectSame(style([...block, ...random.slice(block.length)])),
      ),
      { numRuns: RUNS },
    );
  });

  it('agrees with the TypeScript parser on text that is nearly an address', () => {
    const start = fc.constantFrom(...texts);
    const change = fc.tuple(
      fc.nat(),
      fc.constantFrom('put', 'leave', 'replace'),
      fc.constantFrom(...'0123456789abcfF.::g/ "\\é'),
    );
    fc.assert(
      fc.property(start, fc.array(change, { maxLength: 4 }), (text, changes) => {
        expectSame(
          changes.reduce((now, [place, kind, character]) => {
            const at = place % (now.length + 1);
            return now.slice(0, at) + (kind === 'leave' ? '' : character) + now.slice(kind === 'put' ? at : at + 1);
          }, text),
        );
      }),
      { numRuns: RUNS },
    );
  });

  it('agrees with the TypeScript parser on any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789abcdef:.') })), expectSame),
      { numRuns: RUNS },
    );
  });
});

/** Returns start addresses of ranges: zero, then sums of steps that may be close together or far apart. */
function startsOf(steps: [bits: number, factor: number][], limit: bigint): bigint[] {
  const starts = new Set([0n]);
  let last = 0n;
  for (const [bits, factor] of steps) {
    last += BigInt(factor) << BigInt(bits);
    if (last >= limit) last %= limit;
    starts.add(last);
  }
  return [...starts].sort((a, b) => (a < b ? -1 : 1));
}

function wordsOf(address: bigint, words: number): number[] {
  return Array.from({ length: words }, (_, index) =>
    Number((address >> BigInt(32 * (words - 1 - index))) & 0xffff_ffffn),
  );
}

function columnsOf(family: 4 | 6, starts: bigint[], recordCount: number) {
  const first = Uint32Array.from(starts.flatMap((start) => wordsOf(start, family === 4 ? 1 : 4)));
  return { family, count: starts.length, first, value: Uint16Array.from(starts, (_, index) => index % recordCount) };
}

/** Returns the addresses on both sides of each start, and the last address. */
function probesOf(starts: bigint[], limit: bigint): bigint[] {
  return [...starts.flatMap((start) => [start - 1n, start, start + 1n]), limit - 1n].filter(
    (at) => at >= 0n && at < limit,
  );
}

describe('the search', () => {
  const records: RangeRecord[] = Array.from({ length: 5 }, (_, index) => ({ kind: 'none', reason: `r${index}` }));

  function expectSearch(starts4: bigint[], starts6: bigint[]): void {
    const v4 = columnsOf(4, starts4, records.length);
    const v6 = columnsOf(6, starts6, records.length);
    // Both families have to use all records, so that their numbers stay as they are.
    const content = encodeRangeFile({ asOf: '2026-01-01', v4, v6, records });
    const file = decodeRangeFile(content, 'test');
    const texts: string[] = [];
    const reasons: string[] = [];
    const add = (text: string, record: number): void => {
      texts.push(text);
      reasons.push((file.records[record] as { reason: string }).reason);
    };
    for (const address of probesOf(starts4, 1n << 32n)) {
      const number = Number(address);
      add(formatIPv4(number), file.record4[findIPv4(file, number)]!);
    }
    for (const address of probesOf(starts6, 1n << 128n)) {
      if (address >> 32n === 0xffffn) continue; // an IPv4 address
      const [a, b, c, d] = wordsOf(address, 4) as [number, number, number, number];
      add(formatIPv6(a, b, c, d), file.record6[findIPv6(file, Uint32Array.of(a, b, c, d))]!);
    }
    // In another order, so that neighbors are not looked up together.
    const order = texts.map((_, index) => index).sort((a, b) => ((a * 7919) % 101) - ((b * 7919) % 101));
    const shuffled = order.map((index) => texts[index]!);
    const expected = order.map((index) => reasons[index]);
    expect(reasonsOf(shuffled, file)).toEqual(expected);
    expect(reasonsOf(shuffled, ...fileInPlace(content, false))).toEqual(expected);
  }

  it('agrees with the reader at both ends of every range, for any ranges', () => {
    const steps = (bits: number) =>
      fc.array(fc.tuple(fc.nat(bits - 1), fc.integer({ min: 1, max: 300 })), { minLength: 1, maxLength: 150 });
    fc.assert(
      fc.property(steps(32), steps(128), (steps4, steps6) =>
        expectSearch(startsOf(steps4, 1n << 32n), startsOf(steps6, 1n << 128n)),
      ),
      { numRuns: Math.ceil(RUNS / 50) },
    );
  });

  it.each([1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 4097])(
    'agrees with the reader for %i crowded ranges with the same first half',
    (count) => {
      const crowded4 = Array.from({ length: count }, (_, index) =>
        index === 0 ? 0n : 0x0808_0000n + 3n * BigInt(index),
      );
      for (const spread of [0n, 62n, 90n]) {
        const at = (index: number): bigint => (0x2001_0db8n << 96n) + ((5n * BigInt(index)) << spread);
        expectSearch(
          crowded4,
          Array.from({ length: count }, (_, index) => (index === 0 ? 0n : at(index))),
        );
      }
    },
  );
});
