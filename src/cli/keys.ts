/** `ipatlas keys`: the keys of the API. */
import { readFileSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createKey,
  exportKeys,
  importKeys,
  type KeyRecord,
  listKeys,
  parseOrigin,
  revokeKey,
} from '../api/keys/key-store.js';
import { AtlasError, EXIT, misuse } from '../errors.js';
import { makeFolder, writeFile } from '../files.js';
import { RETRY_MAX_MS } from '../limits.js';
import { watchStopSignals } from '../signals.js';
import { counted } from '../text-table.js';
import { waitAfter } from '../waits.js';
import {
  type Action,
  type Command,
  type Invocation,
  type OptionValues,
  print,
  printNote,
  table,
  text,
} from './command.js';
import { MAX_RATE, wholeNumber } from './number-flags.js';

/** Refuses a data directory that does not exist: a mistyped one would get a key that no server knows. */
function requireDirectory(dataDir: string): void {
  if (statSync(dataDir, { throwIfNoEntry: false })?.isDirectory()) return;
  throw misuse(
    `there is no directory ${dataDir}; create it with "ipatlas build --data ${dataDir}", or name an existing one with --data`,
  );
}

async function create({ dataDir, seed, values }: Invocation): Promise<void> {
  // The default one may not exist before the first build.
  if (seed === 'without-release') makeFolder(dataDir);
  requireDirectory(dataDir);
  const origins =
    values.origin === undefined ? null : [values.origin].flat().map((origin) => parseOrigin(String(origin)));
  const { id, key } = createKey(dataDir, {
    label: text(values, 'label') ?? '',
    rate: wholeNumber(values, 'rate', 1, MAX_RATE) ?? null,
    origins,
  });
  await print(values.json === true ? `${JSON.stringify({ id, key })}\n` : `${key}\n`);
  printNote(`ipatlas: this is key ${id}; it is shown only once and not stored\n`);
}

function rows(keys: KeyRecord[]): string[][] {
  return [
    ['ID', 'CREATED', 'EXPIRES', 'REVOKED', 'SELF-ISSUED', 'ORIGINS', 'RATE', 'LABEL'],
    ...keys.map(({ id, created, expires, revoked, rate, origins, self_issued, label }) => [
      id,
      created,
      expires ?? '-',
      revoked ?? '-',
      self_issued ? 'yes' : '-',
      origins?.join(',') ?? '-',
      rate === null ? '-' : String(rate),
      label,
    ]),
  ];
}

async function list({ dataDir, values }: Invocation): Promise<void> {
  const keys = listKeys(dataDir);
  if (values.json === true) await print(`${JSON.stringify(keys)}\n`);
  else if (keys.length > 0) await print(table(rows(keys)));
  else printNote(`ipatlas: no keys in ${dataDir}; create one with "ipatlas keys create --data ${dataDir}"\n`);
}

function revoke({ dataDir, positionals }: Invocation): void {
  const { id, revoked } = revokeKey(dataDir, positionals[0]!);
  printNote(`ipatlas: key ${id} was revoked at ${revoked}\n`);
}

/** Runs once, or again and again until SIGTERM or Ctrl-C if `--every` is given. Then a failure does not end it. */
async function onceOrEvery(values: OptionValues, work: () => Promise<void>): Promise<void> {
  const every = wholeNumber(values, 'every', 1, 999_999);
  if (every === undefined) return work();
  const { signal } = watchStopSignals();
  let lastProblem = '';
  for (let failures = 0; !signal.aborted; ) {
    try {
      await work();
      failures = 0;
      lastProblem = '';
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error;
      failures++;
      if (error.message !== lastProblem) printNote(`ipatlas: ${error.code}: ${error.message}\n`);
      lastProblem = error.message;
    }
    const wait = waitAfter(Math.max(1, failures), 1000 * every, Math.max(1000 * every, RETRY_MAX_MS));
    await sleep(wait, undefined, { signal }).catch(() => {});
  }
}

async function exportFile({ dataDir, positionals, values }: Invocation): Promise<void> {
  requireDirectory(dataDir);
  const path = positionals[0]!;
  const { writeKeyFile } = await import('../api/keys/key-file.js');
  await onceOrEvery(values, async () => {
    const keys = exportKeys(dataDir);
    const bytes = writeKeyFile(keys);
    // The date of the file stays if the keys do. What is not a file, such as a device or a pipe, is only written.
    if (statSync(path, { throwIfNoEntry: false })?.isFile() && readFileSync(path).equals(bytes)) return;
    writeFile(path, [bytes]);
    printNote(`ipatlas: ${path}: ${counted(keys.length, 'key')}\n`);
  });
}

async function importFile({ dataDir, positionals, values }: Invocation): Promise<void> {
  requireDirectory(dataDir);
  const { fetchKeyFile, readKeyFile } = await import('../api/keys/key-file.js');
  let etag = '';
  await onceOrEvery(values, async () => {
    const fetched = await fetchKeyFile(positionals[0]!, etag);
    if (fetched === undefined) return;
    const done = importKeys(dataDir, readKeyFile(fetched.bytes), values.replace === true);
    etag = fetched.etag;
    if (values.every !== undefined && done.changed + done.removed === 0) return;
    printNote(`ipatlas: ${counted(done.keys, 'key')}: ${done.changed} added or changed, ${done.removed} removed\n`);
  });
}

interface KeysAction extends Action {
  run(invocation: Invocation): void | Promise<void>;
}

const ACTIONS: Readonly<Record<string, KeysAction>> = {
  create: {
    usage: '[--label TEXT] [--rate N] [--origin URL]',
    help: 'prints a new key once, alone on stdout; only its hash is stored',
    flags: ['label', 'rate', 'origin', 'json'],
    run: create,
  },
  list: { usage: '', help: 'lists the keys, without their secrets', flags: ['json'], run: list },
  revoke: {
    usage: 'ID',
    help: 'revokes a key: it is refused within a second, permanently',
    arguments: [1, 1],
    run: revoke,
  },
  export: {
    usage: 'FILE',
    help: 'writes the hashes of the valid keys to a file',
    arguments: [1, 1],
    flags: ['every'],
    run: exportFile,
  },
  import: {
    usage: 'FILE|URL',
    help: 'makes the keys of such a file, or of one at a URL of https, those of this data directory',
    arguments: [1, 1],
    flags: ['replace', 'every'],
    run: importFile,
  },
};

async function run(invocation: Invocation): Promise<number> {
  await ACTIONS[invocation.action!]!.run(invocation);
  return EXIT.ok;
}

export const command: Command = {
  usage: [],
  description: 'Manages the keys of the API.',
  actions: ACTIONS,
  options: {
    label: { value: 'TEXT', help: 'the owner of the key, for the list' },
    rate: { value: 'N', help: `addresses a minute for this key (default: the server's --rate)` },
    origin: {
      value: 'URL',
      repeatable: true,
      help: 'the key works only in web pages of this origin, such as https://example.com; may be given several times',
    },
    replace: { help: 'also remove the keys that were created here' },
    every: { value: 'SECONDS', help: 'keep running, and repeat if something changed' },
    json: { help: 'the list, or the new key and its id, as JSON' },
  },
  examples: {
    'ipatlas keys create --label "web team" --rate 60000': 'prints a new key',
    'ipatlas keys list': 'the keys, without their secrets',
    'ipatlas keys revoke 5a98c634': 'revokes the key with this id',
    'ipatlas keys export keys.json': 'writes the hashes of the keys to a file',
    'ipatlas keys import https://a.example/keys --every 20': 'keeps the keys of another server up to date',
  },
  operand: 'none',
  run,
};
