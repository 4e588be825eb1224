/** Who announced an address on a past day. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { DAY_MS, dayOf } from '../../src/day.js';
import { openArchive } from '../../src/history/archive.js';
import { partitionAt } from '../../src/history/day.js';
import { openDatabase } from '../../src/history/open.js';
import { memberPeriodsOf } from '../../src/history/periods.js';
import type { NetworkRecord } from '../../src/rangefile/layout.js';
import { NETWORKS } from '../../src/rangefile/partitions.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import { appDeps, KEY, portOf, startServer } from '../support/api.js';
import { ipatlas } from '../support/in-process.js';
import type { NetworkBlock } from '../support/networks.js';
import { country, publishBlocks, temporaryDir } from '../support/release.js';
import { randomFrom } from '../support/seed.js';
import { SIZE } from '../support/tiny-space.js';
import { changed, EMPTY_WORLD, layerOf, publish, SPACES, START, type World } from './support.js';

describe('the archive of networks', () => {
  /** Networks get other names from time to time. */
  const recordsOf = (night: number): NetworkRecord[] => [
    { kind: 'none', reason: 'unannounced' },
    ...[1, 2, 3, 4, 5].map((asn) => ({ kind: 'network' as const, asn, name: `Network ${asn} of ${night >> 3}` })),
  ];
  const textOf = (record: NetworkRecord): string =>
    record.kind === 'network' ? `${record.asn} ${record.name}` : record.kind;

  it('answers every day as full copies do, renamed networks and nights without networks included', () => {
    const dataDir = temporaryDir();
    const random = randomFrom(3);
    const truth: { day: string; world: World; records: NetworkRecord[] | undefined }[] = [];
    let world = EMPTY_WORLD;
    for (let night = 0; night < 40; night++) {
      world = changed(world, random);
      const records = random() < 0.1 ? undefined : recordsOf(night);
      const now = START + night * DAY_MS;
      const networks = records && { records, v4: layerOf(4, world.v4), v6: layerOf(6, world.v6) };
      publish(dataDir, { release: `r${night}`, world, now, networks });
      truth.push({ day: dayOf(now), world, records });
    }
    const archive = openArchive(dataDir, NETWORKS);
    expect(archive.entries.filter(({ kind }) => kind === 'changes').length).toBeGreaterThan(15);
    const offsets = Array.from({ length: SIZE }, (_, offset) => offset);
    const tracked = offsets.slice(0, 8);
    const periods = tracked.map((offset) =>
      memberPeriodsOf(archive, { family: 4, words: Uint32Array.from(SPACES[4].place(offset)) }, NETWORKS),
    );
    for (const { day, world, records } of truth) {
      const file = partitionAt(dataDir, day, NETWORKS);
      expect(file === undefined).toBe(records === undefined);
      if (file === undefined || records === undefined) continue;
      const found = {
        v4: offsets.map((offset) => file.record4[findIPv4(file, SPACES[4].place(offset)[0]! | 0)]!),
        v6: offsets.map((offset) => file.record6[findIPv6(file, Uint32Array.from(SPACES[6].place(offset)))]!),
      };
      for (const family of ['v4', 'v6'] as const) {
        expect(found[family].map((record) => textOf(file.records[record]!))).toEqual(
          world[family].map((value) => textOf(records[value]!)),
        );
      }
      for (const offset of tracked) {
        const record = records[world.v4[offset]!]!;
        const { asn, name } = record.kind === 'network' ? record : { asn: null, name: null };
        const period = periods[offset]!.find(({ from, to }) => from <= day && (to === null || day <= to));
        expect([day, period]).toEqual([day, expect.objectContaining({ asn, as_name: name })]);
      }
    }
  });
});

