import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Explanation, explain } from '../../pipeline/explain/explain.js';
import { openDatabase } from '../../src/database/database.js';
import { MIRROR_FILE, namedRelease } from '../../src/database/release.js';
import { openMirror } from '../../src/mirror/reader.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { buildOnce, manifestOf, writeSources } from '../support/sources.js';

giveFolders();

const GATES = { maxWrongSentinels: 99 };

interface Source {
  id: string;
  rows: string[];
  lineage?: string;
  kind?: string;
  interpolates?: boolean;
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
  using database = openDatabase(namedRelease(dataDir, 'current'));
  return database.lookup(ip)!.country_code;
}

/** Returns the country of an address in the current release, or the reason why it has none. */
function resultOf(ip: string): string | null {
  using database = openDatabase(namedRelease(dataDir, 'current'));
  const { country_code, reason } = database.lookupWithReason(ip)!;
  return country_code ?? reason;
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
  it('counts votes by lineage, breaks ties by the list, and lets an operator decide in its own space only', async () => {
    const { outcome, notes } = await build(SOURCES);
    expect(outcome).toBe('published');
    expect(countryOf('30.0.1.1')).toBe('NL'); // DE, DE and NL, NL: two lineages against one
    expect(countryOf('30.0.8.1')).toBe('NL');
    expect(countryOf('30.1.0.1')).toBe('ES'); // ES, IT, NL: as many votes, ES listed first
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
      expect(steps[0]!.rows.map(({ source, label, why }) => [source, label, why])).toEqual([
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
    expect(['30.16.0.1', '30.32.0.1', '31.0.0.1'].map(countryOf)).toEqual(['NL', 'NL', null]);
    const [{ vote, rows }] = (await explained('30.16.0.1')).steps as [Explanation['steps'][number]];
    expect(vote).toEqual({ lineages: 2, agreeing: 1 });
    expect(rows.map(({ source, label, why }) => [source, label, why])).toEqual([
      ['rir', 'NL', null],
      ['geo', 'DE', 'its range is too wide for a location that contradicts the registry'],
    ]);
    rmSync(dataDir, { recursive: true });
    await build(wide(['30.16.0.0,30.31.254.255,DE']));
    expect(countryOf('30.16.0.1')).toBe('DE');
  });

  it('gives rows of a source that interpolates no vote against another lineage if they end inside a network, and explains it', async () => {
    const located = (interpolates: boolean): Source[] => [
      { id: 'users', lineage: 'rir', kind: 'geolocation', rows: ['30.0.0.0,30.0.3.255,BE', '2a00::,2a00::ffff,BE'] },
      {
        ...{ id: 'geo', kind: 'geolocation', interpolates },
        rows: ['30.0.0.0,30.0.0.255,DE', '30.0.1.0,30.0.1.127,DE', '30.1.0.0,30.1.0.127,DE', '2a00::,2a00:0:1::,DE'],
      },
      {
        id: 'rir',
        lineage: 'rir',
        kind: 'registry',
        rows: ['30.0.0.0,30.1.255.255,NL', '2a00::,2a00:0:ffff:ffff:ffff:ffff:ffff:ffff,NL'],
      },
    ];
    const probes = ['30.0.0.1', '30.0.1.1', '30.1.0.1', '2a00::1', '2a00::1:0'];
    await build(located(true));
    // The row of the users' source inside 2a00::/48 is smaller than a network, so it is an operator's own word.
    expect(probes.map(countryOf)).toEqual(['DE', 'BE', 'NL', 'BE', 'NL']);
    const why = async (ip: string) =>
      (await explained(ip)).steps[0]!.rows.map((row) => [row.source, row.label, row.why]);
    expect(await why('30.0.0.1')).toEqual([
      ['geo', 'DE', null],
      ['users', 'BE', 'tied, and geo locates networks without repeating a registry'],
      ['rir', 'NL', 'users has the vote of their lineage'],
    ]);
    expect(await why('30.0.1.1')).toContainEqual([
      'geo',
      'DE',
      'it begins or ends inside a /24, so it is interpolated',
    ]);
    expect(await why('2a00::1:0')).toContainEqual([
      'geo',
      'DE',
      'it begins or ends inside a /48, so it is interpolated',
    ]);
    const { stdout } = await ipatlas(['explain', '30.0.1.1', '--data', dataDir]);
    expect(stdout).toContain('lost: it begins or ends inside a /24, so it is interpolated');

    rmSync(dataDir, { recursive: true });
    await build([...located(false).slice(1), ...located(false).slice(0, 1)]);
    expect(probes.map(countryOf)).toEqual(['DE', 'DE', 'DE', 'BE', 'DE']);
  });

  it('takes the word of an operator before a location, and none of a location in anycast space; explain says so', async () => {
    const sources: Source[] = [
      { id: 'users', lineage: 'rir', kind: 'geolocation', rows: ['30.0.5.0,30.0.5.127,BE'] },
      { id: 'geo', kind: 'geolocation', rows: ['30.0.0.0,30.0.255.255,DE', '8.8.8.0,8.8.8.255,DE'] },
      { id: 'rir', lineage: 'rir', kind: 'registry', rows: ['30.0.0.0,30.127.255.255,NL', '8.0.0.0,8.255.255.255,US'] },
      {
        id: 'census',
        kind: 'anycast',
        format: 'laces-csv',
        rows: ['prefix,number_of_sites,backing_prefix', '30.0.7.0/24,12,30.0.0.0/16', '30.0.8.0/24,1,30.0.0.0/16'],
      },
      { id: 'list', kind: 'anycast', format: 'cidr-list', rows: ['# a comment', '30.0.9.0/24', '', '30.0.10.1'] },
    ];
    await build(sources);
    const probes = ['30.0.5.1', '30.0.5.128', '30.0.7.1', '30.0.8.1', '30.0.9.1', '30.0.10.1', '30.0.10.2', '8.8.8.8'];
    expect(probes.map(countryOf)).toEqual(['BE', 'DE', 'NL', 'DE', 'NL', 'NL', 'DE', 'US']);
    const rowsAt = async (ip: string) =>
      (await explained(ip)).steps[0]!.rows.map(({ source, label, why }) => [source, label, why]);
    expect(await rowsAt('30.0.5.1')).toContainEqual(['geo', 'DE', expect.stringContaining("an operator's own word")]);
    expect(await rowsAt('30.0.7.1')).toEqual([
      ['rir', 'NL', null],
      ['census', 'anycast', expect.stringContaining('names no country')],
      ['geo', 'DE', 'the address is anycast, and a location of it is only the one that was near'],
    ]);
    expect(await rowsAt('8.8.8.8')).toContainEqual(['anycast', 'anycast', expect.any(String)]);
    const { inputs } = manifestOf(dataDir);
    expect(inputs.slice(3)).toMatchObject([
      { kind: 'anycast', rows: 1 },
      { kind: 'anycast', rows: 2 },
    ]);
  });

  it('explains each vote', async () => {
    await build(SOURCES);
    const { steps, notes } = await explained('30.0.8.1');
    const [{ vote, rows, range }] = steps as [(typeof steps)[number]];
    expect(notes).toEqual([]);
    expect(vote).toEqual({ lineages: 3, agreeing: 2 });
    expect(range).toMatchObject({ answer: 'NL', sources: ['other', 'rir'], confidence: 66 });
    expect(rows.map(({ source, lineage, label, outcome, why }) => [source, lineage, label, outcome, why])).toEqual([
      ['other', 'other', 'NL', 'won', null],
      ['geo', 'geo', 'FR', 'lost', 'outvoted by 2 lineages to 1'],
      ['geo', 'geo', 'DE', 'lost', 'its source has a narrower range, or a later row for the same range'],
      ['copy', 'geo', 'DE', 'lost', 'geo has the vote of their lineage'],
      ['rir', 'rir', 'NL', 'won', null],
    ]);

    const tie = (await explained('30.1.0.1')).steps[0]!.rows;
    expect(tie.map(({ source, why }) => [source, why])).toEqual([
      ['geo', null],
      ['copy', 'geo has the vote of their lineage'],
      ['other', 'tied, and geo comes before it in sources.json'],
      ['rir', 'tied, and geo comes before it in sources.json'],
    ]);
    const operator = (await explained('30.0.9.1')).steps[0]!.rows;
    expect(operator.map(({ source, why }) => [source, why])).toContainEqual([
      'rir',
      'the data of the operator, cloud, overrides it',
    ]);
    const outside = (await explained('30.0.10.1')).steps[0]!.rows;
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
    expect(read('SELECT lower(hex(first)) || percent FROM ipv6_confidence')).toEqual([`2a${'0'.repeat(30)}50`]);

    rmSync(dataDir, { recursive: true });
    await build([{ id: 'a', rows: ['30.0.0.0,30.0.0.255,DE', '30.0.1.0,30.0.1.255,FR'] }], 'priority');
    expect(read(tables)).toEqual([]);
  });

  it('uses locations only where a registry has delegated the space, with or without a country', async () => {
    await build([
      { id: 'geo', rows: ['30.0.0.0,30.3.255.255,DE', '2a00::,2a1f:ffff::,NL', '40.0.0.0,40.0.0.255,ZZ'] },
      {
        ...{ id: 'files', lineage: 'rir', kind: 'registry', format: 'rir-delegated-extended' },
        rows: [
          'ripencc|NL|ipv4|30.0.0.0|65536|20000101|allocated|someone',
          'ripencc|EU|ipv4|30.1.0.0|65536|20000101|allocated|someone',
          'ripencc||ipv4|30.2.0.0|65536||reserved|',
          'ripencc|NL|ipv6|2a00:1000::|32|20000101|allocated|someone',
          'ripencc||ipv6|2a00:2000::|32||available|',
        ],
      },
      { id: 'cloud', kind: 'operator', space: ['30.3.0.0/24'], rows: ['30.3.0.0,30.3.0.127,SE'] },
    ]);
    const reasons = ['30.0.0.1', '30.1.0.1', '30.2.0.1', '30.3.0.1', '30.3.0.200', '40.0.0.1'].map(resultOf);
    expect(reasons).toEqual(['DE', 'DE', 'unallocated', 'SE', 'unallocated', 'unallocated']);
    const probes = ['2a00:1000::1', '2a00:2000::1', '2a1d:3e0:500::1', '2002:1e01::1', '2002:1e02::1'];
    expect(probes.map(resultOf)).toEqual(['NL', 'unallocated', 'unallocated', 'DE', 'unallocated']);
    const { steps, notes } = await explained('2a1d:3e0:500::1');
    expect(notes).toEqual([]);
    expect(steps[0]!.range).toMatchObject({ answer: 'unallocated', sources: [] });
    expect(steps[0]!.rows.map(({ source, label, first, why }) => [source, label, first, why])).toEqual([
      ['undelegated', 'unallocated', '2a00:1001::', null],
      ['geo', 'NL', '2a00::', 'no registry has delegated the range, so locations in it do not count'],
    ]);
  });

  it('uses all locations of a family of which no registry has a row', async () => {
    await build([
      { id: 'geo', rows: ['30.0.0.0,30.3.255.255,DE', '2a00::,2a1f:ffff::,NL'] },
      { id: 'rir', kind: 'registry', rows: ['30.0.0.0,30.0.255.255,NL'] },
    ]);
    expect(['30.1.0.1', '2a00::1'].map(resultOf)).toEqual(['unallocated', 'NL']);
  });

  it.each([
    [{ kind: 'geofeed' }, 'sources[0].space is missing; expected the CIDR blocks of the owner'],
    [{ kind: 'operator' }, 'sources[0].space is missing; expected the CIDR blocks of the owner, or its AS numbers'],
    [{ asns: [0] }, 'sources[0].asns[0] is 0; expected'],
    [{ asns: [1, 1] }, 'sources[0].asns'],
    [{ kind: 'registry', asns: [64496] }, 'sources[0].asns is not for kind registry'],
    [{ kind: 'registry', space: ['30.0.0.0/24'] }, 'sources[0].space is not for kind registry'],
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
