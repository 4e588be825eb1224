/** `ipatlas recognize`: says what `enrich` would find in files. */
import { flagsOf, isDecided } from '../enrich/find-fields.js';
import { openSources } from '../enrich/input/inputs.js';
import { type Guessed, Inputs, MAX_HEAD_BYTES } from '../enrich/input/recognize.js';
import { EXIT } from '../errors.js';
import { type Command, expectStdin, type Invocation, print } from './command.js';
import { describe, enrichOptionsOf, guessOf, INPUT_FLAGS, NOTHING_FOUND, withLogs } from './records.js';

/** Returns what was recognized as an object for scripts. */
function objectOf(file: string, guessed: Guessed | undefined) {
  if (guessed === undefined) return { file, format: null, log: null, names: [], fields: [], others: [], command: null };
  const isLog = 'log' in guessed;
  const found = isLog ? { format: guessed.log.format, fields: guessed.log.fields ?? [], others: [] } : guessed;
  const fields = 'field' in found ? found.field : 'fields' in found ? found.fields : [];
  const flags = isLog ? `--log ${guessed.names[0]}` : flagsOf(guessed);
  return {
    file,
    format: found.format,
    log: isLog ? guessed.names[0] : null,
    names: isLog ? guessed.names : [],
    fields,
    others: found.others,
    command: `ipatlas enrich ${flags}`,
  };
}

async function recognize({ values, positionals: files }: Invocation): Promise<number> {
  expectStdin(files);
  let code: number = EXIT.ok;
  for (const file of files) {
    const guess = guessOf(values, () => {})!;
    const inputs = new Inputs(openSources([file]), enrichOptionsOf({ format: 'text' }), guess);
    guess.onLog = () => {};
    const head = Buffer.alloc(MAX_HEAD_BYTES);
    const length = (await (await inputs.open())?.read(head)) ?? 0;
    const needsNoFlag = head.toString('utf8', 0, length).split('\n').some(isDecided);
    const name = file === '-' ? 'stdin' : file;
    const guessed = inputs.log ?? (needsNoFlag ? DEFAULT : undefined);
    await inputs.close();
    if (guessed === undefined) code = EXIT.badInput;
    const said = guessed === undefined ? NOTHING_FOUND : describe(guessed);
    await print(values.json === true ? `${JSON.stringify(objectOf(name, guessed))}\n` : `${name}: ${said}\n`);
  }
  return code;
}

/** What needs no flag. */
const DEFAULT: Guessed = { format: 'jsonl', field: ['ip'], others: [], isUntrusted: false };

export const command: Command = {
  usage: ['recognize FILE… [--logs FILE] [--json]'],
  description: `Says what format each file has, and where its addresses are, as "ipatlas enrich" finds them in the first 64 KiB or 100 lines, with the
flags that say the same. "-" is stdin. The exit code is 4 if nothing is recognized in a file.`,
  options: {
    logs: INPUT_FLAGS.logs,
    json: {
      help: 'one JSON object for each file: file, format, log, names (of logs that are read in the same way), fields, others, command',
    },
  },
  examples: {
    'ipatlas recognize users.csv': 'the column of the address, and the flags that name it',
    'ipatlas recognize --json *.log': 'the same for scripts',
  },
  arguments: [1, Number.POSITIVE_INFINITY],
  run: (invocation) => withLogs(invocation, () => recognize(invocation)),
};
