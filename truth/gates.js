// Measures the gates on two real series of dated copies of one table of the world: 41 copies of 2024 to 2026, and 134 of 2020 to
// 2025. `npm run build` first, then `node truth/gates.js [DIR]`. The copies (npm package geoip-country; GeoLite2's data, by MaxMind)
// are fetched into DIR, and may be measured there; they must not be committed or shipped. It prints how close each step of up to
// 90 days comes to each limit, the false alarms, and which bad nights, laid over a real step, are refused.
import { loadReference } from '../dist/pipeline/config/reference.js';
import { delegationFlows, providerBlocks } from '../dist/pipeline/gates/delegations.js';
import { judge } from '../dist/pipeline/gates/limits.js';
import { measureChanges } from '../dist/pipeline/gates/measures.js';
import { isMember } from '../dist/src/country/country.js';
import { computeDelta } from '../dist/src/database/delta.js';
import { DEFAULT_GATES } from '../dist/src/limits.js';
import { gateText } from '../dist/src/report/stored-report.js';
import { table } from '../dist/src/text-table.js';
import { dateOf, fetchCopies, random, rowsOfCopy } from './series.js';

const FAMILIES = [4, 6];
const SIZES = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02];

const daysBetween = (a, b) => Math.round((Date.parse(dateOf(b)) - Date.parse(dateOf(a))) / 86_400_000);

/** Reads one family of a copy as a list of ranges with labels. */
function readCopy(version, family) {
  const labels = ['unallocated'];
  const rows = [];
  let next = 0n;
  const add = (at, label) => {
    if (rows.at(-1)?.label !== label) rows.push({ at, label });
  };
  for (const { first, last, code } of rowsOfCopy(version, family)) {
    if (first < next) continue; // another row of the same IPv6 /64
    if (first > next) add(next, 0);
    if (!labels.includes(code) && /^[A-Z]{2}$/.test(code)) labels.push(code);
    add(first, Math.max(0, labels.indexOf(code)));
    next = last + 1n;
  }
  if (next < 1n << (family === 4 ? 32n : 64n)) add(next, 0);
  return listOf(family, rows, labels);
}

function listOf(family, rows, labels) {
  const words = family === 4 ? 1 : 4;
  const first = new Uint32Array(rows.length * words);
  const value = new Uint16Array(rows.length);
  rows.forEach(({ at, label }, index) => {
    if (family === 4) first[index] = Number(at);
    else first.set([Number(at >> 32n), Number(at & 0xffffffffn)], 4 * index);
    value[index] = label;
  });
  return { family, count: rows.length, first, value, labels };
}

const { memberships } = loadReference();
const isEu = (code) => isMember(memberships, code, '2026-01-01');

/** Returns what the gates say of a step. */
function gatesOf(before, after, days) {
  const deltas = FAMILIES.map((family) => computeDelta(before[family], after[family]));
  const flows = delegationFlows(before[6], after[6], undefined);
  return judge(measureChanges(deltas, flows, isEu, true), DEFAULT_GATES, days);
}

const copies = new Map();
const copy = (version) => {
  if (!copies.has(version)) copies.set(version, { 4: readCopy(version, 4), 6: readCopy(version, 6) });
  return copies.get(version);
};

// 1. False alarms, and the closest call of each limit.
/** Puts the steps of a series through the gates, and prints the refused ones and the closest calls. */
function measureSeries(versions) {
  const closest = new Map();
  let steps = 0;
  let alarms = 0;
  console.log(`${versions.length} copies, ${dateOf(versions[0])} to ${dateOf(versions.at(-1))}\n`);
  for (let i = 1; i < versions.length; i++) {
    const [earlier, later] = [versions[i - 1], versions[i]];
    const days = daysBetween(earlier, later);
    if (days > 90) continue;
    steps++;
    const { gates, refusals } = gatesOf(copy(earlier), copy(later), days);
    copies.delete(earlier);
    if (refusals.length > 0) alarms++;
    for (const { message } of refusals) console.log(`${dateOf(earlier)} → ${dateOf(later)}: ${message}`);
    for (const { gate, value, limit, subject = '' } of gates) {
      const step = { share: limit === 0 ? 0 : value / limit, value, limit, subject, days, later };
      const class15 = days <= 15 ? 0 : 1;
      const calls = closest.get(gate) ?? [];
      if (!(calls[class15]?.share >= step.share)) calls[class15] = step;
      closest.set(gate, calls);
    }
  }
  console.log(`\n${alarms} of ${steps} steps are refused. The closest call of each limit:`);
  const call = ({ share, value, limit, subject, days, later }, gate) => [
    `${gateText(gate, value)} of ${gateText(gate, limit)}`,
    `${Math.round(100 * share)} %`,
    `${days} days to ${dateOf(later)} ${subject}`.trim(),
  ];
  const rows = [...closest].map(([gate, calls]) => [gate, ...calls.flatMap((each) => call(each, gate))]);
  console.log(table([['gate', 'up to 15 days', '', '', 'longer', '', ''], ...rows]));
}
measureSeries(fetchCopies(true));
const versions = fetchCopies();
measureSeries(versions);

