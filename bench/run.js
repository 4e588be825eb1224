// `make bench`: every figure that the project promises, as a ratio against what a user would pick instead, same machine,
// same run. `node bench/run.js build lookup` runs only those parts. Exits 0 also where a goal is missed: it reports.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { allRows, missed } from './measure.js';
import { writeReadme } from './readme.js';
import { writeScale } from './scale-page.js';

const PARTS = [
  'build',
  'lookup',
  'enrich',
  'enrich-shapes',
  'enrich-formats',
  'enrich-native',
  'enrich-threads',
  'enrich-dates',
  'redact',
  'api',
  'export',
  'agreement',
  'stream',
  'kafka',
  'fleet',
  'scale-api',
  'scale-build',
  'scale-history',
];

// Node reads these certificates at each start, which can take longer than all the rest.
delete process.env.NODE_EXTRA_CA_CERTS;

const wanted = process.argv.slice(2);
/** The figures of the last run of each part, for the site, README.md and docs/scale.md. */
const RESULTS = new URL('results.json', import.meta.url);
const ran = {};

for (const part of PARTS) {
  if (wanted.length > 0 && !wanted.includes(part)) continue;
  const before = allRows().length;
  await (await import(`./${part}.js`)).run();
  ran[part] = allRows().slice(before);
}
const here = `${cpus().length} cores (${cpus()[0].model}), Node ${process.versions.node}`;
// Read now: parts that run side by side each write theirs.
const { day, machine, days, parts } = JSON.parse(readFileSync(RESULTS, 'utf8'));
const today = new Date().toISOString().slice(0, 10);
const isWhole = wanted.length === 0;
const results = {
  day: isWhole ? today : day,
  // Of the whole run, as the day.
  machine: isWhole ? here : machine,
  // Of the parts that ran after the whole.
  days: isWhole ? {} : { ...days, ...Object.fromEntries(Object.keys(ran).map((part) => [part, today])) },
  parts: { ...parts, ...ran },
};
writeFileSync(RESULTS, `${JSON.stringify(results, null, 2)}\n`);
writeReadme();
writeScale();
console.log(missed() === 0 ? '\nAll goals met.' : `\n${missed()} goals missed, marked ✗.`);
