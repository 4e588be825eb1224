// What most would write for each format: csv-parse, readline or JSON.parse, with maxmind. Prints the seconds it took.
import { createReadStream, createWriteStream, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';
import { parse } from 'csv-parse';
import { open } from 'maxmind';

const [format, input, database] = process.argv.slice(2);
const EU = new Set('AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK'.split(' '));
const names = new Intl.DisplayNames('en', { type: 'region' });
const results = new Map();
const NONE = { country: null, country_code: null, is_eu: false };

const reader = await open(database);
const output = createWriteStream('/dev/null');

function resultOf(address) {
  const code = reader.get(address)?.country_code;
  if (code === undefined) return NONE;
  let result = results.get(code);
  if (result === undefined) {
    result = { country: names.of(code), country_code: code, is_eu: EU.has(code) };
    results.set(code, result);
  }
  return result;
}

async function write(text) {
  if (!output.write(text)) await new Promise((resolve) => output.once('drain', resolve));
}

const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

async function table(delimiter) {
  let column;
  for await (const record of createReadStream(input).pipe(parse({ delimiter }))) {
    if (column === undefined) {
      column = record.indexOf('ip');
      record.push('geo_country', 'geo_country_code', 'geo_is_eu');
    } else {
      const { country, country_code, is_eu } = resultOf(record[column]);
      record.push(country ?? '', country_code ?? '', String(is_eu));
    }
    await write(`${record.map(cell).join(delimiter)}\n`);
  }
}

/** Tables whose header is a directive: the columns are those after `prefix`. */
async function directives(prefix, delimiter, field) {
  let column;
  for await (const line of createInterface({ input: createReadStream(input) })) {
    if (line.startsWith('#')) {
      if (line.startsWith(prefix)) column = line.slice(prefix.length).split(delimiter).indexOf(field);
      await write(`${line}\n`);
      continue;
    }
    const { country, country_code, is_eu } = resultOf(line.split(delimiter)[column]);
    await write(`${[line, country ?? '-', country_code ?? '-', is_eu].join(delimiter)}\n`);
  }
}

async function logfmt() {
  for await (const line of createInterface({ input: createReadStream(input) })) {
    const address = /(?:^| )ip=("?)([^\s"]+)\1/.exec(line)?.[2];
    const { country, country_code, is_eu } = address === undefined ? NONE : resultOf(address);
    await write(`${line} ip_country="${country ?? ''}" ip_country_code=${country_code ?? ''} ip_is_eu=${is_eu}\n`);
  }
}

async function list() {
  for await (const line of createInterface({ input: createReadStream(input) })) {
    const { country, country_code, is_eu } = resultOf(line);
    await write(`${line}\t${country ?? ''}\t${country_code ?? ''}\t${is_eu}\n`);
  }
}

const ADDRESS = /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])|(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:.])/i;

async function text() {
  for await (const line of createInterface({ input: createReadStream(input) })) {
    const address = ADDRESS.exec(line)?.[0];
    const { country, country_code, is_eu } = address === undefined ? NONE : resultOf(address);
    await write(`${line}\t${country ?? ''}\t${country_code ?? ''}\t${is_eu}\n`);
  }
}

async function lines(stream) {
  for await (const line of createInterface({ input: stream })) {
    const record = JSON.parse(line);
    record.geo = resultOf(record.ip);
    await write(`${JSON.stringify(record)}\n`);
  }
}

async function document() {
  const records = JSON.parse(readFileSync(input, 'utf8'));
  for (const record of records) record.geo = resultOf(record.ip);
  await write(JSON.stringify(records));
}

const PROGRAMS = {
  csv: () => table(','),
  tsv: () => table('\t'),
  w3c: () => directives('#Fields: ', ' ', 'c-ip'),
  zeek: () => directives('#fields\t', '\t', 'id.orig_h'),
  logfmt,
  list,
  text,
  combined: text,
  json: document,
  gzip: () => lines(createReadStream(input).pipe(createGunzip())),
};

const begun = performance.now();
await PROGRAMS[format]();
await new Promise((resolve) => output.end(resolve));
console.log((performance.now() - begun) / 1000);
