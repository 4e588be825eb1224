/**
 * Why an address has the answer it has: the range of the release, every row that covers the address, which of them won and
 * why the others lost. The rows go through the same mergeRanges as in a build, and the outcome is held against the release.
 */

import { join } from 'node:path';
import { EMBEDDED_SCHEMES, type EmbeddedScheme, embeddedIPv4 } from '../../src/address/embedded.js';
import { formatAddress } from '../../src/address/format.js';
import { parseAddress } from '../../src/address/parse.js';
import { addressWords, compareAddresses, rangeContains, rangeSize } from '../../src/address/words.js';
import { openDatabase, type ReasonedResult } from '../../src/database/database.js';
import { type Manifest, MIRROR_FILE } from '../../src/database/release.js';
import { AtlasError } from '../../src/errors.js';
import { openMirror } from '../../src/mirror/reader.js';
import { mergeRanges } from '../../src/range/merge.js';
import { loadReference, type Reference, type SpecialRange } from '../config/reference.js';
import { CandidateBuilder, LAYERS } from '../stages/normalize.js';
import { type Claim, type Claims, claimsAt, type Target } from './covering-rows.js';

/** The range of the release that an address lies in. */
export interface MatchedRange {
  first: string;
  last: string;
  /** The country's code, or in lower case why there is none, or the scheme whose embedded IPv4 address answers. */
  answer: string;
  /** Ids of the sources that answered somewhere in the range, the highest first. */
  sources: string[];
}

/** A row that covers the address, and how it fared. */
export interface ExplainedClaim {
  source: string;
  file: string | null;
  line: number | null;
  text: string;
  first: string;
  last: string;
  says: string;
  /** `open` where rows that might lie over it cannot be read any more. */
  outcome: 'won' | 'lost' | 'open';
  /** Why it lost; null where it did not. */
  why: string | null;
}

/** One address explained. An address that carries an IPv4 address takes two of these. */
export interface Step {
  address: string;
  range: MatchedRange;
  /** The winner first. */
  claims: ExplainedClaim[];
  /** Ids of the sources that say nothing of the address. */
  silent: string[];
}

export interface Explanation {
  result: ReasonedResult;
  release: string;
  as_of: string;
  /** How the text given leads to the address explained: `mapped`, an IPv4-mapped address is that IPv4 address. */
  notation: 'mapped' | null;
  /** The address itself; then, where its answer is that of the IPv4 address inside, that one. */
  steps: Step[];
  /** What a reader must know: files that are gone, tables of another version. */
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

/** The ranges of a release, with the sources that answered in them: what only the mirror knows. */
class MirrorRanges {
  readonly #mirror: ReturnType<typeof openMirror>;

  constructor(dir: string) {
    this.#mirror = openMirror(join(dir, MIRROR_FILE));
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
    return { first: addressText(row.first), last: addressText(row.last), answer: row.answer, sources };
  }

