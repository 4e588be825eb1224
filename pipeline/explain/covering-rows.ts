/** Finds every row of a release's inputs that covers an address, in the cached files. */
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Family } from '../../src/address/parse.js';
import { addressWords, compareAddresses, rangeContains } from '../../src/address/words.js';
import { resolveCountry } from '../../src/country/country.js';
import { recordLabel } from '../../src/database/diff.js';
import type { Manifest, ManifestFile, ManifestInput } from '../../src/database/release.js';
import { loadOverrides, type Override } from '../config/overrides.js';
import type { Reference, SpecialRange } from '../config/reference.js';
import { hashFile, objectPath } from '../fetching/cache.js';
import { LAYERS, sourceLayer } from '../merging/candidates.js';
import { type OwnedRange, undelegatedSpace } from '../merging/evidence.js';
import type { RowPosition } from '../source-formats/csv-rows.js';
import { hasNetworks } from '../source-formats/formats.js';
import { readSource, type SourceResult } from '../source-formats/read-source.js';
import { readRowText } from '../source-formats/rejects.js';
import type { FetchedFile, IngestedSource } from '../stage.js';

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
  | { kind: 'special'; range: SpecialRange }
  | { kind: 'override'; override: Override };

/** A row that covers a target. */
export interface CoveringRow {
  /** Id of the source, or `undelegated`, `special-purpose` or `overrides`. */
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

export interface CoveringRows {
  /** In the order in which a build adds them. */
  rows: CoveringRow[];
  /** The rows that say which network announces the addresses; their labels are `AS15169`. */
  networkRows: CoveringRow[];
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

/** An input whose files are in the cache. */
interface CachedInput {
  position: number;
  input: ManifestInput;
  files: FetchedFile[];
}

/** Returns how an input takes part in merging by evidence. */
export function evidenceOf({ inputs }: Manifest) {
  const sources = inputs.flatMap(({ lineage, kind, space = [], asns = [] }) =>
    lineage === undefined || kind === undefined ? [] : [{ lineage, kind, space, asns }],
  );
  return sources.length === 0 ? undefined : sources;
}

/** A row and the position of its text, which is not read yet. */
interface LocatedRow {
  row: CoveringRow;
  path: string;
  position: RowPosition | undefined;
}

/** Reads one source, and finds its rows that cover an address. */
async function rowsOfSource(
  { position: place, input: { id, format }, files }: CachedInput,
  asns: ReadonlySet<number>,
  targets: readonly Target[],
  reference: Reference,
): Promise<{ rows: CoveringRow[]; result: SourceResult }> {
  const isOfNetworks = hasNetworks(format);
  const located: LocatedRow[] = [];
  const source = { source: { id, format, maxRejectShare: 1 }, fetched: { files }, asns };
  const result = await readSource(
    source,
    () => {},
    ({ family, first, last, code, file, position }) => {
      for (const target of targets) {
        if (target.family !== family || !rangeContains(first, last, target.words)) continue;
        const country = isOfNetworks ? undefined : resolveCountry(reference, code);
        const words = addressWords(family);
        const row: CoveringRow = {
          source: id,
          origin: { kind: 'source', position: place, code },
          target,
          first: first.slice(0, words),
          last: last.slice(0, words),
          label: isOfNetworks ? code : typeof country === 'object' ? country.code : 'unknown',
          file: file.name,
          line: null,
          text: code,
        };
        located.push({ row, path: file.path, position: position && { ...position } });
      }
    },
  );
  const rows: CoveringRow[] = [];
  for (const { row, path, position } of located) rows.push(position ? await withText(row, path, position) : row);
  return { rows, result };
}

async function withText(row: CoveringRow, path: string, position: RowPosition): Promise<CoveringRow> {
  const handle = await open(path);
  try {
    return { ...row, line: position.line, text: await readRowText(handle, position) };
  } finally {
    await handle.close();
  }
}

/** Returns the part of the space that no registry has delegated around the target. */
function undelegatedRows(registries: readonly IngestedSource[], target: Target): CoveringRow[] {
  const delegations = registries.map((source) => source[`v${target.family}`]);
  const { first, last, count } = undelegatedSpace(delegations, target.family);
  const size = target.words.length;
  for (let i = 0; i < count; i++) {
    const { words } = target;
    if (compareAddresses(words, 0, first, i, size) < 0 || compareAddresses(last, i, words, 0, size) < 0) continue;
    const [from, to] = [first, last].map((column) => column.slice(i * size, (i + 1) * size));
    const text = 'no registry has delegated this range';
    return [
      {
        source: 'undelegated',
        origin: { kind: 'undelegated' },
        target,
        first: from!,
        last: to!,
        label: 'unallocated',
        file: null,
        line: null,
        text,
      },
    ];
  }
  return [];
}

function specialRows({ special }: Reference, target: Target): CoveringRow[] {
  return special
    .filter(({ family, first, last }) => family === target.family && rangeContains(first, last, target.words))
    .map((range) => ({
      source: 'special-purpose',
      origin: { kind: 'special', range },
      target,
      first: range.first,
      last: range.last,
      label: recordLabel(range.result),
      file: null,
      line: null,
      text: `${range.block} ${range.name} (${range.rfc})`,
    }));
}

function overrideRows(
  rows: readonly Override[],
  lines: readonly string[],
  name: string,
  target: Target,
): CoveringRow[] {
  return rows
    .filter(({ family, first, last }) => family === target.family && rangeContains(first, last, target.words))
    .map((override) => ({
      source: 'overrides',
      origin: { kind: 'override', override },
      target,
      file: name,
      line: override.line,
      first: override.first,
      last: override.last,
      label: override.result.kind === 'country' ? override.result.code : override.result.reason,
      text: lines[override.line - 1] ?? '',
    }));
}

/**
 * Finds the rows of a release's inputs that cover some addresses.
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
  const asns = new Set(inputs.flatMap((input) => input.asns ?? []));
  const missing: CoveringRows['missing'] = [];
  const rows: CoveringRow[] = [];
  const networkRows: CoveringRow[] = [];
  const owned: OwnedRange[] = [];
  const registries: IngestedSource[] = [];
  let areRegistriesKnown = true;
  for (const [position, input] of inputs.entries()) {
    const isRegistry = input.kind === 'registry' && input.lineage !== undefined;
    const files = cachedInput(dataDir, input.files);
    if (typeof files === 'string') {
      const reason = `${files} of source ${input.id} is no longer in the cache`;
      missing.push({ layer: sourceLayer(position, inputs.length), reason });
      if (isRegistry) areRegistriesKnown = false;
      continue;
    }
    const { rows: found, result } = await rowsOfSource({ position, input, files }, asns, targets, reference);
    (hasNetworks(input.format) ? networkRows : rows).push(...found);
    owned.push(...result.owned);
    if (isRegistry) registries.push(result.ingested);
  }
  if (areRegistriesKnown) for (const target of targets) rows.push(...undelegatedRows(registries, target));
  for (const target of targets) rows.push(...specialRows(reference, target));
  if (overrides !== undefined) {
    const files = cachedInput(dataDir, [overrides]);
    if (typeof files === 'string') {
      missing.push({ layer: LAYERS.overrides, reason: `${files} is no longer in the cache` });
    } else {
      const { path } = files[0]!;
      const lines = readFileSync(path, 'utf8').split(/\r\n?|\n/);
      const { rows: applying } = loadOverrides(path, reference, asOf);
      for (const target of targets) rows.push(...overrideRows(applying, lines, overrides.name, target));
    }
  }
  return { rows, networkRows, missing, owned };
}
