/**
 * The stage `gate`: what is about to be published is no worse than what is there. Each gate compares with the current
 * release and refuses what no night changes in earnest; its threshold is in the `gates` of sources.json.
 *
 * The stage only judges. A refused release is kept aside by {@link keepRefused}, one that is forced through gets its
 * record by {@link recordForce}.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatAddress } from '../../src/address/format.js';
import { BinaryEngine } from '../../src/database/binary-engine.js';
import { Database } from '../../src/database/database.js';
import { formatSize, formatSizeUnit, rangeList, sizeUnit } from '../../src/database/diff.js';
import {
  currentReleaseId,
  MANIFEST_FILE,
  type Manifest,
  RANGE_FILE,
  REFUSED_DIR,
  RELEASES_DIR,
  type Refusal,
  readManifest,
  refusedIds,
  releaseIds,
} from '../../src/database/release.js';
import { AtlasError } from '../../src/errors.js';
import { KEPT_REFUSED, MIN_COUNTRY_SIZE, MIN_ROWS_CHANGE, PAIRS_SHOWN } from '../../src/limits.js';
import { formatCidr } from '../../src/range/cidr.js';
import { openRangeFile, type RangeFile } from '../../src/rangefile/reader.js';
import { grouped, percent, table } from '../../src/text-table.js';
import type { Override } from '../config/overrides.js';
import type { Sentinel } from '../config/reference.js';
import type { GateLimits } from '../config/sources.js';
import { type Movement, measure } from '../gates/delta.js';
import { judgeSentinels, type Verdict } from '../gates/sentinels.js';
import { whoAmI } from '../operations/current-user.js';
import type { Counts, Stage } from '../stage.js';
import type { FinishedRelease } from './publish.js';

export interface GateInput {
  limits: GateLimits;
  sentinels: readonly Sentinel[];
  overrides: readonly Override[];
}

/** What the gates say of a release. */
export interface Judgement {
  release: FinishedRelease;
  /** Empty where the release may be published. */
  refusals: Refusal[];
  /** What moved, as lines for a person; empty where there was nothing to compare with. */
  moved: string;
}

/** A release as the gates need it. */
interface OpenRelease {
  id: string;
  manifest: Manifest;
  file: RangeFile;
  database: Database;
}

function openRelease(dir: string): OpenRelease {
  const manifest = readManifest(dir);
  const file = openRangeFile(join(dir, RANGE_FILE));
  return { id: manifest.id, manifest, file, database: new Database(dir, manifest, new BinaryEngine(file)) };
}

/** The release to compare with: the current one, else the newest that can be read, or undefined where there is none. */
function previousRelease(dataDir: string, note: (text: string) => void): OpenRelease | undefined {
  const current = currentReleaseId(dataDir);
  const ids = releaseIds(dataDir).filter((id) => id !== current);
  for (const id of current === undefined ? ids : [current, ...ids]) {
    try {
      return openRelease(join(dataDir, RELEASES_DIR, id));
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error;
      note(`release ${id} cannot be compared with: ${error.message}`);
    }
  }
  return undefined;
}

/** The quotient of two sizes; 0 of nothing is 0. */
function shareOf(part: bigint, whole: bigint): number {
  return whole === 0n ? 0 : Number(part) / Number(whole);
}

/** Gates of one family: what changed, what was lost, the longest stretch, countries that fell apart. */
function judgeMovement(movement: Movement, limits: GateLimits): Refusal[] {
  const { family, assigned, changed, lost, longest, holdings } = movement;
  const refusals: Refusal[] = [];
  const space = `IPv${family} ${family === 4 ? 'addresses' : '/48s'} with a country`;
  const gates = [
    [`maxChangedShareIPv${family}`, changed, 'have another one now'],
    [`maxLostShareIPv${family}`, lost, 'have none now'],
  ] as const;
  for (const [gate, part, what] of gates) {
    const share = shareOf(part, assigned);
    if (share <= limits[gate]) continue;
    refusals.push({ gate, message: `${percent(share)} of the ${space} ${what}; ${percent(limits[gate])} may` });
  }
  const gate = `maxBlockIPv${family}` as const;
  if (longest !== undefined && longest.changed > BigInt(limits[gate]) * sizeUnit(family)) {
    const ends = [longest.first, longest.last].map((address) => formatAddress(family, address)).join(' – ');
    const size = `${formatSize(family, longest.changed)} ${formatSizeUnit(family)}`;
    refusals.push({
      gate,
      message: `nothing of ${ends} kept its country (${size}); ${grouped(limits[gate])} may change`,
    });
  }
  for (const [code, { before, kept }] of [...holdings].sort()) {
    const share = shareOf(before - kept, before);
    if (before < BigInt(MIN_COUNTRY_SIZE) * sizeUnit(family) || share <= limits.maxCountryLossShare) continue;
    const what = `${code} loses ${percent(share)} of its IPv${family} ${formatSizeUnit(family)}`;
    refusals.push({ gate: 'maxCountryLossShare', message: `${what}; ${percent(limits.maxCountryLossShare)} may go` });
  }
  return refusals;
}

function judgeCountries(movements: readonly Movement[], { maxVanishedCountries }: GateLimits): Refusal[] {
  const before = new Set(movements.flatMap(({ holdings }) => [...holdings.keys()]));
  const vanished = [...before].filter((code) => !movements.some(({ countriesNow }) => countriesNow.has(code))).sort();
  if (vanished.length <= maxVanishedCountries) return [];
  const are = vanished.length === 1 ? 'country is' : 'countries are';
  const message = `${vanished.length} ${are} gone: ${vanished.join(', ')}; ${maxVanishedCountries} may be`;
  return [{ gate: 'maxVanishedCountries', message }];
}

