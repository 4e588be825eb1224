/** `ipatlas export`: a release in the form that other software reads. */

import { join } from 'node:path';
import type { EmbeddedScheme } from '../address/embedded.js';
import { type Manifest, RELEASES_DIR, releaseDir, releaseIds } from '../database/release.js';
import { openReleaseRanges } from '../database/release-files.js';
import { AtlasError, EXIT } from '../errors.js';
import { type ExportRequest, FORMATS, type FormatName } from '../export/formats.js';
import { DEFAULT_DATABASE_TYPE } from '../export/mmdb/mmdb.js';
import { NFT_SET_NAME } from '../export/nft.js';
import { writeFile, writeToStream } from '../export/output.js';
import type { RangeFile } from '../rangefile/reader.js';
import { type Command, type Invocation, type OptionValues, outputPath, text } from './command.js';

function usage(message: string): AtlasError {
  return new AtlasError('E_USAGE', `${message}; see "ipatlas export --help"`);
}

/** Writes several files, so it is not one of the formats. */
const GDNSD = 'gdnsd';

function formatNamed(name: string): FormatName {
  if (Object.hasOwn(FORMATS, name)) return name as FormatName;
  throw usage(`there is no format ${JSON.stringify(name)}; there are ${[...Object.keys(FORMATS), GDNSD].join(', ')}`);
}

/** The directory of the release that is asked for, or of the current one. */
function chosenRelease(dataDir: string, id: string | undefined): string {
  if (id === undefined) return releaseDir(dataDir);
  if (releaseIds(dataDir).includes(id)) return releaseDir(join(dataDir, RELEASES_DIR, id));
  throw new AtlasError(
    'E_NO_DATABASE',
    `there is no release ${id} in ${dataDir}; "ipatlas releases" lists what there is`,
  );
}

function chosenFamilies(family: string | undefined): (4 | 6)[] {
  if (family === undefined) return [4, 6];
  if (family === '4') return [4];
  if (family === '6') return [6];
  throw usage(`--family is ${JSON.stringify(family)}; it can be 4 or 6`);
}

/** The country codes asked for by `--countries` and `--eu` together; undefined where neither is given. */
function chosenCodes(file: RangeFile, values: OptionValues): Set<string> | undefined {
  const list = text(values, 'countries');
  if (list === undefined && values.eu !== true) return undefined;
  const known = file.records.filter((record) => record.kind === 'country');
  const codes = new Set(list?.split(',').map((code) => code.trim().toUpperCase()));
  for (const code of codes) {
    if (known.some((country) => country.code === code)) continue;
    throw usage(`--countries names ${JSON.stringify(code)}, which no range of this release has (as of ${file.asOf})`);
  }
  if (values.eu === true) for (const country of known) if (country.isEu) codes.add(country.code);
  return codes;
}

/** The schemes that `--embedded` names. `yes` and `no` are the older spellings of `all` and `none`. */
function chosenSchemes(name: FormatName, value: string | undefined): Set<EmbeddedScheme> {
  const { schemes, embedded } = FORMATS[name];
  if (value === undefined) return new Set(embedded);
  if (value === 'all' || value === 'yes') return new Set(schemes);
  if (value === 'none' || value === 'no') return new Set();
  return new Set(
    value.split(',').map((part) => {
      const scheme = schemes.find((one) => one === part.trim());
      if (scheme !== undefined) return scheme;
      throw usage(
        `--embedded is ${JSON.stringify(value)}; for ${name} it can be all, none, or some of ${schemes.join(',')}`,
      );
    }),
  );
}

/** Name of the nft sets, without the family's digit. */
function setName(values: OptionValues): string {
  const name = text(values, 'set') ?? (values.eu === true && values.countries === undefined ? 'eu' : 'countries');
  if (NFT_SET_NAME.test(name)) return name;
  throw usage(`--set is ${JSON.stringify(name)}; it can be up to 30 letters, digits and "_", a letter first`);
}

/** What the file says of itself, on one line: which release, which part of it, and whom its sources want credited. */
function titleOf({ id, inputs }: Manifest, codes: ReadonlySet<string> | undefined): string {
  const part = codes === undefined ? '' : `, ${[...codes].sort().join(' ')}`;
  const credits = [...new Set(inputs.map(({ attribution }) => attribution))].filter((text) => text !== '');
  const data = credits.length === 0 ? '' : `. Data: ${credits.join('; ')}`;
  return `Countries of IP addresses, ipatlas release ${id}${part}${data}`.replace(/\s+/g, ' ');
}

