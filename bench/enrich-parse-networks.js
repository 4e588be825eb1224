// What most would write for country and network: readline, JSON.parse, maxmind with two databases, JSON.stringify. Prints the
// seconds it took.
import { createReadStream, createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { open } from 'maxmind';

const [input, countries, networks] = process.argv.slice(2);
const country = await open(countries);
const asn = await open(networks);
const output = createWriteStream('/dev/null');

/** The text of the block of an IPv4 address; that of an IPv6 address is left out. */
function blockOf(ip, prefix) {
  if (ip.includes(':')) return null;
  const number = ip.split('.').reduce((sum, part) => 256 * sum + Number(part), 0);
  const first = number - (number % 2 ** (32 - prefix));
  return `${[24, 16, 8, 0].map((shift) => (first >>> shift) & 255).join('.')}/${prefix}`;
}

const begun = performance.now();
for await (const line of createInterface({ input: createReadStream(input) })) {
  const record = JSON.parse(line);
  const [place, length] = country.getWithPrefixLength(record.ip);
  const [network, other] = asn.getWithPrefixLength(record.ip);
  record.geo = {
    country_code: place?.country_code ?? null,
    asn: network?.autonomous_system_number ?? null,
    as_name: network?.autonomous_system_organization ?? null,
    network: blockOf(record.ip, Math.max(length, other)),
  };
  if (!output.write(`${JSON.stringify(record)}\n`)) await new Promise((resolve) => output.once('drain', resolve));
}
await new Promise((resolve) => output.end(resolve));
console.log((performance.now() - begun) / 1000);
