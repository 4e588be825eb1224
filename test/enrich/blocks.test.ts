/** `--add network` and `--add continent`, compared with an oracle that tries every prefix length. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import type { Addable } from '../../src/enrich/members.js';
import { blockOracle } from '../support/block-oracle.js';
import { addressesIn, addressesNear } from '../support/near-addresses.js';
import { releaseForTests } from '../support/open-release.js';
import { type Block, country, reason, SMALL_WORLD } from '../support/release.js';

/** Neighbors that differ in the reason, the name or nothing, ranges across words, and both ends of the address space. */
const WORLD: Block[] = [
  ...SMALL_WORLD,
  ['100.64.0.0/10', reason('shared')],
  ['100.128.0.0/9', reason('private')],
  ['8.128.0.0/9', country('CA', 'Canada')],
  ['8.8.8.0/24', country('CA', 'Canada')],
  ['8.8.9.0/25', country('CA', 'Canada')],
  ['8.8.9.128/32', country('FR', 'France', true)],
  ['255.255.255.255/32', reason('broadcast')],
  ['2a00:2::/33', country('FR', 'France', true)],
  ['2a00:3:0:0:8000::/65', country('FR', 'France', true)],
  ['2a00:3:0:1::/64', country('FR', 'France', true)],
  ['64:ff9b::808:800/120', country('DE', 'Germany', true)],
  ['2002:808:900::/41', country('DE', 'Germany', true)],
  ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128', reason('discard')],
];

const release = releaseForTests(WORLD);

const CONTINENTS: Record<string, string> = { US: 'NA', CA: 'NA', NL: 'EU', DE: 'EU', GB: 'EU', FR: 'EU', CI: 'AF' };

/** What the oracle asks of a record for each list of members. */
const ASKED: [add: Addable[], answerOf: (record: Block[1] | undefined) => string][] = [
  [['country_code', 'network'], (record) => (record?.kind === 'country' ? record.code : '')],
  [['network', 'is_eu'], (record) => String(record?.kind === 'country' && record.isEu)],
  [['continent', 'network'], (record) => (record?.kind === 'country' ? CONTINENTS[record.code]! : '')],
  [['network', 'address'], (record) => JSON.stringify(record ?? reason('unallocated'))],
  [['country', 'network', 'reason'], (record) => JSON.stringify(record ?? reason('unallocated'))],
];

/** Times each property is tried; set it high for a long test. */
const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 80) / 16);

/** Addresses near the bounds of the world's blocks, and anywhere. */
const CIDRS = WORLD.map(([cidr]) => cidr);
const addresses = fc.oneof(addressesNear(CIDRS), addressesIn([...CIDRS, '0.0.0.0/0', '2000::/3', '::/0']));

function enrich(text: string, options: Parameters<typeof createBlockEnricher>[1]): string {
  return Buffer.from(createBlockEnricher(release.database, options).enrichBlock(Buffer.from(text))).toString();
}

describe('the network of an address', () => {
  it.each(ASKED)('is the largest block with the same answer, for %j', (add, answerOf) => {
    const expected = blockOracle(WORLD, answerOf);
    const enricher = createBlockEnricher(release.database, { add });
    fc.assert(
      fc.property(fc.array(addresses, { minLength: 100, maxLength: 100 }), (list) => {
        const input = list.map((ip) => `${JSON.stringify({ ip })}\n`).join('');
        const lines = Buffer.from(enricher.enrichBlock(Buffer.from(input)))
          .toString()
          .trimEnd()
          .split('\n');
        const networks = lines.map((line) => (JSON.parse(line) as { geo: { network: string | null } }).geo.network);
        expect(list.map((ip, index) => `${ip} ${networks[index]}`)).toEqual(list.map((ip) => `${ip} ${expected(ip)}`));
      }),
      { numRuns: RUNS },
    );
  });

  it.each<[ip: string, network: string | null]>([
    ['8.8.8.8', '8.8.8.0/24'],
    ['8.8.9.129', '8.8.9.129/32'],
    ['::ffff:8.8.8.8', '8.8.8.0/24'],
    ['2002:808:808::1', '2002:808:800::/40'],
    ['64:ff9b::1.2.3.4', '64:ff9b::/101'],
    ['2001:0:1::f7f7:f7f7', null],
    ['2a00:1::1', '2a00:1::/64'],
    ['ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128'],
    ['::2', '::2/127'],
  ])('of %s is %s', (ip, network) => {
    expect(JSON.parse(enrich(JSON.stringify({ ip }), { add: ['reason', 'country_code', 'network'] })).geo.network).toBe(
      network,
    );
  });
});

describe('the network and the continent', () => {
  const add: Addable[] = ['continent', 'network', 'country_code'];
  it.each<[format: NonNullable<Parameters<typeof createBlockEnricher>[1]>, input: string, output: string]>([
    [{ format: 'list' }, '8.8.8.8\n2001::1\nx\n', '8.8.8.8\tNA\t8.8.8.0/24\tCA\n2001::1\t\t\t\nx\t\t\t\n'],
    [
      { format: 'csv' },
      'ip\n8.8.8.8\n2001::1\nx\n',
      'ip,geo_continent,geo_network,geo_country_code\n8.8.8.8,NA,8.8.8.0/24,CA\n2001::1,,,\nx,,,\n',
    ],
    [
      { format: 'csv', delimiter: '/' },
      'ip\n8.8.8.8\n',
      'ip/geo_continent/geo_network/geo_country_code\n8.8.8.8/NA/"8.8.8.0/24"/CA\n',
    ],
    [
      { format: 'combined' },
      '8.8.8.8 - -\n2001::1 -\nx -\n',
      '8.8.8.8 - - "NA" "8.8.8.0/24" "CA"\n2001::1 - "-" "-" "-"\nx - "-" "-" "-"\n',
    ],
    [{ format: 'text' }, '10.0.0.1 and 8.8.8.8\n', '10.0.0.1 and 8.8.8.8\tNA\t8.8.8.0/24\tCA\n'],
    [
      { format: 'json' },
      '[{"ip":"8.8.8.8"},{"ip":"2001::1"},{"ip":1}]',
      '[{"ip":"8.8.8.8","geo":{"continent":"NA","network":"8.8.8.0/24","country_code":"CA"}},' +
        '{"ip":"2001::1","geo":{"continent":null,"network":null,"country_code":null}},{"ip":1,"geo":null}]',
    ],
    [
      { field: ['a=b', 'hops[]=c'] },
      '{"a":"8.8.8.8","hops":["10.0.0.1","2a00:1::"]}\n',
      '{"a":"8.8.8.8","hops":["10.0.0.1","2a00:1::"],"b":{"continent":"NA","network":"8.8.8.0/24","country_code":"CA"},' +
        '"c":{"continent":"EU","network":"2a00:1::/64","country_code":"FR"}}\n',
    ],
  ])('are added in %j', (options, input, output) => {
    expect(enrich(input, { add, ...options })).toBe(output);
  });
});
