/** `ipatlas verify`: checks a release. */
import { checkInputHash, checkStoredRelease } from '../../pipeline/index.js';
import { releaseDir } from '../database/release.js';
import { verifyWithReport } from '../database/verify.js';
import { AtlasError, EXIT, REBUILD, RESTORE_DAYS } from '../errors.js';
import { openArchive } from '../history/archive.js';
import { archiveProblems } from '../history/verify.js';
import { archivedPartitions } from '../rangefile/partitions.js';
import { printable } from '../text-table.js';
import { type Command, type Invocation, print, printNote } from './command.js';

async function run({ dataDir, values, positionals }: Invocation): Promise<number> {
  const dir = releaseDir(positionals[0] ?? dataDir);
  const { manifest, file, others } = verifyWithReport(dir);
  const isOfInputs = await checkInputHash(dataDir, manifest);
  const ranges = others.entries().map(([{ name, table }, { count4, count6 }]) => ({ name, table, count4, count6 }));
  const result = {
    release: manifest.id,
    ipv4_ranges: file.count4,
    ipv6_ranges: file.count6,
    records: file.records.length,
    inputs_match: isOfInputs ?? null,
    ...Object.fromEntries(
      ranges.flatMap(({ table, count4, count6 }) => [
        [`ipv4_${table}_ranges`, count4],
        [`ipv6_${table}_ranges`, count6],
      ]),
    ),
  };
  const otherText = ranges.map(({ name, count4, count6 }) => `, ${count4} IPv4 and ${count6} IPv6 ranges of ${name}`);
  await print(
    values.json === true
      ? `${JSON.stringify(result)}\n`
      : `release ${result.release} is intact: ${result.ipv4_ranges} IPv4 and ${result.ipv6_ranges} IPv6 ranges${otherText.join('')}, mirror equal\n${INPUTS[String(isOfInputs)]!}\n`,
  );
  if (isOfInputs === false) {
    throw new AtlasError(
      'E_DAMAGED',
      `${dir}: the sources, licenses and attributions in its manifest do not give its id: the manifest was changed, or the reference tables of this ipatlas were; ${REBUILD}`,
    );
  }
  if (values.deep === true) await checkDeep(dataDir, dir);
  const problems =
    positionals.length > 0
      ? []
      : archivedPartitions().flatMap((partition) => archiveProblems(openArchive(dataDir, partition)));
  for (const problem of problems) printNote(`ipatlas: history: ${printable(problem)}\n`);
  if (problems.length > 0) throw new AtlasError('E_DAMAGED', `the history of ${dataDir} is damaged; ${RESTORE_DAYS}`);
  return EXIT.ok;
}

/** What the inputs in the manifest say of it, by the result of the check. Nothing here shows a manifest that somebody wrote anew. */
const INPUTS: Readonly<Record<string, string>> = {
  true: 'its id is that of the sources, licenses and attributions in its manifest; that nobody wrote all of these anew, only the signatures of a repository show',
  false: 'its id is not that of its manifest',
  undefined:
    'whether its id is that of the sources, licenses and attributions in its manifest cannot be told here: another version of ipatlas made it, or it was pulled, and the signatures of the repository covered it then',
};

/** Checks all rows of the stored sources. @throws AtlasError E_DAMAGED if the release differs from them */
async function checkDeep(dataDir: string, dir: string): Promise<void> {
  const { rows, disagreements, withoutText } = await checkStoredRelease(dataDir, dir);
  for (const name of withoutText) {
    printNote(`${printable(name)}: its addresses are not text, so ipaddr.js does not check its rows\n`);
  }
  if (disagreements.length > 0) {
    const list = disagreements.map((text) => `  - ${printable(text)}`).join('\n');
    throw new AtlasError('E_DAMAGED', `${dir} does not have what its sources say:\n${list}\n${REBUILD}`);
  }
  printNote(`ipaddr.js and a plain vote agree with the release at ${rows} rows of the sources\n`);
}

export const command: Command = {
  usage: ['verify [DIR]'],
  description: `Checks a release: the hash of each file against the manifest, the whole structure of the range file, that the SQLite
mirror has the same ranges and networks, the form of report.json, and that the id is that of the sources, licenses and attributions in
the manifest. A manifest that is not signed shows nothing of who wrote it: "ipatlas pull" checks signatures. DIR is the directory of a release, or a data directory; the default is the current
release, and then the history is checked, too. The exit code is 5 if anything is damaged.`,
  options: {
    deep: {
      help: 'compare the release with all rows of the stored sources, too, as ipaddr.js reads them and a plain vote decides; takes minutes',
    },
    json: { help: 'print the result as JSON' },
  },
  examples: {
    'ipatlas verify': 'checks the current release',
  },
  arguments: [0, 1],
  run,
};
