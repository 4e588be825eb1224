/** `ipatlas build`: runs the stages and publishes, once or on a schedule. */

import { join } from 'node:path';
import { type BuildOptions, build } from '../../pipeline/index.js';
import { currentReleaseId } from '../database/release.js';
import { openSeed } from '../database/seed.js';
import { misuse } from '../errors.js';
import { SCHEDULE_JITTER_S } from '../limits.js';
import { packageFile } from '../package-root.js';
import { AFTER_FLAG } from './after.js';
import { type Command, type Invocation, parseDay, text } from './command.js';
import { HISTORY_FLAGS, parseHistoryDays } from './history-flags.js';
import { METRICS_FLAG } from './metrics-file.js';
import { parseWait, WAIT_FLAG } from './number-flags.js';
import { note, runOnceOrScheduled } from './schedule.js';

/** Parses the ids of `--only`. */
function parseIds(value: string): string[] {
  const ids = value.split(',').map((id) => id.trim());
  if (!ids.includes('')) return ids;
  throw misuse(`--only ${JSON.stringify(value)} has an empty id; write ids separated by commas`);
}

async function run(invocation: Invocation): Promise<number> {
  const { dataDir, values } = invocation;
  const only = text(values, 'only');
  const options: BuildOptions = {
    dataDir,
    sourcesFile: text(values, 'sources') ?? packageFile(join('data', 'sources.json')),
    only: only === undefined ? [] : parseIds(only),
    asOf: parseDay(values, 'as-of'),
    offline: values.offline === true,
    force: values.force === true,
    historyDays: parseHistoryDays(values),
    waitMs: parseWait(values),
    seed: values.sources === undefined && only === undefined ? openSeed : undefined,
    note,
    brief: values.verbose !== true,
  };
  // Without a release there is nothing to serve, so the first build does not wait for the schedule.
  const atOnce = (): boolean => currentReleaseId(dataDir) === undefined;
  return runOnceOrScheduled({ what: 'build', atOnce }, invocation, () => build(options));
}

export const command: Command = {
  usage: ['build'],
  description: `Builds the database from its sources and publishes it in the data directory. If anything fails, the current release
stays current. A release that differs too much from the current one is refused, with exit code 3; the limits are
"gates" in sources.json.`,
  options: {
    sources: { value: 'FILE', help: 'what to build from (default: the sources.json that comes with ipatlas)' },
    only: { value: 'ID,…', help: 'only these of its sources' },
    'as-of': {
      value: 'YYYY-MM-DD',
      help: 'the date for EU membership and for the expiry of overrides (default: today, UTC)',
    },
    offline: { help: 'fetch nothing: use the cached copies, else those installed with ipatlas' },
    force: {
      help: 'build although nothing changed, and publish although gates refuse; the manifest then records who did so',
    },
    schedule: {
      value: 'CRON',
      help: 'keep running, and build at these times (local time), such as "17 4 * * *"; at once if there is no release. A build that fails because no server is reachable is retried with growing waits',
    },
    jitter: {
      value: 'SECONDS',
      help: `longest random delay of a scheduled build (default ${SCHEDULE_JITTER_S}, at most until the next time), so that servers are not all asked at once`,
    },
    verbose: { help: 'if no server is reached, say for each source where it was looked for' },
    ...AFTER_FLAG,
    ...METRICS_FLAG,
    ...HISTORY_FLAGS,
    ...WAIT_FLAG,
    json: { help: 'print the outcome as JSON, also that of a release that gates refuse' },
  },
  examples: {
    'ipatlas build': 'fetches the sources and publishes a release, if anything changed',
    'ipatlas build --offline': 'uses the older data that comes with ipatlas',
    'ipatlas build --schedule "17 4 * * *"': 'keeps running, and builds each night',
  },
  run,
};
