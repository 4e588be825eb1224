// `make bench`: every figure that the project promises, as a ratio against what a user would pick instead, same machine,
// same run. `node bench/run.js build lookup` runs only those parts. Exits 0 also where a goal is missed: it reports.
import { missed } from './measure.js';

const PARTS = [
  'build',
  'lookup',
  'enrich',
  'enrich-shapes',
  'enrich-formats',
  'enrich-native',
  'api',
  'export',
  'agreement',
  'stream',
];

const wanted = process.argv.slice(2);
for (const part of PARTS) {
  if (wanted.length === 0 || wanted.includes(part)) await (await import(`./${part}.js`)).run();
}
console.log(missed() === 0 ? '\nAll goals met.' : `\n${missed()} goals missed, marked ✗.`);
