// Compares a database with its MMDB twin, the same source published as MMDB. A test compares a sample; the benchmark, which
// needs this file as JavaScript, compares everything.
import { readFileSync } from 'node:fs';
import { randomWords } from '../../bench/measure.js';
import { formatIPv4, formatIPv6 } from '../../dist/src/address/format.js';
import { parseAddress } from '../../dist/src/address/parse.js';

/** Codes of the source that are not ISO codes, and their ISO codes; see data/reference/country-aliases.csv. */
const ALIASES = { AN: 'CW', UK: 'GB', EL: 'GR', FX: 'FR', TP: 'TL' };

/** Returns the rule by which the two results differ, or undefined if there is none. */
function rule(ours, theirs, ip) {
  if (ours.country_code === null) {
    // The IANA registries cover every source.
    if (ours.reason !== 'unallocated' && ours.reason !== 'unknown') return 'special-purpose range';
    return undefined;
  }
  if (theirs !== null && ALIASES[theirs] === ours.country_code) return 'alias of a country code';
  if (/^(2002|64:ff9b|2001:0?:|2001::)/.test(ip)) return 'embedded IPv4 address';
  return undefined;
}

function addOne(words, by) {
  const result = [...words];
  for (let i = result.length - 1; i >= 0; i--) {
    const sum = result[i] + by;
    result[i] = sum >>> 0;
    if (sum >= 0 && sum <= 0xffffffff) return result;
  }
  return result; // wrapped around to the other end of the address space, which is also a valid probe
}

/** Yields the ends of the rows of a CSV file of ranges, and the neighbors of each end. */
function* boundaries(path, every) {
  const words = new Uint32Array(4);
  const lines = readFileSync(path, 'utf8').split('\n');
  for (let i = 0; i < lines.length; i += every) {
    for (const text of lines[i].split(',', 2)) {
      const family = parseAddress(text, words);
      if (family === 0) continue; // the empty line at the end
      const address = [...words.subarray(0, family === 4 ? 1 : 4)];
      yield* [address, addOne(address, -1), addOne(address, 1)];
    }
  }
}

/** Yields the addresses to compare: random ones, and the ends of the rows of the source with their neighbors. */
function* probes(file, csvFiles, random, everyRow) {
  const next = randomWords(88172645);
  for (let i = 0; i < random; i++) yield [next()];
  // Random IPv6 addresses in the used part of the space: near ranges, and anywhere in 2000::/3.
  for (let i = 0; i < random; i++) {
    if (i % 2 === 0) yield [(0x20000000 | (next() >>> 3)) >>> 0, next(), next(), next()];
    else {
      const range = next() % file.count6;
      yield [file.high6[2 * range + 1], (file.high6[2 * range] + (next() >>> (next() % 32))) >>> 0, next(), next()];
    }
  }
  for (const path of csvFiles) yield* boundaries(path, everyRow);
}

/** Returns an address as one number. */
function toBigInt(words) {
  return words.reduce((number, word) => (number << 32n) | BigInt(word), 0n);
}

/** Returns the rows of the source that cover each difference, in one pass over the files. */
function coveringRows(differences, csvFiles) {
  const covering = new Map(differences.map((difference) => [difference, []]));
  const words = new Uint32Array(4);
  for (const path of csvFiles) {
    for (const line of readFileSync(path, 'utf8').split('\n')) {
      const [first, last, country] = line.split(',');
      const family = parseAddress(first, words);
      if (family === 0) continue;
      const used = family === 4 ? 1 : 4;
      const from = [...words.subarray(0, used)];
      parseAddress(last, words);
      for (const [difference, rows] of covering) {
        const address = difference.words;
        if (address.length !== used || from[0] > address[0] || words[0] < address[0]) continue;
        const [a, b, at] = [from, [...words.subarray(0, used)], address].map(toBigInt);
        if (a <= at && at <= b) rows.push({ size: b - a, country });
      }
    }
  }
  return covering;
}

/**
 * Whether a difference is due to overlapping rows of the source: ipatlas uses the smallest row that covers the address, the
 * twin the last one.
 */
function isOverlap({ ours, theirs }, covering) {
  if (covering.length < 2 || covering.at(-1).country !== theirs) return false;
  const narrowest = covering.reduce((best, row) => (row.size <= best.size ? row : best));
  return (ALIASES[narrowest.country] ?? narrowest.country) === ours.country_code;
}

/**
 * Compares the results of a database and its twin.
 *
 * @param options.csvFiles the files of the source
 * @param options.random number of random addresses per family
 * @param options.everyRow 1 to probe every row, n for every n-th
 * @returns the number compared, the number of differences by rule, and a line for each difference without a rule
 */
export function compareWithTwin({ database, file, twin, csvFiles, random, everyRow }) {
  const result = { compared: 0, explained: {}, unexplained: [] };
  const open = [];
  const explain = (why) => {
    result.explained[why] = (result.explained[why] ?? 0) + 1;
  };
  for (const words of probes(file, csvFiles, random, everyRow)) {
    const ip = words.length === 1 ? formatIPv4(words[0]) : formatIPv6(...words);
    const ours = database.lookupWithReason(ip);
    const theirs = twin.get(ip)?.country_code ?? null;
    result.compared++;
    if (ours.country_code === theirs) continue;
    const why = rule(ours, theirs, ip);
    if (why === undefined) open.push({ ip, words, ours, theirs });
    else explain(why);
  }
  for (const [difference, rows] of coveringRows(open, csvFiles)) {
    const { ip, ours, theirs } = difference;
    if (isOverlap(difference, rows))
      explain('rows of the source overlap: ipatlas uses the smallest, the twin the last');
    else result.unexplained.push(`${ip}: ours ${ours.country_code} (${ours.reason}), twin ${theirs}`);
  }
  return result;
}
