/** `--add asn,as_name,network` through the kernel. labels.test.ts compares any members with lookups of fields. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BlockEnricherOptions, createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { resultFormat } from '../../src/enrich/formats/results.js';
import type { KernelInput } from '../../src/enrich/options.js';
import { addressesNear } from '../support/near-addresses.js';
import { type NetworkBlock, SMALL_NETWORKS } from '../support/networks.js';
import { releaseForTests } from '../support/open-release.js';
import { type Block, country, SMALL_WORLD } from '../support/release.js';

/** Networks with equal names, across the bounds of countries, at both ends, and around single addresses. */
const NETWORKS: NetworkBlock[] = [
  ...SMALL_NETWORKS,
  ['8.8.9.0/24', 64500, 'Google LLC'],
  ['8.8.8.8/32', 64501, '"\\,\t=é | Ø'],
  ['255.255.255.255/32', 64502, 'The last'],
  ['81.128.0.0/9', 64503, 'Both "sides", Ltd.'],
  ['2a00:1:0:1::42/127', 64504, 'A pair'],
  ['2a00:1:0:2::/64', 64505, ''],
  ['2a00:4::/30', 15169, 'Google LLC'],
];

const release = releaseForTests(SMALL_WORLD, NETWORKS);
/** Parts of the prefixes of embedded addresses that have a country, a network or a label of their own. */
const PARTS = ['2002:808:100::/40', '64:ff9b::808:900/120', '2001:0:abcd::/48'];
const OTHER_PARTS = ['2002:808:180::/41', '2002:5000::/28', '64:ff9b::5000:0/112', '2001:0:abc0::/44'];
const withParts = releaseForTests(
  [...SMALL_WORLD, ...PARTS.map((cidr): Block => [cidr, country('FR', 'France', true)])],
  [...NETWORKS, ...OTHER_PARTS.map((cidr, i): NetworkBlock => [cidr, 65000 + i, 'Inside'])],
  [
    ['8.8.0.0/16', { site: 'inside' }],
    ['2002:808:0::/36', { site: 'outside' }],
  ],
);
/** A name with each ASCII character except NUL. */
const ODD_NAMES = Array.from({ length: 127 }, (_, i) => `é${String.fromCharCode(i + 1)}`);
const odd = releaseForTests(
  SMALL_WORLD,
  ODD_NAMES.map((name, i): NetworkBlock => [`8.9.${i}.0/24`, 100 + i, name]),
);
const withoutNetworks = releaseForTests();

function enrich(text: string, options: BlockEnricherOptions, { database } = release): string {
  return Buffer.from(createBlockEnricher(database, options).enrichBlock(Buffer.from(text))).toString();
}

