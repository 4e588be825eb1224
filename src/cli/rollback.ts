/** `ipatlas rollback`: an earlier release is current again. */
import { rollBack } from '../../pipeline/index.js';
import { EXIT } from '../errors.js';
import { type Command, type Invocation, print } from './command.js';

async function run({ dataDir, values, positionals }: Invocation): Promise<number> {
  const { from, to } = rollBack(dataDir, positionals[0]);
  if (values.json === true) await print(`${JSON.stringify({ from: from ?? null, to })}\n`);
  else if (from === to) process.stderr.write(`release ${to} is current already\n`);
  else {
    process.stderr.write(`release ${to} is current now, no longer ${from ?? 'none'}\n`);
    if (from !== undefined)
      process.stderr.write(
        `A build of the same sources as ${from} is refused from now on, until they change or it is given --force.\n`,
      );
  }
  return EXIT.ok;
}

export const command: Command = {
  help: `Usage: ipatlas rollback [ID]

Makes an earlier release current again, in one step: the one made before the current one, or the one named. It is checked
whole first; exit code 5 where it is damaged or not there. A running server follows by itself.

The release that was left is remembered: an unattended build whose sources are still the same does not publish it again
(exit code 3), until the sources change, the build is given --force, or you roll back to that release by its id.

  --json      the two releases as JSON: {"from":…,"to":…}
  --data DIR  the data directory (or IPATLAS_DATA; default data)
`,
  options: { json: { type: 'boolean' } },
  arguments: [0, 1],
  run,
};
