// Imports a real series of two years and compares every kind of answer with the copies themselves. `npm run build` first, then
// `node truth/history.js [DIR]`; the copies are fetched into DIR, see series.js. It prints bytes, seconds and differences.
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importHistory } from '../dist/pipeline/index.js';
import { formatAddress } from '../dist/src/address/format.js';
import { openArchive } from '../dist/src/history/archive.js';
import { PastDatabase } from '../dist/src/history/open.js';
import { periodsOf } from '../dist/src/history/periods.js';
import { dateOf, fetchCopies, random, rowsOfCopy } from './series.js';
import { isSpecial } from './special.js';

const FAMILIES = [4, 6];
const DAY_MS = 86_400_000;
const QUESTIONS = 1_000_000;
/** One in this many questions is asked of the day as a whole, too: opening many days takes long. */
const LOOKED_UP = 10;
const ADDRESSES_WITH_PERIODS = 100;

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

/** Returns the country code of an address in a copy by a binary search; null for none, and in special-purpose space. */
function codeIn(rows, family, value) {
  if (isSpecial(textOf(family, value))) return null;
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
  const questions = [];
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
      questions.push({ day, ip: textOf(family, value), code: codeIn(rows, family, value) });
      if (tracked.length < ADDRESSES_WITH_PERIODS && index === 0) tracked.push({ family, value, codes: [] });
    }
    for (const each of tracked) each.codes.push(codeIn(copies[each.family], each.family, each.value));
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
  let asked = 0;
  const differences = [];
  const byDay = new Map();
  for (const each of questions.filter((_, index) => index % LOOKED_UP === 0)) {
    byDay.set(each.day, [...(byDay.get(each.day) ?? []), each]);
  }
  for (const day of [...byDay.keys()].sort()) {
    const lookups = new PastDatabase(dataDir, day);
    for (const { ip, code } of byDay.get(day)) {
      const { country_code, reason } = lookups.lookupWithReason(ip);
      asked++;
      if (country_code !== code) differences.push({ day, ip, country_code, reason, code });
    }
  }
  // Measured in another process, which has no questions in its memory.
  const module = new URL('../dist/src/history/open.js', import.meta.url);
  const measure = `import { PastDatabase } from ${JSON.stringify(module)};
    for (const day of ${JSON.stringify([...byDay.keys()].filter((_, index) => index % 10 === 0))}) {
      const started = process.cpuUsage();
      const past = new PastDatabase(${JSON.stringify(dataDir)}, day);
      const times = ['8.8.8.8', '2a00:1450::1'].map((ip) => {
        past.lookup(ip);
        const { user, system } = process.cpuUsage(started);
        return (user + system) / 1000;
      });
      console.log(times.join(' '));
    }`;
  const rows = execFileSync(process.execPath, ['--input-type=module', '--eval', measure], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((row) => row.split(' ').map(Number));
  for (const [column, what] of ['an IPv4 address', 'one of each family'].entries()) {
    const times = rows.map((row) => row[column]).sort((a, b) => a - b);
    const percentile = (share) => times[Math.floor(share * (times.length - 1))].toFixed(0);
    console.log(
      `a day answers for ${what} in ${percentile(0.5)} ms (median), ${percentile(0.95)} (95th percentile), ${percentile(1)} (longest) of processor time; ${times.length} days`,
    );
  }
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

  // 4. A million lines of random days, each by its own date.
  const memberships = readFileSync(new URL('../data/reference/eu-membership.csv', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => /^[A-Z]{2},/.test(line))
    .map((line) => line.split(','));
  const isEu = (code, day) =>
    memberships.some(([country, from, until]) => country === code && from <= day && (until === '' || day < until));
  for (let i = questions.length - 1; i > 0; i--) {
    const j = below(i + 1);
    [questions[i], questions[j]] = [questions[j], questions[i]];
  }
  const [input, output] = ['lines.csv', 'enriched.csv'].map((name) => join(dataDir, name));
  const lines = questions.map(({ ip, day }) => `${ip},${day}`);
  writeFileSync(input, `${lines.join('\n')}\n`);
  const cli = new URL('../dist/src/cli/start.cjs', import.meta.url).pathname;
  const flags = ['--no-header', '--format', 'csv', '--field', '1', '--at-field', '2', '--add', 'country_code,is_eu'];
  const begun = performance.now();
  execFileSync(process.execPath, [cli, 'enrich', input, '--data', dataDir, ...flags], {
    stdio: ['ignore', openSync(output, 'w'), 'ignore'],
  });
  const enrichSeconds = (performance.now() - begun) / 1000;
  const enriched = readFileSync(output, 'utf8').trimEnd().split('\n');
  const naive = questions.map(({ day, code }, i) => `${lines[i]},${code ?? ''},${code !== null && isEu(code, day)}`);
  const unlike = naive.flatMap((line, i) => (line === enriched[i] ? [] : [`${enriched[i]} instead of ${line}`]));
  console.log(
    `enrich --at-field over ${naive.length} lines in ${enrichSeconds.toFixed(1)} s: ${enriched.length} lines, ${unlike.length} differences`,
  );
  for (const each of unlike.slice(0, 10)) console.log(`  ${each}`);
} finally {
  rmSync(dataDir, { recursive: true });
}
