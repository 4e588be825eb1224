/**
 * Explains the result for an address: the range of the release, every row that covers the address, which row won, and why
 * the others lost. The code of a build decides between the rows, and the outcome is compared with the release.
 */
import { join } from 'node:path';
import { EMBEDDED_SCHEMES, type EmbeddedScheme, embeddedIPv4 } from '../../src/address/embedded.js';
import { formatAddress } from '../../src/address/format.js';
import { type Family, parseAddress } from '../../src/address/parse.js';
import { addressWords, compareAddresses } from '../../src/address/words.js';
import { countryTable } from '../../src/country/country.js';
import { openDatabase } from '../../src/database/database.js';
import { recordLabel } from '../../src/database/diff.js';
import { readPullState } from '../../src/database/pull-state.js';
import { type Manifest, MIRROR_FILE } from '../../src/database/release.js';
import type { ReasonedResult } from '../../src/database/results.js';
import { AtlasError } from '../../src/errors.js';
import { openMirror } from '../../src/mirror/reader.js';
import { formatCidr, parseCidr, rangeToCidrs } from '../../src/range/cidr.js';
import { type BoundedRanges, RangeBuilder } from '../../src/range/columns.js';
import { type DropReason, NETWORK_PREFIX } from '../../src/range/vote.js';
import { COUNTRIES, NETWORKS } from '../../src/rangefile/partitions.js';
import { loadReference, type Reference } from '../config/reference.js';
import { LAYERS, sourceLayer } from '../merging/candidates.js';
import { OwnerSpace, votersOf } from '../merging/evidence.js';
import { type Decision, RangeMerger } from '../merging/range-merger.js';
import { hasNetworks } from '../source-formats/formats.js';
import type { IngestedSource } from '../stage.js';
import {
  type CoveringRow,
  type CoveringRows,
  evidenceOf,
  findCoveringRows,
  type ShownRow,
  shownRow,
  sortRows,
  type Target,
  whyAfter,
} from './covering-rows.js';
import { type ExplainedKinds, explainKinds } from './kinds.js';
import { type ExplainedLabels, explainLabels } from './labels.js';
import { type ExplainedNetwork, explainNetwork } from './network.js';

/** The range of the release that contains an address. A name here is a key of `ipatlas explain --json`. */
export interface MatchedRange {
  first: string;
  last: string;
  /** The country code; or in lower case the reason for no country, or the scheme of an embedded IPv4 address. */
  answer: string;
  /** Ids of the sources that won somewhere in the range, the one with the highest priority first. */
  sources: string[];
  /**
   * Lowest share of the lineages that agree within the range, in percent, if the release was merged by evidence; 100 if
   * the result was not put to the vote.
   */
  confidence?: number;
}

/** A row that covers the address, and its outcome. A name here is a key of `ipatlas explain --json`. */
export interface ExplainedRow extends ShownRow {
  /** As `answer` of the range. */
  label: string;
  /** `open` if rows that may have won are no longer available. */
  outcome: 'won' | 'lost' | 'open';
  /** Why it lost; null if it did not. */
  why: string | null;
  /** The lineage that it may vote for, if the release was merged by evidence. */
  lineage?: string;
}

/** One address explained. A name here is a key of `ipatlas explain --json`. */
export interface Step {
  address: string;
  range: MatchedRange;
  /** If the result was put to the vote: lineages with a row, and those of them that agree with the result. */
  vote?: { lineages: number; agreeing: number };
  /** The rows that cover the address, the winner first. */
  rows: ExplainedRow[];
  /** Ids of the sources without a row for the address. */
  sources_without_row: string[];
}

/** Where a source takes corrections. */
export interface Correction {
  source: string;
  /** A web address. */
  address: string;
}

/** A source that has a row. */
export interface SourceFacts {
  id: string;
  /** Empty if there is none. */
  version: string;
  /** `YYYY-MM-DD`; null if nothing tells it. */
  data_date: string | null;
  license: string;
}

