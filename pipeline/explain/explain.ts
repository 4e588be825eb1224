/**
 * Explains the result for an address: the range of the release, every row that covers the address, which row won, and why
 * the others lost. The rows go through the same merge as in a build, and the outcome is compared with the release.
 */
import { join } from 'node:path';
import { EMBEDDED_SCHEMES, type EmbeddedScheme, embeddedIPv4 } from '../../src/address/embedded.js';
import { formatAddress } from '../../src/address/format.js';
import { type Family, parseAddress } from '../../src/address/parse.js';
import { addressWords, compareAddresses, rangeContains, rangeSize } from '../../src/address/words.js';
import { countryTable } from '../../src/country/country.js';
import { openDatabase, type ReasonedResult } from '../../src/database/database.js';
import { type Manifest, MIRROR_FILE } from '../../src/database/release.js';
import { AtlasError } from '../../src/errors.js';
import { openMirror } from '../../src/mirror/reader.js';
import { mergeRanges } from '../../src/range/merge.js';
import { loadReference, type Reference, type SpecialRange } from '../config/reference.js';
import { CandidateBuilder } from '../merging/candidate-builder.js';
import type { SourceEvidence } from '../merging/evidence.js';
import { LAYERS } from '../merging/layers.js';
import { countSourceConfirmations, type SourceConfirmations } from '../merging/range-merger.js';
import { type CoveringRow, type CoveringRows, findCoveringRows, type Target } from './covering-rows.js';
import { agrees, voteAt, whyOutvoted } from './vote.js';

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
export interface ExplainedRow {
  source: string;
  file: string | null;
  line: number | null;
  text: string;
  first: string;
  last: string;
  /** As `answer` of the range. */
  says: string;
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
  claims: ExplainedRow[];
  /** Ids of the sources without a row for the address. */
  silent: string[];
}

