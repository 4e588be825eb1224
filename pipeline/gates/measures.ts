/** What the gates measure: how a release differs from the one that it is compared with. */
import { formatAddress } from '../../src/address/format.js';
import type { Delta } from '../../src/database/delta.js';
import { formatSize, formatSizeUnit, isCountryLabel, sizeUnit } from '../../src/database/diff.js';
import type { Manifest } from '../../src/database/release.js';
import type { GateName } from '../../src/limits.js';
import { grouped, percent } from '../../src/text-table.js';
import type { SentinelResult } from './sentinels.js';
import { findInput, isSameData } from './step.js';

/**
 * Smallest wholes of which gates take a share. Less counts as that much, so that a short list of ranges may change by a few
 * rows, and a small country by a network.
 */
const GATE_WHOLES = {
  /** Addresses with a country: an IPv4 /4, and as many IPv6 /48s. */
  space: 268_435_456,
  /** IPv6 delegations. */
  delegations: 4096,
  /** What a country had, for its loss, in IPv4 addresses and IPv6 /48s. */
  countryLoss: { 4: 262_144, 6: 4_194_304 },
  /** What a country had, for its gain: territories may triple, and companies move their networks between small countries. */
  countryGain: { 4: 2_097_152, 6: 67_108_864 },
  /** What a country had in IPv4, for its loss when the sources change. */
  countryLossOfChange: 10_000_000,
  /** Rows of a source. */
  rows: 500,
  /** Networks. */
  networks: 1000,
};

/** A value that a gate compares with its limit. */
export interface Measure {
  gate: GateName;
  /** A share (0 to 1; a gain may be more), a number, or a size in IPv4 addresses or IPv6 /48s. */
  value: number;
  /** The value in a sentence without its end, such as "0.56 % of the IPv4 addresses with a country have another one". */
  text: string;
  /** What has the value: a country, a source, or a range. */
  subject?: string | undefined;
  /** Lines for a person. */
  details?: string;
}

/** What changed from one country, or none, to another, in one unit: IPv4 addresses, IPv6 /48s or IPv6 delegations. */
export interface Flows {
  /** What had a country before. */
  total: number;
  /** What changed. */
  pairs: readonly { from: string; to: string; amount: number }[];
}

/** Returns what changed by addresses. */
function flowsOf({ family, assigned, pairs }: Delta): Flows {
  const inUnits = (addresses: bigint): number => Number(addresses) / Number(sizeUnit(family));
  return {
    total: inUnits(assigned),
    pairs: pairs.map(({ from, to, addresses }) => ({ from, to, amount: inUnits(addresses) })),
  };
}

/** A name and what it has. */
type Share = [name: string, share: number];

function greatest(shares: Iterable<Share>): Share {
  let most: Share = ['', 0];
  for (const share of shares) if (share[1] > most[1]) most = share;
  return most;
}

/** Shares of all that had a country. */
interface FlowShares {
  changed: number;
  lost: number;
  /** Changed between a member of the European Union and another country. */
  euChanged: number;
  /** The pair of countries with the most. */
  pair: Share;
  /** The country that lost the most, and that got the most from others. */
  loser: Share;
  gainer: Share;
  /** What each country got from others, in the unit of the flows. */
  gains: ReadonlyMap<string, number>;
}

/**
 * Adds up flows.
 *
 * @param smallest a smaller total counts as this
 * @param isEu whether a country is a member of the European Union
 */
export function shareOut({ total, pairs }: Flows, smallest: number, isEu: (code: string) => boolean): FlowShares {
  const whole = Math.max(total, smallest);
  const losses = new Map<string, number>();
  const gains = new Map<string, number>();
  const changes: Share[] = [];
  let [changed, lost, euChanged] = [0, 0, 0];
  for (const { from, to, amount } of pairs) {
    if (!isCountryLabel(from)) continue;
    losses.set(from, (losses.get(from) ?? 0) + amount);
    if (!isCountryLabel(to)) {
      lost += amount;
      continue;
    }
    changed += amount;
    if (isEu(from) !== isEu(to)) euChanged += amount;
    gains.set(to, (gains.get(to) ?? 0) + amount);
    changes.push([`${from} → ${to}`, amount]);
  }
  const share = ([name, amount]: Share): Share => [name, amount / whole];
  return {
    changed: changed / whole,
    lost: lost / whole,
    euChanged: euChanged / whole,
    gains,
    pair: share(greatest(changes)),
    loser: share(greatest(losses)),
    gainer: share(greatest(gains)),
  };
}

