/** `ipatlas pull`: installs the current release of a signed repository, once or on a schedule. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PullOptions, pull } from '../../pipeline/index.js';
import { misuse, orThrow } from '../errors.js';
import { SCHEDULE_JITTER_S } from '../limits.js';
import { packageFile } from '../package-root.js';
import { PERCENT_ADVICE, parseUrl, withoutCredentials } from '../url.js';
import { AFTER_FLAG } from './after.js';
import { type Command, type Invocation, text, usageError } from './command.js';
import { HISTORY_FLAGS, parseHistoryDays } from './history-flags.js';
import { METRICS_FLAG } from './metrics-file.js';
import { parseWait, WAIT_FLAG } from './number-flags.js';
import { note, runOnceOrScheduled } from './schedule.js';

/** Checks the address of a repository. Plain HTTP is allowed, because everything that is downloaded is signed. */
function parseRepositoryUrl(value: string): string {
  const url = parseUrl(value);
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url !== undefined && isHttp && url.search === '' && url.hash === '') return value;
  const shown = JSON.stringify(withoutCredentials(value));
  throw misuse(
    `${shown} is not the address of a repository; write http:// or https://, and no query; ${PERCENT_ADVICE}`,
  );
}

function readRoot(path: string | undefined): Buffer {
  if (path === undefined) {
    throw usageError(
      '--root is missing; name the root metadata that you got from the operator of the repository',
      'pull',
    );
  }
  const advice = 'get it from the operator of the repository';
  return orThrow(() => readFileSync(path), 'E_CONFIG', `--root ${path} cannot be read`, advice);
}

async function run(invocation: Invocation): Promise<number> {
  const { dataDir, values, positionals } = invocation;
  const options: PullOptions = {
    dataDir,
    url: parseRepositoryUrl(positionals[0]!),
    root: readRoot(text(values, 'root')),
    sourcesFile: text(values, 'sources') ?? packageFile(join('data', 'sources.json')),
    force: values.force === true,
    historyDays: parseHistoryDays(values),
    waitMs: parseWait(values),
    note,
  };
  return runOnceOrScheduled({ what: 'pull', atOnce: () => true }, invocation, () => pull(options));
}

export const command: Command = {
  usage: ['pull URL --root FILE'],
  description: `Makes the release that a signed repository offers the current one; "ipatlas repo" makes such a repository. Signatures,
versions, expiry and hashes are checked by TUF (The Update Framework). The release is verified and compared with the
current one as after a build: the exit code is 3 if a gate refuses it. It is 6 if the repository cannot be fetched, or
its metadata is wrong, older than what was seen before, or expired. The current release then stays. An interrupted
download is continued by the next pull. A running server switches by itself.`,
  options: {
    root: {
      value: 'FILE',
      help: 'root metadata (root.json) that you got from the operator of the repository in a way that you trust',
    },
    sources: {
      value: 'FILE',
      help: 'where "gates", "overrides" and "keepReleases" are read from; its sources are not used (default: the sources.json that comes with ipatlas)',
    },
    force: {
      help: 'pull although nothing changed, and publish although gates refuse; the manifest then records who did so',
    },
    schedule: { value: 'CRON', help: 'keep running; pull now, and at these times (local time), such as "*/5 * * * *"' },
    jitter: {
      value: 'SECONDS',
      help: `longest random delay of a scheduled pull (default ${SCHEDULE_JITTER_S}, at most until the next time), so that nodes do not all ask at once`,
    },
    ...AFTER_FLAG,
    ...METRICS_FLAG,
    ...HISTORY_FLAGS,
    ...WAIT_FLAG,
    json: { help: 'print the outcome as JSON, also that of a release that gates refuse' },
  },
  examples: {
    'ipatlas pull https://a.example/db --root root.json': 'installs the newest release',
    'ipatlas pull https://a.example/db --root root.json --schedule "*/5 * * * *"':
      'keeps running, and installs each new release',
  },
  operand: 'none',
  arguments: [1, 1],
  run,
};
