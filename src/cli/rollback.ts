/** `ipatlas rollback`: makes an earlier release current again. */
import { rollBack } from '../../pipeline/index.js';
import { fullId, releaseIds } from '../database/release.js';
import { EXIT } from '../errors.js';
import { AFTER_FLAG, runSteps } from './after.js';
import { type Command, type Invocation, print, printNote } from './command.js';

async function run({ dataDir, values, positionals }: Invocation): Promise<number> {
  const { from, to, isIncomplete } = rollBack(dataDir, positionals[0] && fullId(releaseIds(dataDir), positionals[0]));
  if (values.json === true) await print(`${JSON.stringify({ from: from ?? null, to })}\n`);
  else if (from === to) printNote(`release ${to} is already current\n`);
  else {
    printNote(`release ${to} is now current instead of ${from ?? 'none'}\n`);
    if (isIncomplete) {
      printNote(
        'The disk is full, so that this is not recorded: the next build may publish the same data again. Free space first.\n',
      );
    } else if (from !== undefined)
      printNote(`Builds from the same sources as ${from} are refused until the sources change or --force is given.\n`);
  }
  await runSteps({ dataDir, values });
  return EXIT.ok;
}

export const command: Command = {
  usage: ['rollback [ID]'],
  description: `Makes an earlier release current again, in one step: the one made before the current one, or the one named. The
release is verified first; the exit code is 5 if it is damaged or missing. A running server switches by itself.

The release that was current is recorded: a build from the same sources does not publish it again (exit code 3) until
the sources change, --force is given, or you roll back to that release by its id.`,
  options: {
    ...AFTER_FLAG,
    json: { help: 'print the two releases as JSON: {"from":…,"to":…}' },
  },
  examples: {
    'ipatlas rollback': 'makes the release before the current one current again',
    'ipatlas rollback 2026-01-01-0123456789ab': 'makes this release current again',
  },
  operand: 'release',
  arguments: [0, 1],
  run,
};
