// Writes places/networks.csv: addresses in prefixes that research networks, registries and exchange points announce from
// their own AS. operators.csv says which AS belongs to whom, and in which country the operator says that it is;
// excluded.csv lists space that belongs to somebody else than the announcer. The announcements come from the package
// @ip-location-db/asn, which names no countries.
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { BlockList } from 'node:net';
import { join } from 'node:path';
import { parse } from 'csv-parse';
import { parse as parseSync } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { PACKAGES, PLACES, packageDate } from './paths.js';

/** Addresses that are taken from one AS in one family, so that no large network outweighs the others. */
const ADDRESSES_PER_AS = 4;

/** Returns `count` items spread evenly over a list, or all of a shorter one. */
function spread(items, count) {
  if (items.length <= count) return items;
  return Array.from({ length: count }, (_, i) => items[Math.floor((i * items.length) / count)]);
}

const readTable = (name) => parseSync(readFileSync(new URL(name, import.meta.url)), { columns: true });
const operators = new Map(readTable('./operators.csv').map((row) => [row.asn, row]));
const excluded = new BlockList();
for (const { prefix } of readTable('./excluded.csv')) {
  const [address, length] = prefix.split('/');
  excluded.addSubnet(address, Number(length), address.includes(':') ? 'ipv6' : 'ipv4');
}
const date = packageDate(join(PACKAGES, 'asn'));
const rows = [];
for (const family of ['ipv4', 'ipv6']) {
  const announced = new Map();
  const file = join(PACKAGES, 'asn', `asn-${family}.csv`);
  for await (const [first, , asn] of createReadStream(file).pipe(parse())) {
    if (!operators.has(asn) || excluded.check(first, family)) continue;
    if (!announced.has(asn)) announced.set(asn, []);
    announced.get(asn).push(first);
  }
  for (const [asn, addresses] of announced) {
    const { country, class: kind, operator, url } = operators.get(asn);
    for (const address of spread(addresses, ADDRESSES_PER_AS)) rows.push([address, country, kind, operator, url, date]);
  }
}
writeFileSync(
  join(PLACES, 'networks.csv'),
  stringify([['address', 'country', 'class', 'operator', 'url', 'date'], ...rows]),
);
