/** Parses the command line of one command. */
import { parseArgs } from 'node:util';
import { DATA_DIR_HELP } from '../database/origin.js';
import { misuse } from '../errors.js';
import { devicePath } from '../system.js';
import { expandWildcards } from '../wildcards.js';
import { type Command, choicesOf, type FlagTable, type OptionValues, unknownName, usageError } from './command.js';

const DATA_FLAG = { value: 'DIR', help: DATA_DIR_HELP };
const SEED_FLAG = { help: 'answer from the database that comes with ipatlas, the seed' };
const HELP_FLAG = { short: 'h', help: 'show this page' };

/** The flags of `ipatlas` itself. */
export const PROGRAM_FLAGS: FlagTable = {
  data: DATA_FLAG,
  help: { short: 'h', help: "show this page, or a command's" },
  version: { short: 'v', help: 'print the version' },
};

/** Returns all flags that a command takes, in the order of its help page. */
export function allFlags({ options, withoutData, answersFromSeed }: Command): FlagTable {
  return {
    ...options,
    ...(withoutData === true ? {} : { data: DATA_FLAG }),
    ...(answersFromSeed === true ? { seed: SEED_FLAG } : {}),
    help: HELP_FLAG,
  };
}

type ParseOptions = Record<string, { type: 'string' | 'boolean'; multiple: boolean; short?: string }>;

function parseOptions(flags: FlagTable): ParseOptions {
  const options: ParseOptions = {};
  for (const [name, { value, short, repeatable = false }] of Object.entries(flags)) {
    options[name] = { type: value === undefined ? 'boolean' : 'string', multiple: repeatable };
    if (short !== undefined) options[name].short = short;
  }
  return options;
}

/**
 * Parses the arguments of a command. Node's own strict mode is not used, because its messages name neither the command nor
 * a similar option.
 *
 * @param name of the command, for messages
 * @throws AtlasError E_USAGE
 */
export async function parseCommandLine(name: string, command: Command, args: string[]) {
  const flags = allFlags(command);
  const { values, positionals, tokens } = parseArgs({
    args,
    options: parseOptions(flags),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const operands = expandWildcards(positionals);
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { rawName, value, inlineValue } = token;
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name]! : undefined;
    if (flag === undefined) {
      const known = Object.keys(flags).map((known) => `--${known}`);
      throw usageError(await unknownName('option', rawName, known), name);
    }
    if (flag.value === undefined) {
      if (value !== undefined) throw usageError(`${rawName} takes no value`, name);
    } else if (value === undefined) {
      throw usageError(`${rawName} needs a value`, name);
    } else if (!inlineValue && value.startsWith('-') && value !== '-') {
      throw usageError(
        `${rawName} needs a value; write ${rawName}=${value} if ${JSON.stringify(value)} is the value`,
        name,
      );
    } else if (flag.hasOthers !== true && choicesOf(flag)?.includes(value) === false) {
      throw misuse(`--${token.name} is ${JSON.stringify(value)}; it can be ${choicesOf(flag)!.join(', ')}`);
    }
  }
  const named = values as OptionValues;
  for (const [flag, value] of Object.entries(named)) {
    if (flags[flag]?.value === 'FILE' && typeof value === 'string') named[flag] = devicePath(value);
  }
  return { values: named, ...splitAction(name, command, named, operands) };
}

/** Takes the action from the arguments, if the command has actions. Checks the number of arguments and the action's flags. */
function splitAction(name: string, command: Command, values: OptionValues, positionals: string[]) {
  const { actions } = command;
  if (values.help === true) {
    const isAction =
      actions !== undefined && (!Object.hasOwn(actions, '') || Object.hasOwn(actions, positionals[0] ?? ''));
    return { positionals, ...(isAction && { action: positionals[0] }) };
  }
  if (actions === undefined) {
    checkCount(name, command.arguments, positionals, command.usage[0]!);
    return { positionals };
  }
  const [first = ''] = positionals;
  const word = Object.hasOwn(actions, first) ? first : '';
  const action = Object.hasOwn(actions, word) ? actions[word]! : undefined;
  if (action === undefined) {
    const forms = Object.keys(actions).map((each) => `"${name} ${each}"`);
    throw usageError(`use ${forms.slice(0, -1).join(', ')} or ${forms.at(-1)}`, name);
  }
  const form = `${name} ${word}`.trim();
  const rest = word === '' ? positionals : positionals.slice(1);
  checkCount(form, action.arguments, rest, `${form} ${action.usage}`);
  for (const flag of Object.keys(command.options)) {
    if (values[flag] !== undefined && !action.flags?.includes(flag)) {
      throw usageError(`--${flag} does not go with "${form}"`, form);
    }
  }
  return { action: word, positionals: rest };
}

function checkCount(name: string, counts: Command['arguments'], positionals: string[], usage: string): void {
  const [least, most] = counts ?? [0, 0];
  if (positionals.length < least) throw usageError(`an argument is missing; write "ipatlas ${usage}"`, name);
  if (positionals.length > most) throw usageError(`unexpected argument ${JSON.stringify(positionals[most])}`, name);
}

/**
 * Finds the command in `[options] COMMAND …`: the common options may precede it.
 *
 * @returns the command's name, if there is one, and all other arguments
 */
export function splitCommandLine(args: string[]): { name: string | undefined; rest: string[] } {
  for (let i = 0; i < args.length; i++) {
    const argument = args[i]!;
    if (argument === '--data') i++;
    else if (!argument.startsWith('-')) return { name: argument, rest: [...args.slice(0, i), ...args.slice(i + 1)] };
  }
  return { name: undefined, rest: args };
}
