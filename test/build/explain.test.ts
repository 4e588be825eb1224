import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { type ExplainedRow, explain, explainAll } from '../../pipeline/explain/explain.js';
import { openDatabase } from '../../src/database/database.js';
import { namedRelease } from '../../src/database/release.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, filledOnce, giveFolders } from '../support/own-folder.js';
import { publishBlocks, SMALL_WORLD } from '../support/release.js';
import { buildOnce, manifestOf, spoilRows, writeSources } from '../support/sources.js';

giveFolders();

const explained = (ip: string, release = 'current') => explain(dataDir, namedRelease(dataDir, release), ip);

/** Returns rows in short form: source, value, line and outcome. */
function short(claims: readonly ExplainedRow[]): unknown[][] {
  return claims.map(({ source, label, line, outcome, why }) => [
    source,
    label,
    line,
    outcome,
    ...(why === null ? [] : [why]),
  ]);
}

/** Two sources that agree and disagree, overrides, and every special case of merging. */
const build = filledOnce(async () => {
  writeFileSync(
    join(dir, 'overrides.csv'),
    'range,country,note,expires\n30.0.5.0/24,CH,our own,\n10.1.0.0/16,DE,our office,\n30.0.0.0/24,AT,over,2025-12-31\n',
  );
  const file = writeSources(
    dir,
    {
      first: [
        '# a list',
        '30.0.0.0,30.0.255.255,DE',
        '30.0.8.0,30.0.8.255,FR',
        '30.0.9.0,30.0.9.255,FR',
        '30.0.9.0,30.0.9.255,IT',
        '31.0.0.0,31.0.0.255,ZZ',
        '10.0.0.0,10.255.255.255,US',
        '2000::,2007:ffff:ffff:ffff:ffff:ffff:ffff:ffff,US',
        '2002:1e00:800::,2002:1e00:8ff:ffff:ffff:ffff:ffff:ffff,GB',
      ],
      second: ['30.0.0.0,30.127.255.255,NL', '31.0.0.0,31.255.255.255,BE', '8.8.8.0,8.8.8.255,US'],
    },
    { overrides: 'overrides.csv' },
  );
  const format = { ranges: [{ files: ['*'], text: { first: 0, last: 1 } }], country: 2, comment: '#' };
  const sources = ['first', 'second'].map((id) => ({
    ...{ id, license: 'CC0-1.0', fetch: { file: `${id}.csv` }, format },
    corrections: `https://${id}.example`,
  }));
  writeFileSync(file, JSON.stringify({ overrides: 'overrides.csv', gates: { maxWrongSentinels: 99 }, sources }));
  expect(await buildOnce(dataDir, file, { asOf: '2026-01-01' })).toMatchObject({ outcome: 'published' });
});

