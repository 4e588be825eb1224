/** Verifies a whole release: all files against the manifest, the structure of the range file, and the mirror against it. */
import { join } from 'node:path';
import { AtlasError, damagedRelease, orThrow, REBUILD } from '../errors.js';
import { verifyMirror } from '../mirror/verifier.js';
import { COUNTRIES, LABELS, OpenPartitions, otherPartitions, type Partition } from '../rangefile/partitions.js';
import { openFile, type PartitionFile, type RangeFile } from '../rangefile/reader.js';
import { verifyRangeFile } from '../rangefile/verifier.js';
import { readStoredReport } from '../report/stored-report.js';
import {
  describeStoredFile,
  hasPartition,
  type Manifest,
  MIRROR_FILE,
  RANGE_FILE,
  REPORT_FILE,
  readManifest,
} from './release.js';
import { checkHash } from './release-files.js';

function checkOutputs(dir: string, manifest: Manifest): void {
  const listed = new Set(manifest.outputs.map(({ name }) => name));
  for (const name of [RANGE_FILE, MIRROR_FILE, ...(manifest.labels ? [LABELS.file] : [])]) {
    if (!listed.has(name)) throw damagedRelease(`${dir}: its manifest does not list ${name}`);
  }
  for (const output of manifest.outputs) {
    const path = join(dir, output.name);
    const actual = orThrow(() => describeStoredFile(path), 'E_DAMAGED', `${path} cannot be read`, REBUILD);
    checkHash(path, actual, output);
  }
}

/** The content of a verified release. */
export interface VerifiedRelease {
  manifest: Manifest;
  file: RangeFile;
  /** What the release has besides the countries. */
  others: OpenPartitions;
}

/**
 * Verifies a release. Reads every byte, even if it was verified before.
 *
 * @param dir the release directory
 * @returns its manifest and the open range file
 * @throws AtlasError E_DAMAGED or E_NO_DATABASE, with the file and the problem
 */
export function verifyRelease(dir: string): VerifiedRelease {
  const manifest = readManifest(dir);
  checkOutputs(dir, manifest);
  const verified = <File extends PartitionFile>(partition: Partition<File>): File => {
    const opened = openFile(partition, join(dir, partition.file), partition.columns?.(manifest));
    verifyRangeFile(opened, partition);
    const { path, asOf } = opened;
    if (asOf === manifest.as_of) return opened;
    throw damagedRelease(`${path} is as of ${asOf}, but its manifest as of ${manifest.as_of}`);
  };
  const file = verified(COUNTRIES);
  const others = new OpenPartitions();
  for (const partition of otherPartitions()) {
    if (hasPartition(manifest, partition)) others.set(partition, verified(partition));
  }
  verifyMirror(join(dir, MIRROR_FILE), file, others);
  return { manifest, file, others };
}

/**
 * Verifies a release as {@link verifyRelease} does, and its report, without which it answers all the same.
 *
 * @throws AtlasError as there; E_DAMAGED also if the report is missing or not valid
 */
export function verifyWithReport(dir: string): VerifiedRelease {
  const release = verifyRelease(dir);
  if (readStoredReport(dir) !== undefined) return release;
  const advice = 'lookups do not need it, and the next build makes the release again';
  throw new AtlasError('E_DAMAGED', `${join(dir, REPORT_FILE)} is missing; ${advice}`);
}
