// What most would write to enrich lines by their dates: JSON.parse, and an MMDB for each table, kept open. Prints the seconds it took.
import { createReadStream, createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { open } from 'maxmind';

const [input, folder, firstMs, tableMs] = process.argv.slice(2);
const readers = new Map();
const output = createWriteStream('/dev/null');
const begun = performance.now();
for await (const line of createInterface({ input: createReadStream(input) })) {
  const record = JSON.parse(line);
  const table = Math.floor((Date.parse(record.ts) - Number(firstMs)) / Number(tableMs));
  if (!readers.has(table)) readers.set(table, await open(`${folder}/${table}.mmdb`));
  record.geo = readers.get(table).get(record.ip);
  if (!output.write(`${JSON.stringify(record)}\n`)) await new Promise((resolve) => output.once('drain', resolve));
}
console.log((performance.now() - begun) / 1000);