export interface Explanation {
  result: ReasonedResult;
  release: string;
  as_of: string;
  /** `mapped` if an IPv4-mapped address was given: it is that IPv4 address. */
  notation: 'mapped' | null;
  /** The address itself, then the IPv4 address inside it if that one determines the result. */
  steps: Step[];
  /** Who announces the address, and the rows that say so; null if the release has no networks. */
  network: ExplainedNetwork | null;
  /** Null if the release does not say the kinds of networks. */
  kinds: ExplainedKinds | null;
  /** Null if the release has no labels. */
  labels: ExplainedLabels | null;
  /** Those whose rows are shown. */
  sources: SourceFacts[];
  /** Where the sources that decided take corrections, as far as sources.json says so. */
  corrections: Correction[];
  /** The row of overrides.csv that changes the result here; write the right country in place of `XX`. */
  override: string;
  /** What limits the explanation: files that are gone, other reference tables. */
  notes: string[];
}

interface MirrorRow {
  first: number | Buffer;
  last: number | Buffer;
  answer: string;
  sources: number;
}

function addressText(value: number | Buffer): string {
  if (typeof value === 'number') return formatAddress(4, [value]);
  return formatAddress(
    6,
    Uint32Array.from([0, 4, 8, 12], (at) => value.readUInt32BE(at)),
  );
}

/** Looks up ranges with the sources that won in them, which only the mirror has. */
class MirrorRanges {
  readonly #mirror: ReturnType<typeof openMirror>;

  constructor(dir: string) {
    this.#mirror = openMirror(join(dir, MIRROR_FILE));
  }

  /** Returns the confidence of a range; undefined if the release was merged by priority. */
  #confidence(family: Family, first: number | Buffer): number | undefined {
    const table = `ipv${family}_confidence`;
    const exists = this.#mirror.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?").get(table);
    if (exists === undefined) return undefined;
    const percent = this.#mirror.prepare<[number | Buffer], number>(`SELECT percent FROM ${table} WHERE first = ?`);
    return percent.pluck().get(first) ?? 100;
  }

  find({ family, words }: Target): MatchedRange {
    const bytes = Buffer.alloc(4 * words.length);
    for (const [k, word] of words.entries()) bytes.writeUInt32BE(word, 4 * k);
    const key = family === 4 ? words[0]! : bytes;
    const row = this.#mirror
      .prepare<[number | Buffer], MirrorRow>(
        `SELECT first, last, coalesce(country_code, reason) AS answer, sources
         FROM ipv${family}_range WHERE first <= ? ORDER BY first DESC LIMIT 1`,
      )
      .get(key)!;
    const sources = this.#mirror
      .prepare<[number], string>('SELECT id FROM source WHERE ? >> layer & 1 ORDER BY layer DESC')
      .pluck()
      .all(row.sources);
    const confidence = this.#confidence(family, row.first);
    const range = { first: addressText(row.first), last: addressText(row.last), answer: row.answer, sources };
    return confidence === undefined ? range : { ...range, confidence };
  }

  close(): void {
    this.#mirror.close();
  }
}

/** Returns the IPv4 address inside the target if it determines the result in the range. */
function embeddedTarget({ words }: Target, { answer }: MatchedRange): Target | undefined {
  if (!EMBEDDED_SCHEMES.includes(answer as EmbeddedScheme)) return undefined;
  return { family: 4, words: Uint32Array.of(embeddedIPv4(answer as EmbeddedScheme, words)) };
}

/** Returns the layer of a row in a build. */
function layerOf({ origin, label }: CoveringRow, sources: number): number {
  if (origin.kind === 'source') return label === 'unknown' ? LAYERS.noCountry : sourceLayer(origin.position, sources);
  if (origin.kind === 'anycast') return LAYERS.anycast;
  if (origin.kind === 'special') return origin.range.layer === 'under' ? LAYERS.embedded : LAYERS.special;
  return origin.kind === 'override' ? LAYERS.overrides : LAYERS.undelegated;
}

/** The decision at an address, with the rows that led to it. */
interface DecidedRows extends Decision {
  /** The row of each candidate. */
  rowOf: CoveringRow[];
  /** Rows that a build did not use because they are not inside the space of their source's owner. */
  outsideSpace: ReadonlySet<CoveringRow>;
}

/** Returns a source with a single row. */
function oneRow({ source: id, target: { family }, first, last }: CoveringRow, code: string): IngestedSource {
  const row = (each: Family): BoundedRanges => {
    const builder = new RangeBuilder(each, 1);
    if (each === family) builder.add(first, last, 0, 0);
    return builder.finish();
  };
  return { id, v4: row(4), v6: row(6), codes: [code], rows: 1, rejected: 0 };
}

