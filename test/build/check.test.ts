/** A release that was merged or compiled wrongly is refused: ipaddr.js and a plain vote check it against the sources. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { checkStoredRelease } from '../../pipeline/checking/check-stage.js';
import { RangeMerger } from '../../pipeline/merging/range-merger.js';
import type { IngestedSource } from '../../pipeline/stage.js';
import { currentReleaseId } from '../../src/database/release.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { buildOnce, manifestOf, writeSources } from '../support/sources.js';

giveFolders();

type Fault = (source: IngestedSource) => IngestedSource;

const CODES = ['AU', 'BR', 'CA', 'DE', 'FR', 'JP'];
const V4 = Array.from({ length: 30 }, (_, i) => `1.${i}.16.0,1.${i}.31.255,${CODES[i % CODES.length]}`);
const V6 = Array.from(
  { length: 30 },
  (_, i) => `2a00:${i}::,2a00:${i}:ffff:ffff:ffff:ffff:ffff:ffff,${CODES[i % CODES.length]}`,
);
const LIMITS = { gates: { maxWrongSentinels: 99 } };

type Kind = 'first' | 'last' | 'country' | 'shift';

/** Returns a fault of one row. */
function faultOf(kind: Kind, family: 4 | 6, row: number): Fault {
  return (source) => {
    const key = `v${family}` as const;
    const { first, last, value, ...rest } = source[key];
    const columns = { ...rest, first: first.slice(), last: last.slice(), value: value.slice() };
    const words = family === 4 ? 1 : 4;
    const end = words * (row + 1);
    if (kind === 'first') columns.first[end - 1]! += 1;
    else if (kind === 'last') columns.last[end - 1]! -= 1;
    else if (kind === 'country') columns.value[row] = (value[row]! + 1) % source.codes.length;
    else for (const column of [columns.first, columns.last]) column.copyWithin(end - 2, end - 4, end - 2);
    if (kind === 'shift') columns.first.set(columns.first.subarray(end - 2, end), end - 4);
    return { ...source, [key]: columns };
  };
}

/** Builds from one source, with a fault between the sources and the release. */
async function buildWith(fault: Fault, options = {}) {
  const sources = writeSources(dir, { own: [...V4, ...V6] }, LIMITS);
  // Only the merge gets the fault, so the range file and the mirror are wrong alike.
  const { addSource } = RangeMerger.prototype;
  const spy = vi.spyOn(RangeMerger.prototype, 'addSource').mockImplementation(function (
    this: RangeMerger,
    source,
    ...rest
  ) {
    return addSource.call(this, fault(source), ...rest);
  });
  try {
    return await buildOnce(dataDir, sources, { asOf: '2026-01-01', ...options });
  } finally {
    spy.mockRestore();
  }
}

const none: Fault = (source) => source;

describe('a release that was merged wrongly', () => {
  it.each<[string, Kind, 4 | 6, RegExp]>([
    [
      'a bound off by one',
      'first',
      4,
      /own\.csv, line 4 \(1\.3\.16\.0 – 1\.3\.31\.255\): at 1\.3\.16\.0 the release has unallocated, but the rows of the sources give DE/,
    ],
    ['another country', 'country', 4, /line 4 .* the release has FR, but the rows of the sources give DE/],
    ['an IPv6 row shifted by 64 bits', 'shift', 6, /line 34 .*at 2a00:3:: the release has unallocated, but .* give DE/],
  ])('is refused: %s', async (_what, kind, family, message) => {
    const { outcome, exit, message: text } = await buildWith(faultOf(kind, family, 3));
    expect([outcome, exit]).toEqual(['E_REFUSED', 3]);
    expect(text).toMatch(message);
    expect(currentReleaseId(dataDir)).toBe(undefined);
  });

  it('is refused for every fault that changes a row, and found by verify --deep', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom<Kind>('first', 'last', 'country', 'shift'),
        fc.constantFrom<4 | 6>(4, 6),
        fc.nat(29),
        async (kind, family, row) => {
          rmSync(dataDir, { recursive: true, force: true });
          await buildWith(faultOf(kind === 'shift' && family === 4 ? 'last' : kind, family, row), { force: true });
          const line = `own.csv, line ${family === 4 ? row + 1 : row + 31} `;
          const message = `a check by ipaddr.js disagrees: ${line}`;
          const { refusals } = manifestOf(dataDir).forced!;
          expect(refusals).toContainEqual({ gate: 'check', message: expect.stringContaining(message) });
          const { disagreements } = await checkStoredRelease(dataDir, join(dataDir, 'current'));
          expect(disagreements).toContainEqual(expect.stringContaining(line));
        },
      ),
      { numRuns: Math.ceil(Number(process.env.FUZZ_RUNS ?? 400) / 50) },
    );
  });
});

describe('ipatlas verify --deep', () => {
  const verify = () => ipatlas(['verify', '--deep', '--data', dataDir]);

  it('agrees with a release at all rows of its sources', async () => {
    await buildWith(none);
    const { code, stderr } = await verify();
    expect([code, stderr]).toEqual([0, expect.stringContaining('agree with the release at 60 rows of the sources')]);
  });

  it('finds what was published by force, with file and line', async () => {
    await buildWith(faultOf('last', 6, 7), { force: true });
    expect((await ipatlas(['verify', '--data', dataDir])).code).toBe(0);
    const { code, stderr } = await verify();
    expect([code, stderr]).toEqual([
      5,
      expect.stringMatching(/own\.csv, line 38 .*the release has unallocated, but .* give BR/),
    ]);
  });

  it('compares the kinds of networks with their lists', async () => {
    const source = (id: string, more: object) => ({ id, license: 'CC0-1.0', fetch: { file: `${id}.csv` }, ...more });
    const lists = [source('exits', { format: 'cidr-list', network: { kind: 'tor', operator: 'tor' } })];
    const sources = [source('own', { format: 'ip-location-db' }), ...lists];
    const file = writeSources(dir, { own: V4, exits: ['1.3.16.0/24', '2a00:3::7'] }, { ...LIMITS, sources });
    expect(await buildOnce(dataDir, file, { asOf: '2026-01-01' })).toMatchObject({ outcome: 'published' });
    const check = () => checkStoredRelease(dataDir, join(dataDir, 'current'));
    expect(await check()).toMatchObject({ rows: 32, disagreements: [] });
    // As if the release had been made of the list of another operator.
    const path = join(dataDir, 'current', 'manifest.json');
    writeFileSync(path, readFileSync(path, 'utf8').replace('"operator": "tor"', '"operator": "other"'));
    expect((await check()).disagreements.slice(0, 2)).toEqual([
      'exits.csv, line 1 (1.3.16.0/24): at 1.3.16.0 the release has [null,"tor","tor"], but the rows of the sources give [null,"tor","other"]',
      'exits.csv, line 1 (1.3.16.0/24): at 1.3.16.255 the release has [null,"tor","tor"], but the rows of the sources give [null,"tor","other"]',
    ]);
  });

  it('says that the sources are not stored', async () => {
    await buildWith(none);
    rmSync(join(dataDir, 'cache'), { recursive: true });
    const { code, stderr } = await verify();
    expect([code, stderr]).toEqual([5, expect.stringContaining('own.csv, which 2026-01-01-')]);
  });
});
