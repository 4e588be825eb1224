// Reads the databases: sources that a build may use, and those that are held out of every build.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { loadReference } from '../dist/pipeline/config/reference.js';
import { findDataDate } from '../dist/pipeline/fetching/data-date.js';
import { readSource } from '../dist/pipeline/source-formats/read-source.js';
import { countryTable, resolveCountry } from '../dist/src/country/country.js';
import { DEBIAN, PACKAGES, packageDate, SEEDS } from './paths.js';

/** Day as of which the European Union's membership counts; the databases are of the same month. */
const AS_OF = '2026-06-17';

const csvFiles = (directory, name) => ['ipv4', 'ipv6'].map((family) => join(directory, `${name}-${family}.csv`));

function npmDatabase(parent, name) {
  const directory = join(parent, name);
  return { files: csvFiles(directory, name), format: 'ip-location-db', date: packageDate(directory) };
}

/** Unpacks the Debian package tor-geoipdb, and returns its two files; undefined without apt. */
function debianDatabase() {
  const files = ['geoip', 'geoip6'].map((name) => join(DEBIAN, 'usr', 'share', 'tor', name));
  if (!existsSync(files[0])) {
    const scratch = `${DEBIAN}.new`;
    rmSync(scratch, { recursive: true, force: true });
    mkdirSync(scratch, { recursive: true });
    const download = spawnSync('apt-get', ['download', 'tor-geoipdb'], { cwd: scratch, encoding: 'utf8' });
    if (download.status !== 0) return undefined;
    const archive = readdirSync(scratch).find((name) => name.endsWith('.deb'));
    const unpack = spawnSync('dpkg-deb', ['-x', archive, '.'], { cwd: scratch, encoding: 'utf8' });
    if (unpack.status !== 0) throw new Error(unpack.stderr);
    rmSync(DEBIAN, { recursive: true, force: true });
    renameSync(scratch, DEBIAN);
  }
  const generated = /^# Generated: (.*)$/m.exec(readFileSync(files[0], 'latin1').slice(0, 4096));
  return { files, format: 'tor-geoip', date: new Date(generated[1]).toISOString().slice(0, 10) };
}

/** Returns the publisher's daily files, of which there is no package; undefined without a folder. */
function userCountry(directory) {
  if (directory === undefined) return undefined;
  const files = csvFiles(directory, 'user-country');
  return { files, format: 'ip-location-db', date: statSync(files[0]).mtime.toISOString().slice(0, 10) };
}

/** Files and formats of the operators' lists. Amazon's is left out: the places of the class `cloud` come from it. */
const OPERATOR_LISTS = {
  azure: [/^ServiceTags_Public.*\.json$/, 'azure-service-tags'],
  google: [/^cloud\.json$/, 'google-cloud'],
  oracle: [/^public_ip_ranges\.json$/, 'oracle-cloud'],
};

/** Returns the operators' lists in a folder, of which there are no packages. */
async function operatorLists(directory) {
  const lists = {};
  if (directory === undefined) return lists;
  for (const [name, [pattern, format]] of Object.entries(OPERATOR_LISTS)) {
    const file = readdirSync(directory)
      .filter((each) => pattern.test(each))
      .sort()
      .at(-1);
    if (file === undefined) continue;
    const path = join(directory, file);
    const found = await findDataDate([{ name: file, path }], { version: file, modifiedAt: statSync(path).mtime });
    lists[name] = { files: [path], format, date: found.date };
  }
  return lists;
}

/** The databases by name; undefined are those that cannot be had. */
async function listDatabases({ userCountry: userCountryFolder, operatorLists: operatorFolder }) {
  const iptoasn = join(PACKAGES, 'iptoasn-country-mmdb');
  return {
    ...(await operatorLists(operatorFolder)),
    user: userCountry(userCountryFolder),
    whois: npmDatabase(SEEDS, 'geo-whois-asn-country'),
    rir: npmDatabase(SEEDS, 'asn-country'),
    dbip: npmDatabase(PACKAGES, 'dbip-country'),
    bgp: {
      files: [join(iptoasn, 'iptoasn-country.mmdb')],
      format: 'mmdb',
      date: packageDate(iptoasn),
    },
    geolite2: npmDatabase(PACKAGES, 'geolite2-country'),
    ipfire: debianDatabase(),
  };
}

/** The countries of all databases: a range's value is an index into `codes`; 0 means no country. */
export class Countries {
  codes = [''];
  /** Whether each is a member of the European Union. */
  inEu = [false];
  #reference = loadReference();
  #table = countryTable(this.#reference, AS_OF);
  #indexes = new Map([['', 0]]);

  /** Returns the index of a code as a database writes it. */
  index(text) {
    const country = resolveCountry(this.#reference, text);
    if (typeof country !== 'object') return 0;
    const { code } = country;
    if (!this.#indexes.has(code)) {
      this.#indexes.set(code, this.codes.push(code) - 1);
      this.inEu.push(this.#table.get(code).isEu);
    }
    return this.#indexes.get(code);
  }
}

/**
 * Reads all databases.
 *
 * @param folders `userCountry` has user-country-ipv4.csv and user-country-ipv6.csv, `operatorLists` the lists that operators
 *   publish; undefined to leave them out
 * @returns by name: `date`, and the rows of both families, `v4` and `v6`, without those that name no country
 */
export async function readDatabases(countries, folders) {
  const databases = {};
  for (const [name, database] of Object.entries(await listDatabases(folders))) {
    if (database === undefined) {
      console.log(`${name}: cannot be had on this machine, left out; see truth/README.md`);
      continue;
    }
    const { format, date } = database;
    const files = database.files.map((path) => ({ name: basename(path), path }));
    const { ingested } = await readSource({ source: { id: name, format, maxRejectShare: 0 }, files }, console.log);
    const indexOf = ingested.codes.map((code) => countries.index(code));
    for (const ranges of [ingested.v4, ingested.v6]) ranges.value = ranges.value.map((code) => indexOf[code]);
    databases[name] = { date, v4: ingested.v4, v6: ingested.v6 };
  }
  return databases;
}
