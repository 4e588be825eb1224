/** Finds every row of a release's inputs that covers an address: in the rows that its build stored, or in the cached files. */
import { readFileSync } from 'node:fs';
import { formatAddress } from '../../src/address/format.js';
import type { Family } from '../../src/address/parse.js';
import { addressWords, compareAddresses, rangeSize } from '../../src/address/words.js';
import { resolveCountry } from '../../src/country/country.js';
import { recordLabel } from '../../src/database/diff.js';
import type { Manifest, ManifestFile, ManifestInput } from '../../src/database/release.js';
import { COUNTRIES, KINDS, NETWORKS, type Partition } from '../../src/rangefile/partitions.js';
import { loadOverrides, type Override } from '../config/overrides.js';
import { loadReference, type Reference, type SpecialRange } from '../config/reference.js';
import { hashFile, objectPath } from '../fetching/cache.js';
import { LAYERS, sourceLayer } from '../merging/candidates.js';
import { type OwnedRange, undelegatedSpace } from '../merging/evidence.js';
import { CsvFile } from '../source-formats/csv-file.js';
import { hasList, resolveFormat } from '../source-formats/formats.js';
import { readSource } from '../source-formats/read-source.js';
import { type SourceRows, storedRows } from '../source-formats/stored-rows.js';
import type { FetchedFile, IngestedSource, SourceRanges } from '../stage.js';

/** An address to explain. */
export interface Target {
  family: Family;
  /** `addressWords(family)` words, most significant first. */
  words: Uint32Array;
}

/** What a row gives to a build. */
export type RowOrigin =
  /** Position of the source in the list of inputs, and the code as the source writes it. */
  | { kind: 'source'; position: number; code: string }
  | { kind: 'undelegated' }
  | { kind: 'anycast' }
  | { kind: 'special'; range: SpecialRange }
  | { kind: 'override'; override: Override };

/** A row that covers a target. */
export interface CoveringRow {
  /** Id of the source, or `undelegated`, `anycast`, `special-purpose` or `overrides`. */
  source: string;
  origin: RowOrigin;
  target: Target;
  first: Uint32Array;
  last: Uint32Array;
  /** The country code; or in lower case the reason for no country, or the scheme of an embedded IPv4 address. */
  label: string;
  /** Null for ranges that are in no file of the user or of a source. */
  file: string | null;
  /** Line in the file, from 1; null in a file without lines. */
  line: number | null;
  /** The row as written in the file; for special-purpose ranges the block, its name and its RFC. */
  text: string;
}

/** What `ipatlas explain --json` says of each row. A name here is one of its keys. */
export interface ShownRow extends Pick<CoveringRow, 'source' | 'file' | 'line' | 'text'> {
  first: string;
  last: string;
}

/** Returns what is shown of a row. */
export function shownRow({ source, file, line, text, first, last, target: { family } }: CoveringRow): ShownRow {
  return { source, file, line, text, first: formatAddress(family, first), last: formatAddress(family, last) };
}

/** Sorts rows by a rank; then the narrowest is first, and of equally wide ones the later. */
export function sortRows(rows: readonly CoveringRow[], rank: (row: CoveringRow) => number): CoveringRow[] {
  return rows.toReversed().sort((a, b) => {
    const difference = rangeSize(a.first, a.last) - rangeSize(b.first, b.last);
    return rank(a) - rank(b) || (difference < 0n ? -1 : difference > 0n ? 1 : 0);
  });
}

/** Returns why a row comes after another one of its rank. */
export function whyAfter(row: CoveringRow, winner: CoveringRow): string {
  const isWider = rangeSize(row.first, row.last) > rangeSize(winner.first, winner.last);
  return isWider ? 'its range is wider' : 'a later row covers the same range, or one of the same size';
}

export interface CoveringRows {
  /**
   * By partition those of each target, in the order in which a build adds them. The labels are `AS15169` for networks, and `anycast` or as
   * `cloud aws` for kinds.
   */
  rows: ReadonlyMap<Partition, ReadonlyMap<Target, readonly CoveringRow[]>>;
  /** Layers whose rows are no longer available, with the reason. */
  missing: { layer: number; reason: string }[];
  /** The ranges that belong to networks, as far as the sources tell. */
  owned: readonly OwnedRange[];
}

/** Returns the cached files of an input, or the name of the first one that is missing or damaged. */
export function cachedInput(dataDir: string, files: readonly ManifestFile[]): FetchedFile[] | string {
  const found: FetchedFile[] = [];
  for (const { name, bytes, sha256 } of files) {
    const path = objectPath(dataDir, sha256);
    if (hashFile(path) !== sha256) return name;
    found.push({ name, path, bytes, sha256 });
  }
  return found;
}

/** Returns how an input takes part in merging by evidence. */
export function evidenceOf({ inputs }: Manifest) {
  const sources = inputs.flatMap(({ lineage, kind, interpolates = false, space = [], asns = [] }) =>
    lineage === undefined || kind === undefined ? [] : [{ lineage, kind, interpolates, space, asns }],
  );
  return sources.length === 0 ? undefined : sources;
}