  close(): void {
    this.#mirror.close();
  }
}

/** The address in the range that answers in its stead, where it carries an IPv4 address. */
function embeddedTarget({ words }: Target, { answer }: MatchedRange): Target | undefined {
  if (!EMBEDDED_SCHEMES.includes(answer as EmbeddedScheme)) return undefined;
  return { family: 4, words: Uint32Array.of(embeddedIPv4(answer as EmbeddedScheme, words)) };
}

/**
 * Lays claims over one another as a build does, and sees which one holds at the address.
 *
 * @param claims on the address, in the order of a build
 * @param carriers the prefixes whose addresses carry an IPv4 address; a build cuts them out of claims that merely span them
 * @returns the claim; undefined where none holds
 */
function winnerOf(claims: readonly Claim[], { family, words }: Target, carriers: SpecialRange[]): Claim | undefined {
  const builder = new CandidateBuilder(family, claims.length, carriers);
  for (const [index, { first, last, layer }] of claims.entries()) {
    if (isCutAround(layer)) builder.addAround(first, last, 0, index + 1, layer);
    else builder.add(first, last, 0, index + 1, layer);
  }
  const { first, value, count } = mergeRanges(builder.finish());
  let range = count - 1;
  while (compareAddresses(first, range, words, 0, addressWords(family)) > 0) range--;
  return claims[value[range]! - 1];
}

/** Whether a build cuts the prefixes that carry IPv4 addresses out of wider claims of a layer. */
function isCutAround(layer: number): boolean {
  return layer !== LAYERS.noCountry && layer !== LAYERS.embedded && layer !== LAYERS.overrides;
}

/** Whether a claim covers an address in a prefix, but reaches beyond the prefix. */
function spans({ first, last, target }: Claim, prefix: SpecialRange): boolean {
  if (prefix.family !== target.family || !rangeContains(prefix.first, prefix.last, target.words)) return false;
  const count = addressWords(prefix.family);
  return compareAddresses(first, 0, prefix.first, 0, count) < 0 || compareAddresses(last, 0, prefix.last, 0, count) > 0;
}

const MERELY_SPANS = 'it merely spans a prefix whose addresses answer with the IPv4 address inside';

/** Why a claim lost against the winner. */
function whyLost(claim: Claim, winner: Claim): string {
  if (claim.layer === LAYERS.noCountry && winner.layer !== LAYERS.noCountry) return 'it names no country';
  if (winner.layer === LAYERS.overrides && claim.layer !== LAYERS.overrides) return 'an override lies over all else';
  if (winner.layer === LAYERS.special && claim.layer !== LAYERS.special) {
    return 'special-purpose ranges lie over the sources';
  }
  if (claim.layer === LAYERS.embedded && winner.layer !== LAYERS.embedded) {
    return `${winner.source} names a country for a range inside the prefix`;
  }
  if (claim.layer !== winner.layer) return `${winner.source} stands before ${claim.source} in sources.json`;
  const wider = rangeSize(claim.first, claim.last) > rangeSize(winner.first, winner.last);
  if (wider) return 'its range is wider';
  return 'a later row is about the same range, or one as wide';
}

function explained(claim: Claim, outcome: ExplainedClaim['outcome'], why: string | null): ExplainedClaim {
  const { source, file, line, text, says, target } = claim;
  const [first, last] = [claim.first, claim.last].map((address) => formatAddress(target.family, address));
  return { source, file, line, text, first: first!, last: last!, says, outcome, why };
}

/** The highest first; of one layer the narrowest, of equal ones the later. */
function sorted(claims: readonly Claim[]): Claim[] {
  return [...claims].reverse().sort((a, b) => {
    const difference = rangeSize(a.first, a.last) - rangeSize(b.first, b.last);
    return b.layer - a.layer || (difference < 0n ? -1 : difference > 0n ? 1 : 0);
  });
}

/** Explains one address from the claims on it. */
function step(
  target: Target,
  range: MatchedRange,
  { claims: all, missing }: Claims,
  manifest: Manifest,
  reference: Reference,
  notes: string[],
): Step {
  const claims = all.filter((claim) => claim.target === target);
  const carriers = reference.special.filter(({ answer }) => answer.kind === 'embedded');
  const winner = winnerOf(claims, target, carriers);
  const isOpen = missing.some(({ layer }) => layer > (winner?.layer ?? -1));
  const address = formatAddress(target.family, target.words);
  if (!isOpen && (winner?.says ?? 'unallocated') !== range.answer) {
    notes.push(
      `the rows do not add up to the answer of the release for ${address}: it was made by other rules or tables`,
    );
  }
  const isSpanning = (claim: Claim): boolean =>
    isCutAround(claim.layer) && carriers.some((carrier) => spans(claim, carrier));
  const outcomeOf = (claim: Claim): ExplainedClaim => {
    if (isOpen) return explained(claim, 'open', null);
    if (claim === winner) return explained(claim, 'won', null);
    return explained(claim, 'lost', isSpanning(claim) ? MERELY_SPANS : whyLost(claim, winner!));
  };
  const losers = sorted(claims.filter((claim) => claim !== winner));
  return {
    address,
    range,
    claims: (winner === undefined ? losers : [winner, ...losers]).map(outcomeOf),
    silent: manifest.inputs.map(({ id }) => id).filter((id) => !claims.some(({ source }) => source === id)),
  };
}

/** The address that a text names; an IPv4-mapped one is that IPv4 address. */
function parseTarget(text: string): { target: Target; mapped: boolean } {
  const words = new Uint32Array(4);
  const family = parseAddress(text, words);
  if (family === 0) throw new AtlasError('E_BAD_INPUT', `${JSON.stringify(text)} is no IP address`);
  return {
    target: { family, words: words.slice(0, addressWords(family)) },
    mapped: family === 4 && text.includes(':'),
  };
}

/**
 * Explains the answer for an address.
 *
 * @param dataDir the data directory, whose cache has the rows
 * @param dir of the release
 * @param text the address
 * @throws AtlasError E_BAD_INPUT where the text is no address; E_NO_DATABASE or E_DAMAGED where the release cannot be read
 */
export async function explain(dataDir: string, dir: string, text: string): Promise<Explanation> {
  const { target, mapped } = parseTarget(text);
  const database = openDatabase(dir);
  const { manifest } = database;
  const reference = loadReference();
  const mirror = new MirrorRanges(dir);
  try {
    const found = [{ target, range: mirror.find(target) }];
    const inside = embeddedTarget(target, found[0]!.range);
    if (inside !== undefined) found.push({ target: inside, range: mirror.find(inside) });
    const targets = found.map((each) => each.target);
    const claims = await claimsAt(dataDir, manifest, targets, reference);
    const notes = claims.missing.map(({ reason }) => `${reason}, so its rows cannot be shown`);
    const steps = found.map((each) => step(each.target, each.range, claims, manifest, reference, notes));
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
