import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Explanation, explain } from '../../pipeline/explain/explain.js';
import { openDatabase } from '../../src/database/database.js';
import { currentReleaseId, MANIFEST_FILE, MIRROR_FILE, namedRelease, RANGE_FILE } from '../../src/database/release.js';
import { openMirror } from '../../src/mirror/reader.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { buildOnce, manifestOf, writeSources } from '../support/sources.js';

let dir: string;
let dataDir: string;
beforeEach(() => {
  dir = temporaryDir();
  dataDir = join(dir, 'data');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const GATES = { maxWrongSentinels: 99 };

interface Source {
  id: string;
  rows: string[];
  lineage?: string;
  kind?: string;
  space?: string[];
  asns?: number[];
  format?: string;
}

/** Builds from sources, and returns the outcome. */
async function build(sources: Source[], merge: string | null = 'evidence') {
  const files = Object.fromEntries(sources.map(({ id, rows }) => [id, rows]));
  const entries = sources.map(({ rows, ...keys }) => ({
    ...{ license: 'CC0-1.0', fetch: { file: `${keys.id}.csv` }, format: 'ip-location-db' },
    ...keys,
  }));
  const file = writeSources(dir, files, { gates: GATES, sources: entries, ...(merge && { merge }) });
  return buildOnce(dataDir, file, { asOf: '2026-01-01' });
}

const explained = (ip: string) => explain(dataDir, namedRelease(dataDir, 'current'), ip);

/** Returns the country of an address in the current release. */
function countryOf(ip: string): string | null {
  const database = openDatabase(namedRelease(dataDir, 'current'));
  try {
    return database.lookup(ip)!.country_code;
  } finally {
    database.close();
  }
}

const SOURCES: Source[] = [
  { id: 'geo', lineage: 'geo', rows: ['30.0.0.0,30.0.255.255,DE', '30.0.8.0,30.0.8.255,FR', '30.1.0.0,30.1.0.255,ES'] },
  { id: 'copy', lineage: 'geo', rows: ['30.0.0.0,30.0.255.255,DE', '30.1.0.0,30.1.0.255,ES'] },
  { id: 'other', lineage: 'other', rows: ['30.0.0.0,30.0.255.255,NL', '30.1.0.0,30.1.0.255,IT'] },
  { id: 'rir', lineage: 'rir', kind: 'registry', rows: ['30.0.0.0,30.127.255.255,NL'] },
  {
    ...{ id: 'cloud', lineage: 'cloud', kind: 'operator', space: ['30.0.9.0/24'] },
    rows: ['30.0.9.0,30.0.9.127,SE', '30.0.10.0,30.0.10.255,SE', '30.0.9.0,30.0.10.255,SE', '40.0.0.0,40.0.0.255,SE'],
  },
];

describe('a build that merges by evidence', () => {
  it('counts votes by lineage, breaks ties by the narrower range, and lets an operator decide in its own space only', async () => {
    const { outcome, notes } = await build(SOURCES);
    expect(outcome).toBe('published');
    expect(countryOf('30.0.1.1')).toBe('NL'); // DE, DE and NL, NL: two lineages against one
    expect(countryOf('30.0.8.1')).toBe('NL');
    expect(countryOf('30.1.0.1')).toBe('ES'); // ES, IT, NL: as many votes, ES and IT as wide, ES listed first
    expect(countryOf('30.2.0.1')).toBe('NL');
    expect(countryOf('30.0.9.1')).toBe('SE');
    expect(countryOf('30.0.9.200')).toBe('NL');
    expect(countryOf('30.0.10.1')).toBe('NL');
    expect(countryOf('40.0.0.1')).toBe(null);
    expect(notes).toContainEqual(expect.stringContaining('cloud: 3 rows outside the space of its owner are not used'));
    expect(manifestOf(dataDir).inputs[4]).toMatchObject({ lineage: 'cloud', kind: 'operator', space: ['30.0.9.0/24'] });
  });

  it('ignores rows of a geofeed outside the space of its owner', async () => {
    const others = SOURCES.slice(0, 4);
    await build(others);
    const expected = ['30.0.0.1', '30.0.8.1', '30.1.0.1', '30.2.0.1', '40.0.0.1', '1.1.1.1'].map(countryOf);
    const rows = [
      '0.0.0.0,255.255.255.255,KP',
      '30.0.0.0,30.0.0.1,KP',
      '30.0.8.1,30.0.8.1,KP',
      '40.0.0.0,40.0.0.255,KP',
    ];
    rows.push('30.0.8.1,30.0.8.1,ZZ', '50.0.0.0,50.0.0.255,CH', '49.255.255.255,50.0.0.0,KP');
    rmSync(dataDir, { recursive: true });
    await build([{ id: 'feed', kind: 'geofeed', space: ['50.0.0.0/24'], rows }, ...others]);
    expect(['30.0.0.1', '30.0.8.1', '30.1.0.1', '30.2.0.1', '40.0.0.1', '1.1.1.1'].map(countryOf)).toEqual(expected);
    expect(['49.255.255.255', '50.0.0.0', '50.0.0.255', '50.0.1.0'].map(countryOf)).toEqual([null, 'CH', 'CH', null]);
  });

  describe('knows the space of an owner by its AS number', () => {
    const others: Source[] = [
      {
        ...{ id: 'files', lineage: 'rir', kind: 'registry', format: 'rir-delegated-extended' },
        rows: [
          'ripencc|NL|ipv4|30.0.0.0|8388608|20000101|allocated|someone',
          'ripencc|NL|ipv4|50.0.0.0|65536|20000101|allocated|owner',
          'ripencc|NL|ipv6|2a00:1000::|32|20000101|allocated|owner',
          'ripencc|NL|asn|64500|1|20000101|allocated|owner',
        ],
      },
      {
        id: 'origins',
        format: 'origin-asn',
        rows: ['60.0.0.0,60.0.0.255,64500,"Owner, Inc."', '30.0.0.0,30.0.0.255,1,x'],
      },
    ];
    const claims = ['50.0.0.0/16,CH', '50.0.0.0/15,KP', '49.0.0.0/8,KP', '60.0.0.0/25,CH', '60.0.0.0/23,KP'];
    const rows = [
      ...claims,
      '30.0.0.0/8,KP',
      '30.0.0.0/25,KP',
      '2a00:1000::/32,CH',
      '2a00:1000::/31,KP',
      '0.0.0.0/0,KP',
    ];
    const feed = (asns: number[]): Source => ({ id: 'feed', kind: 'geofeed', format: 'geofeed', asns, rows });
    const probes = [
      '50.0.0.1',
      '50.1.0.1',
      '49.0.0.1',
      '60.0.0.1',
      '60.0.1.1',
      '30.0.0.1',
      '2a00:1000::1',
      '2a00:1001::1',
    ];

    it('uses its rows only inside what is delegated to it or announced by it', async () => {
      const { outcome, notes } = await build([feed([64500]), ...others]);
      expect(outcome).toBe('published');
      expect(probes.map(countryOf)).toEqual(['CH', null, null, 'CH', null, 'NL', 'CH', null]);
      expect(notes).toContainEqual(expect.stringContaining('feed: 7 rows outside the space of its owner are not used'));
      expect(manifestOf(dataDir).inputs.map(({ id, asns, rows }) => [id, asns, rows])).toEqual([
        ['feed', [64500], 10],
        ['files', undefined, 3],
        ['origins', undefined, 2],
      ]);
      const { steps } = await explained('50.0.0.1');
      expect(steps[0]!.claims.map(({ source, says, why }) => [source, says, why])).toEqual([
        ['feed', 'CH', null],
        ['feed', 'KP', 'it is not inside the space of the owner of the data'],
        ['feed', 'KP', 'it is not inside the space of the owner of the data'],
        ['files', 'NL', 'the data of the operator, feed, overrides it'],
      ]);
    });

    it('uses none of its rows if no source knows the number', async () => {
      const { notes } = await build([feed([64501]), ...others]);
      expect(notes).toContainEqual('feed: no source says which space belongs to its owner, so its rows are not used');
      expect(probes.map(countryOf)).toEqual(['NL', null, null, null, null, 'NL', 'NL', null]);
    });
  });

  it('does not let a geolocation row of a /12 contradict the registry, and explains it', async () => {
    const wide = (rows: string[]): Source[] => [
      { id: 'geo', lineage: 'geo', kind: 'geolocation', rows },
      { id: 'rir', lineage: 'rir', kind: 'registry', rows: ['30.0.0.0,30.255.255.255,NL'] },
    ];
    await build(wide(['30.16.0.0,30.31.255.255,DE', '30.32.0.0,30.47.255.255,NL', '31.0.0.0,31.255.255.255,DE']));
    expect(['30.16.0.1', '30.32.0.1', '31.0.0.1'].map(countryOf)).toEqual(['NL', 'NL', 'DE']);
    const [{ vote, claims }] = (await explained('30.16.0.1')).steps as [Explanation['steps'][number]];
    expect(vote).toEqual({ lineages: 2, agreeing: 1 });
    expect(claims.map(({ source, says, why }) => [source, says, why])).toEqual([
      ['rir', 'NL', null],
      ['geo', 'DE', 'its range is too wide for a location that contradicts the registry'],
    ]);
    rmSync(dataDir, { recursive: true });
    await build(wide(['30.16.0.0,30.31.255.254,DE']));
    expect(countryOf('30.16.0.1')).toBe('DE');
  });

  it('drops locations that the lineage of the registry seldom confirms, and explains it', async () => {
    // DE is right in one of 40 delegations to NL, as the users' source says.
    const blocks = Array.from({ length: 40 }, (_, index) => `30.${4 * index}.0.0,30.${4 * index}.3.255`);
    const locations: Source[] = [
      { id: 'users', lineage: 'rir', kind: 'geolocation', rows: [`${blocks[39]},DE`, '30.200.0.0,30.200.0.255,BE'] },
      { id: 'geo', kind: 'geolocation', rows: [...blocks.map((block) => `${block},DE`), '30.201.0.0,30.201.0.255,DE'] },
      { id: 'rir', lineage: 'rir', kind: 'registry', rows: ['30.0.0.0,30.255.255.255,NL'] },
    ];
    await build(locations);
    expect(['30.0.0.1', '30.156.0.1', '30.201.0.1'].map(countryOf)).toEqual(['NL', 'DE', 'DE']);
    const reason = "it contradicts the registry, and the registry's lineage seldom confirms such locations";
    const { steps, notes } = await explained('30.0.0.1');
    expect(notes).toEqual([]);
    expect(steps[0]!.claims.map(({ source, says, why }) => [source, says, why])).toEqual([
      ['rir', 'NL', null],
      ['geo', 'DE', reason],
    ]);
    expect((await explained('30.201.0.1')).notes).toEqual([]);
    const { stdout } = await ipatlas(['explain', '30.0.0.1', '--data', dataDir]);
    expect(stdout).toContain(reason);

    rmSync(dataDir, { recursive: true });
    await build(locations.map((source) => (source.id === 'users' ? { ...source, lineage: 'users' } : source)));
    expect(countryOf('30.0.0.1')).toBe('DE');
    expect((await explained('30.0.0.1')).notes).toEqual([]);
  });

  it('explains each vote', async () => {
    await build(SOURCES);
    const { steps, notes } = await explained('30.0.8.1');
    const [{ vote, claims, range }] = steps as [(typeof steps)[number]];
    expect(notes).toEqual([]);
    expect(vote).toEqual({ lineages: 3, agreeing: 2 });
    expect(range).toMatchObject({ answer: 'NL', sources: ['other', 'rir'], confidence: 66 });
    expect(claims.map(({ source, lineage, says, outcome, why }) => [source, lineage, says, outcome, why])).toEqual([
      ['other', 'other', 'NL', 'won', null],
      ['geo', 'geo', 'FR', 'lost', 'outvoted by 2 lineages to 1'],
      ['geo', 'geo', 'DE', 'lost', 'its source has a narrower range, or a later row for the same range'],
      ['copy', 'geo', 'DE', 'lost', 'geo has the vote of their lineage'],
      ['rir', 'rir', 'NL', 'won', null],
    ]);

    const tie = (await explained('30.1.0.1')).steps[0]!.claims;
    expect(tie.map(({ source, why }) => [source, why])).toEqual([
      ['geo', null],
      ['copy', 'geo has the vote of their lineage'],
      ['other', 'tied, and geo comes before it in sources.json'],
      ['rir', 'tied, and its range is wider'],
    ]);
    const operator = (await explained('30.0.9.1')).steps[0]!.claims;
    expect(operator.map(({ source, why }) => [source, why])).toContainEqual([
      'rir',
      'the data of the operator, cloud, overrides it',
    ]);
    const outside = (await explained('30.0.10.1')).steps[0]!.claims;
    expect(outside.filter(({ source }) => source === 'cloud').map(({ why }) => why)).toEqual([
      'it is not inside the space of the owner of the data',
      'it is not inside the space of the owner of the data',
    ]);
    const { stdout } = await ipatlas(['explain', '30.0.8.1', '--data', dataDir]);
    expect(stdout).toContain('from other, rir, confidence 66 %');
    expect(stdout).toContain('2 of 3 lineages agree with it');
    expect(stdout).toContain('✓ other (lineage other): NL');
  });

  it('writes the confidence of ranges on which the lineages disagree into the mirror', async () => {
    const tables = "SELECT name FROM sqlite_master WHERE name LIKE '%confidence' ORDER BY name";
    const read = (sql: string): unknown[] => {
      const mirror = openMirror(join(namedRelease(dataDir, 'current'), MIRROR_FILE));
      try {
        return mirror.prepare(sql).pluck().all();
      } finally {
        mirror.close();
      }
    };
    await build([
      { id: 'a', rows: ['30.0.0.0,30.0.0.255,DE', '30.0.1.0,30.0.1.255,FR', '2a00::,2a00:ffff::,DE'] },
      { id: 'b', rows: ['30.0.0.0,30.0.0.255,DE', '30.0.1.0,30.0.1.255,NL', '2a00:1::,2a00:2::,NL'] },
    ]);
    const address = 30 * 2 ** 24;
    expect(read('SELECT first FROM ipv4_confidence WHERE percent = 50')).toEqual([address + 256]);
    expect(read('SELECT count(*) FROM ipv4_confidence')).toEqual([1]);
    expect(read('SELECT lower(hex(first)) || percent FROM ipv6_confidence')).toEqual([`2a000001${'0'.repeat(24)}50`]);

    rmSync(dataDir, { recursive: true });
    await build([{ id: 'a', rows: ['30.0.0.0,30.0.0.255,DE', '30.0.1.0,30.0.1.255,FR'] }], 'priority');
    expect(read(tables)).toEqual([]);
  });

  it('explains every address with the result of the release', async () => {
    const row = fc
      .tuple(fc.nat(255), fc.nat(255), fc.constantFrom('DE', 'FR', 'NL', 'ZZ'))
      .map(([a, b, code]) => `30.0.0.${Math.min(a, b)},30.0.0.${Math.max(a, b)},${code}`);
    const source = fc.record({
      // A build refuses a source in which most rows name no country.
      rows: fc
        .array(row, { minLength: 1, maxLength: 6 })
        .filter((rows) => 2 * rows.filter((each) => !each.endsWith('ZZ')).length >= rows.length),
      lineage: fc.constantFrom('a', 'b', 'c'),
      kind: fc.constantFrom('geolocation', 'registry', 'operator', 'geofeed'),
    });
    const lists = fc.array(source, { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(lists, fc.array(fc.nat(255), { minLength: 4, maxLength: 4 }), async (list, offsets) => {
        rmSync(dataDir, { recursive: true, force: true });
        const rows = [
          ...list.map((each, i) => ({ ...each, id: `s${i}`, space: ['30.0.0.0/25'] })),
          ...SOURCES.slice(3, 4),
        ];
        const { outcome, message } = await build(rows);
        expect(outcome, message).toBe('published');
        for (const offset of offsets) {
          const { notes, steps } = await explained(`30.0.0.${offset}`);
          expect(notes).toEqual([]);
          const { range, claims } = steps[0]!;
          expect(claims[0]?.outcome).toBe('won');
          expect(claims[0]?.says).toBe(range.answer);
          const winners = claims.filter((each) => each.outcome === 'won').map((each) => each.source);
          expect(range.sources).toEqual(expect.arrayContaining(winners));
        }
      }),
      { numRuns: 15 },
    );
  });

  it('gives the same bytes as before if the strategy is priority, with or without the keys of evidence', async () => {
    const bytes = async (sources: Source[], merge: string | null): Promise<Buffer> => {
      rmSync(dataDir, { recursive: true, force: true });
      expect((await build(sources, merge)).outcome).toBe('published');
      return readFileSync(join(dataDir, 'releases', currentReleaseId(dataDir)!, RANGE_FILE));
    };
    const manifest = () => readFileSync(join(namedRelease(dataDir, 'current'), MANIFEST_FILE), 'utf8');
    const plain = SOURCES.slice(0, 4).map(({ id, rows }) => ({ id, rows }));
    const without = [await bytes(plain, null), manifest()];
    expect([await bytes(SOURCES.slice(0, 4), 'priority'), manifest()]).toEqual(without);
    expect((await bytes(SOURCES.slice(0, 4), 'evidence')).equals(without[0] as Buffer)).toBe(false);
  });

  it.each([
    [{ kind: 'geofeed' }, 'sources[0].space is missing; expected the CIDR blocks of the owner'],
    [{ kind: 'operator' }, 'sources[0].space is missing; expected the CIDR blocks of the owner, or its AS numbers'],
    [{ asns: [0] }, 'sources[0].asns[0] is 0; expected'],
    [{ asns: [1, 1] }, 'sources[0].asns'],
    [{ space: ['30.0.0.1/24'] }, 'sources[0].space[0] is "30.0.0.1/24"; expected a CIDR block without host bits'],
    [{ space: ['30.0.0.0'] }, 'sources[0].space[0] is "30.0.0.0"; expected a CIDR block'],
    [{ kind: 'rumor' }, 'sources[0].kind is "rumor"; expected one of operator, geofeed'],
    [{ lineage: 'A b' }, 'sources[0].lineage is "A b"'],
  ])('refuses %j', async (keys, expected) => {
    const { outcome, message } = await build([{ id: 'one', rows: ['30.0.0.0,30.0.0.255,DE'], ...keys }]);
    expect(outcome).toBe('E_CONFIG');
    expect(message).toContain(expected);
  });

  it('refuses an unknown strategy', async () => {
    const { outcome, message } = await build([{ id: 'one', rows: ['30.0.0.0,30.0.0.255,DE'] }], 'vote');
    expect([outcome, message]).toEqual([
      'E_CONFIG',
      expect.stringContaining('merge is "vote"; expected one of priority, evidence'),
    ]);
  });
});
