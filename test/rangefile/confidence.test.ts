/** The confidence of ranges: in the range file, in its view for results, and in what the commands and the library return. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { BinaryEngine } from '../../src/database/binary-engine.js';
import { openDatabase } from '../../src/database/database.js';
import { withConfidence } from '../../src/rangefile/confidence.js';
import { decodeRangeFile, type RangeFile } from '../../src/rangefile/reader.js';
import { verifyRangeFile } from '../../src/rangefile/verifier.js';
import { encodeRangeFile } from '../../src/rangefile/writer.js';
import { jsonLines } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { buildOnce, writeSources } from '../support/sources.js';

const RECORDS = [
  { kind: 'none', reason: 'unallocated' },
  { kind: 'country', code: 'DE', name: 'Germany', isEu: true },
  { kind: 'country', code: 'CH', name: 'Switzerland', isEu: false },
] as const;

/** Each file has two indexes of 65,536 entries, which take most of the time. */
const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 400) / 20);

/** Encodes IPv4 ranges that begin at multiples of 2^24, and one IPv6 range. */
function encode(ranges: readonly { record: number; percent: number }[], hasConfidence = true): Buffer {
  const first = Uint32Array.from(ranges, (_range, index) => index * 2 ** 24);
  const v4 = {
    family: 4 as const,
    count: ranges.length,
    first,
    value: Uint16Array.from(ranges, ({ record }) => record),
  };
  const v6 = { family: 6 as const, count: 1, first: new Uint32Array(4), value: Uint16Array.of(0) };
  const confidence = { v4: Uint8Array.from(ranges, ({ percent }) => percent), v6: Uint8Array.of(100) };
  return encodeRangeFile({ asOf: '2026-01-01', v4, v6, records: RECORDS, ...(hasConfidence && { confidence }) });
}

const decode = (bytes: Buffer): RangeFile => decodeRangeFile(bytes, 'test.ipr');

const ranges = fc
  .array(fc.record({ record: fc.nat(2), percent: fc.nat(100) }), { minLength: 1, maxLength: 200 })
  // Adjacent ranges never have the same record.
  .map((list) => list.filter((range, index) => index === 0 || range.record !== list[index - 1]!.record));

describe('a range file', () => {
  it('gives each address the confidence of its range, and null without a country', () => {
    fc.assert(
      fc.property(ranges, (list) => {
        const file = decode(encode(list));
        verifyRangeFile(file);
        const plain = new BinaryEngine(file);
        const engine = new BinaryEngine(withConfidence(file));
        list.forEach(({ record, percent }, index) => {
          for (const address of [index * 2 ** 24, index * 2 ** 24 + 77]) {
            const result = plain.lookupIPv4(address);
            expect(Object.keys(result)).toEqual(['country', 'country_code', 'is_eu', 'reason']);
            const expected = RECORDS[record]!.kind === 'country' ? percent : null;
            expect(engine.lookupIPv4(address)).toEqual({ ...result, confidence: expected });
          }
        });
      }),
      { numRuns: RUNS },
    );
  });

  it('without a confidence has the minor version 0, and cannot give one', () => {
    const bytes = encode([{ record: 1, percent: 50 }], false);
    expect(bytes.readUInt16LE(10)).toBe(0);
    expect(() => withConfidence(decode(bytes))).toThrow(expect.objectContaining({ code: 'E_USAGE' }));
    expect(encode([{ record: 1, percent: 50 }]).readUInt16LE(10)).toBe(1);
  });

  it('is the same file apart from the confidence', () => {
    fc.assert(
      fc.property(ranges, (list) => {
        const [a, b] = [true, false].map((has) => decode(encode(list, has))) as [RangeFile, RangeFile];
        expect([...a.record4]).toEqual([...b.record4]);
        expect(a.records).toEqual(b.records);
      }),
      { numRuns: RUNS },
    );
  });

  it('has no bytes for a confidence of 100 % in every range', () => {
    const list = Array.from({ length: 200 }, (_, index) => ({ record: 1 + (index % 2), percent: 100 }));
    const full = encode(list);
    expect(full.length).toBeLessThan(encode(list, false).length + 100);
    const file = decode(full);
    verifyRangeFile(file);
    expect([...file.confidence4!]).toEqual(list.map(() => 100));
    expect([...file.confidence6!]).toEqual([100]);
    const almost = decode(encode(list.map((range, index) => ({ ...range, percent: index === 199 ? 99 : 100 }))));
    expect(almost.confidence4![199]).toBe(99);
  });

  it('with a confidence above 100 % is damaged', () => {
    const file = decode(encode([{ record: 1, percent: 101 }]));
    expect(() => verifyRangeFile(file)).toThrow(/IPv4 range 0 has a confidence above 100 %/);
  });

  it('with one column of another length is damaged', () => {
    const content = { asOf: '2026-01-01', records: RECORDS };
    const v4 = { family: 4 as const, count: 1, first: Uint32Array.of(0), value: Uint16Array.of(1) };
    const v6 = { family: 6 as const, count: 1, first: new Uint32Array(4), value: Uint16Array.of(0) };
    for (const confidence of [
      { v4: Uint8Array.of(1, 2), v6: Uint8Array.of(1) },
      { v4: Uint8Array.of(1), v6: Uint8Array.of(1, 2) },
    ]) {
      expect(() => decode(encodeRangeFile({ ...content, v4, v6, confidence }))).toThrow(/columns of confidence/);
    }
  });
});