function judgeRows(now: Manifest, before: Manifest, { maxRowsChange }: GateLimits): Refusal[] {
  return now.inputs.flatMap(({ id, rows }) => {
    const earlier = before.inputs.find((input) => input.id === id)?.rows ?? 0;
    const change = Math.abs(rows - earlier);
    if (earlier === 0 || change <= MIN_ROWS_CHANGE || change <= maxRowsChange * earlier) return [];
    const numbers = `${grouped(rows)} rows where it had ${grouped(earlier)}`;
    const message = `source ${id} has ${numbers} (${percent(rows / earlier)}); they may change by ${percent(maxRowsChange)}`;
    return [{ gate: 'maxRowsChange', message }];
  });
}

function judgeVerdicts(verdicts: readonly Verdict[], { maxWrongSentinels }: GateLimits): Refusal[] {
  const wrong = verdicts.filter(({ verdict }) => verdict === 'wrong' || verdict === 'lost');
  if (wrong.length <= maxWrongSentinels) return [];
  const list = wrong.map(({ ip, expected, got }) => `\n    ${ip}: expected ${expected}, got ${got}`).join('');
  const message = `${wrong.length} of ${verdicts.length} sentinel addresses have another answer than expected; ${maxWrongSentinels} may${list}`;
  return [{ gate: 'maxWrongSentinels', message }];
}

/** The tables of what moved. */
function describeMovements(movements: readonly Movement[]): string {
  const pairs = movements.flatMap(({ family, pairs }) =>
    pairs
      .slice(0, PAIRS_SHOWN)
      .map(({ from, to, addresses, ranges }) => [
        `  IPv${family}`,
        ...[from, '→', to],
        `${formatSize(family, addresses)} ${formatSizeUnit(family)}`,
        `in ${grouped(ranges)} ranges`,
      ]),
  );
  const blocks = movements.flatMap(({ family, blocks }) =>
    blocks.map(({ first, prefix, from, to }) => [`  ${formatCidr(family, first, prefix)}`, from, '→', to]),
  );
  if (pairs.length === 0) return '';
  return `What moved:\n${table(pairs, [4])}The largest blocks:\n${table(blocks)}`;
}

function movementCounts(movements: readonly Movement[]): Counts {
  const counts: Counts = {};
  for (const { family, assigned, changed, lost, gained } of movements) {
    for (const [name, part] of Object.entries({ changed, lost, gained })) {
      counts[`${name}_ipv${family}`] = percent(shareOf(part, assigned));
    }
  }
  return counts;
}

export const gateStage = ({ limits, sentinels, overrides }: GateInput): Stage<FinishedRelease, Judgement> => ({
  name: 'gate',
  run: async (release, { dataDir, note }) => {
    const now = openRelease(release.dir);
    const before = previousRelease(dataDir, note);
    if (before === undefined) note('no release to compare with: only the sentinels are checked');
    const movements =
      before === undefined
        ? []
        : ([4, 6] as const).map((family) => measure(rangeList(before.file, family), rangeList(now.file, family)));
    const verdicts = judgeSentinels(sentinels, overrides, now.database, before?.database);
    const refusals = [
      ...judgeVerdicts(verdicts, limits),
      ...movements.flatMap((movement) => judgeMovement(movement, limits)),
      ...judgeCountries(movements, limits),
      ...(before === undefined ? [] : judgeRows(now.manifest, before.manifest, limits)),
    ];
    const withVerdict = (...wanted: Verdict['verdict'][]): number =>
      verdicts.filter(({ verdict }) => wanted.includes(verdict)).length;
    return {
      output: { release, refusals, moved: describeMovements(movements) },
      counts: {
        compared_with: before?.id ?? 'nothing',
        ...movementCounts(movements),
        sentinels: withVerdict('right'),
        sentinels_open: withVerdict('open'),
        sentinels_known_wrong: withVerdict('known'),
        refusals: refusals.length,
      },
    };
  },
});

/**
 * Puts a refused release aside, where it can be looked at, and removes the oldest of those.
 *
 * @returns its directory
 */
export function keepRefused(release: FinishedRelease, dataDir: string, workDir: string): string {
  const refused = join(dataDir, RELEASES_DIR, REFUSED_DIR);
  const place = join(refused, release.id);
  mkdirSync(refused, { recursive: true });
  rmSync(place, { recursive: true, force: true });
  renameSync(release.dir, place);
  for (const id of refusedIds(dataDir).slice(KEPT_REFUSED)) {
    renameSync(join(refused, id), join(workDir, `old-${id}`));
  }
  return place;
}

/** Why a release is not published, and what to do. */
export function refusalError({ release, refusals, moved }: Judgement, current: string, place: string): AtlasError {
  const reasons = refusals.map(({ message }) => `  - ${message}`).join('\n');
  const message = [
    `release ${release.id} is refused; ${current}`,
    reasons,
    `${moved}It is kept in ${place}; "ipatlas diff current ${release.id}" shows all that moved.`,
    'If the change is meant, as after a change of the sources, build again with --force. The thresholds are "gates" in sources.json.',
  ].join('\n');
  return new AtlasError('E_REFUSED', message);
}

/** Writes into the manifest who let the release through against which gates. */
export function recordForce({ release, refusals }: Judgement): void {
  const path = join(release.dir, MANIFEST_FILE);
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  manifest.forced = { by: whoAmI(), at: new Date().toISOString(), refusals };
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
}
