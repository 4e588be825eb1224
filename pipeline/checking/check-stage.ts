/** The check of a sample before a release is published, and of all rows of a stored release. */
import { basename, join } from 'node:path';
import { readPullState } from '../../src/database/pull-state.js';
import { type Manifest, type ManifestFile, MIRROR_FILE, type Refusal } from '../../src/database/release.js';
import { type VerifiedRelease, verifyRelease } from '../../src/database/verify.js';
import { AtlasError } from '../../src/errors.js';
import { openMirror } from '../../src/mirror/reader.js';
import { loadOverrides, type Override } from '../config/overrides.js';
import { loadReference } from '../config/reference.js';
import { cachedInput, evidenceOf } from '../explain/covering-rows.js';
import { kindLists } from '../merging/kind-merger.js';
import { identifyRelease } from '../release-id.js';
import { readSource, type SourceResult } from '../source-formats/read-source.js';
import type { FetchedFile, StageContext, StageResult } from '../stage.js';
import { type CheckInput, type Disagreement, ExpectedAnswers, ReleaseComparison } from './check-release.js';
import { numberOf } from './plain-rules.js';
import { type RowSample, type SampledRow, sampledRow } from './sample.js';

/** Disagreements that a message shows. */
const SHOWN = 5;

/** Rows to check, by position of their source; those of overrides.csv are under -1. */
export interface RowsToCheck {
  rows: Map<number, readonly SampledRow[]>;
  /** Files without address text, which are not checked. */
  withoutText: string[];
}

/** Returns the rows to check before a release is published. @param path of overrides.csv */
export function sampleRows(
  samples: readonly RowSample[],
  path: string | undefined,
  overrides: readonly Override[],
): RowsToCheck {
  const rows = new Map<number, readonly SampledRow[]>(samples.map((sample, source) => [source, sample.rows]));
  if (path !== undefined) rows.set(-1, overrideRows(basename(path), overrides));
  return { rows, withoutText: samples.flatMap((sample) => [...sample.withoutText]) };
}

/** Returns the rows of overrides.csv that apply. */
function overrideRows(file: string, overrides: readonly Override[]): SampledRow[] {
  return overrides.map(({ line, text, family, first, last }) => {
    const texts = text.split('-').map((end) => end.trim());
    const notation = texts.length === 2 ? { text: { first: 0, last: 1 } } : { cidr: { network: 0 } };
    return { file, csv: undefined, row: line, notation, texts, family, first: numberOf(first), last: numberOf(last) };
  });
}

/** Returns disagreements as phrases with file and line. */
async function describe(found: readonly Disagreement[]): Promise<string[]> {
  const texts: string[] = [];
  for (const { row, text } of found.slice(0, SHOWN)) {
    const line = row.csv === undefined ? row.row : (await row.csv.locate([row.row])).get(row.row)?.line;
    texts.push(`${row.file}, line ${line} (${row.texts.join(' – ')}): ${text}`);
  }
  if (found.length > SHOWN) texts.push(`${found.length - SHOWN} more disagreements`);
  return texts;
}

/**
 * Computes the hash of a release's inputs again, of what its manifest says of them: sources with formats, licenses, attributions and
 * hashes of files, overrides, labels; and of the reference tables of this ipatlas.
 *
 * @returns whether the manifest has that hash; undefined if that cannot be told: another version made the release, its overrides
 *   are not stored here, or it was pulled, perhaps without its labels
 */
export function checkInputHash(dataDir: string, manifest: Manifest): boolean | undefined {
  const { inputs, overrides: listed, labels, kinds, as_of: asOf, input_hash: hash, tool_version: version } = manifest;
  const reference = loadReference();
  const files = listed === undefined ? [] : cachedInput(dataDir, [listed]);
  if (typeof files === 'string' || readPullState(dataDir) !== undefined) return undefined;
  const { inputHash, toolVersion } = identifyRelease({
    sources: inputs.map(({ lineage = '', kind = 'other', interpolates = false, space = [], asns = [], ...input }) => {
      return { ...input, lineage, kind, interpolates, space, asns };
    }),
    merge: evidenceOf(manifest) === undefined ? 'priority' : 'evidence',
    reference,
    overrides: files.flatMap(({ path }) => loadOverrides(path, reference, asOf).rows),
    overridesFile: listed?.sha256 ?? '',
    labels: labels?.files ?? [],
    missingLists: kinds?.missing ?? [],
    asOf,
  });
  return inputHash === hash || (version === toolVersion ? false : undefined);
}

