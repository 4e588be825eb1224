// How many bytes the archive takes in a year of nights that change 0.1, 0.5 or 2 % of the ranges, by the shape of the changes: as in
// the real series (see series.js), synthetic runs of neighbors, and synthetic single ranges. `npm run build` first, then
// `node truth/history-years.js [DIR]`. A few nights are encoded; the year is their mean times 365, with bases by the archive's rule.
import { differenceOf, UNCHANGED } from '../dist/src/history/changes.js';
import { encodeEntry } from '../dist/src/history/entry.js';
import { CHANGES_PER_BASE } from '../dist/src/history/write.js';
import { combine } from '../dist/src/range/cut.js';
import { COUNTRIES } from '../dist/src/rangefile/partitions.js';
import { table } from '../dist/src/text-table.js';
import { dateOf, fetchCopies, random, rowsOfCopy } from './series.js';

const NIGHTS = 4;
const SHARES = [0.001, 0.005, 0.02];
const COPIES = 12;

const next = random(29);
const below = (limit) => Math.floor(limit * next());
const codes = new Map([['', 1]]);

/** Reads one family of a copy as a partition; its values are numbers of country codes. */
function layerOf(version, family) {
  const first = [];
  const value = [];
  const add = (at, code) => {
    if (!codes.has(code)) codes.set(code, codes.size + 1);
    if (value.at(-1) === codes.get(code)) return;
    first.push(...(family === 4 ? [Number(at)] : [Number(at >> 32n), Number(at & 0xffffffffn), 0, 0]));
    value.push(codes.get(code));
  };
  let free = 0n;
  for (const { first: from, last, code } of rowsOfCopy(version, family)) {
    if (from > free) add(free, '');
    add(from, /^[A-Z]{2}$/.test(code) ? code : '');
    free = last + 1n;
  }
  if (free < 1n << (family === 4 ? 32n : 64n)) add(free, '');
  return { family, count: value.length, first: Uint32Array.from(first), value: Uint32Array.from(value) };
}

const rangesOf = (layers) => layers[0].count + layers[1].count;
const changedIn = (layers) =>
  layers.reduce((sum, { value }) => sum + value.reduce((count, each) => count + (each === UNCHANGED ? 0 : 1), 0), 0);

/** Returns about a share of the changes: those in blocks (/16 of IPv4, /32 of IPv6) that are chosen by lot. */
function someOf(layer, share) {
  const chosen = new Map();
  const words = layer.family === 4 ? 1 : 4;
  const isChosen = (range) => {
    const block = layer.family === 4 ? layer.first[range] >>> 16 : layer.first[range * words];
    if (!chosen.has(block)) chosen.set(block, next() < share);
    return chosen.get(block);
  };
  const value = layer.value.map((each, range) => (isChosen(range) ? each : UNCHANGED));
  const some = { ...layer, value };
  return combine(some, some, (each) => each); // joins neighbors
}

/** Returns the changes of a real time in which at least a share of the ranges changed, thinned to this share. */
function realNight(copies, share) {
  for (let days = 1; ; days++) {
    const from = below(copies.length - days);
    const changes = [0, 1].map((family) => differenceOf(copies[from][family], copies[from + days][family]));
    const found = changedIn(changes) / rangesOf(copies[from]);
    if (found >= share) return changes.map((layer) => someOf(layer, share / found));
    if (days + 1 === copies.length) throw new Error(`${share} of the ranges did not change in the copies`);
  }
}

/** Returns changes of ranges chosen by lot, in runs of so many on average, each to a country chosen by lot. */
function syntheticNight(copies, share, run) {
  return copies[0].map((layer) => {
    const value = layer.value.slice();
    for (let left = Math.round(share * layer.count); left > 0; ) {
      let at = below(layer.count);
      const to = 2 + below(codes.size - 1);
      for (let length = 1 + below(2 * run - 1); length > 0 && at < layer.count; length--, at++, left--) value[at] = to;
    }
    return differenceOf(layer, { ...layer, value });
  });
}

const versions = fetchCopies().slice(-COPIES);
const copies = versions.map((version) => [layerOf(version, 4), layerOf(version, 6)]);
const name = { time: Date.UTC(2026, 0, 2), since: Date.UTC(2026, 0, 1), origin: 'own' };
const bytesOf = (kind, records, [v4, v6]) =>
  encodeEntry(COUNTRIES, { ...name, kind }, { about: { release: 'a', event: 'build' }, records, v4, v6 }).length;
const records = [...codes.keys()].map((code) =>
  code === '' ? { kind: 'none', reason: 'unallocated' } : { kind: 'country', code, name: code, isEu: false },
);
const base = bytesOf('base', records, copies[0]);
console.log(
  `${COPIES} copies, ${dateOf(versions[0])} to ${dateOf(versions.at(-1))}; base ${(base / 1e6).toFixed(2)} MB`,
);
const rows = SHARES.flatMap((share) =>
  [
    ['as in the real series', () => realNight(copies, share)],
    ['runs of 8 neighbors', () => syntheticNight(copies, share, 8)],
    ['single ranges', () => syntheticNight(copies, share, 1)],
  ].map(([shape, night]) => {
    let [bytes, changed] = [0, 0];
    for (let count = 0; count < NIGHTS; count++) {
      const layers = night();
      bytes += bytesOf('changes', [], layers) / NIGHTS;
      changed += changedIn(layers) / NIGHTS / rangesOf(copies[0]);
    }
    const bases = 1 + Math.floor((365 * bytes) / (CHANGES_PER_BASE * base + bytes));
    const year = (365 * bytes + bases * base) / 1e6;
    return [
      `${100 * share} %`,
      shape,
      `${(100 * changed).toFixed(2)} %`,
      bytes.toFixed(0),
      `${bases}`,
      year.toFixed(1),
    ];
  }),
);
console.log(table([['A NIGHT', 'SHAPE', 'FOUND', 'BYTES A NIGHT', 'BASES', 'MB A YEAR'], ...rows], [0, 2, 3, 4, 5]));