/** Decides as a build does, with only the rows that cover the address. */
function decide(
  { family, words }: Target,
  rows: readonly CoveringRow[],
  owned: CoveringRows['owned'],
  manifest: Manifest,
  reference: Reference,
): DecidedRows {
  const evidence = evidenceOf(manifest);
  const merger = new RangeMerger(reference, countryTable(reference, manifest.as_of));
  const rowOf: CoveringRow[] = [];
  const outsideSpace = new Set<CoveringRow>();
  for (const row of rows) {
    const { origin, first, last } = row;
    if (origin.kind === 'special') merger.addSpecial(origin.range);
    else if (origin.kind === 'override') merger.addOverride(origin.override);
    else if (origin.kind === 'undelegated') merger.addUndelegated({ family, count: 1, first, last, value: NO_VALUE });
    else if (origin.kind === 'anycast') merger.addAnycast({ family, count: 1, first, last });
    else {
      const space = OwnerSpace.of(evidence?.[origin.position] ?? { space: [], asns: [] }, owned);
      const layer = sourceLayer(origin.position, manifest.inputs.length);
      if (merger.addSource(oneRow(row, origin.code), layer, space) > 0) outsideSpace.add(row);
    }
    // A row that spans an embedded prefix gives several candidates, or none.
    while (rowOf.length < merger.count(family)) rowOf.push(row);
  }
  return { ...merger.decideAt(family, words, evidence === undefined ? [] : votersOf(evidence)), rowOf, outsideSpace };
}

const NO_VALUE = new Uint16Array(1);

const OUTSIDE_SPACE = 'it is not inside the space of the owner of the data';
const CUT_OUT = 'it spans a prefix whose addresses have the country of the IPv4 address inside';

/** Why a row has no vote, by the reason. */
const DROPPED: Record<DropReason, (family: Family) => string> = {
  'too wide': () => 'its range is too wide for a location that contradicts the registry',
  operator: (family) =>
    `a row of the lineage of the registries is smaller than a /${NETWORK_PREFIX[family]}: an operator's own word`,
  anycast: () => 'the address is anycast, and a location of it is only the one that was near',
  interpolated: (family) => `it begins or ends inside a /${NETWORK_PREFIX[family]}, so it is interpolated`,
};

/** Returns why a row lost against one in another layer, or against another row of its own. */
function whyLost(row: CoveringRow, winner: CoveringRow, sources: number): string {
  const [layer, winning] = [layerOf(row, sources), layerOf(winner, sources)];
  if (layer === LAYERS.noCountry && winning !== LAYERS.noCountry) return 'it names no country';
  if (winning === LAYERS.overrides && layer !== LAYERS.overrides) return 'overrides come before all sources';
  if (winning === LAYERS.special && layer !== LAYERS.special) return 'special-purpose ranges come before the sources';
  if (winning === LAYERS.undelegated) return 'no registry has delegated the range, so locations in it do not count';
  if (layer === LAYERS.undelegated) return `the data of the operator, ${winner.source}, overrides it`;
  if (layer === LAYERS.embedded && winning !== LAYERS.embedded) {
    return `${winner.source} names a country for a range inside the prefix`;
  }
  if (layer !== winning) return `${winner.source} comes before ${row.source} in sources.json`;
  return whyAfter(row, winner);
}

/** Returns why a source's row lost the vote. */
function whyOutvoted(row: CoveringRow, winner: CoveringRow, decided: DecidedRows, lineages: readonly string[]): string {
  const { rowOf } = decided;
  const { candidates, counter } = decided.vote!;
  const { counted, dropped, located, agreeing } = counter;
  const position = (row.origin as { position: number }).position;
  const rowAt = (voter: number): CoveringRow | undefined => rowOf[candidates[voter]!];
  if (rowAt(position) !== row) return 'its source has a narrower range, or a later row for the same range';
  if (dropped[position] !== undefined) return DROPPED[dropped[position]](row.target.family);
  if (!counted[position]) {
    const ofLineage = lineages.findIndex(
      (lineage, voter) => lineage === lineages[position] && (counted[voter] || dropped[voter] !== undefined),
    );
    if (ofLineage < 0) return `the data of the operator, ${winner.source}, overrides it`;
    return `${rowAt(ofLineage)!.source} has the vote of their lineage`;
  }
  const votes = counted.filter((counts, voter) => counts && rowAt(voter)!.label === row.label).length;
  if (votes < agreeing) return `outvoted by ${agreeing} lineages to ${votes}`;
  const locator = located.findIndex((isLocated, voter) => isLocated && rowAt(voter)!.label === winner.label);
  if (locator >= 0 && !located[position]) {
    return `tied, and ${rowAt(locator)!.source} locates networks without repeating a registry`;
  }
  return `tied, and ${winner.source} comes before it in sources.json`;
}

