/** Stage `compile`: writes the merged ranges as the files of a release, in the work folder. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addressWords } from '../../src/address/words.js';
import {
  describeFile,
  describeStoredFile,
  type LabelInputs,
  MANIFEST_FILE,
  type Manifest,
  type ManifestFile,
  type ManifestInput,
  MIRROR_FILE,
  type MissingList,
  type NetworkCounts,
  RANGE_FILE,
} from '../../src/database/release.js';
import type { MergedRanges, RangeColumns } from '../../src/range/columns.js';
import type { FileRecord, RangeRecord } from '../../src/rangefile/layout.js';
import { NETWORKS, OpenPartitions, type Partition, type PartitionContent } from '../../src/rangefile/partitions.js';
import { decodeFile, type NetworkFile, rangeColumns } from '../../src/rangefile/reader.js';
import { encodeFile, encodeRangeFile } from '../../src/rangefile/writer.js';
import type { Merged } from '../merging/range-merger.js';
import { dataDate } from '../merging/release-date.js';
import type { ReleaseIdentity } from '../release-id.js';
import { isByEvidence, writeReleaseMirror } from '../release-mirror.js';
import type { FinishedRelease, MissingSource, StageContext, StageResult } from '../stage.js';

/** The ranges and records of a partition besides the countries. */
export interface OtherContent {
  partition: Partition;
  content: PartitionContent;
}

export interface CompileInput {
  merged: Merged;
  /** The other partitions that the release has, in the order of the table. */
  others?: readonly OtherContent[];
  /** Date of the oldest source of networks; undefined if nothing tells it. */
  networksDate?: string | undefined;
  /** What the labels were made of; undefined if none are configured. */
  labels?: LabelInputs | undefined;
  /** The lists of kinds of networks that are configured, but that the build did without. */
  missingLists?: readonly MissingList[];
  /** The source with the highest priority first. */
  inputs: ManifestInput[];
  /** Optional sources that the build does without. */
  missing?: MissingSource[];
  /** The user's overrides; undefined if none are configured. */
  overrides?: ManifestFile | undefined;
  identity: ReleaseIdentity;
}

/**
 * Counts the space with a country, or with a network, in units of 2^`shift` addresses; of each range only its whole units count.
 *
 * @param shift 0 for IPv4 addresses, 80 for IPv6 /48 blocks
 */
function unitsWith(
  kind: 'country' | 'network',
  ranges: RangeColumns,
  records: readonly FileRecord[],
  shift: 0 | 80,
): bigint {
  const words = addressWords(ranges.family);
  // The number of the unit that holds the first address of a range; a fraction if the range begins inside a unit.
  const unitAt = (range: number): number => {
    if (range === ranges.count) return shift === 0 ? 2 ** 32 : 2 ** 48;
    const at = range * words;
    if (shift === 0) return ranges.first[at]!;
    const units = ranges.first[at]! * 2 ** 16 + (ranges.first[at + 1]! >>> 16);
    const isWhole = (ranges.first[at + 1]! & 0xffff) === 0 && ranges.first[at + 2] === 0 && ranges.first[at + 3] === 0;
    return isWhole ? units : units + 0.5;
  };
  let sum = 0n;
  for (let range = 0; range < ranges.count; range++) {
    if (records[ranges.value[range]!]!.kind !== kind) continue;
    sum += BigInt(Math.max(0, Math.floor(unitAt(range + 1)) - Math.ceil(unitAt(range))));
  }
  return sum;
}

/** Counts the countries that occur in the ranges. */
function countriesIn(families: MergedRanges[], records: RangeRecord[]): number {
  const seen = new Set<number>();
  for (const { value } of families) for (const record of value) seen.add(record);
  return [...seen].filter((record) => records[record]!.kind === 'country').length;
}

function networkCounts(file: NetworkFile): NetworkCounts {
  const { records } = file;
  return {
    networks: records.filter(({ kind }) => kind === 'network').length,
    ipv4_ranges: file.count4,
    ipv6_ranges: file.count6,
    ipv4_addresses: String(unitsWith('network', rangeColumns(file, 4), records, 0)),
    ipv6_48s: String(unitsWith('network', rangeColumns(file, 6), records, 80)),
  };
}

/** The stage. */
export function compile(
  { merged, others = [], networksDate, labels, missingLists, inputs, missing = [], overrides, identity }: CompileInput,
  { workDir, asOf }: StageContext,
): StageResult<FinishedRelease> {
  const { v4, v6, records } = merged;
  const dir = join(workDir, 'release');
  mkdirSync(dir);
  const confidence = isByEvidence(inputs) ? { v4: v4.confidence, v6: v6.confidence } : undefined;
  const write = (name: string, bytes: Uint8Array): ManifestFile => {
    writeFileSync(join(dir, name), bytes);
    return describeFile(name, bytes);
  };
  const outputs = [write(RANGE_FILE, encodeRangeFile({ asOf, v4, v6, records, confidence }))];
  // The mirror has the other partitions as their files have them: numbered in that order, without records that nothing is left of.
  const opened = new OpenPartitions();
  for (const { partition, content } of others) {
    const bytes = encodeFile(partition, { asOf, ...content });
    opened.set(partition, decodeFile(partition, bytes, partition.file, true, partition.columns?.({ labels })));
  }
  const mirrorPath = join(dir, MIRROR_FILE);
  const about = { id: identity.id, as_of: asOf, tool_version: identity.toolVersion };
  writeReleaseMirror(mirrorPath, { ...about, inputs }, { v4, v6, records, others: opened });
  outputs.push(describeStoredFile(mirrorPath));
  const counts: Record<string, number> = {};
  for (const [{ file, table }, { bytes }] of opened.entries()) {
    outputs.push(write(file, bytes));
    counts[`${table}_file_bytes`] = bytes.length;
  }
  const networkFile = opened.get(NETWORKS);
  const date = dataDate(inputs, [v4, v6], records);
  const manifest: Manifest = {
    manifest_version: 1,
    ...about,
    input_hash: identity.inputHash,
    inputs,
    ...(overrides && { overrides }),
    ...(labels && { labels }),
    ...(missingLists && { kinds: { missing: [...missingLists] } }),
    ...(date !== undefined && { data_date: date }),
    ...(networksDate !== undefined && { networks_date: networksDate }),
    ...(missing.length > 0 && { missing }),
    outputs,
    counts: {
      ipv4_ranges: v4.count,
      ipv6_ranges: v6.count,
      countries: countriesIn([v4, v6], records),
      ipv4_addresses_with_country: String(unitsWith('country', v4, records, 0)),
      ipv6_48s_with_country: String(unitsWith('country', v6, records, 80)),
      ...(networkFile && { networks: networkCounts(networkFile) }),
    },
  };
  writeFileSync(join(dir, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`);
  return {
    output: { id: identity.id, dir },
    counts: {
      range_file_bytes: outputs[0]!.bytes,
      mirror_bytes: outputs[1]!.bytes,
      countries: manifest.counts.countries,
      ...counts,
    },
  };
}
