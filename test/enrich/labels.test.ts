/** `--add` of labels through the kernel, compared with lookups of fields. */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { type BlockEnricherOptions, createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { RELEASE_POLL_MS } from '../../src/limits.js';
import { ipatlas } from '../support/in-process.js';
import { type LabelBlock, SMALL_LABELS } from '../support/labels.js';
import { addressesNear } from '../support/near-addresses.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { releaseForTests } from '../support/open-release.js';
import { publishBlocks, SMALL_WORLD } from '../support/release.js';

const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 80) / 8);

/** Across the bounds of countries and networks, at both ends, and around single addresses. */
const LABELS: LabelBlock[] = [
  ...SMALL_LABELS,
  ['80.0.0.0/7', { site: 'both', owner: null }],
  ['8.8.8.8/32', { site: null, owner: 'IT=ops' }],
  ['255.255.255.255/32', { site: 'Berlin', owner: 'last' }],
  ['2a00:1:0:1::42/127', { site: 'pair', owner: 'é'.repeat(256) }],
  ['fd00::/8', { site: 'Lab | 7; x', owner: null }],
];

const release = releaseForTests(SMALL_WORLD, SMALL_NETWORKS, LABELS);
const withoutNetworks = releaseForTests(SMALL_WORLD, [], LABELS);
const withoutLabels = releaseForTests();

function enrich(text: string, options: BlockEnricherOptions, { database } = release): string {
  return Buffer.from(createBlockEnricher(database, options).enrichBlock(Buffer.from(text))).toString();
}

const addresses = addressesNear([...SMALL_WORLD, ...SMALL_NETWORKS, ...LABELS].map(([cidr]) => cidr));

const members = fc
  .uniqueArray(
    fc.constantFrom('country_code', 'is_eu', 'continent', 'reason', 'asn', 'as_name', 'network', 'site', 'owner'),
    {
      minLength: 1,
    },
  )
  .filter((list) => list.some((name) => ['asn', 'as_name', 'network', 'site', 'owner'].includes(name)));