/** Addresses in ascending order. */
type SortedTargets<T extends Target = Target> = Record<Family, readonly T[]>;

/**
 * Passes on those of the targets that a range covers.
 *
 * @param targets of one family, in ascending order
 * @param index of the range in the columns of first and last addresses
 */
export function eachInside<T extends Target>(
  targets: readonly T[],
  first: Uint32Array,
  last: Uint32Array,
  index: number,
  onTarget: (target: T) => void,
): void {
  if (targets.length === 0) return;
  const words = targets[0]!.words.length;
  let low = 0;
  for (let high = targets.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (compareAddresses(targets[middle]!.words, 0, first, index, words) < 0) low = middle + 1;
    else high = middle;
  }
  for (; low < targets.length && compareAddresses(targets[low]!.words, 0, last, index, words) <= 0; low++) {
    onTarget(targets[low]!);
  }
}

/** Finds the rows of a source that cover an address, and adds them to their partitions. */
async function rowsOfSource(
  position: number,
  { id, format, lineage, network }: ManifestInput,
  files: readonly FetchedFile[],
  { ingested, files: read }: SourceRows,
  targets: SortedTargets,
  add: (partition: Partition, rows: readonly CoveringRow[]) => void,
): Promise<void> {
  const reference = loadReference();
  const { codes, networks, listed } = ingested;
  const isList = hasList(format);
  /** By file, the rows in it that are found. */
  const located = new Map<number, Map<number, CoveringRow[]>>();
  const find = (ranges: SourceRanges, isListed: boolean): void => {
    const { family, count, first, last, value, runs = [] } = ranges;
    const words = addressWords(family);
    let at = -1;
    for (let i = 0; i < count && targets[family].length > 0; i++) {
      if (runs[at + 1]?.start === i) at++;
      const run = runs[at]!;
      eachInside(targets[family], first, last, i, (target) => {
        const isAnycast = isListed && value[i] === 1;
        const code = isListed ? '' : networks === undefined ? codes[value[i]!]! : `AS${networks.asns[value[i]!]}`;
        const country = isListed || networks !== undefined ? undefined : resolveCountry(reference, code);
        const covering: CoveringRow = {
          source: id,
          origin: isAnycast ? { kind: 'anycast' } : { kind: 'source', position, code },
          target,
          first: first.slice(i * words, (i + 1) * words),
          last: last.slice(i * words, (i + 1) * words),
          label: isAnycast
            ? 'anycast'
            : networks !== undefined
              ? code
              : typeof country === 'object'
                ? country.code
                : 'unknown',
          file: read[run.file]!.name,
          line: null,
          text: isAnycast ? 'anycast' : code,
        };
        const made = [covering];
        // Merging by priority knows no anycast space.
        if (!isListed || (isAnycast && lineage !== undefined)) add(networks === undefined ? COUNTRIES : NETWORKS, made);
        if (isAnycast) add(KINDS, made);
        // A list of an operator has its prefixes, and some of them once more with their countries.
        if (network !== undefined && isListed === isList) {
          const label = `${network.kind} ${network.operator}`;
          const ofKind = { ...covering, label, text: label };
          add(KINDS, [ofKind]);
          made.push(ofKind);
        }
        const ofFile = located.get(run.file) ?? new Map<number, CoveringRow[]>();
        located.set(run.file, ofFile);
        const row = run.row + i - run.start;
        ofFile.set(row, [...(ofFile.get(row) ?? []), ...made]);
      });
    }
  };
  for (const ranges of [networks ?? ingested].flatMap(({ v4, v6 }) => [v4, v6])) find(ranges, false);
  for (const ranges of listed === undefined ? [] : [listed.v4, listed.v6]) find(ranges, true);
  for (const [file, ofFile] of located) {
    const { name, breaks } = read[file]!;
    const resolved = resolveFormat(format);
    if (breaks === undefined || !('dialect' in resolved)) continue;
    const { path } = files.find((each) => each.name === name)!;
    for (const [row, location] of await new CsvFile(path, name, resolved.dialect, breaks).locate(ofFile.keys())) {
      for (const covering of ofFile.get(row)!) Object.assign(covering, location);
    }
  }
}

/** Whether a source says which space is delegated. */
function isRegistry({ kind, lineage }: ManifestInput): boolean {
  return kind === 'registry' && lineage !== undefined;
}

/** Returns the rows for targets of ranges that are in no file of a source. */
function rowsOfRanges<Range extends Pick<Override, 'family' | 'first' | 'last'>>(
  targets: SortedTargets,
  ranges: readonly Range[],
  rowOf: (range: Range) => Pick<CoveringRow, 'source' | 'origin' | 'label' | 'text'> & Partial<CoveringRow>,
): CoveringRow[] {
  const rows: CoveringRow[] = [];
  for (const range of ranges) {
    const { family, first, last } = range;
    eachInside(targets[family], first, last, 0, (target) =>
      rows.push({ file: null, line: null, ...rowOf(range), target, first, last }),
    );
  }
  return rows;
}

