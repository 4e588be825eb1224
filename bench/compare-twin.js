// Compares a database with the MMDB twin of its one source. Used by the benchmark in full and by a test on a sample.
import { readFileSync } from 'node:fs';
import { formatIPv4, formatIPv6 } from '../dist/src/address/format.js';
import { parseAddress } from '../dist/src/address/parse.js';
import { randomWords } from './measure.js';

/** Codes that the source writes otherwise than ISO, and what we make of them; see data/reference/country-aliases.csv. */
const ALIASES = { AN: 'CW', UK: 'GB', EL: 'GR', FX: 'FR', TP: 'TL' };

/** Why our answer may differ from the twin's, or undefined. */
function rule(ours, theirs, ip) {
  if (ours.country_code === null) {
    // IANA's registries are laid over every source.
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
  return result; // wrapped: the other end of the space, as good an address as any
}

/** The ends of each row of a CSV file of ranges, both neighbors with them. */
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

/** Every address to compare: random ones, and the ends of the source's rows with both neighbors. */
function* probes(file, csvFiles, random, everyRow) {
  const next = randomWords(88172645);
  for (let i = 0; i < random; i++) yield [next()];
  // Random IPv6 addresses where there is something: near the ranges there are, and anywhere in 2000::/3.
  for (let i = 0; i < random; i++) {
    if (i % 2 === 0) yield [(0x20000000 | (next() >>> 3)) >>> 0, next(), next(), next()];
    else {
      const range = next() % file.count6;
      yield [file.high6[2 * range + 1], (file.high6[2 * range] + (next() >>> (next() % 32))) >>> 0, next(), next()];
    }
  }
  for (const path of csvFiles) yield* boundaries(path, everyRow);
}

/** An address as one number. */
function toBigInt(words) {
  return words.reduce((number, word) => (number << 32n) | BigInt(word), 0n);
}

/** The rows of the source that cover each of some addresses, in one pass. */
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
 * Whether a difference comes of rows of the source that overlap: of those that cover the address, ours is what the
 * narrowest says, the twin's what the last says (it writes row over row).
 */
function isOverlap({ ours, theirs }, covering) {
  if (covering.length < 2 || covering.at(-1).country !== theirs) return false;
  const narrowest = covering.reduce((best, row) => (row.size <= best.size ? row : best));
  return (ALIASES[narrowest.country] ?? narrowest.country) === ours.country_code;
}

/**
 * @param options.csvFiles the source's rows; @param options.everyRow 1 for every row, n for each n-th
 * @returns how many were compared, how many differ by each rule, and a line for each that differs without one
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
    if (isOverlap(difference, rows)) explain('rows of the source overlap: ours the narrowest, the twin the last');
    else result.unexplained.push(`${ip}: ours ${ours.country_code} (${ours.reason}), twin ${theirs}`);
  }
  return result;
}