// 2. Bad nights.
/** Returns the groups of ranges that change together, with their sizes: IPv4 ranges, or IPv6 by provider (one each). */
function groupsOf(list) {
  const { family, count, first, value, labels } = list;
  if (family === 4) {
    const groups = [];
    for (let i = 0; i < count; i++) {
      const end = i + 1 === count ? 2 ** 32 : first[i + 1];
      if (value[i] !== 0) groups.push({ ranges: [i], size: end - first[i], code: labels[value[i]] });
    }
    return groups;
  }
  const blocks = providerBlocks(list);
  const groups = Array.from({ length: blocks.count }, () => ({ ranges: [], size: 1, code: '' }));
  let block = 0;
  const key = (words, i) => words[4 * i] * 2 ** 32 + words[4 * i + 1];
  for (let i = 0; i < count; i++) {
    if (value[i] === 0) continue;
    while (block < blocks.count && key(blocks.last, block) < key(first, i)) block++;
    groups[block].ranges.push(i);
    groups[block].code ||= labels[value[i]];
  }
  return groups;
}

/** Returns a list in which groups of about a share of all have another country; `change` says which, undefined for none. */
function damaged(list, share, change) {
  const next = random(7);
  const groups = groupsOf(list);
  const total = groups.reduce((sum, { size }) => sum + size, 0);
  const labels = [...list.labels];
  const value = list.value.slice();
  const order = groups.map((group) => ({ group, at: next() })).sort((a, b) => a.at - b.at);
  let left = share * total;
  for (const { group } of order) {
    if (group.size > left) continue;
    const to = change(group.code, next);
    if (to === undefined || to === group.code) continue;
    if (!labels.includes(to)) labels.push(to);
    for (const range of group.ranges) value[range] = to === 'none' ? 0 : labels.indexOf(to);
    left -= group.size;
  }
  const missing = left / (share * total);
  return missing > 0.05 ? undefined : { ...list, value, labels };
}

/** Returns a list in which the country next in size to a share is given to a neighbor. */
function withoutCountry(list, share) {
  const totals = new Map();
  let all = 0;
  for (const { code, size } of groupsOf(list)) {
    totals.set(code, (totals.get(code) ?? 0) + size);
    all += size;
  }
  const distance = (code) => Math.abs(Math.log(totals.get(code) / (share * all)));
  const [country] = [...totals.keys()].sort((a, b) => distance(a) - distance(b));
  const from = list.labels.indexOf(country);
  return { ...list, value: list.value.map((label) => (label === from ? list.labels.indexOf('US') : label)) };
}

const SHAPES = [
  [
    'a pair of neighbors (FR → BE; IPv6: DE → NL)',
    (code, _next, family) => (family === 4 ? code === 'FR' && 'BE' : code === 'DE' && 'NL'),
  ],
  ['a pair that flips membership (GB → IE)', (code) => code === 'GB' && 'IE'],
  [
    'scattered, by lot',
    (_code, next) => ['US', 'DE', 'JP', 'BR', 'GB', 'FR', 'IN', 'ZA', 'CA', 'KR', 'MX', 'AU'][Math.floor(12 * next())],
  ],
  ['lost', () => 'none'],
  ['one country gains (PL)', () => 'PL'],
];

for (const wanted of [3, 60]) {
  const pairs = versions.flatMap((earlier, i) => versions.slice(i + 1).map((later) => [earlier, later]));
  const distance = ([a, b]) => Math.abs(daysBetween(a, b) - wanted);
  const [earlier, later] = pairs.reverse().sort((a, b) => distance(a) - distance(b))[0];
  const days = daysBetween(earlier, later);
  const [before, after] = [copy(earlier), copy(later)];
  console.log(`Bad nights over ${days} days, ${dateOf(earlier)} → ${dateOf(later)}; the gates that refuse:`);
  for (const family of FAMILIES) {
    const results = [...SHAPES, ['a whole country']].map(([what, change]) => [
      `IPv${family} ${what}`,
      ...SIZES.map((size) => {
        const list =
          change === undefined
            ? withoutCountry(after[family], size)
            : damaged(after[family], size, (code, next) => change(code, next, family) || undefined);
        if (list === undefined) return 'n/a';
        const { refusals } = gatesOf(before, { ...after, [family]: list }, days);
        return refusals.map(({ gate }) => gate.replace(/^max/, '')).join(' ') || 'published';
      }),
    ]);
    console.log(table([['shape', ...SIZES.map((size) => `${100 * size} %`)], ...results]));
  }
}