describe('explain', () => {
  beforeEach(build);

  it('one source, one step', async () => {
    const { result, steps, notes, notation, corrections } = await explained('30.100.0.1');
    expect(corrections).toEqual([{ source: 'second', address: 'https://second.example' }]);
    expect(result).toMatchObject({ ip: '30.100.0.1', country_code: 'NL' });
    expect({ notes, notation }).toEqual({ notes: [], notation: null });
    expect(steps).toEqual([
      {
        address: '30.100.0.1',
        range: { first: '30.1.0.0', last: '30.127.255.255', answer: 'NL', sources: ['second'] },
        rows: [
          {
            ...{ source: 'second', file: 'second.csv', line: 1, text: '30.0.0.0,30.127.255.255,NL' },
            ...{ first: '30.0.0.0', last: '30.127.255.255', label: 'NL', outcome: 'won', why: null },
          },
        ],
        sources_without_row: ['first'],
      },
    ]);
  });

  it.each<[string, string, string, unknown[][]]>([
    [
      'two sources that disagree',
      '30.0.1.1',
      'DE',
      [
        ['first', 'DE', 2, 'won'],
        ['second', 'NL', 1, 'lost', 'first comes before second in sources.json'],
      ],
    ],
    [
      'a narrower range of one source',
      '30.0.8.1',
      'FR',
      [
        ['first', 'FR', 3, 'won'],
        ['first', 'DE', 2, 'lost', 'its range is wider'],
        ['second', 'NL', 1, 'lost', 'first comes before second in sources.json'],
      ],
    ],
    [
      'one range twice',
      '30.0.9.1',
      'IT',
      [
        ['first', 'IT', 5, 'won'],
        ['first', 'FR', 4, 'lost', 'a later row covers the same range, or one of the same size'],
        ['first', 'DE', 2, 'lost', 'its range is wider'],
        ['second', 'NL', 1, 'lost', 'first comes before second in sources.json'],
      ],
    ],
    [
      'an override; the one that has expired is not there',
      '30.0.5.1',
      'CH',
      [
        ['overrides', 'CH', 2, 'won'],
        ['first', 'DE', 2, 'lost', 'overrides come before all sources'],
        ['second', 'NL', 1, 'lost', 'overrides come before all sources'],
      ],
    ],
    [
      'an override of a special-purpose range',
      '10.1.2.3',
      'DE',
      [
        ['overrides', 'DE', 3, 'won'],
        ['special-purpose', 'private', null, 'lost', 'overrides come before all sources'],
        ['first', 'US', 7, 'lost', 'overrides come before all sources'],
      ],
    ],
    [
      'a special-purpose range',
      '10.2.2.3',
      'private',
      [
        ['special-purpose', 'private', null, 'won'],
        ['first', 'US', 7, 'lost', 'special-purpose ranges come before the sources'],
      ],
    ],
    [
      'special-purpose ranges in one another',
      '255.255.255.255',
      'broadcast',
      [
        ['special-purpose', 'broadcast', null, 'won'],
        ['special-purpose', 'reserved', null, 'lost', 'its range is wider'],
      ],
    ],
    ['unassigned', '99.0.0.1', 'unallocated', []],
    [
      'a row without a country, under one that has it',
      '31.0.0.1',
      'BE',
      [
        ['second', 'BE', 2, 'won'],
        ['first', 'unknown', 6, 'lost', 'it names no country'],
      ],
    ],
    [
      'a country within 6to4',
      '2002:1e00:801::1',
      'GB',
      [
        ['first', 'GB', 9, 'won'],
        ['first', 'US', 8, 'lost', 'it spans a prefix whose addresses have the country of the IPv4 address inside'],
        ['special-purpose', '6to4', null, 'lost', 'first names a country for a range inside the prefix'],
      ],
    ],
  ])('%s', async (_, ip, answer, claims) => {
    const { result, steps, notes } = await explained(ip);
    expect(result.country_code ?? result.reason).toBe(answer);
    expect(steps).toHaveLength(1);
    expect(short(steps[0]!.rows)).toEqual(claims);
    expect(steps[0]!.range.answer).toBe(answer);
    expect(notes).toEqual([]);
  });

  it('an IPv4-mapped address is explained as the IPv4 address', async () => {
    const { notation, result, steps } = await explained('::ffff:30.0.1.1');
    expect({ notation, ip: result.ip }).toEqual({ notation: 'mapped', ip: '30.0.1.1' });
    expect(steps).toEqual((await explained('30.0.1.1')).steps);
    expect((await ipatlas(['explain', '::ffff:30.0.1.1', '--data', dataDir])).stdout).toMatch(
      /an IPv4-mapped address is that IPv4 address/,
    );
  });

  it.each([
    ['6to4', '2002:1e00:101::1', '2002:1e00:101::1'],
    ['teredo', '2001:0:1::e1ff:fefe', '2001:0:1::e1ff:fefe'],
    ['nat64', '64:ff9b::30.0.1.1', '64:ff9b::1e00:101'],
  ])('%s: names the IPv4 address that decides, and explains it', async (scheme, ip, address) => {
    const { result, steps, notes } = await explained(ip);
    expect(result.country_code).toBe('DE');
    expect(notes).toEqual([]);
    expect(steps.map((step) => [step.address, step.range.answer])).toEqual([
      [address, scheme],
      ['30.0.1.1', 'DE'],
    ]);
    expect(steps[0]!.rows[0]).toMatchObject({ source: 'special-purpose', label: scheme, outcome: 'won' });
    expect(steps[1]).toEqual((await explained('30.0.1.1')).steps[0]);
    const { stdout } = await ipatlas(['explain', ip, '--data', dataDir]);
    expect(stdout).toMatch(`the result is that of the IPv4 address inside, 30.0.1.1 (${scheme})`);
  });

  it('prints text for people', async () => {
    const { code, stdout, stderr } = await ipatlas(['explain', '30.0.5.1', '--data', dataDir]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      '30.0.5.1: Switzerland (CH), not in the European Union',
      expect.stringMatching(/^release 2026-01-01-[0-9a-f]{12}, as of 2026-01-01$/),
      '',
      '30.0.5.1',
      '  range 30.0.5.0 – 30.0.5.255 has the result CH, from overrides',
      '  ✓ overrides: CH, overrides.csv line 2: 30.0.5.0/24,CH,our own,',
      '  · first: DE, first.csv line 2: 30.0.0.0,30.0.255.255,DE',
      '      lost: overrides come before all sources',
      '  · second: NL, second.csv line 1: 30.0.0.0,30.127.255.255,NL',
      '      lost: overrides come before all sources',
      '',
      'kind of network of 30.0.5.1: anycast unknown, kind unknown',
      '',
      'sources:',
      expect.stringMatching(/^ {2}first, data of \d{4}-\d\d-\d\d, CC0-1\.0$/),
      expect.stringMatching(/^ {2}second, data of /),
      '',
      'If the country is wrong:',
      '  this line of overrides.csv corrects it here, with the right code for XX: 30.0.5.0/24,XX,reported by a user',
      '',
    ]);
    expect((await ipatlas(['explain', '10.2.2.3', '--data', dataDir])).stdout).toMatch(
      /^10\.2\.2\.3: no country, private: for use inside a network.*special-purpose: private: 10\.0\.0\.0\/8 Private-Use \(RFC 1918\)/s,
    );
    expect((await ipatlas(['explain', '99.0.0.1', '--data', dataDir])).stdout).toMatch(
      /has the result unallocated\n {2}no row covers it\n {2}no data from first, second\n/,
    );
  });

  it('refuses text that is not an address, and an unknown release', async () => {
    expect(await ipatlas(['explain', '1.2.3', '--data', dataDir])).toMatchObject({ code: 4, stdout: '' });
    const none = ['explain', '1.2.3.4', '--release', '2020-01-01-0123456789ab', '--data', dataDir];
    expect(await ipatlas(none)).toMatchObject({ code: 5, stdout: '' });
  });
});

