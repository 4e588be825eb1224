/** `ipatlas build`: runs the stages and publishes. */
import { join } from 'node:path';
import { build } from '../../pipeline/build.js';
import { isDate } from '../country/date.js';
import { AtlasError, EXIT } from '../errors.js';
import { packageFile } from '../package-root.js';
import { type Command, type Invocation, print, text } from './command.js';

function parseDate(value: string): string {
  if (isDate(value)) return value;
  throw new AtlasError('E_USAGE', `--as-of ${JSON.stringify(value)} is no date; write it as 2026-01-31`);
}

async function run({ dataDir, values }: Invocation): Promise<number> {
  const only = text(values, 'only');
  const asOf = text(values, 'as-of');
  const result = await build({
    dataDir,
    sourcesFile: text(values, 'sources') ?? packageFile(join('data', 'sources.json')),
    only: only === undefined ? [] : only.split(',').filter((id) => id !== ''),
    asOf: asOf === undefined ? undefined : parseDate(asOf),
    offline: values.offline === true,
    note: (line) => {
      process.stderr.write(`${line}\n`);
    },
  });
  if (values.json === true) await print(`${JSON.stringify({ release: result.id, outcome: result.outcome })}\n`);
  else if (result.outcome === 'published') process.stderr.write(`published release ${result.id} in ${dataDir}\n`);
  return EXIT.ok;
}

export const command: Command = {
  help: `Usage: ipatlas build

Builds the database from its sources and publishes it in the data directory. Whatever goes wrong, the release that is
current stays so.

  --sources FILE      what to build from (default: the sources.json that comes with ipatlas)
  --only ID,…         only these of its sources
  --as-of YYYY-MM-DD  the date for EU membership and for the expiry of overrides (default: today, UTC)
  --offline           fetch nothing: use the cached copies, else those installed with ipatlas
  --json              print the outcome as JSON
  --data DIR          the data directory (or IPATLAS_DATA; default data)
`,
  options: {
    sources: { type: 'string' },
    only: { type: 'string' },
    'as-of': { type: 'string' },
    offline: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  arguments: [0, 0],
  run,
};
