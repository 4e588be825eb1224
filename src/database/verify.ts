/** Verifies a whole release: all files against the manifest, the structure of the range file, and the mirror against it. */
import { join } from 'node:path';
import { AtlasError, causedError, damagedRelease, REBUILD } from '../errors.js';
import { MIRROR_VERSION } from '../mirror/reader.js';
import { verifyMirror } from '../mirror/verifier.js';
import {
  type LabelFile,
  type NetworkFile,
  openLabelFile,
  openNetworkFile,
  openRangeFile,
  type PartitionFile,
  type RangeFile,
} from '../rangefile/reader.js';
import { verifyLabelFile, verifyNetworkFile, verifyRangeFile } from '../rangefile/verifier.js';
import { readStoredReport } from '../report/stored-report.js';
import {
  describeStoredFile,
  LABEL_FILE,
  type Manifest,
  type ManifestFile,
  MIRROR_FILE,
  NETWORK_FILE,
  RANGE_FILE,
  REPORT_FILE,
  readManifest,
} from './release.js';
import { checkHash } from './release-files.js';

function checkOutputs(dir: string, manifest: Manifest): void {
  const listed = new Set(manifest.outputs.map(({ name }) => name));
  for (const name of [RANGE_FILE, MIRROR_FILE, ...(manifest.labels ? [LABEL_FILE] : [])]) {
    if (!listed.has(name)) throw damagedRelease(`${dir}: its manifest does not list ${name}`);
  }
  for (const output of manifest.outputs) {
    const path = join(dir, output.name);
    let actual: ManifestFile;
    try {
      actual = describeStoredFile(path);
    } catch (error) {
      throw causedError('E_DAMAGED', `${path} cannot be read`, error, REBUILD);
    }
    checkHash(path, actual, output);
  }
}

/** The content of a verified release. */
export interface VerifiedRelease {
  manifest: Manifest;
  file: RangeFile;
  /** Undefined if the release has none. */
  networks: NetworkFile | undefined;
  labels: LabelFile | undefined;
  mirrorVersion: number;
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
  const file = openRangeFile(join(dir, RANGE_FILE));
  verifyRangeFile(file);
  const hasNetworks = manifest.outputs.some(({ name }) => name === NETWORK_FILE);
  const networks = hasNetworks ? openNetworkFile(join(dir, NETWORK_FILE)) : undefined;
  if (networks !== undefined) verifyNetworkFile(networks);
  const labels = manifest.labels && openLabelFile(join(dir, LABEL_FILE), manifest.labels.columns);
  if (labels !== undefined) verifyLabelFile(labels);
  for (const each of [file, networks, labels] as (PartitionFile | undefined)[]) {
    if (each === undefined || each.asOf === manifest.as_of) continue;
    const { path, asOf } = each;
    throw damagedRelease(`${path} is as of ${asOf}, but its manifest as of ${manifest.as_of}`);
  }
  verifyMirror(join(dir, MIRROR_FILE), file, networks, labels);
  return { manifest, file, networks, labels, mirrorVersion: MIRROR_VERSION };
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
