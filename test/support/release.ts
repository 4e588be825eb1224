/** Makes small releases for tests, with the compile and publish stages of the pipeline. */

import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StageContext } from '../../pipeline/stage.js';
import { compile, type OtherContent } from '../../pipeline/stages/compile.js';
import { publish } from '../../pipeline/stages/publish.js';
import type { EmbeddedScheme } from '../../src/address/embedded.js';
import type { Family } from '../../src/address/parse.js';
import { addressWords } from '../../src/address/words.js';
import { REPORT_FILE, releaseId } from '../../src/database/release.js';
import { parseCidr } from '../../src/range/cidr.js';
import type { CandidateRanges } from '../../src/range/columns.js';
import { mergeRanges } from '../../src/range/merge.js';
import type { RangeRecord } from '../../src/rangefile/layout.js';
import { LABELS, NETWORKS } from '../../src/rangefile/partitions.js';
import { type LabelBlock, labelsOf } from './labels.js';
import { type NetworkBlock, networksOf } from './networks.js';
import { temporaryDir } from './temporary.js';

export { temporaryDir };

/** A block and its record. Later and narrower blocks cover earlier and wider ones. */
export type Block = [cidr: string, record: RangeRecord];

export function country(code: string, name: string, isEu = false): RangeRecord {
  return { kind: 'country', code, name, isEu };
}
export function reason(text: string): RangeRecord {
  return { kind: 'none', reason: text };
}
export function embedded(scheme: EmbeddedScheme): RangeRecord {
  return { kind: 'embedded', scheme };
}

/** A few blocks with every kind of record in both families. */
export const SMALL_WORLD: Block[] = [
  ['8.0.0.0/8', country('US', 'United States')],
  ['193.0.0.0/21', country('NL', 'Netherlands', true)],
  ['80.0.0.0/8', country('DE', 'Germany', true)],
  ['81.0.0.0/8', country('GB', 'United Kingdom')],
  ['90.0.0.0/16', country('CI', "Côte d'Ivoire")],
  ['10.0.0.0/8', reason('private')],
  ['127.0.0.0/8', reason('loopback')],
  ['2001:4860::/32', country('US', 'United States')],
  ['2a00::/16', country('DE', 'Germany', true)],
  ['2a00:1::/48', country('FR', 'France', true)],
  ['2a00:1:0:1::42/128', country('GB', 'United Kingdom')],
  ['::1/128', reason('loopback')],
  ['2002::/16', embedded('6to4')],
  ['64:ff9b::/96', embedded('nat64')],
  ['2001::/32', embedded('teredo')],
];

/** Returns one of two made-up countries, in turn. */
const inTurns = (index: number): RangeRecord =>
  index % 2 === 0 ? country('AA', 'Country AA') : country('BB', 'Country BB');

/** The small world and many more ranges: tables of megabytes, and ranges at the end of the address space. */
export const LARGE_WORLD: Block[] = [
  ...Array.from({ length: 20_000 }, (_, index): Block => [`24.${index >> 8}.${index & 255}.0/25`, inTurns(index)]),
  ...Array.from({ length: 60_000 }, (_, index): Block => [`2a01:${index.toString(16)}::/33`, inTurns(index)]),
  ['255.255.255.128/25', country('AA', 'Country AA')],
  ['ffff:ffff:ffff:ffff:8000::/65', country('AA', 'Country AA')],
  ['ffff:ffff:ffff:ffff:ffff::/80', country('BB', 'Country BB')],
  ...SMALL_WORLD,
];

/** Merges blocks. */
export function partitionOf(family: Family, blocks: Block[], records: RangeRecord[]) {
  const words = addressWords(family);
  const mine = blocks.filter(([cidr]) => cidr.includes(':') === (family === 6));
  const claims: CandidateRanges = {
    family,
    count: mine.length,
    first: new Uint32Array(mine.length * words),
    last: new Uint32Array(mine.length * words),
    value: new Uint16Array(mine.length),
    layer: new Uint8Array(mine.length).fill(2),
  };
  mine.forEach(([cidr, record], index) => {
    const first = new Uint32Array(4);
    const last = new Uint32Array(4);
    if (parseCidr(cidr, first, last) === undefined) throw new Error(`not a block: ${cidr}`);
    claims.first.set(first.subarray(0, words), index * words);
    claims.last.set(last.subarray(0, words), index * words);
    const key = JSON.stringify(record);
    let number = records.findIndex((known) => JSON.stringify(known) === key);
    if (number < 0) number = records.push(record) - 1;
    claims.value[index] = number;
  });
  return mergeRanges(claims);
}

/**
 * Publishes a release made of blocks as the current one of a data directory, which is created if it does not exist.
 *
 * @param historyDays days that the archive keeps; 0 for no history
 * @param networks blocks and who announces them; none for a release without networks
 * @param labels blocks and their labels; none for a release without labels
 * @param more further partitions
 * @returns the release's id, which depends on the content
 */
export async function publishBlocks(
  dataDir: string,
  blocks: Block[],
  asOf = '2026-01-01',
  historyDays = 0,
  networks: readonly NetworkBlock[] = [],
  labels: readonly LabelBlock[] = [],
  more: readonly OtherContent[] = [],
): Promise<string> {
  mkdirSync(dataDir, { recursive: true });
  const workDir = mkdtempSync(join(dataDir, 'work-'));
  const context: StageContext = { dataDir, workDir, offline: true, asOf, note: () => {}, stages: [] };
  const records: RangeRecord[] = [reason('unallocated')];
  const merged = { v4: partitionOf(4, blocks, records), v6: partitionOf(6, blocks, records), records };
  const hashed = networks.length + labels.length === 0 ? blocks : [blocks, networks, labels];
  const inputHash = createHash('sha256').update(JSON.stringify(hashed)).digest('hex');
  const identity = { id: releaseId(asOf, inputHash), inputHash, toolVersion: 'test' };
  const others: OtherContent[] = [];
  if (networks.length > 0) others.push({ partition: NETWORKS, content: networksOf(networks) });
  const labeled = labelsOf(labels);
  if (labeled !== undefined) others.push({ partition: LABELS, content: labeled.merged });
  others.push(...more);
  const compiled = compile({ merged, others, labels: labeled?.inputs, inputs: [], identity }, context);
  const finished = new Date(0).toISOString();
  const report = { release: identity.id, finished, outcome: 'published', refusals: [], gates: [], stages: [] };
  writeFileSync(join(compiled.output.dir, REPORT_FILE), JSON.stringify(report));
  await publish(compiled.output, context, 5, { event: 'build', days: historyDays });
  return identity.id;
}

/** Publishes {@link SMALL_WORLD} in a new data directory, and returns that. */
export async function smallRelease(): Promise<string> {
  const dataDir = temporaryDir();
  await publishBlocks(dataDir, SMALL_WORLD);
  return dataDir;
}
