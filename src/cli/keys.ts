/** `ipatlas keys`: the keys of the API. */
import { statSync } from 'node:fs';
import { createKey, type KeyRecord, listKeys, parseOrigin, revokeKey } from '../api/keys.js';
import { AtlasError, EXIT } from '../errors.js';
import { type Command, type Invocation, print, table, text } from './command.js';

function rateOf(value: string | undefined): number | null {
  if (value === undefined) return null;
  if (/^[1-9]\d{0,11}$/.test(value)) return Number(value);
  throw new AtlasError(
    'E_USAGE',
    `--rate ${JSON.stringify(value)} is not a number of addresses a minute, such as 60000`,
  );
}

/** Refuses a data directory that does not exist: a mistyped one would get a key that no server knows. */
function requireDirectory(dataDir: string): void {
  if (statSync(dataDir, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new AtlasError(
    'E_USAGE',
    `there is no directory ${dataDir}; create it with "ipatlas build", or name an existing one with --data`,
  );
}

async function create({ dataDir, values }: Invocation): Promise<void> {
  requireDirectory(dataDir);
  const origins =
    values.origin === undefined ? null : [values.origin].flat().map((origin) => parseOrigin(String(origin)));
  const { id, key } = createKey(dataDir, {
    label: text(values, 'label') ?? '',
    rate: rateOf(text(values, 'rate')),
    origins,
  });
  await print(values.json === true ? `${JSON.stringify({ id, key })}\n` : `${key}\n`);
  process.stderr.write(`ipatlas: this is key ${id}; it is shown only once and not stored\n`);
}

function rows(keys: KeyRecord[]): string[][] {
  return [
    ['ID', 'CREATED', 'REVOKED', 'SELF-ISSUED', 'ORIGINS', 'RATE', 'LABEL'],
    ...keys.map(({ id, created, revoked, rate, origins, self_issued, label }) => [
      id,
      created,
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
  else process.stderr.write(`ipatlas: no keys in ${dataDir}; create one with "ipatlas keys create"\n`);
}

function revoke({ dataDir, positionals }: Invocation): void {
  const { id, revoked } = revokeKey(dataDir, positionals[1]!);
  process.stderr.write(`ipatlas: key ${id} was revoked at ${revoked}\n`);
}

const ACTIONS: Record<string, { words: number; run(invocation: Invocation): void | Promise<void> }> = {
  create: { words: 1, run: create },
  list: { words: 1, run: list },
  revoke: { words: 2, run: revoke },
};

async function run(invocation: Invocation): Promise<number> {
  const { positionals } = invocation;
  const name = positionals[0]!;
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
  if (action === undefined || positionals.length !== action.words) {
    throw new AtlasError('E_USAGE', 'use "keys create", "keys list" or "keys revoke ID"; see "ipatlas keys --help"');
  }
  await action.run(invocation);
  return EXIT.ok;
}

export const command: Command = {
  help: `Usage: ipatlas keys create [--label TEXT] [--rate N] [--origin URL] | list | revoke ID

Manages the keys of the API. "create" prints a new key once, alone on stdout;
only its hash is stored. A revoked key is refused within a second, permanently.

  --label TEXT  the owner of the key, for the list
  --rate N      addresses a minute for this key (default: the server's --rate)
  --origin URL  the key works only in web pages of this origin, such as
                https://example.com; may be given several times
  --json        the list, or the new key and its id, as JSON
`,
  options: {
    label: { type: 'string' },
    rate: { type: 'string' },
    origin: { type: 'string', multiple: true },
    json: { type: 'boolean' },
  },
  arguments: [1, 2],
  run,
};