function larger(a: Share, b: Share): Share {
  return a[1] >= b[1] ? a : b;
}

/**
 * Measures the changes of addresses and delegations.
 *
 * @param deltas of IPv4 and IPv6
 * @param delegations what changed by IPv6 delegation
 * @param isEu whether a country is a member of the European Union
 * @param isNight whether the sources are the same; if not, a country's loss is that of a large one
 */
export function measureChanges(
  deltas: readonly Delta[],
  delegations: Flows,
  isEu: (code: string) => boolean,
  isNight: boolean,
): Measure[] {
  const measures: Measure[] = [];
  const add = (gate: GateName, value: number, text: string, subject?: string): void => {
    measures.push({ gate, value, text, subject: value === 0 ? undefined : subject });
  };
  const ofCountry = (gate: 'maxCountryLossShare' | 'maxCountryGainShare'): Measure => ({ gate, value: 0, text: '' });
  let relativeLoss = ofCountry('maxCountryLossShare');
  let relativeGain = ofCountry('maxCountryGainShare');
  for (const delta of deltas) {
    const { family, countryTotals } = delta;
    const of = `of the IPv${family} ${formatSizeUnit(family)} with a country`;
    const shares = shareOut(flowsOf(delta), GATE_WHOLES.space, isEu);
    add(`maxChangedShareIPv${family}`, shares.changed, `${percent(shares.changed)} ${of} have another one`);
    add(`maxLostShareIPv${family}`, shares.lost, `${percent(shares.lost)} ${of} have none`);
    if (family === 4) {
      const { euChanged, pair, loser, gainer } = shares;
      add('maxEuChangeShareIPv4', euChanged, `${percent(euChanged)} ${of} have entered or left the European Union`);
      add('maxPairShareIPv4', pair[1], `${percent(pair[1])} ${of} have changed from ${pair[0]}`, pair[0]);
      addCountry(add, 'maxCountryShareIPv4', of, loser, gainer);
    }
    measures.push(measureRun(delta));
    for (const [code, { before, kept }] of countryTotals) {
      const [had, stayed] = [before, kept].map((size) => Number(size) / Number(sizeUnit(family))) as [number, number];
      const subject = `${code}, IPv${family}`;
      const smallest = isNight ? GATE_WHOLES.countryLoss[family] : GATE_WHOLES.countryLossOfChange;
      const loss = isNight || family === 4 ? (had - stayed) / Math.max(had, smallest) : 0;
      const gain = (shares.gains.get(code) ?? 0) / Math.max(had, GATE_WHOLES.countryGain[family]);
      const its = `of its IPv${family} ${formatSizeUnit(family)}`;
      if (loss > relativeLoss.value)
        relativeLoss = { ...relativeLoss, value: loss, subject, text: `${code} loses ${percent(loss)} ${its}` };
      if (gain > relativeGain.value)
        relativeGain = { ...relativeGain, value: gain, subject, text: `${code} gains ${percent(gain)} ${its}` };
    }
  }
  measures.push(relativeLoss, relativeGain);
  const of = 'of the IPv6 delegations with a country';
  const { changed, lost, loser, gainer } = shareOut(delegations, GATE_WHOLES.delegations, isEu);
  add('maxChangedDelegationsIPv6', changed, `${percent(changed)} ${of} have another one`);
  add('maxLostDelegationsIPv6', lost, `${percent(lost)} ${of} have none`);
  addCountry(add, 'maxCountryDelegationsIPv6', of, loser, gainer);
  const { gone } = vanished(deltas);
  const are = gone.length === 1 ? 'country is' : 'countries are';
  const names = gone.join(', ');
  add('maxVanishedCountries', gone.length, `${gone.length} ${are} gone: ${names}`, names);
  return measures;
}

/** Adds the country that lost or got the most, whichever is more. */
function addCountry(
  add: (gate: GateName, value: number, text: string, subject?: string) => void,
  gate: GateName,
  of: string,
  loser: Share,
  gainer: Share,
): void {
  const [code, share] = larger(loser, gainer);
  const how = loser[1] >= gainer[1] ? `are no longer in ${code}` : `are in ${code} and were in other countries`;
  add(gate, share, `${percent(share)} ${of} ${how}`, code);
}

/** Measures the longest run of addresses in which no address kept its country. */
function measureRun({ family, longestRun }: Delta): Measure {
  const gate = `maxBlockIPv${family}` as const;
  if (longestRun === undefined) return { gate, value: 0, text: `no IPv${family} address has another country` };
  const subject = [longestRun.first, longestRun.last].map((address) => formatAddress(family, address)).join(' – ');
  const size = `${formatSize(family, longestRun.changed)} ${formatSizeUnit(family)}`;
  const value = Number(longestRun.changed) / Number(sizeUnit(family));
  return { gate, value, text: `no address of ${subject} kept its country (${size})`, subject };
}

