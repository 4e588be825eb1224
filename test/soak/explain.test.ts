/** `explain` and the release of the installed packages agree at 100,000 addresses. */
import { readFileSync } from 'node:fs';
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
import { builtRelease } from '../support/built-release.js';
import { numberOf } from '../support/networks.js';
import { randomFrom, rounds } from '../support/seed.js';

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
  const dataDir = await builtRelease();
  const dir = namedRelease(dataDir, 'current');
  const families = ([4, 6] as const).map((family) => addressesOf(family, dir));
  const scanned = CSV_FILES.slice(0, 2).flatMap(linesOf).map(endsOf);
  // The other engine than that of explain.
  using database = openDatabase(dataDir, { engine: 'sqlite' });
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
      const { anycast } = explanation.kinds!;
      counts.set(`anycast ${anycast}`, (counts.get(`anycast ${anycast}`) ?? 0) + 1);
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
});