/** Rows that are checked together when all of a release are. */
const CHUNK_ROWS = 50_000;

/** What a check of all rows found. */
export interface DeepCheck {
  rows: number;
  /** What differs, as phrases with file and line; the first ones. */
  disagreements: string[];
  withoutText: string[];
}

/**
 * Checks a release at all rows of its sources.
 *
 * @param dataDir the data directory, whose cache has the files of its releases
 * @param dir of the release
 * @throws AtlasError E_DAMAGED if the release is; E_NO_DATABASE if the files of its sources are not stored
 */
export async function checkStoredRelease(dataDir: string, dir: string): Promise<DeepCheck> {
  const verified = verifyRelease(dir);
  const { manifest } = verified;
  const reference = loadReference();
  const stored = (files: readonly ManifestFile[]): FetchedFile[] => {
    const found = cachedInput(dataDir, files);
    if (typeof found !== 'string') return found;
    const advice = 'only a release that was built here can be checked against its sources; leave out --deep';
    throw new AtlasError('E_NO_DATABASE', `${found}, which ${manifest.id} was made from, is not stored; ${advice}`);
  };
  const asns = new Set(manifest.inputs.flatMap((input) => input.asns ?? []));
  const inputs = manifest.inputs.map(({ id, format, kind, files }) => ({
    ...{ source: { id, format, kind, maxRejectShare: 1 }, files: stored(files), asns },
  }));
  const own = manifest.overrides && stored([manifest.overrides])[0]!;
  const overrides = own === undefined ? [] : loadOverrides(own.path, reference, manifest.as_of).rows;
  const results: SourceResult[] = [];
  for (const input of inputs) results.push(await readSource(input, () => {}));
  const sources = results.map(({ ingested }) => ingested);
  const owned = results.flatMap((result) => result.owned);
  const mirror = openMirror(join(dir, MIRROR_FILE));
  try {
    const evidence = evidenceOf(manifest);
    const lists = kindLists(manifest.inputs, manifest.kinds?.missing ?? []);
    const answers = new ExpectedAnswers({ sources, evidence, owned, overrides, reference, lists });
    const release = new ReleaseComparison(verified, mirror);
    const found: Disagreement[] = [];
    const check = (source: number, rows: readonly SampledRow[]): void => {
      const { expected, misread } = answers.at(new Map([[source, rows]]));
      found.push(...misread, ...release.with(expected));
    };
    check(-1, own === undefined ? [] : overrideRows(own.name, overrides));
    const withoutText = new Set<string>();
    let rows = overrides.length;
    for (const [source, input] of inputs.entries()) {
      const chunk: SampledRow[] = [];
      const checkChunk = (): void => {
        rows += chunk.length;
        check(source, chunk.splice(0));
      };
      await readSource(
        input,
        () => {},
        (range) => {
          const row = sampledRow(range);
          if (row === undefined) withoutText.add(range.file.name);
          else if (chunk.push(row) === CHUNK_ROWS) checkChunk();
        },
      );
      checkChunk();
    }
    return { rows, disagreements: await describe(found), withoutText: [...withoutText] };
  } finally {
    mirror.close();
  }
}

/**
 * Returns a function that checks a compiled release, for stage `verify`. What the release must say is told by the rows at once, so that
 * their columns need not be in memory until then.
 */
export function checkOf(input: CheckInput, { rows, withoutText }: RowsToCheck, note: StageContext['note']) {
  const { expected, misread } = new ExpectedAnswers(input).at(rows);
  const checked = [...rows.values()].reduce((sum, each) => sum + each.length, 0);
  return async (verified: VerifiedRelease, dir: string): Promise<StageResult<Refusal[]>> => {
    for (const name of withoutText) note(`${name}: its addresses are not text, so ipaddr.js does not check its rows`);
    const mirror = openMirror(join(dir, MIRROR_FILE));
    try {
      // Emptied, so that they are not in memory for longer than needed.
      const wrong = new ReleaseComparison(verified, mirror).with(expected.splice(0));
      const messages = await describe([...misread, ...wrong]);
      return {
        output: messages.map((message) => ({ gate: 'check', message: `a check by ipaddr.js disagrees: ${message}` })),
        counts: { checked_rows: checked },
      };
    } finally {
      mirror.close();
    }
  };
}
