/** `ipatlas repo`: a signed repository of releases, which nodes pull from. */
import { join } from 'node:path';
import {
  addRelease,
  initRepository,
  type RepositoryOptions,
  type RepositorySummary,
  ROLES,
  type Role,
  refreshRepository,
  rotateKeys,
  type Threshold,
} from '../../pipeline/index.js';
import { namedRelease } from '../database/release.js';
import { EXIT, misuse } from '../errors.js';
import { REPOSITORY_RELEASES, SIGNATURE_DAYS } from '../limits.js';
import { type Action, type Command, factLines, type Invocation, type OptionValues, print, text } from './command.js';
import { parseWait, WAIT_FLAG } from './number-flags.js';
import { note } from './schedule.js';

/** Keys of a new repository: one of the three root keys may be lost or stolen without harm. */
const DEFAULT_THRESHOLDS: Readonly<Record<Role, Threshold>> = {
  root: { keys: 3, threshold: 2 },
  targets: { keys: 1, threshold: 1 },
  snapshot: { keys: 1, threshold: 1 },
  timestamp: { keys: 1, threshold: 1 },
};

/** Most keys of one role. */
const MAX_KEYS = 20;

/** Most days that a signature is valid: a hundred years. */
const MAX_DAYS = 36_500;

/** Returns the values of an option that may be repeated. */
function list(values: OptionValues, name: string): string[] {
  const value = values[name];
  return Array.isArray(value) ? value.map(String) : [];
}

function parseRole(name: string, flag: string): Role {
  const role = ROLES.find((each) => each === name);
  if (role !== undefined) return role;
  throw misuse(`--${flag}: ${JSON.stringify(name)} is not a role; write ${ROLES.join(', ')}`);
}

/** Parses `--threshold ROLE=T/N`. */
function parseThresholds(values: OptionValues): Record<Role, Threshold> {
  const thresholds = { ...DEFAULT_THRESHOLDS };
  for (const value of list(values, 'threshold')) {
    const [, name = '', needed = '', all = ''] = /^(\w+)=(\d{1,2})\/(\d{1,2})$/.exec(value) ?? [];
    const [threshold, keys] = [Number(needed), Number(all)];
    if (threshold < 1 || threshold > keys || keys > MAX_KEYS) {
      const example = `write ROLE=T/N, T of N keys, at most ${MAX_KEYS}, such as root=2/3`;
      throw misuse(`--threshold ${JSON.stringify(value)} is not valid; ${example}`);
    }
    thresholds[parseRole(name, 'threshold')] = { keys, threshold };
  }
  return thresholds;
}

/** Parses `--expires ROLE=DAYS`. */
function parseDays(values: OptionValues): Partial<Record<Role, number>> {
  const days: Partial<Record<Role, number>> = {};
  for (const value of list(values, 'expires')) {
    const [, name = '', count = ''] = /^(\w+)=(\d{1,5})$/.exec(value) ?? [];
    if (Number(count) < 1 || Number(count) > MAX_DAYS) {
      throw misuse(`--expires ${JSON.stringify(value)} is not valid; write ROLE=DAYS, such as timestamp=2`);
    }
    days[parseRole(name, 'expires')] = Number(count);
  }
  return days;
}

/** Parses `--role ROLE,…`. */
function parseRoles(values: OptionValues): Role[] {
  const given = text(values, 'role');
  if (given === undefined) throw misuse('name the roles that get new keys: --role timestamp,snapshot');
  const roles = given.split(',').map((name) => parseRole(name, 'role'));
  return ROLES.filter((role) => roles.includes(role));
}

interface RepoAction extends Action {
  run(options: RepositoryOptions, invocation: Invocation): RepositorySummary;
}

const COMMON_FLAGS = ['keys', 'expires', 'json', 'wait'];

