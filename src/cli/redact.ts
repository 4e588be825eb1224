/** `ipatlas redact`: hides the addresses of records without looking them up, and makes the keys for that. */
import { writeFileSync } from 'node:fs';
import { enrich } from '../enrich/enrich.js';
import type { InputOptions } from '../enrich/options.js';
import { EVERY_RECORD } from '../enrich/query.js';
import { newRedactionKey } from '../enrich/redaction.js';
import { EXIT, misuse, systemErrorCode } from '../errors.js';
import { type Command, type Invocation, text } from './command.js';
import { INPUT_FLAGS, OUTPUT_FLAGS, POLICY_FLAGS, REDACT_FLAGS, withLogs } from './records/flags.js';
import { planWithoutDatabase } from './records/plan.js';
import { runPlan } from './records/run.js';

function makeKey({ values, positionals }: Invocation, path: string): number {
  const other = Object.keys(values).find((flag) => !['new-key', 'redact', 'data', 'seed'].includes(flag));
  if (other !== undefined || positionals.length > 0) {
    throw misuse('--new-key goes with --redact only; make the key first, then redact with --redact-key');
  }
  if (path === '') throw misuse('--new-key is empty; name a file');
  const key = newRedactionKey(text(values, 'redact'));
  try {
    writeFileSync(path, `${key}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
    throw misuse(`${path} exists, and a key is never replaced: what it has encrypted would be lost; name another file`);
  }
  return EXIT.ok;
}

function redact(invocation: Invocation): Promise<number> {
  const plan = { ...planWithoutDatabase(invocation), needsAddress: invocation.values['none-ok'] !== true };
  if (plan.options.redaction === undefined) throw misuse('choose how with --redact; see "ipatlas redact --help"');
  const withQuery = (options: InputOptions): InputOptions => ({ ...options, add: [], query: EVERY_RECORD });
  return runPlan(
    plan,
    (work) => enrich({ ...plan, ...work, options: withQuery(plan.options) }),
    async () => {},
  );
}

export const command: Command = {
  usage: ['redact --redact HOW [--reverse] [FILE…]', 'redact --new-key FILE [--redact ipcrypt-pfx]'],
  description: `Hides the addresses in the fields of records, or in text all, without looking them up; it needs no database. All other bytes stay.
"ipatlas enrich --redact" does the same while it adds the countries. docs/redact.md says what each way gives.`,
  options: {
    ...REDACT_FLAGS,
    reverse: { help: 'get the addresses back that ipcrypt or ipcrypt-pfx have encrypted with the same key' },
    'new-key': {
      value: 'FILE',
      help: 'make a key for ipcrypt, or with --redact ipcrypt-pfx for that, which only you can read',
    },
    ...INPUT_FLAGS,
    ...POLICY_FLAGS,
    ...OUTPUT_FLAGS,
  },
  examples: {
    'ipatlas redact --redact truncate access.log > public.log': 'cuts the address of each line to its network',
    'ipatlas redact --new-key log.key': 'makes a key',
    'ipatlas redact --redact ipcrypt --redact-key log.key users.csv': 'encrypts the addresses of a table',
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  withoutData: true,
  run(invocation) {
    const path = text(invocation.values, 'new-key');
    return path === undefined
      ? withLogs(invocation, () => redact(invocation))
      : Promise.resolve(makeKey(invocation, path));
  },
};
