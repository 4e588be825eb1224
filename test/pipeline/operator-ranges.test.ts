import { expect, test } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { loadOperatorRegions } from '../../pipeline/source-formats/operator-ranges.js';
import { readSource } from '../../pipeline/source-formats/read-source.js';
import { ingestContents, inputOf, rangesText, withFiles } from './ingest-helper.js';

test('every country of the region table is known', () => {
  const { countries } = loadReference();
  const regions = loadOperatorRegions();
  expect(regions.size).toBeGreaterThan(100);
  for (const [region, country] of regions) expect(countries.has(country), region).toBe(true);
});

test.each([
  ['aws-ip-ranges', 'not JSON', /is not JSON/],
  ['aws-ip-ranges', 'null', /has no prefixes/],
  ['google-cloud', '[]', /has no prefixes/],
  ['oracle-cloud', '{"regions":{}}', /has no prefixes/],
  ['azure-service-tags', '{"values":[{"name":"AzureCloud.westeurope"}]}', /has no prefixes/],
  [
    'google-cloud',
    '{"prefixes":[{"scope":"global","ipv4Prefix":"1.0.0.0/8"}]}',
    /hold no ranges \(1 rows were skipped\)/,
  ],
])('%s refuses %s', async (format, content, message) => {
  await expect(ingestContents(format, { 'a.json': content })).rejects.toThrow(message);
});

test('a prefix that is not valid is rejected', async () => {
  const prefixes = ['1.0.0.0/24', '1.0.1.1/24', 'x', 7, null].map((ipv4Prefix) => ({ ipv4Prefix, scope: 'us-east1' }));
  const { ingested } = await ingestContents('google-cloud', { 'a.json': JSON.stringify({ prefixes }) }, 1);
  expect(rangesText(ingested)).toEqual(['1.0.0.0-1.0.0.255 US']);
  expect(ingested.rejected).toBe(4);
});

test('a prefix without a region is rejected; one of an unknown region is skipped, and the note is safe to print', async () => {
  const entry = (ip_prefix: string, region?: unknown) => ({ ip_prefix, service: 'EC2', region });
  const unknown = Array.from({ length: 25 }, (_, i) => entry('9.0.0.0/8', `\u001b[2Jmoon-${100 + i}`));
  const prefixes = [entry('1.0.0.0/24', 'us-east-1'), entry('1.0.1.0/24'), entry('1.0.2.0/24', 7), ...unknown];
  const notes: string[] = [];
  const { ingested, skipped, rejects } = await withFiles({ 'a.json': JSON.stringify({ prefixes }) }, (files) =>
    readSource(inputOf('aws-ip-ranges', files, 1), (text) => notes.push(text)),
  );
  expect([ingested.rows, ingested.rejected, skipped]).toEqual([1, 2, 25]);
  expect(rejects.map(({ line, reason }) => [line, reason])).toEqual([
    [2, 'the region is missing'],
    [3, 'the region is missing'],
  ]);
  expect(notes).toEqual([
    expect.stringMatching(
      /^a\.json: no country is known for the regions "[^\p{C}]* \(1 prefix\)[^\p{C}]* and 5 more; /u,
    ),
  ]);
});

test('rows of no region, GLOBAL, are anycast; prefixes of other services than EC2 are only listed', async () => {
  const entry = (ip_prefix: string, region: string, service = 'EC2') => ({ ip_prefix, service, region });
  const prefixes = [
    entry('1.0.0.0/24', 'us-east-1'),
    entry('1.0.1.0/24', 'GLOBAL'),
    entry('1.0.2.0/24', 'us-east-1', 'S3'),
  ];
  const { ingested } = await ingestContents('aws-ip-ranges', { 'a.json': JSON.stringify({ prefixes }) });
  expect(rangesText(ingested)).toEqual(['1.0.0.0-1.0.0.255 US']);
  expect([...ingested.listed!.v4.value]).toEqual([0, 1, 0]);
});

test('a list that is not JSON is refused with the position of the error, without its text', async () => {
  await expect(ingestContents('google-cloud', { 'a.json': '{\n  "prefixes": [\u001b]0;x' })).rejects.toThrow(
    'source test: a.json:2:16 is not JSON. Check the fetched files, and the source\'s "format" and "maxRejectShare"',
  );
});
