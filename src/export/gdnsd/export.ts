/** Exports a release for gdnsd: reads the nodes, and writes the database, the zone and the configuration. */
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openDatabase } from '../../database/database.js';
import { readManifest } from '../../database/release.js';
import { systemErrorCode, writeError } from '../../errors.js';
import { makeFolder, writeFile } from '../../files.js';
import { type ExportRequest, FORMATS } from '../formats.js';
import { type CountryRecord, chosenCountries } from '../ranges.js';
import { readCentroids } from './distance.js';
import { familyWarnings, GDNSD_DATABASE, gdnsdFiles, ZONE_MARK, ZONES_DIR } from './gdnsd.js';
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
 * Writes the files that change. Each is replaced in one step; the configuration comes last, because it names the others. A
 * zone of an earlier export that `nodes.json` does not name any more is removed: gdnsd would go on answering for it.
 *
 * @returns the paths that were written and removed, relative to the directory, and what looks wrong and does not prevent the export
 * @throws AtlasError E_CONFIG if the nodes are not valid; E_OUTPUT or E_DISK if a file cannot be written
 */
export async function exportForGdnsd({ release, nodesFile, directory, database }: GdnsdExport) {
  const countries = countriesOf(database);
  const nodes = await readNodes(nodesFile, countries);
  const title = `ipatlas release ${readManifest(release).id}, countries as of ${countries.asOf}`;
  const files = gdnsdFiles(nodes, countries, readCentroids(), title);
  const written: string[] = [];
  const write = (path: string, content: Buffer, isUnchanged: (old: Buffer) => boolean): void => {
    const target = join(directory, path);
    const old = readFile(target);
    if (old !== undefined && isUnchanged(old)) return;
    try {
      makeFolder(dirname(target));
    } catch (error) {
      throw writeError(dirname(target), error);
    }
    writeFile(target, [content]);
    written.push(path);
  };
  const mmdb = Buffer.concat([...FORMATS.mmdb.write(database)].map((piece) => Buffer.from(piece)));
  write(GDNSD_DATABASE, mmdb, (old) => old.equals(mmdb));
  for (const { path, text } of files) {
    write(path, Buffer.from(text), (old) => withoutTitle(old.toString()) === withoutTitle(text));
  }
  const removed = removeOtherZones(directory, nodes.zone);
  return { written, removed, warnings: [...misplacedNodes(release, nodes.nodes), ...familyWarnings(nodes)] };
}

/** Returns a text without its first line, which names the release. */
function withoutTitle(text: string): string {
  return text.slice(text.indexOf('\n'));
}

/** Returns the content of a file; undefined if it is none that can be read, of which the write reports the reason. */
function readFile(path: string): Buffer | undefined {
  try {
    return statSync(path).isFile() ? readFileSync(path) : undefined;
  } catch (error) {
    if (systemErrorCode(error) === undefined) throw error;
    return undefined;
  }
}

function removeOtherZones(directory: string, zone: string): string[] {
  const folder = join(directory, ZONES_DIR);
  const others = readdirSync(folder).filter((name) => {
    const lines = name === zone ? [] : (readFile(join(folder, name))?.toString().split('\n', 2) ?? []);
    return lines[1] === ZONE_MARK;
  });
  for (const name of others) rmSync(join(folder, name));
  return others.map((name) => join(ZONES_DIR, name));
}

function countriesOf(database: ExportRequest): Countries {
  const records = chosenCountries(database).filter((record): record is CountryRecord => record !== undefined);
  return { asOf: database.file.asOf, byCode: new Map(records.map((record) => [record.code, record])) };
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
