/**
 * The IPv6 columns of a release are read when the first IPv6 address comes. Tests the answers before and after that, and what
 * happens if the release was removed or cut off meanwhile.
 */
import { once } from 'node:events';
import { rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { RANGE_FILE, releaseDir } from '../../src/database/release.js';
import { finished, start } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { LARGE_WORLD, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

let dataDir: string;
/** Publishes a release whose files are known to be unchanged: others are read as a whole. */
async function publish(blocks: typeof SMALL_WORLD): Promise<void> {
  await publishBlocks(dataDir, blocks);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_000 });
  openDatabase(dataDir).close();
  vi.useRealTimers();
}
beforeEach(() => {
  dataDir = temporaryDir();
});

const IPV4 = ['8.8.8.8', '193.0.0.1', '10.0.0.1', '24.3.4.5', '255.255.255.255', '0.0.0.0'];
const IPV6 = [
  ...['::', '::1', '2001:4860::8', '2a00:1::1', '2a00:1:0:1::41', '2a00:1:0:1::42', '2a01:4::', '2a01:e0ff:8000::'],
  ...['2002:808:808::1', '64:ff9b::193.0.0.1', '2001::f7f7:f7f7', '::ffff:80.1.2.3', 'ffff:ffff:ffff:ffff:8000::1'],
];

/** Returns lines, and their results by the library, which has the whole file. */
function linesOf(addresses: readonly string[], count: number) {
  const database = openDatabase(dataDir);
  const codes = addresses.map((ip) => database.lookup(ip)?.country_code);
  const line = (_: unknown, i: number): string => `{"ip":"${addresses[i % addresses.length]}","n":${i}}\n`;
  const result = (_: unknown, i: number): string =>
    line(_, i).replace('}', `,"geo":{"country_code":${JSON.stringify(codes[i % codes.length])}}}`);
  return {
    input: Array.from({ length: count }, line).join(''),
    output: Array.from({ length: count }, result).join(''),
  };
}

const ENRICH = ['enrich', '--add', 'country_code'];

it('finds IPv6 addresses among the first lines and after megabytes', async () => {
  await publish(LARGE_WORLD);
  const parts = [linesOf(IPV4, 80_000), linesOf([...IPV6, ...IPV4], 1_000), linesOf(IPV6, 20)];
  for (const jobs of ['1', '2']) {
    for (const order of [[2], [1], [0], [0, 1], [2, 0], [1, 0, 2]]) {
      const input = order.map((part) => parts[part]!.input).join('');
      const { code, stdout } = await ipatlas([...ENRICH, '--jobs', jobs, '--data', dataDir], { input });
      expect(code).toBe(0);
      expect(stdout === order.map((part) => parts[part]!.output).join(''), `${order}`).toBe(true);
    }
  }
});

it.each([
  ['was removed', 0, () => rmSync(releaseDir(dataDir), { recursive: true })],
  ['has become shorter', 5, () => truncateSync(join(releaseDir(dataDir), RANGE_FILE), 300_000)],
])('goes on with the release that it has opened if that %s', async (change, exitCode, harm) => {
  await publish(SMALL_WORLD);
  const [first, second] = [linesOf(IPV4, 10), linesOf(IPV6, 10)];
  const child = start([...ENRICH, '--data', dataDir]);
  const end = finished(child);
  child.stdin!.write(first.input);
  await once(child.stdout!, 'data');
  harm();
  child.stdin!.end(second.input);
  const { code, stdout, stderr } = await end;
  expect(code, stderr).toBe(exitCode);
  expect(stdout).toBe(first.output + (exitCode === 0 ? second.output : ''));
  if (exitCode > 0) expect(stderr).toContain(change);
});
