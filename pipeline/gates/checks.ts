/**
 * The gates. Most compare a figure with a threshold: that of `gates` in sources.json, or else of `DEFAULT_GATES` in
 * src/limits.ts.
 */
import { isDeepStrictEqual } from 'node:util';
import { formatAddress } from '../../src/address/format.js';
import type { Delta } from '../../src/database/delta.js';
import { formatSize, formatSizeUnit, sizeUnit } from '../../src/database/diff.js';
import type { Manifest, ManifestInput, Refusal } from '../../src/database/release.js';
import { MIN_COUNTRY_SIZE, MIN_DELEGATIONS_CHANGE, MIN_ROWS_CHANGE, PAIRS_SHOWN } from '../../src/limits.js';
import { formatCidr } from '../../src/range/cidr.js';
import type { GateFigure } from '../../src/report/stored-report.js';
import { grouped, percent, table } from '../../src/text-table.js';
import type { GateLimits } from '../config/sources.js';
import type { Counts } from '../stage.js';
import type { DelegationDelta } from './delegations.js';
import type { SentinelResult } from './sentinels.js';

/** Returns the quotient of two sizes; 0 if the whole is 0. */
function shareOf(part: bigint, whole: bigint): number {
  return whole === 0n ? 0 : Number(part) / Number(whole);
}

/** Checks one family: the changed and lost shares, the longest changed run, and what each country lost. */
export function checkDelta(delta: Delta, limits: GateLimits): Refusal[] {
  const { family, assigned, changed, lost, longestRun } = delta;
  const refusals: Refusal[] = [];
  const space = `IPv${family} ${family === 4 ? 'addresses' : '/48s'} with a country`;
  const gates = [
    [`maxChangedShareIPv${family}`, changed, 'have another one now'],
    [`maxLostShareIPv${family}`, lost, 'have none now'],
  ] as const;
  for (const [gate, part, what] of gates) {
    const share = shareOf(part, assigned);
    if (share <= limits[gate]) continue;
    refusals.push({
      gate,
      message: `${percent(share)} of the ${space} ${what}; the limit is ${percent(limits[gate])}`,
    });
  }
  const gate = `maxBlockIPv${family}` as const;
  if (longestRun !== undefined && longestRun.changed > BigInt(limits[gate]) * sizeUnit(family)) {
    const ends = [longestRun.first, longestRun.last].map((address) => formatAddress(family, address)).join(' – ');
    const size = `${formatSize(family, longestRun.changed)} ${formatSizeUnit(family)}`;
    refusals.push({
      gate,
      message: `no address of ${ends} kept its country (${size}); the limit is ${grouped(limits[gate])}`,
    });
  }
  for (const { code, share } of countryLosses(delta)) {
    if (share <= limits.maxCountryLossShare) continue;
    const what = `${code} loses ${percent(share)} of its IPv${family} ${formatSizeUnit(family)}`;
    refusals.push({
      gate: 'maxCountryLossShare',
      message: `${what}; the limit is ${percent(limits.maxCountryLossShare)}`,
    });
  }
  return refusals;
}

