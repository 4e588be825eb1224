/** `ipatlas releases`: what is there, and which one is current. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import {
  currentReleaseId,
  MANIFEST_FILE,
  RELEASES_DIR,
  readManifest,
  refusedIds,
  releaseIds,
} from '../database/release.js';
import { AtlasError, EXIT } from '../errors.js';
import { openArchive } from '../history/archive.js';
import { NETWORKS } from '../rangefile/partitions.js';
import { type Command, type Invocation, print, printNote, table } from './command.js';

interface Listed {
  id: string;
  current: boolean;
  as_of: string;
  /** When it was made, ISO 8601 in UTC; the order of the list. */
  made: string;
  bytes: number;
  sources: string[];
  /** Who published it against the gates; null where nobody had to. */
  forced_by: string | null;
}

function describe(dataDir: string, id: string, current: string | undefined): Listed {
  const dir = join(dataDir, RELEASES_DIR, id);
  const manifest = readManifest(dir);
  return {
    id,
    current: id === current,
    as_of: manifest.as_of,
    made: statSync(join(dir, MANIFEST_FILE)).mtime.toISOString(),
    bytes: manifest.outputs.reduce((sum, output) => sum + output.bytes, 0),
    sources: manifest.inputs.map(({ id: source, version }) => (version === '' ? source : `${source}@${version}`)),
    forced_by: manifest.forced === undefined ? null : (manifest.forced.by ?? 'the origin'),
  };
}

/** The releases that can be read; the others are told on stderr, as they must not hide those that one could go back to. */
function list(dataDir: string): Listed[] {
  const current = currentReleaseId(dataDir);
  return releaseIds(dataDir).flatMap((id) => {
    try {
      return [describe(dataDir, id, current)];
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error;
      printNote(`ipatlas: release ${id} is damaged: ${error.message}\n`);
      return [];
    }
  });
}

function row({ id, current, as_of, made, bytes, sources, forced_by }: Listed): string[] {
  const forced = forced_by === null ? '' : ` (forced by ${forced_by})`;
  const mb = (bytes / 1e6).toFixed(1);
  return [current ? '*' : ' ', id, as_of, made.slice(0, 16).replace('T', ' '), mb, `${sources.join(' ')}${forced}`];
}

async function run({ dataDir, values }: Invocation): Promise<number> {
  const releases = list(dataDir);
  if (values.json === true) await print(`${JSON.stringify(releases)}\n`);
  else if (releases.length === 0)
    printNote(`ipatlas: no releases in ${dataDir}; make one with "ipatlas build --offline --data ${dataDir}"\n`);
  else await print(table([['', 'RELEASE', 'AS OF', 'MADE (UTC)', 'MB', 'SOURCES'], ...releases.map(row)], [4]));
  const refused = refusedIds(dataDir);
  if (refused.length > 0 && values.json !== true) {
    printNote(`refused and kept for inspection: ${refused.join(', ')}\n`);
  }
  const archive = openArchive(dataDir);
  const { span } = archive;
  if (span !== undefined && values.json !== true) {
    const networks = openArchive(dataDir, NETWORKS).bytes;
    const ofNetworks = networks === 0 ? '' : `, and of networks ${(networks / 1e6).toFixed(1)} MB`;
    printNote(`history: ${span.from} to ${span.to}, ${(archive.bytes / 1e6).toFixed(1)} MB${ofNetworks}\n`);
  }
  return EXIT.ok;
}

export const command: Command = {
  usage: ['releases'],
  description: `Lists the releases in the data directory, the newest first; "*" marks the current one. Releases that a gate refused
are named below the list, and so are the days of which the history has answers.`,
  options: {
    json: { help: 'print the list as JSON' },
  },
  examples: {
    'ipatlas releases': 'the releases that are kept',
  },
  run,
};
