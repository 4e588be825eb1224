/** Takes the history of a repository, see src/history/FORMAT.md. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtlasError, messageOf, systemErrorCode } from '../../src/errors.js';
import { HISTORY_DIR, openArchive } from '../../src/history/archive.js';
import { isPackName, packName, readPack } from '../../src/history/pack.js';
import { addPack, settle } from '../../src/history/write.js';
import type { StageContext } from '../stage.js';
import type { RepositoryClient } from './client.js';
import { historyTarget } from './repository.js';

/** What the history needs of a client. */
type Client = Pick<RepositoryClient, 'get' | 'hashOf'>;
type PullContext = Pick<StageContext, 'dataDir' | 'workDir' | 'note'>;

/** Returns whether each entry of a pack on this machine is intact. */
function isIntact(path: string, name: string): boolean {
  if (!existsSync(path)) return false;
  try {
    for (const { content } of readPack(readFileSync(path), name, path)) content();
    return true;
  } catch (error) {
    if (error instanceof AtlasError) return false;
    throw error;
  }
}

/** Returns whether a pack on this machine is the one that the repository offers. */
async function isPresent(client: Client, name: string, path: string): Promise<boolean> {
  if (!existsSync(path)) return false;
  const hash = createHash('sha256').update(readFileSync(path)).digest('hex');
  return hash === (await client.hashOf(historyTarget(name)));
}

async function takePacks(client: Client, offered: readonly string[], { dataDir, workDir }: PullContext): Promise<void> {
  settle(dataDir);
  const first = openArchive(dataDir).entries.find(({ origin }) => origin === 'own');
  if (first === undefined) return;
  const lastMonth = packName(first.time);
  const folder = join(dataDir, HISTORY_DIR);
  const packs = offered.filter((name) => name <= lastMonth).sort();
  for (const name of [...packs].reverse()) {
    const path = join(folder, name);
    // What the repository adds to the month of the first publication here came after it.
    if (name === lastMonth ? isIntact(path, name) : await isPresent(client, name, path)) continue;
    const download = join(workDir, name);
    await client.get(historyTarget(name), download);
    addPack(dataDir, name, readFileSync(download));
  }
  // What the repository has forgotten stays here; what was removed between other packs was an import.
  const isRemoved = (name: string): boolean => isPackName(name) && name > packs[0]! && !packs.includes(name);
  if (packs.length > 0) for (const name of readdirSync(folder).filter(isRemoved)) rmSync(join(folder, name));
}

/**
 * Takes the history of a repository for the days before the first publication of this data directory. Only packs that are not
 * here are fetched. A problem is noted, and the next pull tries again: a release never waits for history.
 *
 * @param offered the packs of the repository
 */
export async function pullHistory(client: Client, offered: readonly string[], context: PullContext): Promise<void> {
  try {
    await takePacks(client, offered, context);
  } catch (error) {
    if (!(error instanceof AtlasError) && systemErrorCode(error) === undefined) throw error;
    context.note(`the history of the repository is not complete here: ${messageOf(error)}`);
  }
}