describe('a source without lines', () => {
  it('is explained by its file, range and code', async () => {
    const name = 'country.mmdb';
    const world = join(dir, 'world');
    await publishBlocks(world, SMALL_WORLD);
    await ipatlas(['export', 'mmdb', '-o', join(dir, name), '--data', world]);
    const sources = [{ id: 'tree', license: 'CC0-1.0', fetch: { file: name }, format: 'mmdb' }];
    writeFileSync(join(dir, 'sources.json'), JSON.stringify({ gates: { maxWrongSentinels: 99 }, sources }));
    expect(await buildOnce(dataDir, join(dir, 'sources.json'))).toMatchObject({ outcome: 'published' });
    const { steps, notes } = await explained('193.0.6.139');
    expect(notes).toEqual([]);
    expect(steps[0]!.rows).toEqual([
      expect.objectContaining({ source: 'tree', file: name, line: null, text: 'NL', outcome: 'won' }),
    ]);
    const { first, last } = steps[0]!.rows[0]!;
    const { stdout } = await ipatlas(['explain', '193.0.6.139', '--data', dataDir]);
    expect(stdout).toContain(`✓ tree: NL, ${name}: ${first} – ${last} NL`);
  });
});

describe('an old release', () => {
  it('can be explained after its sources and overrides have changed', async () => {
    await build();
    const old = manifestOf(dataDir).id;
    writeFileSync(join(dir, 'overrides.csv'), 'range,country,note,expires\n30.0.5.0/24,LI,moved,\n');
    writeFileSync(join(dir, 'first.csv'), '# a list\n# longer\n30.0.0.0,30.0.255.255,DE\n30.0.8.0,30.0.8.255,FR\n');
    const options = { asOf: '2026-01-02', force: true };
    expect(await buildOnce(dataDir, join(dir, 'sources.json'), options)).toMatchObject({ outcome: 'published' });
    const [before, now] = [await explained('30.0.5.1', old), await explained('30.0.5.1')];
    expect(before.steps[0]!.rows.map(({ text }) => text)).toEqual([
      '30.0.5.0/24,CH,our own,',
      '30.0.0.0,30.0.255.255,DE',
      '30.0.0.0,30.127.255.255,NL',
    ]);
    expect(now.steps[0]!.rows.map(({ text, line }) => [text, line])).toEqual([
      ['30.0.5.0/24,LI,moved,', 2],
      ['30.0.0.0,30.0.255.255,DE', 3],
      ['30.0.0.0,30.127.255.255,NL', 1],
    ]);
  });

  it('is explained as far as its files exist, and the missing ones are named', async () => {
    await build();
    const { inputs, overrides } = manifestOf(dataDir);
    const object = (sha256: string): string => join(dataDir, 'cache/objects', sha256);
    rmSync(object(inputs[1]!.files[0]!.sha256));
    // Layers above the gap are known as before …
    const sure = await explained('30.0.1.1');
    expect(sure.notes).toEqual(['second.csv of source second is no longer in the cache, so its rows cannot be shown']);
    expect(short(sure.steps[0]!.rows)).toEqual([['first', 'DE', 2, 'won']]);
    expect(sure.steps[0]!.range).toMatchObject({ answer: 'DE', sources: ['first'] });
    // … below it nothing is, except what the mirror has.
    const open = await explained('30.100.0.1');
    expect(open.result.country_code).toBe('NL');
    expect(open.steps[0]).toMatchObject({ rows: [], range: { answer: 'NL', sources: ['second'] } });
    // A file that was changed counts as missing.
    writeFileSync(object(overrides!.sha256), 'range,country\n30.0.0.0/8,LI\n');
    const altered = await explained('30.0.1.1');
    expect(altered.notes).toContain('overrides.csv is no longer in the cache, so its rows cannot be shown');
    expect(short(altered.steps[0]!.rows)).toEqual([['first', 'DE', 2, 'open']]);
  });

  it('keeps only the files in the cache that its explanation needs', async () => {
    const file = (code: string): string =>
      writeSources(
        dir,
        { one: `30.0.0.0,30.0.0.255,${code}\n31.0.0.0,31.0.255.255,DE\n` },
        { keepReleases: 2, gates: { maxVanishedCountries: 9 } },
      );
    for (const code of ['DE', 'FR', 'IT', 'NL'])
      expect(await buildOnce(dataDir, file(code))).toMatchObject({ outcome: 'published' });
    for (const name of ['objects', 'rows']) expect(readdirSync(join(dataDir, 'cache', name))).toHaveLength(2);
  });
});