describe('networks in results', () => {
  it('equal lookups of fields where a part of 6to4, NAT64 or Teredo has a country or a network', () => {
    const list = fc.sample(addressesNear([...PARTS, ...OTHER_PARTS]), 200);
    for (const add of [
      ['asn'],
      ['asn', 'network'],
      ['country_code', 'asn', 'network'],
      ['site', 'network'],
      ['site'],
    ]) {
      const find = withParts.database.fields(add);
      const output = enrich(list.map((ip) => `${JSON.stringify({ ip })}\n`).join(''), { add }, withParts);
      const expected = list.map((ip) => {
        const { ip: _, ...geo } = find(ip)!;
        return JSON.stringify({ ip, geo });
      });
      expect([add, ...output.trimEnd().split('\n')]).toEqual([add, ...expected]);
    }
    // The countries decide for all: an address with a country of its own is not that of the IPv4 address inside.
    const find = withParts.database.fields(['country_code', 'asn', 'site']);
    expect(find('2002:808:808::1')).toMatchObject({ country_code: 'US', asn: 64501, site: 'inside' });
    expect(find('2002:808:101::1')).toMatchObject({ country_code: 'FR', asn: null, site: null });
  });

  const ODD = '"\\,\t=é | Ø';

  it.each<[options: BlockEnricherOptions, input: string, output: string]>([
    [
      { add: ['asn', 'country_code', 'as_name'] },
      '{"ip":"8.8.8.8"}\n{"ip":"9.0.0.1"}\n{"ip":1}\n',
      `{"ip":"8.8.8.8","geo":{"asn":64501,"country_code":"US","as_name":${JSON.stringify(ODD)}}}\n` +
        '{"ip":"9.0.0.1","geo":{"asn":null,"country_code":null,"as_name":null}}\n{"ip":1,"geo":null}\n',
    ],
    [
      { format: 'csv', add: ['as_name', 'network', 'asn'] },
      'ip\n8.8.8.8\n80.0.0.1\n90.0.0.1\nx\n',
      `ip,geo_as_name,geo_network,geo_asn\n8.8.8.8,"${ODD.replaceAll('"', '""')}",8.8.8.8/32,64501\n` +
        '80.0.0.1,"Both ""sides"", Ltd.",80.0.0.0/7,64496\n90.0.0.1,,90.0.0.0/16,4294967295\nx,,,\n'.replace(
          '80.0.0.0/7',
          '80.0.0.0/8',
        ),
    ],
    [{ format: 'combined', add: ['asn', 'as_name'] }, '8.8.8.9 - -\n', '8.8.8.9 - - "15169" "Google LLC"\n'],
    [{ format: 'text', add: ['asn'] }, '10.0.0.1 and 8.8.8.9\n', '10.0.0.1 and 8.8.8.9\t15169\n'],
    [{ format: 'list', add: ['asn', 'as_name'] }, '8.8.8.9\nx\n', '8.8.8.9\t15169\tGoogle LLC\nx\t\t\n'],
    [
      { schema: 'ecs', add: ['asn', 'as_name', 'country_code'] },
      '{"ip":"8.8.8.9","source":{"as":{"organization":{"name":"x","id":1}}}}\n',
      '{"ip":"8.8.8.9","source":{"as":{"organization":{"id":1,"name":"Google LLC"},"number":15169},"geo":{"country_iso_code":"US"}}}\n',
    ],
  ])('are added in %j', (options, input, output) => {
    expect(enrich(input, options)).toBe(output);
  });

  it.each<[options: BlockEnricherOptions, input: KernelInput, style: string]>([
    [{ format: 'jsonl' }, { kind: 'jsonl' }, ','],
    [{ format: 'list' }, { kind: 'list' }, '\t'],
    [{ format: 'csv', delimiter: ';' }, { kind: 'table', delimiter: ';', hasHeader: true }, ';'],
    [{ format: 'csv', delimiter: 'a' }, { kind: 'table', delimiter: 'a', hasHeader: true }, 'a'],
    [{ format: 'combined' }, { kind: 'combined' }, ' '],
    [{ format: 'logfmt', field: 'ip' }, { kind: 'logfmt' }, ' '],
  ])('have names with any characters, in %j', (options, input, style) => {
    const { member } = resultFormat(input, ['as_name'], options.format === 'logfmt' ? 'ip' : 'geo', style);
    const lines = ODD_NAMES.map((_, i) => `8.9.${i}.1`).map((ip) => {
      return { jsonl: `{"ip":"${ip}"}\n`, logfmt: `ip=${ip}\n` }[options.format as string] ?? `${ip}\n`;
    });
    const output = enrich(
      `${options.format === 'csv' ? 'ip\n' : ''}${lines.join('')}`,
      { ...options, add: ['as_name'] },
      odd,
    );
    let at = 0;
    for (const name of ODD_NAMES) {
      const text = member('as_name', name);
      const found = output.indexOf(text, at);
      expect({ name, found: found - at < 30 + text.length && found >= 0 }).toEqual({ name, found: true });
      at = found + text.length;
    }
  });

  it('are null if the release has none', () => {
    const options: BlockEnricherOptions = { add: ['asn', 'as_name', 'country_code', 'network'] };
    expect(enrich('{"ip":"8.8.8.8"}', options, withoutNetworks)).toBe(
      '{"ip":"8.8.8.8","geo":{"asn":null,"as_name":null,"country_code":"US","network":"8.0.0.0/8"}}',
    );
    const find = withoutNetworks.database.fields(['asn', 'network']);
    const { ip: _, ...geo } = find('8.8.8.8')!;
    expect(JSON.parse(enrich('{"ip":"8.8.8.8"}', { add: ['asn', 'network'] }, withoutNetworks)).geo).toEqual(geo);
  });
});