describe('labels in results', () => {
  it.each([
    ['a release with networks', release],
    ['a release without networks', withoutNetworks],
  ])('equal lookups of fields, in any order, in %s', (_what, opened) => {
    fc.assert(
      fc.property(members, fc.array(addresses, { minLength: 80, maxLength: 80 }), (add, list) => {
        const find = opened.database.fields(add);
        const output = enrich(list.map((ip) => `${JSON.stringify({ ip })}\n`).join(''), { add }, opened);
        const expected = list.map((ip) => {
          const { ip: _, ...geo } = find(ip)!;
          return `${JSON.stringify({ ip, geo })}\n`;
        });
        expect(output.split('\n')).toEqual(expected.join('').split('\n'));
      }),
      { numRuns: RUNS },
    );
  });

  it.each<[options: BlockEnricherOptions, input: string, output: string]>([
    [
      { format: 'csv', add: ['site', 'asn', 'owner'] },
      'ip\n10.1.0.1\n10.2.0.1\n8.8.8.8\n9.9.9.9\nx\n',
      'ip,geo_site,geo_asn,geo_owner\n10.1.0.1,"Köln ""Süd"", 2",,IT=ops\n10.2.0.1,Berlin,,\n8.8.8.8,,15169,IT=ops\n9.9.9.9,,,\nx,,,\n',
    ],
    [
      { format: 'json', add: ['owner'] },
      '[{"ip":"8.8.9.1"},{"ip":"9.9.9.9"}]',
      '[{"ip":"8.8.9.1","geo":{"owner":"a\\\\b"}},{"ip":"9.9.9.9","geo":{"owner":null}}]',
    ],
    [{ format: 'combined', add: ['site'] }, '10.1.0.1 - -\n', '10.1.0.1 - - "Köln \\"Süd\\", 2"\n'],
    [{ format: 'text', add: ['site'] }, 'from 10.0.0.1 on\n', 'from 10.0.0.1 on\tBerlin\n'],
    [{ format: 'logfmt', field: 'ip', add: ['owner'] }, 'ip=10.1.0.1\n', 'ip=10.1.0.1 ip_owner="IT=ops"\n'],
    [
      { format: 'zeek', field: 'h', add: ['site'] },
      '#separator \\x09\n#fields\th\n#types\taddr\n10.1.0.1\n9.9.9.9\n',
      '#separator \\x09\n#fields\th\tgeo_site\n#types\taddr\tstring\n10.1.0.1\tKöln "Süd", 2\n9.9.9.9\t-\n',
    ],
  ])('are added in %j', (options, input, output) => {
    expect(enrich(input, options)).toBe(output);
  });

  it('must be those of the release, and are null if a later release has none', async () => {
    const known = /cannot add "tenant"; choose from country, .*, release_date, site, owner, each once/;
    expect(() => enrich('', { add: ['site', 'tenant'] })).toThrow(/cannot add "site,tenant"|cannot add "tenant"/);
    expect(() => enrich('', { add: ['tenant'] })).toThrow(known);
    expect(() => enrich('', { add: ['site'] }, withoutLabels)).toThrow(
      /cannot add "site"; choose from .*, release_date, each/,
    );
    expect(() => enrich('', { add: ['Site'] })).toThrow(/cannot add "Site"/);
    expect(() => enrich('', { add: ['site', 'site'] })).toThrow(/each once/);
    expect(() => enrich('', { schema: 'ecs', add: ['site'] })).toThrow('ecs has no field for site');
    for (const past of [{ at: '2026-01-01' }, { atField: 'time' }]) {
      expect(() => enrich('', { add: ['site'], ...past })).toThrow('history has no labels; leave site out');
    }
    const { dataDir } = release;
    const command = await ipatlas(['enrich', '--data', dataDir, '--add', 'tenant', '-']);
    expect(command).toMatchObject({ code: 2, stderr: expect.stringMatching(known) });
  });
});

it('summarize --by counts by a label', async () => {
  const { dataDir } = release;
  const lines = ['10.1.0.1', '10.2.0.1', '10.3.0.1', '255.255.255.255', '9.9.9.9', '8.8.8.8', 'x', '2002:a01:1::1'];
  const run = (...args: string[]) =>
    ipatlas(['summarize', '--data', dataDir, '--format', 'list', ...args, '-'], { input: `${lines.join('\n')}\n` });
  expect(JSON.parse((await run('--by', 'site', '--json')).stdout)).toMatchObject({
    by: 'site',
    labels: [
      { site: 'Berlin', count: 3 },
      { site: 'Köln "Süd", 2', count: 2 },
    ],
    ...{ no_label: 2, invalid_address: 1 },
  });
  expect((await run('--by', 'owner', '--top', '1')).stdout).toMatch(/^owner +lines +share\nIT=ops +3 /);
  expect(await run('--by', 'tenant')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('anycast, site, owner'),
  });
  expect(await run('--by', 'site', '--at', '2026-01-01')).toMatchObject({ code: 2 });
});

it('a database that is watched goes on with nulls when the labels go away', async () => {
  const { dataDir } = withoutNetworks;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    using database = openDatabase(dataDir, { watch: true });
    const options: BlockEnricherOptions = { add: ['site', 'asn'] };
    expect(enrich('{"ip":"10.1.0.1"}', options, { ...release, database })).toContain('"site":"Köln');
    await publishBlocks(dataDir, SMALL_WORLD, undefined, 0, SMALL_NETWORKS);
    vi.advanceTimersByTime(RELEASE_POLL_MS);
    expect(enrich('{"ip":"8.8.8.8"}', options, { ...release, database })).toBe(
      '{"ip":"8.8.8.8","geo":{"site":null,"asn":15169}}',
    );
    expect(() => enrich('', { add: ['owner'] }, { ...release, database })).toThrow('cannot add "owner"');
  } finally {
    vi.useRealTimers();
  }
});
