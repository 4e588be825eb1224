/** `ipatlas releases`: what is there, and which one is current. */
import { join } from 'node:path';
import { currentReleaseId, RELEASES_DIR, readManifest, releaseIds } from '../database/release.js';
import { EXIT } from '../errors.js';
import { type Command, type Invocation, print, table } from './command.js';

interface Listed {
  id: string;
  current: boolean;
  as_of: string;
  bytes: number;
  sources: string[];
}

function list(dataDir: string): Listed[] {
  const current = currentReleaseId(dataDir);
  return releaseIds(dataDir).map((id) => {
    const manifest = readManifest(join(dataDir, RELEASES_DIR, id));
    return {
      id,
      current: id === current,
      as_of: manifest.as_of,
      bytes: manifest.outputs.reduce((sum, output) => sum + output.bytes, 0),
      sources: manifest.inputs.map(({ id: source, version }) => (version === '' ? source : `${source}@${version}`)),
    };
  });
}

async function run({ dataDir, values }: Invocation): Promise<number> {
  const releases = list(dataDir);
  if (values.json === true) await print(`${JSON.stringify(releases)}\n`);
  else if (releases.length === 0)
    process.stderr.write(`ipatlas: no releases in ${dataDir}; make one with "ipatlas build --offline"\n`);
  else {
    await print(
      table([
        ['', 'RELEASE', 'AS OF', 'MB', 'SOURCES'],
        ...releases.map(({ id, current, as_of, bytes, sources }) => [
          current ? '*' : ' ',
          id,
          as_of,
          (bytes / 1e6).toFixed(1),
          sources.join(' '),
        ]),
      ]),
    );
  }
  return EXIT.ok;
}

export const command: Command = {
  help: `Usage: ipatlas releases

Lists the releases in the data directory, the newest first; "*" marks the current one.

  --json      the list as JSON
  --data DIR  the data directory (or IPATLAS_DATA; default data)
`,
  options: { json: { type: 'boolean' } },
  arguments: [0, 0],
  run,
};
