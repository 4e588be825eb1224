/** `ipatlas after`: runs the steps after a publication that are not done. */
import { runAfter } from '../../pipeline/index.js';
import { currentReleaseId } from '../database/release.js';
import { AtlasError, EXIT, misuse } from '../errors.js';
import { type Command, type Invocation, printNote, text } from './command.js';

const note = (line: string): void => printNote(`${line}\n`);

/** The flag of the commands that publish. */
export const AFTER_FLAG = {
  after: {
    value: 'FILE',
    help: 'run the steps in this JSON file after the release is published, in place of those of "after" in sources.json; the exit code is 7 if one fails',
  },
} satisfies Command['options'];

/** Runs the steps that `--after` or the sources file names, if they are not done for the current release. */
export async function runSteps({ dataDir, values }: Pick<Invocation, 'dataDir' | 'values'>): Promise<number> {
  const list = text(values, 'after');
  const sources = text(values, 'sources');
  const file =
    list !== undefined
      ? ({ path: list, kind: 'list' } as const)
      : sources !== undefined
        ? ({ path: sources, kind: 'sources' } as const)
        : undefined;
  return runAfter({ dataDir, file, note });
}

async function run(invocation: Invocation): Promise<number> {
  const { dataDir } = invocation;
  if (currentReleaseId(dataDir) === undefined) {
    throw new AtlasError('E_NO_DATABASE', `there is no release in ${dataDir}; make one with "ipatlas build"`);
  }
  const steps = await runSteps(invocation);
  if (steps === 0) throw misuse('there are no steps; name a file with --after, or a sources file that has "after"');
  note(`all ${steps} steps are done for release ${currentReleaseId(dataDir)}`);
  return EXIT.ok;
}

export const command: Command = {
  usage: ['after'],
  description: `Runs the steps after a publication that are not done for the current release: those that a failed step or a kill left. The
steps are those of the last time; --after or --sources names others. Each is an export, {"export":"nginx","output":"/etc/nginx/geo.conf"}, or a
command, {"run":["nginx","-s","reload"]}, which is skipped if the exports before it changed nothing. The exit code is 7 if a step fails.`,
  options: {
    after: { value: 'FILE', help: 'a JSON file with the list of steps' },
    sources: { value: 'FILE', help: 'a sources file, of which "after" has the steps' },
  },
  examples: {
    'ipatlas after': 'tries the failed step again, and those after it',
  },
  run,
};
