/** `ipatlas recognize`: says what `enrich` would find in files. */
import { type Detection, describe, flagsOf } from '../enrich/detection.js';
import { findDefault } from '../enrich/find-fields.js';
import { openSources } from '../enrich/input/inputs.js';
import { Inputs, MAX_HEAD_BYTES } from '../enrich/input/recognize.js';
import { EXIT } from '../errors.js';
import { inputName } from '../standard-streams.js';
import { type Command, expectStdin, type Invocation, print } from './command.js';
import { enrichOptionsOf, INPUT_FLAGS, withLogs } from './records/flags.js';
import { NOTHING_FOUND, recognitionOf } from './records/recognition.js';

/** Returns what was recognized as an object for scripts. */
function objectOf(file: string, guessed: Detection | undefined) {
  const none = { file, format: null, log: null, names: [], fields: [], others: [], command: null };
  if (guessed === undefined) return none;
  const command = `ipatlas enrich ${flagsOf(guessed)}`;
  if ('log' in guessed) {
    const { names, log } = guessed;
    return { ...none, format: log.format, log: names[0], names, fields: log.fields ?? [], command };
  }
  return { ...none, format: guessed.format, fields: guessed.field ?? [], others: guessed.others, command };
}

async function recognize({ values, positionals: files }: Invocation): Promise<number> {
  expectStdin(files);
  let code: number = EXIT.ok;
  for (const file of files) {
    const guess = recognitionOf(values)!;
    const inputs = new Inputs(openSources([file]), enrichOptionsOf({ format: 'text' }), guess);
    guess.onLog = () => {};
    const head = Buffer.alloc(MAX_HEAD_BYTES);
    const length = (await (await inputs.open())?.read(head)) ?? 0;
    const name = inputName(file);
    const guessed = inputs.log ?? findDefault(head.toString('utf8', 0, length));
    await inputs.close();
    if (guessed === undefined) code = EXIT.badInput;
    const said = guessed === undefined ? NOTHING_FOUND : describe(guessed);
    await print(values.json === true ? `${JSON.stringify(objectOf(name, guessed))}\n` : `${name}: ${said}\n`);
  }
  return code;
}

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