describe('any sources', () => {
  // A tiny space with everything that is decided by layer: special ranges, embedded IPv4 addresses, rows without country.
  const CODES = ['DE', 'FR', 'ZZ', 'XX'];
  const v4 = (n: number): string => `9.255.255.${n}`;
  const last4 = (n: number): string => (n < 256 ? v4(n) : `10.0.0.${n - 256}`);
  const v6 = (n: number): string => `200${Math.floor(n / 64) + 1}:${((n % 64) << 10).toString(16)}::`;
  const row = fc
    .tuple(fc.boolean(), fc.integer({ min: 0, max: 255 }), fc.integer({ min: 0, max: 255 }), fc.constantFrom(...CODES))
    .map(([is4, a, b, code]) => {
      const [low, high] = [Math.min(a, b), Math.max(a, b)];
      return is4 ? `${v4(low)},${last4(high + 128)},${code}` : `${v6(low)},${v6(high)},${code}`;
    });
  // A build refuses a source in which most rows name no country.
  const list = fc
    .array(row, { minLength: 1, maxLength: 12 })
    .filter((rows) => 2 * rows.filter((each) => /(DE|FR)$/.test(each)).length >= rows.length);
  const asked = fc.array(
    fc.oneof(
      fc.nat(383).map(last4),
      fc.nat(255).map((n) => v6(n)),
      fc.nat(255).map((n) => `2002:9ff:ff${n.toString(16).padStart(2, '0')}::`),
      fc.constantFrom('64:ff9b::9.255.255.9', '::ffff:9.255.255.77', '2001:0:1::f600:1', '::1', '2003::'),
    ),
    { minLength: 4, maxLength: 8 },
  );

  const source = fc.record({
    rows: list,
    lineage: fc.constantFrom('a', 'b', 'c'),
    kind: fc.constantFrom('geolocation', 'geolocation', 'registry', 'operator', 'geofeed', 'routing', 'anycast'),
    interpolates: fc.boolean(),
    network: fc.constantFrom(undefined, { kind: 'cloud', operator: 'a' }, { kind: 'tor', operator: 'b' }),
  });
  const lists = fc.array(source, { minLength: 1, maxLength: 4 });

  it('the winning row gives the result of the release', async () => {
    await fc.assert(
      fc.asyncProperty(lists, fc.constantFrom('priority', 'evidence'), asked, async (all, merge, ips) => {
        rmSync(dir, { recursive: true, force: true });
        const space = ['9.255.255.0/25', '2001::/18'];
        const sources = all.map(({ rows: _, lineage, kind, interpolates, network }, i) => ({
          ...{ id: `s${i}`, license: 'CC0-1.0', fetch: { file: `s${i}.csv` }, maxRejectShare: 1 },
          ...(kind === 'anycast' ? { kind, format: 'cidr-list' } : { format: 'ip-location-db' }),
          ...(kind === 'geofeed' && network && { network }),
          ...(merge === 'evidence' && { lineage, kind, interpolates: interpolates && kind === 'geolocation' }),
          ...(merge === 'evidence' && ['operator', 'geofeed'].includes(kind) && { space }),
        }));
        const files = all.map(({ rows, kind }) =>
          kind === 'anycast' ? rows.map((row) => row.split(',', 1)[0]!) : rows,
        );
        const config = { merge, sources, gates: { maxWrongSentinels: 99 } };
        const path = writeSources(dir, Object.fromEntries(files.map((rows, i) => [`s${i}`, rows])), config);
        expect(await buildOnce(dataDir, path, { force: true })).toMatchObject({ outcome: 'published' });
        using database = openDatabase(dataDir);
        const explanations = await explainAll(dataDir, namedRelease(dataDir, 'current'), ips);
        expect(explanations[1]).toEqual(await explained(ips[1]!));
        // Without what the build stored, the files are read again.
        spoilRows(dataDir);
        expect(await explainAll(dataDir, namedRelease(dataDir, 'current'), ips)).toEqual(explanations);
        for (const [index, { steps, notes, result, kinds }] of explanations.entries()) {
          expect(notes).toEqual([]);
          expect(result).toEqual(database.lookupWithReason(ips[index]!));
          const { ip: _, ...ofKind } = database.fields(['anycast', 'kind', 'operator'])(ips[index]!)!;
          expect(kinds).toMatchObject(ofKind);
          const answer = result.country_code ?? result.reason;
          const { range, rows } = steps.at(-1)!;
          expect(range.answer).toBe(answer);
          const winners = rows.filter(({ outcome }) => outcome === 'won');
          const hasRow = answer !== 'unallocated' || rows.some(({ source }) => source === 'undelegated');
          expect([...new Set(winners.map(({ label }) => label))]).toEqual(hasRow ? [answer] : []);
          const ids = winners.map(({ source }) => source).filter((id) => id !== 'undelegated' && answer !== 'unknown');
          expect(range.sources).toEqual(expect.arrayContaining(ids));
          for (const step of steps) {
            expect(step.rows.every(({ outcome, why }) => (outcome === 'lost') === (why !== null))).toBe(true);
          }
        }
      }),
      { numRuns: Math.ceil(Number(process.env.FUZZ_RUNS ?? 400) / 40), endOnFailure: true },
    );
  });
});
