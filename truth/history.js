// Imports a real series of two years and compares every kind of answer with the copies themselves. `npm run build` first, then
// `node truth/history.js [DIR]`; the copies are fetched into DIR, see series.js. It prints bytes, seconds and differences.
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importHistory } from '../dist/pipeline/index.js';
import { formatAddress } from '../dist/src/address/format.js';
import { openArchive } from '../dist/src/history/archive.js';
import { lookupsAt } from '../dist/src/history/day.js';
import { periodsOf } from '../dist/src/history/periods.js';
import { dateOf, fetchCopies, rowsOfCopy } from './series.js';

const FAMILIES = [4, 6];
const DAY_MS = 86_400_000;
const QUESTIONS = 100_000;
const ADDRESSES_WITH_PERIODS = 100;

/** Returns a generator of numbers from 0 to 1, always the same ones (mulberry32). */
function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
const next = random(28);
const below = (limit) => Math.floor(limit * next());

const wordsOf = (family, value) => {
  const word = (shift) => Number((value >> shift) & 0xffffffffn);
  return family === 4 ? Uint32Array.of(word(0n)) : Uint32Array.of(word(32n), word(0n), 0, 0);
};
/** Returns the text of an address; of IPv6, the last of a /64 if `last`. */
const textOf = (family, value, last = false) => {
  const words = wordsOf(family, value);
  if (family === 6 && last) words.fill(0xffffffff, 2);
  return formatAddress(family, words);
};

/** Returns the country code of an address in a copy by a binary search, or null. */
function codeIn(rows, value) {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].last < value) low = middle + 1;
    else high = middle;
  }
  const row = rows[low];
  return row !== undefined && row.first <= value && /^[A-Z]{2}$/.test(row.code) ? row.code : null;
}

const versions = fetchCopies();
const dataDir = mkdtempSync(join(tmpdir(), 'ipatlas-series-'));
try {
  // 1. Import, and questions for later: days by lot, addresses at boundaries and by lot.
  const end = Date.now() - DAY_MS;
  const starts = versions.map((version) => Date.parse(`${dateOf(version)}T00:00:00Z`));
  const lastDay = Math.min(end, starts.at(-1) + 30 * DAY_MS);
  const questions = new Map();
  const tracked = [];
  let importSeconds = 0;
  for (const [index, version] of versions.entries()) {
    const until = starts[index + 1] ?? lastDay;
    const share = (until - starts[index]) / (lastDay - starts[0]);
    const copies = {};
    const files = FAMILIES.map((family) => {
      const file = join(dataDir, `copy-ipv${family}.csv`);
      copies[family] = [...rowsOfCopy(version, family)];
      writeFileSync(file, '');
      let text = '';
      for (const { first, last, code } of copies[family]) {
        text += `${textOf(family, first)},${textOf(family, last, true)},${/^[A-Z]{2}$/.test(code) ? code : ''}\n`;
        if (text.length < 1 << 20) continue;
        appendFileSync(file, text);
        text = '';
      }
      appendFileSync(file, text);
      return file;
    });
    const started = performance.now();
    await importHistory(dataDir, { paths: files, day: dateOf(version), note: () => {} });
    importSeconds += (performance.now() - started) / 1000;
    for (let count = Math.ceil(QUESTIONS * share); count > 0; count--) {
      const family = FAMILIES[below(2)];
      const rows = copies[family];
      const row = rows[below(rows.length)];
      const [at, beyond] = [row.first, row.last][below(2)] === row.first ? [row.first, -1n] : [row.last, 1n];
      const kind = below(3);
      const max = (1n << (family === 4 ? 32n : 64n)) - 1n;
      const inside = row.first + ((row.last - row.first) * BigInt(below(1000))) / 1000n;
      const value = kind === 0 ? at : kind === 1 ? at + beyond : inside;
      if (value < 0n || value > max) continue;
      const day = new Date(starts[index] + DAY_MS * below((until - starts[index]) / DAY_MS)).toISOString().slice(0, 10);
      const list = questions.get(day) ?? [];
      list.push({ family, value, code: codeIn(rows, value) });
      questions.set(day, list);
      if (tracked.length < ADDRESSES_WITH_PERIODS && index === 0) tracked.push({ family, value, codes: [] });
    }
    for (const each of tracked) each.codes.push(codeIn(copies[each.family], each.value));
  }
  const archive = openArchive(dataDir);
  const kinds = archive.entries.map(({ kind }) => kind);
  const bases = archive.entries.filter(({ kind }) => kind === 'base');
  console.log(
    `${versions.length} copies, ${dateOf(versions[0])} to ${dateOf(versions.at(-1))}, imported in ${importSeconds.toFixed(0)} s`,
  );
  console.log(
    `${(archive.bytes / 1e6).toFixed(2)} MB in ${kinds.length} entries; ${bases.length} bases of ${bases.map(({ bytes }) => `${(bytes / 1e6).toFixed(2)} MB`).join(', ')}`,
  );

  // 2. Answers of days.
  const times = [];
  let asked = 0;
  const differences = [];
  for (const day of [...questions.keys()].sort()) {
    const started = process.cpuUsage();
    const lookups = lookupsAt(dataDir, day);
    const { user, system } = process.cpuUsage(started);
    times.push((user + system) / 1000);
    for (const { family, value, code } of questions.get(day)) {
      const ip = textOf(family, value);
      const { country_code, reason } = lookups.lookupWithReason(ip);
      asked++;
      if (country_code !== code) differences.push({ day, ip, country_code, reason, code });
    }
  }
  times.sort((a, b) => a - b);
  const percentile = (share) => times[Math.floor(share * (times.length - 1))].toFixed(0);
  console.log(
    `a day opens in ${percentile(0.5)} ms (median), ${percentile(0.95)} (95th percentile), ${percentile(1)} (longest) of processor time; ${times.length} days`,
  );
  console.log(`${asked} questions: ${differences.length} differences`);
  const reasons = new Map();
  for (const each of differences) {
    const key = `${each.reason ?? each.country_code} instead of ${each.code}`;
    reasons.set(key, [...(reasons.get(key) ?? []), each]);
  }
  for (const [what, list] of [...reasons].sort((a, b) => b[1].length - a[1].length).slice(0, 10)) {
    console.log(`  ${list.length} × ${what}, such as ${list[0].ip} on ${list[0].day}`);
  }

  // 3. The history of addresses.
  const historyTimes = [];
  let wrong = 0;
  for (const { family, value, codes } of tracked) {
    const started = process.cpuUsage();
    const periods = periodsOf(archive, { family, words: wordsOf(family, value) });
    const { user, system } = process.cpuUsage(started);
    historyTimes.push((user + system) / 1000);
    for (const [index, version] of versions.entries()) {
      const day = dateOf(version);
      const period = periods.find(({ from, to }) => from <= day && (to === null || day <= to));
      if (period?.country_code !== codes[index]) wrong++;
    }
  }
  historyTimes.sort((a, b) => a - b);
  console.log(
    `history IP of ${tracked.length} addresses: ${historyTimes[historyTimes.length >> 1].toFixed(0)} ms (median), ${historyTimes.at(-1).toFixed(0)} (longest); ${wrong} differences`,
  );
} finally {
  rmSync(dataDir, { recursive: true });
}