export interface Explanation {
  result: ReasonedResult;
  release: string;
  as_of: string;
  /** `mapped` if an IPv4-mapped address was given: it is that IPv4 address. */
  notation: 'mapped' | null;
  /** The address itself, then the IPv4 address inside it if that one determines the result. */
  steps: Step[];
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

/**
 * Merges rows as a build does, and finds the one that wins at the address.
 *
 * @param rows those that cover the address, in the order of a build
 * @param embedded the prefixes whose addresses carry an IPv4 address
 * @returns undefined if no row is left after the embedded prefixes are cut out
 */
function winnerOf(
  rows: readonly CoveringRow[],
  { family, words }: Target,
  embedded: SpecialRange[],
): CoveringRow | undefined {
  const builder = new CandidateBuilder(family, rows.length, embedded);
  for (const [index, { first, last, layer }] of rows.entries()) {
    if (isCutAround(layer)) builder.addAround(first, last, 0, index + 1, layer);
    else builder.add(first, last, 0, index + 1, layer);
  }
  const { first, value, count } = mergeRanges(builder.finish());
  let range = count - 1;
  while (compareAddresses(first, range, words, 0, addressWords(family)) > 0) range--;
  return rows[value[range]! - 1];
}

/** Returns whether a build cuts embedded prefixes out of the wider ranges of a layer. */
function isCutAround(layer: number): boolean {
  return layer !== LAYERS.noCountry && layer !== LAYERS.embedded && layer !== LAYERS.overrides;
}

/** Returns whether a row covers an address in an embedded prefix, but is not strictly inside the prefix. */
function isCutOut({ first, last, target }: CoveringRow, prefix: SpecialRange): boolean {
  if (prefix.family !== target.family || !rangeContains(prefix.first, prefix.last, target.words)) return false;
  const count = addressWords(prefix.family);
  const atFirst = compareAddresses(first, 0, prefix.first, 0, count);
  const atLast = compareAddresses(last, 0, prefix.last, 0, count);
  return atFirst < 0 || atLast > 0 || (atFirst === 0 && atLast === 0);
}

/** Returns whether a row is one that may vote: that of a source, with a country. */
function isVote({ layer }: CoveringRow): boolean {
  return layer > LAYERS.embedded && layer < LAYERS.special;
}

/** Returns how the sources of a release were merged by evidence; undefined if they were merged by priority. */
function evidenceOf({ inputs }: Manifest): (SourceEvidence & { id: string })[] | undefined {
  const sources = inputs.flatMap(({ id, lineage, kind, space, asns }) =>
    lineage === undefined || kind === undefined ? [] : [{ id, lineage, kind, space: space ?? [], asns: asns ?? [] }],
  );
  return sources.length === 0 ? undefined : sources;
}

/**
 * Counts how often the locations of a release's sources are confirmed. That takes all rows, so it is done only if the
 * votes disagree; and only if all rows are available, because otherwise the outcome is open anyway.
 */
function confirmationsFor(
  votes: readonly CoveringRow[],
  { missing, ingested, owned }: CoveringRows,
  manifest: Manifest,
  reference: Reference,
  evidence: readonly SourceEvidence[],
): SourceConfirmations {
  const labels = [...new Set(votes.map(({ label }) => label))];
  if (labels.length < 2 || missing.length > 0) {
    return { confirmations: undefined, countryValue: (code) => labels.indexOf(code) };
  }
  const countries = countryTable(reference, manifest.as_of);
  return countSourceConfirmations({ sources: ingested, reference, countries, overrides: [], evidence, owned });
}

const OUTSIDE_SPACE = 'it is not inside the space of the owner of the data';
const CUT_OUT = 'it spans a prefix whose addresses have the country of the IPv4 address inside';

/** Returns why a row lost against the winner. */
function whyLost(row: CoveringRow, winner: CoveringRow): string {
  if (row.layer === LAYERS.noCountry && winner.layer !== LAYERS.noCountry) return 'it names no country';
  if (winner.layer === LAYERS.overrides && row.layer !== LAYERS.overrides) return 'overrides come before all sources';
  if (winner.layer === LAYERS.special && row.layer !== LAYERS.special) {
    return 'special-purpose ranges come before the sources';
  }
  if (row.layer === LAYERS.embedded && winner.layer !== LAYERS.embedded) {
    return `${winner.source} names a country for a range inside the prefix`;
  }
  if (row.layer !== winner.layer) return `${winner.source} comes before ${row.source} in sources.json`;
  const isWider = rangeSize(row.first, row.last) > rangeSize(winner.first, winner.last);
  if (isWider) return 'its range is wider';
  return 'a later row covers the same range, or one of the same size';
}

function explained(
  row: CoveringRow,
  outcome: ExplainedRow['outcome'],
  why: string | null,
  lineage: string | undefined,
): ExplainedRow {
  const { source, file, line, text, label, target } = row;
  const [first, last] = [row.first, row.last].map((address) => formatAddress(target.family, address));
  return {
    source,
    file,
    line,
    text,
    first: first!,
    last: last!,
    says: label,
    outcome,
    why,
    ...(lineage !== undefined && { lineage }),
  };
}

/** Sorts rows: the highest layer first; within a layer the narrowest first; of equal sizes the later first. */
function byPrecedence(rows: readonly CoveringRow[]): CoveringRow[] {
  return [...rows].reverse().sort((a, b) => {
    const difference = rangeSize(a.first, a.last) - rangeSize(b.first, b.last);
    return b.layer - a.layer || (difference < 0n ? -1 : difference > 0n ? 1 : 0);
  });
}

/** Explains one address from the rows that cover it. */
function explainStep(
  target: Target,
  range: MatchedRange,
  covering: CoveringRows,
  manifest: Manifest,
  reference: Reference,
  notes: string[],
): Step {
  const { missing } = covering;
  const rowsHere = covering.rows.filter((row) => row.target === target);
  const rows = rowsHere.filter((row) => !row.isOutsideSpace);
  const embedded = reference.special.filter(({ result }) => result.kind === 'embedded');
  const top = winnerOf(rows, target, embedded);
  const sources = evidenceOf(manifest);
  const isPutToVote = sources !== undefined && (top === undefined || top.layer < LAYERS.special);
  const votes = rows.filter(isVote);
  const confirmations = isPutToVote && confirmationsFor(votes, covering, manifest, reference, sources);
  const vote = confirmations ? voteAt(votes, target, embedded, sources!, confirmations) : undefined;
  const winner = vote?.winner ?? top;
  const decidingLayer = isPutToVote ? LAYERS.embedded : (winner?.layer ?? -1);
  const isOpen = missing.some(({ layer }) => layer > decidingLayer);
  const address = formatAddress(target.family, target.words);
  if (!isOpen && (winner?.label ?? 'unallocated') !== range.answer) {
    notes.push(
      `the rows give another result than the release for ${address}: the release was made with other rules or tables`,
    );
  }
  const wasCutOut = (row: CoveringRow): boolean =>
    isCutAround(row.layer) && embedded.some((prefix) => isCutOut(row, prefix));
  const explainRow = (row: CoveringRow): ExplainedRow => {
    const lineage = sources?.find(({ id }) => id === row.source)?.lineage;
    if (row.isOutsideSpace) return explained(row, 'lost', OUTSIDE_SPACE, lineage);
    if (isOpen) return explained(row, 'open', null, lineage);
    if (row === winner || (vote !== undefined && agrees(vote, row))) return explained(row, 'won', null, lineage);
    if (wasCutOut(row)) return explained(row, 'lost', CUT_OUT, lineage);
    const why = vote !== undefined && isVote(row) ? whyOutvoted(vote, row) : whyLost(row, winner!);
    return explained(row, 'lost', why, lineage);
  };
  const others = byPrecedence(rowsHere.filter((row) => row !== winner));
  return {
    address,
    range,
    ...(vote !== undefined && !isOpen && { vote: { lineages: vote.lineages, agreeing: vote.agreeing } }),
    claims: (winner === undefined ? others : [winner, ...others]).map(explainRow),
    silent: manifest.inputs.map(({ id }) => id).filter((id) => !rowsHere.some(({ source }) => source === id)),
  };
}

/** Parses the address to explain; an IPv4-mapped one is that IPv4 address. */
function parseTarget(text: string): { target: Target; mapped: boolean } {
  const words = new Uint32Array(4);
  const family = parseAddress(text, words);
  if (family === 0) throw new AtlasError('E_BAD_INPUT', `${JSON.stringify(text)} is not an IP address`);
  return {
    target: { family, words: words.slice(0, addressWords(family)) },
    mapped: family === 4 && text.includes(':'),
  };
}

/**
 * Explains the result for an address.
 *
 * @param dataDir the data directory, whose cache has the rows
 * @param dir directory of the release
 * @param text the address
 * @throws AtlasError E_BAD_INPUT if the text is not an address; E_NO_DATABASE or E_DAMAGED if the release cannot be read
 */
export async function explain(dataDir: string, dir: string, text: string): Promise<Explanation> {
  const { target, mapped } = parseTarget(text);
  const database = openDatabase(dir);
  const { manifest } = database;
  const reference = loadReference();
  const mirror = new MirrorRanges(dir);
  try {
    const matches = [{ target, range: mirror.find(target) }];
    const inside = embeddedTarget(target, matches[0]!.range);
    if (inside !== undefined) matches.push({ target: inside, range: mirror.find(inside) });
    const targets = matches.map((match) => match.target);
    const covering = await findCoveringRows(dataDir, manifest, targets, reference);
    const notes = covering.missing.map(({ reason }) => `${reason}, so its rows cannot be shown`);
    const steps = matches.map((match) => explainStep(match.target, match.range, covering, manifest, reference, notes));
    return {
      result: database.lookupWithReason(text)!,
      release: manifest.id,
      as_of: manifest.as_of,
      notation: mapped ? 'mapped' : null,
      steps,
      notes,
    };
  } finally {
    mirror.close();
    database.close();
  }
}
