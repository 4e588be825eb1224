/** `explain` and a release of the installed packages, with lists of kinds of networks as large as the real ones, agree at 100,000 addresses. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CSV_FILES } from '../../bench/paths.js';
import { loadReference } from '../../pipeline/config/reference.js';
import { type Explanation, explainAll } from '../../pipeline/explain/explain.js';
import { formatAddress } from '../../src/address/format.js';
import { addressBits } from '../../src/address/words.js';
import { openDatabase } from '../../src/database/database.js';
import { MIRROR_FILE, namedRelease } from '../../src/database/release.js';
import { openMirror } from '../../src/mirror/reader.js';
import { packageFile } from '../../src/package-root.js';
import { ipatlas } from '../support/in-process.js';
import { numberOf } from '../support/networks.js';
import { temporaryDir } from '../support/release.js';
import { randomFrom, rounds } from '../support/seed.js';
import { buildOnce } from '../support/sources.js';

const ADDRESSES = rounds(100_000);
/** So many are explained at once. */
const PASS = 20_000;

const random = randomFrom();
const oneOf = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
const DBIP = ['ipv4', 'ipv6'].map((name) =>
  packageFile(`node_modules/@ip-location-db/dbip-country/dbip-country-${name}.csv`),
);

/** The first and the last address. */
type Ends = readonly [bigint, bigint];

const linesOf = (path: string): string[] => readFileSync(path, 'utf8').trimEnd().split('\n');
const endsOf = (line: string): Ends => line.split(',', 2).map(numberOf) as unknown as Ends;

/** Makes prefixes up: runs of neighbors, as operators have them. */
function prefixes(count: number, family: 4 | 6, base: number, length: number): string[] {
  let block = 0;
  return Array.from({ length: count }, () => {
    block += random() < 0.02 ? 2 + Math.floor(64 * random()) : 1;
    const words = family === 4 ? [base + block * 2 ** (32 - length)] : [base, block, 0, 0];
    return `${formatAddress(family, words)}/${length}`;
  });
}

/** Prefixes that a census found at several sites: the beginnings of rows of locations. */
const CENSUS = linesOf(DBIP[0]!)
  .filter(() => random() < 0.01)
  .map((line) => `${line.split(',', 1)[0]!.replace(/\d+$/, '0')}/24`);

/** Builds a release with Apple's, Amazon's and Tor's lists, and a census. */
async function build(dir: string): Promise<string> {
  const csv = (id: string, name: string, more: object) => ({
    ...{ id, license: 'facts', lineage: 'registry', kind: 'geolocation', format: 'ip-location-db', ...more },
    fetch: { file: packageFile(`node_modules/@ip-location-db/${name}/${name}-ipv?.csv`) },
  });
  const list = (id: string, format: string, text: string, more: object) => {
    writeFileSync(join(dir, id), text);
    return { id, license: 'facts', fetch: { file: id }, format, ...more };
  };
  const relay = [...prefixes(60_000, 4, 17 * 2 ** 24, 28), ...prefixes(220_000, 6, 0x2a0226f7, 64)];
  const cloud = prefixes(9500, 4, 52 * 2 ** 24, 20).map((ip_prefix) => ({
    ip_prefix,
    region: 'us-east-1',
    service: 'EC2',
  }));
  const tor = Array.from({ length: 1300 }, () => formatAddress(4, [2 ** 29 + Math.floor(random() * 2 ** 31)]));
  const sources = [
    list('aws', 'aws-ip-ranges', JSON.stringify({ prefixes: cloud }), { kind: 'operator', asns: [16509] }),
    list('relay', 'geofeed', relay.map((prefix) => `${prefix},US,,,\n`).join(''), {
      ...{ kind: 'geofeed', asns: [36183], network: { kind: 'relay', operator: 'icloud-private-relay' } },
    }),
    list('tor', 'cidr-list', tor.join('\n'), { network: { kind: 'tor', operator: 'tor' } }),
    list('census', 'cidr-list', CENSUS.join('\n'), { kind: 'anycast' }),
    csv('user-country', 'geo-whois-asn-country', {}),
    csv('dbip-lite', 'dbip-country', { lineage: 'dbip', interpolates: true }),
    csv('rir-delegations', 'asn-country', { kind: 'registry' }),
    csv('origin-asn', 'asn', { kind: 'routing', lineage: 'routing', format: 'origin-asn' }),
  ];
  const path = join(dir, 'sources.json');
  const gates = { maxWrongSentinels: 99, maxWrongNetworkSentinels: 99 };
  writeFileSync(path, JSON.stringify({ merge: 'evidence', gates, sources }));
  expect(await buildOnce(join(dir, 'data'), path)).toMatchObject({ outcome: 'published' });
  return join(dir, 'data');
}