/** Returns the quotient of two counts; 0 if the whole is 0. */
function shareOfCount(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

/** Checks the shares of IPv6 delegations that changed or lost their country. */
export function checkDelegations({ count, changed, lost }: DelegationDelta, limits: GateLimits): Refusal[] {
  const gates = [
    ['maxChangedDelegationsIPv6', changed, 'have another one now'],
    ['maxLostDelegationsIPv6', lost, 'have none now'],
  ] as const;
  return gates.flatMap(([gate, part, what]) => {
    const share = shareOfCount(part, count);
    if (part < MIN_DELEGATIONS_CHANGE || share <= limits[gate]) return [];
    const message = `${percent(share)} of the IPv6 delegations with a country ${what}; the limit is ${percent(limits[gate])}`;
    return [{ gate, message }];
  });
}

/** Returns the share of its addresses that each country lost, by code, without countries too small to tell. */
function countryLosses({ family, countryTotals }: Delta): { code: string; share: number }[] {
  return [...countryTotals]
    .filter(([, { before }]) => before >= BigInt(MIN_COUNTRY_SIZE) * sizeUnit(family))
    .map(([code, { before, kept }]) => ({ code, share: shareOf(before - kept, before) }))
    .sort((a, b) => (a.code < b.code ? -1 : 1));
}

/** Returns the codes of the countries that have no addresses any more, in ascending order. */
function vanishedCountries(deltas: readonly Delta[]): string[] {
  const totals = deltas.flatMap(({ countryTotals }) => [...countryTotals]);
  const now = new Set(totals.filter(([, { after }]) => after > 0n).map(([code]) => code));
  return [...new Set(totals.map(([code]) => code))].filter((code) => !now.has(code)).sort();
}

/** Checks that countries did not disappear. */
export function checkCountries(deltas: readonly Delta[], { maxVanishedCountries }: GateLimits): Refusal[] {
  const vanished = vanishedCountries(deltas);
  if (vanished.length <= maxVanishedCountries) return [];
  const are = vanished.length === 1 ? 'country is' : 'countries are';
  const message = `${vanished.length} ${are} gone: ${vanished.join(', ')}; the limit is ${maxVanishedCountries}`;
  return [{ gate: 'maxVanishedCountries', message }];
}

/**
 * Returns the change of the number of rows, as a share, of each source that both releases have from the same place in the
 * same format; without small changes.
 */
function rowChanges(now: Manifest, before: Manifest): { id: string; rows: number; earlier: number; share: number }[] {
  return now.inputs.flatMap((input) => {
    const { id, rows } = input;
    const previous = findInput(before, id);
    const earlier = previous !== undefined && isSameData(input, previous) ? previous.rows : 0;
    const change = Math.abs(rows - earlier);
    return earlier === 0 || change <= MIN_ROWS_CHANGE ? [] : [{ id, rows, earlier, share: change / earlier }];
  });
}

/** Checks the number of rows of each source that both releases have from the same place in the same format. */
export function checkRows(now: Manifest, before: Manifest, { maxRowsChange }: GateLimits): Refusal[] {
  return rowChanges(now, before).flatMap(({ id, rows, earlier, share }) => {
    if (share <= maxRowsChange) return [];
    const numbers = `${grouped(rows)} rows, previously ${grouped(earlier)}`;
    const message = `source ${id} has ${numbers} (${percent(rows / earlier)}); the limit is a change by ${percent(maxRowsChange)}`;
    return [{ gate: 'maxRowsChange', message }];
  });
}

/** Returns whether the earlier release has sources from a seed that the new one has from elsewhere, or not at all. */
export function replacesSeed(now: Manifest, before: Manifest): boolean {
  return before.inputs.some(({ id, seed }) => seed !== undefined && findInput(now, id)?.seed === undefined);
}

/**
 * Checks that no source goes back to a seed. A source under a new id counts as one that the earlier release has and the
 * new one does not.
 */
export function checkSeeds(now: Manifest, before: Manifest): Refusal[] {
  const gone = before.inputs.find(({ id, seed }) => seed === undefined && isRemoved(now, id));
  return now.inputs.flatMap(({ id, seed, data_date }) => {
    const earlier = findInput(before, id) ?? gone;
    if (seed === undefined || earlier === undefined || earlier.seed !== undefined) return [];
    const dates = `data of ${data_date ?? 'unknown date'}, previously of ${earlier.data_date ?? 'unknown date'}`;
    return [{ gate: 'seed', message: `source ${id} can only be had from its seed (${dates})` }];
  });
}

/** Returns whether a release has no source of an id, and not because the source is missing. */
function isRemoved({ inputs, missing = [] }: Manifest, wanted: string): boolean {
  return ![...inputs, ...missing].some(({ id }) => id === wanted);
}

/** Returns whether two releases have a source from the same place in the same format. */
function isSameData(a: ManifestInput, b: ManifestInput): boolean {
  const isSamePlace = a.place === b.place || a.place === undefined || b.place === undefined;
  return isSamePlace && isDeepStrictEqual(a.format, b.format);
}

/**
 * Returns what differs between the sources of two releases because sources.json was edited, each as a phrase such as
 * "source a is new". It may explain why a release is refused.
 */
export function describeSourceChanges(now: Manifest, before: Manifest): string[] {
  const changes: string[] = [];
  for (const { id } of before.inputs) if (isRemoved(now, id)) changes.push(`source ${id} is gone`);
  for (const input of now.inputs) {
    const previous = findInput(before, input.id);
    if (previous === undefined) {
      if (isRemoved(before, input.id)) changes.push(`source ${input.id} is new`);
    } else {
      if (!isSameData(input, previous)) changes.push(`source ${input.id} is from another place or in another format`);
      const evidence = ({ lineage, kind, space, asns }: ManifestInput): unknown[] => [lineage, kind, space, asns];
      if (!isDeepStrictEqual(evidence(input), evidence(previous)))
        changes.push(`source ${input.id} votes in another way`);
    }
  }
  const common = (one: Manifest, other: Manifest): string[] =>
    one.inputs.map(({ id }) => id).filter((id) => findInput(other, id) !== undefined);
  if (!isDeepStrictEqual(common(now, before), common(before, now))) changes.push('the sources are in another order');
  return changes;
}

function findInput({ inputs }: Manifest, id: string): Manifest['inputs'][number] | undefined {
  return inputs.find((input) => input.id === id);
}

function isWrong({ status }: SentinelResult): boolean {
  return status === 'wrong' || status === 'lost';
}

/** Checks that sentinels have their expected results. */
export function checkSentinelResults(results: readonly SentinelResult[], { maxWrongSentinels }: GateLimits): Refusal[] {
  const wrong = results.filter(isWrong);
  if (wrong.length <= maxWrongSentinels) return [];
  const list = wrong.map(({ ip, expected, actual }) => `\n    ${ip}: expected ${expected}, got ${actual}`).join('');
  const message = `${wrong.length} of ${results.length} sentinel addresses have a wrong result; the limit is ${maxWrongSentinels}${list}`;
  return [{ gate: 'maxWrongSentinels', message }];
}

/** Returns tables of the changes for a person; empty if nothing changed. */
export function describeDeltas(deltas: readonly Delta[]): string {
  const pairs = deltas.flatMap(({ family, pairs }) =>
    pairs
      .slice(0, PAIRS_SHOWN)
      .map(({ from, to, addresses, ranges }) => [
        `  IPv${family}`,
        ...[from, '→', to],
        `${formatSize(family, addresses)} ${formatSizeUnit(family)}`,
        `in ${grouped(ranges)} ranges`,
      ]),
  );
  const blocks = deltas.flatMap(({ family, blocks }) =>
    blocks.map(({ first, prefix, from, to }) => [`  ${formatCidr(family, first, prefix)}`, from, '→', to]),
  );
  if (pairs.length === 0) return '';
  return `What changed:\n${table(pairs, [4])}The largest blocks:\n${table(blocks)}`;
}

/** Returns the shares of changed, lost and gained addresses for the report. */
export function deltaCounts(deltas: readonly Delta[]): Counts {
  const counts: Counts = {};
  for (const { family, assigned, changed, lost, gained } of deltas) {
    for (const [name, part] of Object.entries({ changed, lost, gained })) {
      counts[`${name}_ipv${family}`] = percent(shareOf(part, assigned));
    }
  }
  return counts;
}

/** Returns the entry with the greatest share. */
function greatest<T extends { share: number }>(entries: readonly T[]): T | undefined {
  return entries.reduce<T | undefined>(
    (most, entry) => (most !== undefined && most.share >= entry.share ? most : entry),
    undefined,
  );
}

/**
 * Returns what each gate compared: the greatest value, and the limit. A release is refused by a gate if the value is above
 * the limit and the gate was applied.
 *
 * @param changes the manifest of the release to compare with, and what changed since; without it, only the sentinels are
 *   compared
 * @param applied whether the limits on changes apply; they do not if the release to compare with was made from a seed
 */
export function gateFigures(
  now: Manifest,
  changes: { manifest: Manifest; deltas: readonly Delta[]; delegationDelta: DelegationDelta } | undefined,
  results: readonly SentinelResult[],
  limits: GateLimits,
  applied: boolean,
): GateFigure[] {
  const figure = (gate: keyof GateLimits, value: number, subject?: string): GateFigure => ({
    ...{ gate, value, limit: limits[gate], applied: applied || gate === 'maxWrongSentinels' },
    ...(subject !== undefined && { subject }),
  });
  const wrong = results.filter(isWrong);
  const sentinels = figure('maxWrongSentinels', wrong.length, `of ${results.length} addresses`);
  if (changes === undefined) return [sentinels];
  const { manifest: before, deltas, delegationDelta } = changes;
  const delegations = (gate: keyof GateLimits, part: number): GateFigure => ({
    ...figure(gate, shareOfCount(part, delegationDelta.count)),
    applied: applied && part >= MIN_DELEGATIONS_CHANGE,
  });
  const families = deltas.flatMap(({ family, assigned, changed, lost, longestRun }) => [
    figure(`maxChangedShareIPv${family}`, shareOf(changed, assigned)),
    figure(`maxLostShareIPv${family}`, shareOf(lost, assigned)),
    figure(
      `maxBlockIPv${family}`,
      Number(longestRun?.changed ?? 0n) / Number(sizeUnit(family)),
      longestRun && `${formatAddress(family, longestRun.first)} – ${formatAddress(family, longestRun.last)}`,
    ),
  ]);
  const loss = greatest(
    deltas.flatMap((delta) =>
      countryLosses(delta).map(({ code, share }) => ({ share, subject: `${code}, IPv${delta.family}` })),
    ),
  );
  const vanished = vanishedCountries(deltas);
  const rows = greatest(rowChanges(now, before));
  return [
    ...families,
    delegations('maxChangedDelegationsIPv6', delegationDelta.changed),
    delegations('maxLostDelegationsIPv6', delegationDelta.lost),
    figure('maxCountryLossShare', loss?.share ?? 0, loss?.share === 0 ? undefined : loss?.subject),
    figure('maxVanishedCountries', vanished.length, vanished.length === 0 ? undefined : vanished.join(', ')),
    figure('maxRowsChange', rows?.share ?? 0, rows?.id),
    sentinels,
  ];
}
