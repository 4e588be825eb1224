/** Exports a release for gdnsd: reads the nodes, and writes the database, the zone and the configuration. */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openDatabase } from '../../database/database.js';
import { readManifest } from '../../database/release.js';
import { writeError } from '../../errors.js';
import { type ExportRequest, FORMATS } from '../formats.js';
import { writeFile } from '../output.js';
import { type CountryRecord, chosenCountries } from '../ranges.js';
import { readCentroids } from './distance.js';
import { GDNSD_DATABASE, gdnsdFiles } from './gdnsd.js';
import { type Countries, type Node, readNodes } from './nodes.js';

export interface GdnsdExport {
  /** Directory of the release. */
  release: string;
  /** Path of nodes.json. */
  nodesFile: string;
  /** Where to write: gdnsd's directory of configuration. It is created if it does not exist. */
  directory: string;
  /** What the database has. */
  database: ExportRequest;
}

/**
 * Writes all files. Each is replaced in one step; the configuration comes last, because it names the others.
 *
 * @returns the paths that were written, relative to the directory, and what looks wrong and does not prevent the export
 * @throws AtlasError E_CONFIG if the nodes are not valid; E_OUTPUT or E_DISK if a file cannot be written
 */
export async function exportForGdnsd({ release, nodesFile, directory, database }: GdnsdExport) {
  const countries = countriesOf(database);
  const nodes = await readNodes(nodesFile, countries);
  const title = `ipatlas release ${readManifest(release).id}, countries as of ${countries.asOf}`;
  const files = gdnsdFiles(nodes, countries, readCentroids(), title);
  const written: string[] = [];
  for (const { path, content } of [
    { path: GDNSD_DATABASE, content: FORMATS.mmdb.write(database) },
    ...files.map(({ path, text }) => ({ path, content: text })),
  ]) {
    const target = join(directory, path);
    if (typeof content === 'string' && isUnchanged(target, content)) continue;
    try {
      mkdirSync(dirname(target), { recursive: true });
    } catch (error) {
      throw writeError(dirname(target), error);
    }
    writeFile(target, typeof content === 'string' ? [content] : content);
    written.push(path);
  }
  return { written, warnings: misplacedNodes(release, nodes.nodes) };
}

function countriesOf(database: ExportRequest): Countries {
  const records = chosenCountries(database).filter((record): record is CountryRecord => record !== undefined);
  return { asOf: database.file.asOf, byCode: new Map(records.map((record) => [record.code, record])) };
}

/** Returns whether a file has this text, apart from the release that its first line names. */
function isUnchanged(path: string, text: string): boolean {
  const withoutTitle = (content: string): string => content.slice(content.indexOf('\n'));
  try {
    return withoutTitle(readFileSync(path, 'utf8')) === withoutTitle(text);
  } catch {
    return false; // the write reports why the path cannot be used
  }
}

/** Returns a warning for each address that the release has in another country than the node. */
function misplacedNodes(release: string, nodes: readonly Node[]): string[] {
  const database = openDatabase(release);
  try {
    return nodes.flatMap(({ name, country, addresses }) =>
      addresses.flatMap(({ text }) => {
        const found = database.lookup(text)?.country_code ?? null;
        if (found === null || found === country) return [];
        return [`node ${name} is said to be in ${country}, but the release has its address ${text} in ${found}`];
      }),
    );
  } finally {
    database.close();
  }
}