describe('a release', () => {
  let dir: string;
  let byEvidence: string;
  let byPriority: string;
  beforeAll(async () => {
    dir = temporaryDir();
    const files = {
      a: ['30.0.0.0,30.0.0.255,DE', '30.0.1.0,30.0.1.255,FR', '2a00::,2a00:ffff::,DE'],
      b: ['30.0.0.0,30.0.0.255,DE', '30.0.1.0,30.0.1.255,NL', '2a00:1::,2a00:2::,NL'],
    };
    const gates = { maxWrongSentinels: 99 };
    for (const merge of ['evidence', 'priority']) {
      const sources = writeSources(join(dir, merge), files, { merge, gates });
      expect((await buildOnce(join(dir, merge, 'data'), sources)).outcome).toBe('published');
    }
    byEvidence = join(dir, 'evidence', 'data');
    byPriority = join(dir, 'priority', 'data');
  });

  const EXPECTED: [ip: string, code: string | null, confidence: number | null][] = [
    ['30.0.0.1', 'DE', 100],
    ['30.0.1.1', 'FR', 50],
    ['10.0.0.1', null, null],
    ['2a00::1', 'DE', 50],
    ['2a00:1::1', 'DE', 50],
    ['2002:1e00:101::1', 'FR', 50],
    ['::ffff:30.0.1.1', 'FR', 50],
  ];

  it.each(['binary', 'sqlite'] as const)('has a confidence for the library, engine %s', (engine) => {
    const database = openDatabase(byEvidence, { engine, confidence: true });
    for (const [ip, code, confidence] of EXPECTED) {
      expect(database.lookupWithReason(ip)).toMatchObject({ country_code: code, confidence });
      expect(Object.keys(database.lookup(ip)!)).toEqual(['ip', 'country', 'country_code', 'is_eu']);
    }
    database.close();
    const plain = openDatabase(byEvidence, { engine });
    expect(plain.lookupWithReason('30.0.1.1')).not.toHaveProperty('confidence');
    plain.close();
    expect(() => openDatabase(byPriority, { engine, confidence: true })).toThrow(/has no confidence/);
  });

  it.each(['binary', 'sqlite'])('has a confidence for lookup, engine %s', async (engine) => {
    const args = ['lookup', '--confidence', '--engine', engine, '--data', byEvidence, '30.0.1.1', '10.0.0.1', 'x'];
    const { code, stdout } = await ipatlas(args);
    expect(code).toBe(4);
    expect(jsonLines(stdout)).toEqual([
      { ip: '30.0.1.1', country: 'France', country_code: 'FR', is_eu: true, confidence: 50 },
      { ip: '10.0.0.1', country: null, country_code: null, is_eu: false, confidence: null },
      { ip: 'x', error: 'invalid ip' },
    ]);
  });

  const cell = (value: unknown): string => String(value ?? '');
  it.each<
    [string, string[], (ip: string) => string, (ip: string, code: string | null, percent: number | null) => string]
  >([
    [
      'JSON lines',
      [],
      (ip) => `{"ip":"${ip}"}`,
      (ip, code, percent) => JSON.stringify({ ip, geo: { country_code: code, confidence: percent } }),
    ],
    ['lists', ['--format', 'list'], (ip) => ip, (ip, code, percent) => `${ip}\t${cell(code)}\t${cell(percent)}`],
    [
      'tables',
      ['--format', 'csv', '--no-header', '--field', '1'],
      (ip) => `${ip},x`,
      (ip, code, percent) => `${ip},x,${cell(code)},${cell(percent)}`,
    ],
  ])('has a confidence for enrich: %s', async (_what, flags, input, output) => {
    const args = ['enrich', '--add', 'country_code,confidence', '--jobs', '1', '--data', byEvidence, ...flags];
    const { code, stdout, stderr } = await ipatlas(args, {
      input: `${EXPECTED.map(([ip]) => input(ip)).join('\n')}\n`,
    });
    expect([code, stdout], stderr).toEqual([0, `${EXPECTED.map((row) => output(...row)).join('\n')}\n`]);
  });

  it('has a confidence for enrich: a JSON document', async () => {
    const path = join(dir, 'items.json');
    writeFileSync(path, JSON.stringify(EXPECTED.map(([ip]) => ({ ip }))));
    const args = ['enrich', '--add', 'country_code,confidence', '--format', 'json', '--data', byEvidence, path];
    const { code, stdout } = await ipatlas(args);
    expect(code).toBe(0);
    const items = EXPECTED.map(([ip, code, confidence]) => ({ ip, geo: { country_code: code, confidence } }));
    expect(JSON.parse(stdout)).toEqual(items);
  });

  it('without a confidence is a clear error', async () => {
    const enrich = await ipatlas(['enrich', '--add', 'confidence', '--data', byPriority], { input: '' });
    expect([enrich.code, enrich.stderr]).toEqual([
      2,
      expect.stringMatching(/has no confidence: its sources were merged/),
    ]);
    expect((await ipatlas(['lookup', '--confidence', '30.0.0.1', '--data', byPriority])).code).toBe(2);
  });
});
