// `make bench`: every figure that the project promises, as a ratio against what a user would pick instead, same machine,
// same run. `node bench/run.js build lookup` runs only those parts. Exits 0 also where a goal is missed: it reports.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { allRows, missed } from './measure.js';
import { writeReadme } from './readme.js';

const PARTS = [
  'build',
  'lookup',
  'enrich',
  'enrich-shapes',
  'enrich-formats',
  'enrich-native',
  'enrich-threads',
  'enrich-dates',
  'api',
  'export',
  'agreement',
  'stream',
];

const wanted = process.argv.slice(2);
/** The figures of the last run of each part, for the site and README.md. */
const RESULTS = new URL('results.json', import.meta.url);
const { parts } = JSON.parse(readFileSync(RESULTS, 'utf8'));

for (const part of PARTS) {
  if (wanted.length > 0 && !wanted.includes(part)) continue;
  const before = allRows().length;
  await (await import(`./${part}.js`)).run();
  parts[part] = allRows().slice(before);
}
const machine = `${cpus().length} cores (${cpus()[0].model}), Node ${process.versions.node}`;
const results = { day: new Date().toISOString().slice(0, 10), machine, parts };
writeFileSync(RESULTS, `${JSON.stringify(results, null, 2)}\n`);
writeReadme();
console.log(missed() === 0 ? '\nAll goals met.' : `\n${missed()} goals missed, marked ✗.`);