/** Returns the parts of the space around the targets that no registry has delegated. */
function undelegatedRows(registries: readonly IngestedSource[], targets: SortedTargets): CoveringRow[] {
  const ranges = ([4, 6] as const).flatMap((family) => {
    if (targets[family].length === 0) return [];
    const words = addressWords(family);
    const { first, last, count } = undelegatedSpace(
      registries.map((source) => source[`v${family}`]),
      family,
    );
    const at = (column: Uint32Array, i: number): Uint32Array => column.slice(i * words, (i + 1) * words);
    return Array.from({ length: count }, (_, i) => ({ family, first: at(first, i), last: at(last, i) }));
  });
  return rowsOfRanges(targets, ranges, () => ({
    source: 'undelegated',
    origin: { kind: 'undelegated' },
    label: 'unallocated',
    text: 'no registry has delegated this range',
  }));
}

function anycastRows({ anycast }: Reference, targets: SortedTargets): CoveringRow[] {
  return rowsOfRanges(targets, anycast, ({ block, service, origin }) => ({
    source: 'anycast',
    origin: { kind: 'anycast' },
    label: 'anycast',
    text: `${block} ${service} (${origin})`,
  }));
}

function specialRows({ special }: Reference, targets: SortedTargets): CoveringRow[] {
  return rowsOfRanges(targets, special, (range) => ({
    source: 'special-purpose',
    origin: { kind: 'special', range },
    label: recordLabel(range.result),
    text: `${range.block} ${range.name} (${range.rfc})`,
  }));
}

function overrideRows(
  overrides: readonly Override[],
  lines: readonly string[],
  name: string,
  targets: SortedTargets,
): CoveringRow[] {
  return rowsOfRanges(targets, overrides, (override) => ({
    source: 'overrides',
    origin: { kind: 'override', override },
    file: name,
    line: override.line,
    label: override.result.kind === 'country' ? override.result.code : override.result.reason,
    text: lines[override.line - 1] ?? '',
  }));
}

function sortTargets<T extends Target>(targets: readonly T[]): SortedTargets<T> {
  const sorted = targets.toSorted((a, b) => compareAddresses(a.words, 0, b.words, 0, a.words.length));
  return { 4: sorted.filter(({ family }) => family === 4), 6: sorted.filter(({ family }) => family === 6) };
}

/**
 * Finds the rows of a release's inputs that cover some addresses. Goes through all inputs once, however many the addresses are.
 *
 * @param dataDir the data directory, whose cache has the files of its releases
 * @param manifest of the release
 * @param targets the addresses
 * @param reference the reference tables
 */
export async function findCoveringRows(
  dataDir: string,
  manifest: Manifest,
  targets: readonly Target[],
  reference: Reference,
): Promise<CoveringRows> {
  const { inputs, overrides, as_of: asOf } = manifest;
  const sorted = sortTargets(targets);
  const asns = new Set(inputs.flatMap((input) => input.asns ?? []));
  const missing: CoveringRows['missing'] = [];
  const ofTargets = () => new Map<Target, CoveringRow[]>(targets.map((target) => [target, []]));
  const rows = new Map<Partition, ReturnType<typeof ofTargets>>();
  for (const partition of [COUNTRIES, NETWORKS, KINDS]) rows.set(partition, ofTargets());
  const add = (partition: Partition, found: readonly CoveringRow[]): void => {
    for (const row of found) rows.get(partition)!.get(row.target)!.push(row);
  };
  const registries: IngestedSource[] = [];
  const owned: OwnedRange[] = [];
  for (const [position, input] of inputs.entries()) {
    const files = cachedInput(dataDir, input.files);
    if (typeof files === 'string') {
      const reason = `${files} of source ${input.id} is no longer in the cache`;
      missing.push({ layer: sourceLayer(position, inputs.length), reason });
      continue;
    }
    const { id, format, kind } = input;
    const read =
      storedRows(dataDir, input, asns) ??
      (await readSource({ source: { id, format, kind, maxRejectShare: 1 }, files, asns }, () => {}));
    await rowsOfSource(position, input, files, read, sorted, add);
    owned.push(...read.owned);
    if (isRegistry(input)) registries.push(read.ingested);
  }
  if (registries.length === inputs.filter(isRegistry).length) add(COUNTRIES, undelegatedRows(registries, sorted));
  const anycast = anycastRows(reference, sorted);
  if (evidenceOf(manifest) !== undefined) add(COUNTRIES, anycast);
  add(KINDS, anycast);
  add(COUNTRIES, specialRows(reference, sorted));
  if (overrides !== undefined) {
    const files = cachedInput(dataDir, [overrides]);
    if (typeof files === 'string') {
      missing.push({ layer: LAYERS.overrides, reason: `${files} is no longer in the cache` });
    } else {
      const { path } = files[0]!;
      const lines = readFileSync(path, 'utf8').split(/\r\n?|\n/);
      const { rows: applying } = loadOverrides(path, reference, asOf);
      add(COUNTRIES, overrideRows(applying, lines, overrides.name, sorted));
    }
  }
  return { rows, missing, owned };
}
