/** Builds the first database, for a command that needs one. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { isatty } from 'node:tty';
import { CURRENT_LINK, MANIFEST_FILE } from '../database/release.js';
import { AtlasError } from '../errors.js';
import { packageFile } from '../package-root.js';
import { STANDARD_FD } from '../standard-streams.js';
import { printNote } from './command.js';

/** A directory counts as having a database if it is a release itself, or has a link to one, a damaged one included. */
function hasDatabase(dataDir: string): boolean {
  return [CURRENT_LINK, 'releases', MANIFEST_FILE].some((name) => existsSync(join(dataDir, name)));
}

async function confirmed(dataDir: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(
      `There is no database in ${dataDir}. Build it now from the data that came with ipatlas?\nThis takes about 60 MB and some 10 seconds. [Y/n] `,
    );
    return /^(y(es)?)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}

/**
 * Builds a database from the installed sources if the data directory has none: after a question on a terminal, or without
 * one if the user has already agreed. The network is not used.
 *
 * @param agreed whether `--yes` was given
 * @param missing the error of the command that found no database
 * @throws AtlasError `missing` if the directory has releases, or E_NO_DATABASE if nobody agrees
 */
export async function buildFirst(dataDir: string, agreed: boolean, missing: AtlasError): Promise<void> {
  if (hasDatabase(dataDir)) throw missing;
  // Not process.stdin, which would open a pipe that the command reads itself.
  const mayAsk = isatty(STANDARD_FD.input) && isatty(STANDARD_FD.error);
  if (!agreed && !(mayAsk && (await confirmed(dataDir)))) {
    throw new AtlasError(
      'E_NO_DATABASE',
      `no release in ${dataDir}; make one with "ipatlas build --offline", or add --yes to this command, or name another directory with --data`,
    );
  }
  const { build } = await import('../../pipeline/index.js');
  await build({
    dataDir,
    sourcesFile: packageFile(join('data', 'sources.json')),
    only: [],
    asOf: undefined,
    offline: true,
    force: false,
    brief: true,
    note: (line) => printNote(`${line}\n`),
  });
}