const ACTIONS: Readonly<Record<string, RepoAction>> = {
  init: {
    usage: 'DIR',
    help: 'makes a repository, and the keys of its roles. Nodes need its root.json',
    arguments: [1, 1],
    flags: ['threshold', ...COMMON_FLAGS],
    run(options, { values }) {
      const summary = initRepository(options, parseThresholds(values));
      note(
        `the keys are in ${options.keyDirs[0]}; take those of root offline, and give ${options.dir}/root.json to the nodes`,
      );
      return summary;
    },
  },
  add: {
    usage: 'DIR [RELEASE]',
    help: `adds a release (default: the current one), and makes it the one that nodes follow; an older one as well. Adds the history, too. The newest ${REPOSITORY_RELEASES} are kept`,
    arguments: [1, 2],
    flags: ['labels', ...COMMON_FLAGS],
    run(options, { dataDir, values, positionals }) {
      const release = namedRelease(dataDir, positionals[1] ?? 'current');
      return addRelease(options, release, dataDir, values.labels === true);
    },
  },
  refresh: {
    usage: 'DIR',
    help: 'signs the timestamp again, and the other roles if they expire soon and their keys are at hand; to be run at least daily',
    arguments: [1, 1],
    flags: COMMON_FLAGS,
    run: refreshRepository,
  },
  rotate: {
    usage: 'DIR --role ROLE,…',
    help: 'replaces the keys of roles by new ones. Needs the keys of root, and of the roles from the first named one on',
    arguments: [1, 1],
    flags: ['role', ...COMMON_FLAGS],
    run(options, { values }) {
      const roles = parseRoles(values);
      const summary = rotateKeys(options, roles);
      note(`${roles.join(', ')}: the new keys are in ${options.keyDirs[0]}; the old ones are not valid any more`);
      return summary;
    },
  },
};

async function run(invocation: Invocation): Promise<number> {
  const { dataDir, values, positionals, action } = invocation;
  const [dir = ''] = positionals;
  if (dir === '') throw misuse('the directory of the repository is an empty text; name it');
  const keys = list(values, 'keys');
  const keyDirs = keys.length === 0 ? [join(dataDir, 'signing-keys')] : keys;
  const summary = ACTIONS[action!]!.run(
    { dir, keyDirs, days: parseDays(values), waitMs: parseWait(values), note },
    invocation,
  );
  if (values.json === true) await print(`${JSON.stringify(summary)}\n`);
  else {
    const roles = ROLES.map((role): [string, string] => {
      const { version, expires } = summary.roles[role];
      return [role, `version ${version}, valid until ${expires}`];
    });
    await print(factLines([['release', summary.release ?? 'none yet'], ...roles]));
  }
  return EXIT.ok;
}

export const command: Command = {
  usage: [],
  description: `Makes and keeps a signed repository of releases, from which "ipatlas pull" takes them. The metadata is that of TUF
(The Update Framework); any static web server can serve DIR. The roles are root, targets, snapshot and timestamp.
docs/distribution.md describes them, and what to do with the keys.`,
  actions: ACTIONS,
  options: {
    keys: {
      value: 'DIR',
      repeatable: true,
      help: 'a directory of private keys, repeatable; new keys are written to the first (default: signing-keys in the data directory)',
    },
    threshold: {
      value: 'ROLE=T/N',
      repeatable: true,
      help: 'the role has N keys, T of which must sign; repeatable (default: root=2/3, the others 1/1)',
    },
    expires: {
      value: 'ROLE=DAYS',
      repeatable: true,
      help: `how long new signatures are valid; repeatable (default: root=${SIGNATURE_DAYS.root}, targets=${SIGNATURE_DAYS.targets}, snapshot=${SIGNATURE_DAYS.snapshot}, timestamp=${SIGNATURE_DAYS.timestamp})`,
    },
    role: { value: 'ROLE,…', help: 'the roles that get new keys' },
    labels: { help: 'with the labels of the release, which otherwise do not leave this machine' },
    json: { help: 'print the release and the roles as JSON' },
    ...WAIT_FLAG,
  },
  examples: {
    'ipatlas repo init /srv/ipatlas --keys /mnt/keys': 'makes a repository and its keys',
    'ipatlas repo add /srv/ipatlas': 'signs the current release, and makes it the one that nodes install',
    'ipatlas repo refresh /srv/ipatlas': 'keeps the signatures valid; for a cron job',
    'ipatlas repo rotate /srv/ipatlas --role timestamp': 'replaces the key of a role',
  },
  run,
};