describe('three releases', () => {
  const BLOCKS: [string, ReturnType<typeof country>][] = [['193.0.0.0/16', country('NL', 'Netherlands', true)]];
  const NIGHTS: [day: string, networks: NetworkBlock[]][] = [
    ['2026-03-01', [['193.0.0.0/21', 3333, 'RIPE NCC']]],
    ['2026-03-02', []],
    ['2026-03-03', [['193.0.0.0/22', 64496, 'Other']]],
  ];
  let dataDir: string;
  const run = (...args: string[]) => ipatlas([...args, '--data', dataDir]);
  beforeAll(async () => {
    dataDir = temporaryDir();
    vi.useFakeTimers({ toFake: ['Date'] });
    for (const [day, networks] of NIGHTS) {
      vi.setSystemTime(`${day}T12:00:00Z`);
      await publishBlocks(dataDir, BLOCKS, day, 730, networks);
    }
  });
  afterEach(() => void vi.setSystemTime('2026-03-05T12:00:00Z'));
  afterAll(() => {
    vi.useRealTimers();
  });

  const ANSWERS: [day: string, asn: number | null, name: string | null, network: string][] = [
    ['2026-03-01', 3333, 'RIPE NCC', '193.0.0.0/21'],
    ['2026-03-02', null, null, '193.0.0.0/16'],
    ['2026-03-03', 64496, 'Other', '193.0.0.0/22'],
    ['2026-03-04', 64496, 'Other', '193.0.0.0/22'],
    ['2026-03-05', 64496, 'Other', '193.0.0.0/22'],
  ];
  it.each(ANSWERS)('%s: lookup, enrich, the library and the API', async (day, asn, as_name, network) => {
    const expected = { ip: '193.0.0.1', country_code: 'NL', asn, as_name, network };
    const fields = ['country_code', 'asn', 'as_name', 'network'] as const;
    const looked = await run('lookup', '193.0.0.1', '--at', day, '--add', fields.join());
    expect(JSON.parse(looked.stdout)).toEqual(expected);
    expect(openDatabase(dataDir, { at: day }).fields(fields)('193.0.0.1')).toEqual(expected);
    const input = join(dataDir, 'input.csv');
    writeFileSync(input, '193.0.0.1\n');
    const flags = ['--format', 'csv', '--no-header', '--field', '1', '--at', day];
    const enriched = await run('enrich', input, ...flags, '--add', 'asn,as_name');
    expect(enriched.stdout).toBe(`193.0.0.1,${asn ?? ''},${as_name ?? ''}\n`);
    const filtered = await run('filter', input, ...flags, '--asn', '3333');
    expect([filtered.code, filtered.stdout]).toEqual(asn === null ? [5, ''] : [0, asn === 3333 ? '193.0.0.1\n' : '']);
    const server = await startServer(appDeps(dataDir, {}));
    const headers = { 'X-API-Key': KEY };
    const url = `http://127.0.0.1:${portOf(server)}/api/lookup/193.0.0.1?at=${day}&include=asn,as_name,network`;
    const included = await (await fetch(url, { headers })).json();
    await server.close();
    expect(included).toEqual({ ...expected, country: 'Netherlands', is_eu: true });
  });

  it('history --networks has the periods', async () => {
    const { stdout } = await run('history', '--networks', '--json', '193.0.0.1');
    const lines = stdout.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ from: '2026-03-01', to: '2026-03-01', asn: 3333, as_name: 'RIPE NCC' }),
      { ip: '193.0.0.1', from: '2026-03-02', to: '2026-03-02', error: expect.stringMatching(/published without/) },
      expect.objectContaining({ from: '2026-03-03', to: null, asn: 64496, as_name: 'Other' }),
    ]);
    const shown = await run('history', '--networks', '193.0.0.1', 'x');
    expect(shown).toMatchObject({ code: 4, stdout: expect.stringMatching(/^IP +FROM +TO +ASN +NAME +RELEASE\n/) });
    expect(await run('history', '--networks', '193.0.0.0/21')).toMatchObject({ code: 2 });
  });

  it('diff --networks compares two days', async () => {
    const { code, stdout } = await run('diff', '2026-03-01', '2026-03-03', '--networks', '--csv');
    expect([code, stdout.split('\n').filter((line) => line.includes('193.0.'))]).toEqual([
      0,
      [
        expect.stringMatching(/^4,193\.0\.0\.0,193\.0\.3\.255,.*AS3333.*AS64496/),
        expect.stringMatching(/^4,193\.0\.4\.0,193\.0\.7\.255,/),
      ],
    ]);
    expect(await run('diff', '2026-03-02', '2026-03-03', '--networks')).toMatchObject({ code: 5 });
    expect(await run('diff', '2026-03-01', '2026-03-03', '--labels')).toMatchObject({ code: 2 });
  });

  it.each([
    [['lookup', '193.0.0.1', '--at', '2026-03-01', '--confidence'], /history has neither/],
    [['lookup', '193.0.0.1', '--at', '2026-03-01', '--add', 'site'], /--add is "site"/],
    [['filter', '--at-field', 'day', '--asn', '1'], /the networks are not known for each day/],
    [['enrich', '--at-field', 'day', '--add', 'asn'], /asn is not known for each day/],
  ])('%j is refused', async (args, message) => {
    expect(await run(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  });

  it('a damaged entry makes its days refuse, and verify names it; the countries of these days stay', async () => {
    const folder = join(dataDir, 'history', 'networks');
    const [first] = readdirSync(folder).sort();
    const content = readFileSync(join(folder, first!));
    writeFileSync(join(folder, first!), content.subarray(1));
    const lookup = (...more: string[]) => run('lookup', '193.0.0.1', '--at', '2026-03-01', ...more);
    expect(await lookup('--add', 'asn')).toMatchObject({ code: 5, stdout: '' });
    expect(await lookup()).toMatchObject({ code: 0 });
    expect(await run('verify')).toMatchObject({ code: 5, stderr: expect.stringContaining(first!) });
    rmSync(join(folder, first!));
    writeFileSync(join(folder, first!), content);
    expect(await run('verify')).toMatchObject({ code: 0 });
  });
});