function requestFrom(format: FormatName, { dataDir, values }: Invocation): ExportRequest {
  const release = chosenRelease(dataDir, text(values, 'release'));
  const { manifest, file } = openReleaseRanges(release);
  const countries = chosenCodes(file, values);
  return {
    file,
    countries,
    families: chosenFamilies(text(values, 'family')),
    embedded: chosenSchemes(format, text(values, 'embedded')),
    title: titleOf(manifest, countries),
    dataDate: manifest.data_date,
    databaseType: text(values, 'database-type') ?? DEFAULT_DATABASE_TYPE,
    setName: setName(values),
  };
}

/** Flags of the other formats only. */
const NOT_FOR_GDNSD = ['family', 'countries', 'eu', 'embedded', 'set', 'database-type'];

/** Writes the database, the zone and the configuration of gdnsd. Files that would not change are left alone. */
async function exportGdnsd(invocation: Invocation): Promise<void> {
  const { dataDir, values } = invocation;
  const nodesFile = text(values, 'nodes');
  const directory = outputPath(values);
  if (nodesFile === undefined) throw usage('gdnsd needs --nodes FILE');
  if (directory === undefined) throw usage('gdnsd needs a directory: -o DIR');
  for (const flag of NOT_FOR_GDNSD) if (values[flag] !== undefined) throw usage(`--${flag} does not go with gdnsd`);
  const { exportForGdnsd } = await import('../export/gdnsd/export.js');
  const release = chosenRelease(dataDir, text(values, 'release'));
  const { written, warnings } = await exportForGdnsd({
    release,
    nodesFile,
    directory,
    database: requestFrom('mmdb', invocation),
  });
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  process.stderr.write(`${directory}: wrote ${written.join(', ')}\n`);
}

async function run(invocation: Invocation): Promise<number> {
  if (invocation.positionals[0] === GDNSD) {
    await exportGdnsd(invocation);
    return EXIT.ok;
  }
  if (invocation.values.nodes !== undefined) throw usage('--nodes goes with gdnsd only');
  const name = formatNamed(invocation.positionals[0]!);
  const output = outputPath(invocation.values);
  const request = requestFrom(name, invocation);
  const format = FORMATS[name];
  if (output !== undefined) {
    const bytes = writeFile(output, format.write(request));
    process.stderr.write(`${output}: ${bytes} bytes. ${request.title}\n`);
    return EXIT.ok;
  }
  if (format.isBinary && process.stdout.isTTY) throw usage(`${name} is not text for a terminal; name a file with -o`);
  await writeToStream(format.write(request), process.stdout);
  return EXIT.ok;
}

export const command: Command = {
  usage: ['export FORMAT [-o FILE]'],
  description: `Writes the current release in the form that other software reads; docs/exports.md shows how each uses it.`,
  words: {
    ...Object.fromEntries(Object.entries(FORMATS).map(([name, { summary }]) => [name, summary])),
    [GDNSD]: 'a directory with the configuration of gdnsd: DNS by country',
  },
  options: {
    output: {
      value: 'FILE',
      short: 'o',
      help: 'the file, replaced in one step (default: stdout); for gdnsd a directory',
    },
    nodes: { value: 'FILE', help: 'gdnsd: the servers that DNS routes to; docs/routing.md' },
    release: { value: 'ID', help: 'another release than the current one' },
    family: { value: '4|6', choices: ['4', '6'], help: 'one family only' },
    countries: { value: 'LIST', help: 'these countries only, by their codes: DE,FR' },
    eu: { help: 'these only that are in the European Union (with --countries: both together)' },
    embedded: {
      value: 'LIST',
      help: 'IPv6 addresses that get the country of the IPv4 address in them: 6to4, nat64, and in mmdb teredo; or all, or none (default: 6to4,nat64 for mmdb, nginx and haproxy, else none)',
    },
    set: { value: 'NAME', help: 'nft: the sets are NAME4 and NAME6 (default: eu or countries)' },
    'database-type': { value: 'NAME', help: `mmdb: the type in its metadata (default: ${DEFAULT_DATABASE_TYPE})` },
  },
  examples: {
    'ipatlas export mmdb -o country.mmdb': 'a database for readers of MaxMind DB files',
    'ipatlas export nft --countries DE,FR -o countries.nft': 'sets for nftables with two countries',
    'ipatlas export gdnsd --nodes nodes.json -o /etc/gdnsd': 'DNS by country',
  },
  operand: 'none',
  arguments: [1, 1],
  needsDatabase: true,
  run,
};
