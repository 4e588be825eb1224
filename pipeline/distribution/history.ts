/** Takes the history of a repository, see src/history/FORMAT.md. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { AtlasError, isAtlasError, messageOf, orElse, systemErrorCode } from '../../src/errors.js';
import { openArchive } from '../../src/history/archive.js';
import type { Archived } from '../../src/history/entry.js';
import { isPackName, PACK_LIST_FILE, packName, parsePackList } from '../../src/history/pack.js';
import { addPack, listPacks, settlePublication } from '../../src/history/write.js';
import type { FileRecord } from '../../src/rangefile/layout.js';
import { archivedPartitions } from '../../src/rangefile/partitions.js';
import { hashFile } from '../fetching/cache.js';
import type { StageContext } from '../stage.js';
import type { RepositoryClient } from './client.js';

/** What the history needs of a client. */
type Client = Pick<RepositoryClient, 'get' | 'hashOf'>;
type PullContext = Pick<StageContext, 'dataDir' | 'workDir' | 'note'>;

/** Returns whether a pack on this machine is the one that the repository offers. */
async function isPresent(client: Client, target: string, path: string): Promise<boolean> {
  return existsSync(path) && hashFile(path) === (await client.hashOf(target));
}

async function takePacks(
  client: Client,
  offered: readonly string[],
  { dataDir, workDir }: PullContext,
  partition: Archived<FileRecord>,
): Promise<void> {
  const target = partition.history!;
  const first = openArchive(dataDir, partition).entries.find(({ origin }) => origin === 'own');
  if (first === undefined) return;
  const last = packName(first.time);
  const packs = offered
    .filter((path) => dirname(path) === target)
    .map((path) => basename(path))
    .filter((name) => isPackName(name) && name <= last)
    .sort();
  if (packs.length === 0) return;
  const folder = join(dataDir, target);
  const here = [...listedPacks(folder), ...readdirSync(folder).filter(isPackName)];
  // What the repository has forgotten stays here; what was removed between other packs was an import.
  const belong = new Set([...here.filter((name) => name < packs[0]!), ...packs]);
  listPacks(folder, [...belong]);
  for (const name of here) if (!belong.has(name)) rmSync(join(folder, name), { force: true });
  for (const name of packs.reverse()) {
    const path = join(folder, name);
    // That of the month of the first publication here too: an import at the repository may have changed its first entry.
    if (await isPresent(client, `${target}/${name}`, path)) continue;
    const download = join(workDir, name);
    await client.get(`${target}/${name}`, download);
    addPack(folder, name, readFileSync(download));
  }
}

/** Returns the packs that belong to a folder as far as is known. */
function listedPacks(folder: string): string[] {
  const path = join(folder, PACK_LIST_FILE);
  const read = () => (existsSync(path) ? parsePackList(readFileSync(path, 'utf8'), path) : []);
  return orElse(read, isAtlasError, []); // written anew
}

/**
 * Takes the history of a repository for the days before the first publication of this data directory. Only packs that are not
 * here are fetched. A problem is noted, and the next pull tries again: a release never waits for history.
 *
 * @param offered the targets of the packs of the repository
 */
export async function pullHistory(client: Client, offered: readonly string[], context: PullContext): Promise<void> {
  try {
    settlePublication(context.dataDir);
    for (const partition of archivedPartitions()) await takePacks(client, offered, context, partition);
  } catch (error) {
    if (!(error instanceof AtlasError) && systemErrorCode(error) === undefined) throw error;
    context.note(`the history of the repository is not complete here: ${messageOf(error)}`);
  }
}
