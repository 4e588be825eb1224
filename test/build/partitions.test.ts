/** A partition that exists only here: its entry is all that the program needs to build, verify, carry, archive and answer it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addRelease } from '../../pipeline/distribution/repository.js';
import { Container } from '../../src/compact/container.js';
import { unpackCompact } from '../../src/database/compact.js';
import { openDatabase } from '../../src/database/database.js';
import { dayOf } from '../../src/day.js';
import { partitionAt } from '../../src/history/day.js';
import { openMirror } from '../../src/mirror/reader.js';
import { PARTITIONS } from '../../src/rangefile/partitions.js';
import { Node, Origin, serveStatic } from '../distribution/support.js';
import { RISKS } from '../support/extra-partition.js';
import { ipatlas } from '../support/in-process.js';
import { type LabelBlock, labelsOf, SMALL_LABELS } from '../support/labels.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

const BLOCKS: LabelBlock[] = [
  ['8.8.0.0/16', { risk: 'low', flag: null }],
  ['8.8.8.8/32', { risk: 'high', flag: 'x' }],
  ['2a00:1::/33', { risk: null, flag: 'y' }],
];
const CASES = { '8.8.8.8': ['high', 'x'], '8.8.8.9': ['low', null], '2a00:1::1': [null, 'y'], '9.9.9.9': [null, null] };

let dir: string;
let data: string;
beforeAll(async () => {
  PARTITIONS.push(RISKS);
  dir = temporaryDir();
  data = join(dir, 'origin');
  const content = labelsOf(BLOCKS)!.merged;
  await publishBlocks(data, SMALL_WORLD, undefined, 0, SMALL_NETWORKS, SMALL_LABELS, [{ partition: RISKS, content }]);
});

// Other files of this worker share the table.
afterAll(() => PARTITIONS.splice(PARTITIONS.indexOf(RISKS), 1));

it('is verified, compared with the mirror and exported', async () => {
  const { stdout } = await ipatlas(['verify', '--data', data, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ ipv4_risk_ranges: 5, ipv6_risk_ranges: expect.any(Number) });
  const mirror = openMirror(join(data, 'current', 'ranges.sqlite'));
  expect(mirror.prepare('SELECT risk, flag FROM risk ORDER BY risk').all()).toEqual([
    { risk: null, flag: 'y' },
    { risk: 'high', flag: 'x' },
    { risk: 'low', flag: null },
  ]);
  mirror.close();
  const file = join(dir, 'all.ipc');
  expect(await ipatlas(['export', 'compact', '--with', 'risks', '-o', file, '--data', data])).toMatchObject({
    code: 0,
  });
  expect(new Container(unpackCompact(readFileSync(file), file), file).names).toEqual(
    expect.arrayContaining(['risk', 'risk4', 'risk6']),
  );
  const table = await ipatlas(['export', 'csv', '--with', 'risks', '--countries', 'US', '-o', '-', '--data', data]);
  expect(table.stdout).toContain('start,end,country_code,country,is_eu,risk,flag\n');
  expect(table.stdout).toContain('8.8.8.8,8.8.8.8,US,United States,false,high,x\n');
});

it('answers in look-ups and enrichments, beside networks and labels', async () => {
  for (const [ip, [risk, flag]] of Object.entries(CASES)) {
    const { stdout } = await ipatlas(['lookup', ip, '--add', 'risk,flag', '--data', data, '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ risk, flag });
  }
  const input = Object.keys(CASES).map((ip) => `{"ip":"${ip}"}\n`);
  const args = ['enrich', '--add', 'asn,site,risk,flag,network', '--data', data];
  const { stdout } = await ipatlas(args, { input: input.join('') });
  using database = openDatabase(data);
  const find = database.fields(['asn', 'site', 'risk', 'flag', 'network']);
  const expected = Object.keys(CASES).map((ip) => {
    const { ip: _, ...geo } = find(ip)!;
    return { geo };
  });
  const lines = stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject(expected);
});

it('is carried to nodes and archived there', async () => {
  const origin = new Origin(dir);
  addRelease(origin.options(), join(data, 'current'));
  const server = await serveStatic(origin.repo);
  const node = new Node(dir);
  expect(await node.pull(server.url, origin.root())).toMatchObject({ outcome: 'published' });
  const [here, there] = [node.dataDir, data].map((each) => readFileSync(join(each, 'current', 'risks.ipr')));
  expect(here!.equals(there!)).toBe(true);
  expect(partitionAt(node.dataDir, dayOf(Date.now()), RISKS)?.count4).toBe(5);
  const { stdout } = await ipatlas(['diff', 'current', 'current', '--risks', '--data', node.dataDir]);
  expect(stdout).toContain('IPv4: no difference');
});