/** Sorts rows: the highest layer first. */
function byPrecedence(rows: readonly CoveringRow[], sources: number): CoveringRow[] {
  return sortRows(rows, (row) => -layerOf(row, sources));
}

/** Explains one address from the rows that cover it. */
function explainStep(
  target: Target,
  range: MatchedRange,
  { rows: all, missing, owned }: CoveringRows,
  manifest: Manifest,
  reference: Reference,
  notes: string[],
): Step {
  const { inputs } = manifest;
  const rows = all.get(COUNTRIES)!.get(target)!;
  const decided = decide(target, rows, owned, manifest, reference);
  const { result, vote, rowOf, outsideSpace } = decided;
  const winner = rowOf[decided.winner];
  const winningLayer = winner === undefined ? -1 : layerOf(winner, inputs.length);
  const lineages = evidenceOf(manifest)?.map(({ lineage }) => lineage);
  // A source that is missing could have voted, whatever its layer.
  const decidingLayer = lineages !== undefined && winningLayer < LAYERS.special ? LAYERS.embedded : winningLayer;
  const isOpen = missing.some(({ layer }) => layer > decidingLayer);
  const address = formatAddress(target.family, target.words);
  if (!isOpen && recordLabel(result) !== range.answer) {
    notes.push(
      `the rows give another result than the release for ${address}: the release was made with other rules or tables`,
    );
  }
  const hasWon = (row: CoveringRow): boolean =>
    row === winner ||
    (vote !== undefined &&
      row.label === winner!.label &&
      vote.counter.counted.some((counts, voter) => counts && rowOf[vote.candidates[voter]!] === row));
  const whyNot = (row: CoveringRow): string => {
    if (outsideSpace.has(row)) return OUTSIDE_SPACE;
    if (row.origin.kind === 'anycast') return 'it says that the address is anycast, and names no country';
    if (!decided.covering.some((candidate) => rowOf[candidate] === row)) return CUT_OUT;
    const isVote = vote !== undefined && row.origin.kind === 'source' && row.label !== 'unknown';
    return isVote ? whyOutvoted(row, winner!, decided, lineages!) : whyLost(row, winner!, inputs.length);
  };
  const explainRow = (row: CoveringRow): ExplainedRow => {
    const { label, origin } = row;
    const lineage = origin.kind === 'source' ? lineages?.[origin.position] : undefined;
    const outcome = isOpen && !outsideSpace.has(row) ? 'open' : !isOpen && hasWon(row) ? 'won' : 'lost';
    return {
      ...shownRow(row),
      label,
      outcome,
      why: outcome === 'lost' ? whyNot(row) : null,
      ...(lineage !== undefined && { lineage }),
    };
  };
  const others = byPrecedence(
    rows.filter((row) => row !== winner),
    inputs.length,
  );
  return {
    address,
    range,
    ...(vote !== undefined &&
      !isOpen && { vote: { lineages: vote.counter.lineages, agreeing: vote.counter.agreeing } }),
    rows: (winner === undefined ? others : [winner, ...others]).map(explainRow),
    sources_without_row: inputs
      .filter(({ id, format }) => !hasNetworks(format) && !rows.some(({ source }) => source === id))
      .map(({ id }) => id),
  };
}

/** Returns where the sources of the winning rows take corrections, as far as sources.json says so. */
function correctionsOf({ rows }: Step, { inputs }: Manifest): Correction[] {
  const won = new Set(rows.flatMap(({ outcome, source }) => (outcome === 'won' ? [source] : [])));
  return inputs.flatMap(({ id, corrections }) =>
    won.has(id) && corrections !== undefined ? [{ source: id, address: corrections }] : [],
  );
}

