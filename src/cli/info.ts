/** `ipatlas info`: what the current release is and what it was made of. */
import { type Manifest, readManifest, releaseDir } from '../database/release.js';
import { EXIT } from '../errors.js';
import { type Command, factLines, type Invocation, print } from './command.js';

function facts(manifest: Manifest): [string, string | number][] {
  const { counts } = manifest;
  return [
    ['release', manifest.id],
    ['as of', manifest.as_of],
    ['made by', `ipatlas ${manifest.tool_version}`],
    ['IPv4 ranges', counts.ipv4_ranges],
    ['IPv6 ranges', counts.ipv6_ranges],
    ['countries', counts.countries],
    ['IPv4 addresses with a country', counts.ipv4_addresses_with_country],
    ['IPv6 /48s with a country', counts.ipv6_48s_with_country],
    ...manifest.inputs.map(({ id, version, license, rows }): [string, string] => [
      `source ${id}`,
      `${version}, ${rows} rows, ${license}`,
    ]),
    ...manifest.outputs.map(({ name, bytes, sha256 }): [string, string] => [
      name,
      `${bytes} bytes, sha256 ${sha256.slice(0, 16)}…`,
    ]),
  ];
}

async function run({ dataDir, values }: Invocation): Promise<number> {
  const manifest = readManifest(releaseDir(dataDir));
  await print(values.json === true ? `${JSON.stringify(manifest)}\n` : factLines(facts(manifest)));
  return EXIT.ok;
}

export const command: Command = {
  help: `Usage: ipatlas info

Says what the current release is: its date, sources, counts and files.

  --json      the release's manifest
  --data DIR  the data directory (or IPATLAS_DATA; default data)
`,
  options: { json: { type: 'boolean' } },
  arguments: [0, 0],
  run,
};