/** Returns the countries or networks that had addresses, and those of them that have none any more, in ascending order. */
function vanished(deltas: readonly Delta[]): { had: ReadonlySet<string>; gone: string[] } {
  const totals = deltas.flatMap(({ countryTotals }) => [...countryTotals]);
  const had = new Set(totals.flatMap(([label, { before }]) => (before > 0n ? [label] : [])));
  const has = new Set(totals.flatMap(([label, { after }]) => (after > 0n ? [label] : [])));
  return { had, gone: [...had].filter((label) => !has.has(label)).sort() };
}

/** Measures by how many rows a source changed that both releases have from the same location in the same format. */
export function measureRows(now: Manifest, before: Manifest): Measure {
  let most: Measure = { gate: 'maxRowsChange', value: 0, text: 'no source has another number of rows' };
  for (const input of now.inputs) {
    const { id, rows } = input;
    const previous = findInput(before, id);
    if (previous === undefined || !isSameData(input, previous)) continue;
    const value = Math.abs(rows - previous.rows) / Math.max(previous.rows, GATE_WHOLES.rows);
    const text = `source ${id} has ${grouped(rows)} rows, previously ${grouped(previous.rows)}, a change by ${percent(value)}`;
    if (value > most.value) most = { ...most, value, text, subject: id };
  }
  return most;
}

/** Measures how many rows of labels are gone; nothing if the release before had none. */
export function measureLabels({ labels: now }: Manifest, { labels: before }: Manifest): Measure[] {
  if (before === undefined || before.rows === 0) return [];
  const rows = now?.rows ?? 0;
  const value = Math.max(0, before.rows - rows) / before.rows;
  const text = `there are ${grouped(rows)} rows of labels, previously ${grouped(before.rows)}`;
  return [{ gate: 'maxLostLabelRowsShare', value, text }];
}

/** Pairs of networks that a message shows. */
const NETWORK_PAIRS_SHOWN = 3;

/**
 * Measures the changes of networks: of the addresses that had one, those that have another one or none, and the share of the
 * networks that have no addresses any more.
 *
 * @param deltas of IPv4 and IPv6
 */
export function measureNetworks(deltas: readonly Delta[]): Measure[] {
  const measures = deltas.flatMap((delta): Measure[] => {
    const { family, assigned, pairs } = delta;
    const whole = Math.max(Number(assigned) / Number(sizeUnit(family)), GATE_WHOLES.space);
    const of = `of the IPv${family} ${formatSizeUnit(family)} with a network`;
    const largest = pairs.slice(0, NETWORK_PAIRS_SHOWN).map(({ from, to, addresses }) => {
      return `\n    ${from} → ${to}: ${formatSize(family, addresses)} ${formatSizeUnit(family)}`;
    });
    const share = (addresses: bigint): number => Number(addresses) / Number(sizeUnit(family)) / whole;
    const details = largest.join('');
    const [changed, lost] = [share(delta.changed), share(delta.lost)];
    return [
      {
        gate: `maxChangedNetworksShareIPv${family}`,
        value: changed,
        text: `${percent(changed)} ${of} have another one`,
        details,
      },
      { gate: `maxLostNetworksShareIPv${family}`, value: lost, text: `${percent(lost)} ${of} have none`, details },
    ];
  });
  const { had, gone } = vanished(deltas);
  const value = gone.length / Math.max(had.size, GATE_WHOLES.networks);
  const text = `${grouped(gone.length)} of ${grouped(had.size)} networks have no addresses any more`;
  return [...measures, { gate: 'maxVanishedNetworksShare', value, text }];
}

/** Measures the sentinels with a wrong result. */
export function measureSentinels(
  results: readonly SentinelResult[],
  gate: 'maxWrongSentinels' | 'maxWrongNetworkSentinels' = 'maxWrongSentinels',
): Measure {
  const wrong = results.filter(({ status }) => status === 'wrong' || status === 'lost');
  return {
    gate,
    value: wrong.length,
    text: `${wrong.length} of ${results.length} sentinel addresses have a wrong result`,
    subject: `of ${results.length} addresses`,
    details: wrong.map(({ ip, expected, actual }) => `\n    ${ip}: expected ${expected}, got ${actual}`).join(''),
  };
}