/** Returns what the manifest says of the sources that have a row. */
function sourceFacts(
  { inputs }: Manifest,
  parts: readonly ({ rows: readonly { source: string }[] } | null)[],
): SourceFacts[] {
  const shown = new Set(parts.flatMap((part) => part?.rows.map(({ source }) => source) ?? []));
  return inputs
    .filter(({ id }) => shown.has(id))
    .map(({ id, version, data_date = null, license }) => ({ id, version, data_date, license }));
}

/**
 * Returns the largest CIDR block around the address in which the release has the same result, but no more than one network:
 * a wrong address says nothing about the networks around it.
 */
function networkAround({ family, words }: Target, { first, last }: MatchedRange): string {
  const [start, end] = [first, last].map((text) => parseTarget(text).target.words);
  let length = 0;
  rangeToCidrs(family, start!, end!, (block, prefix) => {
    if (compareAddresses(block, 0, words, 0, words.length) <= 0) length = Math.max(prefix, NETWORK_PREFIX[family]);
  });
  const network = new Uint32Array(4);
  parseCidr(`${formatAddress(family, words)}/${length}`, network, new Uint32Array(4));
  return formatCidr(family, network, length);
}

/** Where the rows are that a pull leaves out. */
const AT_ORIGIN =
  'the release was pulled, so the rows of its sources stayed at the origin: "ipatlas explain" shows them there';

/** Parses the address to explain; an IPv4-mapped one is that IPv4 address. */
function parseTarget(text: string): { target: Target; mapped: boolean } {
  const words = new Uint32Array(4);
  const family = parseAddress(text, words);
  if (family === 0) throw new AtlasError('E_BAD_INPUT', `${JSON.stringify(text)} is not an IP address such as 8.8.8.8`);
  return {
    target: { family, words: words.slice(0, addressWords(family)) },
    mapped: family === 4 && text.includes(':'),
  };
}

/**
 * Explains the results for some addresses. Reads the sources once, however many the addresses are.
 *
 * @param dataDir the data directory, whose cache has the rows
 * @param dir directory of the release
 * @param texts the addresses
 * @returns an explanation for each, in their order
 * @throws AtlasError E_BAD_INPUT if a text is not an address; E_NO_DATABASE or E_DAMAGED if the release cannot be read
 */
export async function explainAll(dataDir: string, dir: string, texts: readonly string[]): Promise<Explanation[]> {
  const asked = texts.map(parseTarget);
  const database = openDatabase(dir);
  const { manifest } = database;
  const reference = loadReference();
  const mirror = new MirrorRanges(dir);
  try {
    const matches = asked.map(({ target }) => {
      const range = mirror.find(target);
      const inside = embeddedTarget(target, range);
      return [{ target, range }, ...(inside === undefined ? [] : [{ target: inside, range: mirror.find(inside) }])];
    });
    const targets = matches.flatMap((steps) => steps.map((step) => step.target));
    const covering = await findCoveringRows(dataDir, manifest, targets, reference);
    const explanations: Explanation[] = [];
    for (const [index, match] of matches.entries()) {
      const { target, range } = match.at(-1)!;
      const isPulled = covering.missing.length > 0 && readPullState(dataDir) !== undefined;
      const notes = isPulled
        ? [AT_ORIGIN]
        : covering.missing.map(({ reason }) => `${reason}, so its rows cannot be shown`);
      const steps = match.map((step) => explainStep(step.target, step.range, covering, manifest, reference, notes));
      const network = explainNetwork(database.partition(NETWORKS), target, covering, manifest);
      const kinds = explainKinds(database, target, covering, (note) => notes.push(note));
      explanations.push({
        result: database.lookupWithReason(texts[index]!)!,
        release: manifest.id,
        as_of: manifest.as_of,
        notation: asked[index]!.mapped ? 'mapped' : null,
        steps,
        network,
        kinds,
        labels: await explainLabels(dataDir, database, target, (note) => notes.push(note)),
        sources: sourceFacts(manifest, [...steps, network, kinds]),
        corrections: correctionsOf(steps.at(-1)!, manifest),
        override: `${networkAround(target, range)},XX,reported by a user`,
        notes,
      });
    }
    return explanations;
  } finally {
    mirror.close();
    database.close();
  }
}

/** Explains the result for an address, as {@link explainAll} does. */
export async function explain(dataDir: string, dir: string, text: string): Promise<Explanation> {
  return (await explainAll(dataDir, dir, [text]))[0]!;
}