/** Returns a function that yields addresses of a family, half of them where a mistake is likely. */
function addressesOf(family: 4 | 6, dir: string): () => string {
  const mirror = openMirror(join(dir, MIRROR_FILE));
  const number = (end: number | Buffer): bigint => BigInt(typeof end === 'number' ? end : `0x${end.toString('hex')}`);
  const query = `SELECT first, last FROM ipv${family}_range`;
  const [all, disputed] = [query, `${query} JOIN ipv${family}_confidence USING (first)`].map((sql) => {
    const rows = mirror.prepare<[], { first: number | Buffer; last: number | Buffer }>(sql).all();
    return rows.map(({ first, last }): Ends => [number(first), number(last)]);
  });
  mirror.close();
  const rows = [...CSV_FILES, ...DBIP].filter((path) => path.endsWith(`${family}.csv`)).flatMap(linesOf);
  const inside = ([first, last]: Ends): bigint =>
    first + (BigInt(Math.floor(random() * 2 ** 52)) * (last - first + 1n)) / 2n ** 52n;
  const atEnd = (ends: Ends): bigint => oneOf(ends) + oneOf([-1n, 0n, 1n]);
  const kinds = [
    () => inside(oneOf(all!)),
    () => inside(oneOf(all!)),
    () => inside(oneOf(disputed!)),
    () => atEnd(oneOf([oneOf(all!), oneOf(disputed!), endsOf(oneOf(rows))])),
  ];
  // A third of the addresses are in anycast space.
  const anycast = loadReference().anycast.filter((block) => block.family === family);
  const ends = anycast.map(
    ({ first, last }): Ends => [numberOf(formatAddress(family, first)), numberOf(formatAddress(family, last))],
  );
  return () => {
    const number = random() < 1 / 3 ? inside(oneOf(ends)) : oneOf(kinds)();
    const address = BigInt.asUintN(addressBits(family), number);
    const shifts = family === 4 ? [0n] : [96n, 64n, 32n, 0n];
    return formatAddress(
      family,
      shifts.map((bits) => Number((address >> bits) & 0xffffffffn)),
    );
  };
}

/** Returns what is wrong with an explanation; undefined if nothing is. */
function problemOf({ result, steps, network, notes }: Explanation): string | undefined {
  const answer = result.country_code ?? result.reason;
  const { range, rows, vote } = steps.at(-1)!;
  const [winner, ...others] = rows;
  const announced = network!.rows.find(({ outcome }) => outcome === 'won');
  if (notes.length > 0) return notes.join();
  if (range.answer !== answer || (winner?.label ?? 'unallocated') !== answer) return 'another row wins';
  const inNoFile = ['undelegated', 'special-purpose', undefined];
  if (winner?.outcome === 'lost' || ![...range.sources, ...inNoFile].includes(winner?.source))
    return 'another source wins';
  if (others.some(({ outcome, label, why }) => (outcome === 'won' ? label !== answer : why === null)))
    return 'a loser without a reason';
  if (vote !== undefined && range.confidence! > (100 * vote.agreeing) / vote.lineages) return 'another vote';
  if (network!.asn !== (announced?.asn ?? null)) return 'another network';
  return undefined;
}

it('agree in country, deciding row, vote and network', async () => {
  const dataDir = await build(temporaryDir());
  const dir = namedRelease(dataDir, 'current');
  const families = ([4, 6] as const).map((family) => addressesOf(family, dir));
  const scanned = CSV_FILES.slice(0, 2).flatMap(linesOf).map(endsOf);
  // The other engine than that of explain.
  using database = openDatabase(dataDir, { engine: 'sqlite' });
  using binary = openDatabase(dataDir);
  const kindsOf = binary.fields(['anycast', 'kind', 'operator']);
  const counts = new Map<string, number>();
  for (let done = 0; done < ADDRESSES; done += PASS) {
    const texts = Array.from({ length: Math.min(PASS, ADDRESSES - done) }, (_, i) => families[i % 2]!());
    const explanations = await explainAll(dataDir, dir, texts);
    for (const [i, text] of texts.entries()) {
      const explanation = explanations[i]!;
      expect(explanation.result).toEqual(database.lookupWithReason(text));
      expect(problemOf(explanation), text).toBe(undefined);
      const [winner] = explanation.steps.at(-1)!.rows;
      counts.set(winner?.source ?? 'none', (counts.get(winner?.source ?? 'none') ?? 0) + 1);
      const { ip: _, ...kinds } = kindsOf(text)!;
      expect(explanation.kinds).toMatchObject(kinds);
      counts.set(`anycast ${kinds.anycast}`, (counts.get(`anycast ${kinds.anycast}`) ?? 0) + 1);
    }
    for (const { steps } of explanations.slice(0, 20)) {
      const { address, rows } = steps[0]!;
      const isOfFamily = ([first]: Ends): boolean => first < 2n ** 32n === !address.includes(':');
      const number = numberOf(address);
      const covering = scanned.filter((ends) => isOfFamily(ends) && ends[0] <= number && number <= ends[1]);
      const found = rows.filter(({ source }) => source === 'user-country');
      expect(found, address).toHaveLength(covering.length);
    }
  }
  expect(counts.get('anycast true')).toBeGreaterThan(ADDRESSES / 4);
  for (const source of ['user-country', 'dbip-lite']) expect(counts.get(source)).toBeGreaterThan(ADDRESSES / 20);

  // Anycast prefixes have the country of the registry or of user-country, and so do the operators' own services.
  const own = loadReference().anycast.map(({ family, first }) => formatAddress(family, first));
  const explained = await explainAll(dataDir, dir, [...CENSUS.map((prefix) => prefix.split('/')[0]!), ...own]);
  const isRegistered = ({ steps, result }: Explanation): boolean =>
    steps[0]!.rows.some(({ source, label }) => /^(user-country|rir-del)/.test(source) && label === result.country_code);
  expect(explained.every(({ kinds }) => kinds!.anycast)).toBe(true);
  expect(explained.slice(0, CENSUS.length).filter(isRegistered).length).toBeGreaterThan(0.9 * CENSUS.length);
  expect(explained.slice(CENSUS.length).filter((each) => !isRegistered(each))).toEqual([]);
  const sizes: number[] = [];
  for (const more of [[], ['--with', 'kinds']]) {
    const path = join(dataDir, `${sizes.length}.ipc`);
    expect(await ipatlas(['export', 'compact', ...more, '-o', path, '--data', dataDir])).toMatchObject({ code: 0 });
    sizes.push(statSync(path).size);
  }
  expect(sizes[1]! - sizes[0]!).toBeLessThan(400_000);
});
