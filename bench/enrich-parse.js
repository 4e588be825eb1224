// What most would write: readline, JSON.parse, maxmind, JSON.stringify. Prints the seconds it took.
// The field is a path with dots; `.*` at its end is the first element with a country, and a comma the first element of a list,
// without its port.
import { createReadStream, createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { open } from 'maxmind';

const [input, database, field = 'ip'] = process.argv.slice(2);
const path = field.replace(/(\.\*|,)$/, '').split('.');
const EU = new Set('AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK'.split(' '));
const names = new Intl.DisplayNames('en', { type: 'region' });
const answers = new Map();

function answerOf(code) {
  let answer = answers.get(code);
  if (answer === undefined) {
    answer = { country: names.of(code), country_code: code, is_eu: EU.has(code) };
    answers.set(code, answer);
  }
  return answer;
}

const reader = await open(database);

function find(value) {
  if (field.endsWith('.*')) {
    for (const element of value) {
      const found = reader.get(element);
      if (found !== null) return found;
    }
    return null;
  }
  if (!field.endsWith(',')) return reader.get(value);
  const first = value.split(',')[0].trim();
  const address = first.startsWith('[') ? first.slice(1, first.indexOf(']')) : first.replace(/:\d+$/, '');
  return reader.get(address);
}

const output = createWriteStream('/dev/null');
const begun = performance.now();
for await (const line of createInterface({ input: createReadStream(input) })) {
  const record = JSON.parse(line);
  const found = find(path.reduce((value, key) => value[key], record));
  record.geo = found === null ? { country: null, country_code: null, is_eu: false } : answerOf(found.country_code);
  if (!output.write(`${JSON.stringify(record)}\n`)) await new Promise((resolve) => output.once('drain', resolve));
}
await new Promise((resolve) => output.end(resolve));
console.log((performance.now() - begun) / 1000);
