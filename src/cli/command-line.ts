/** Parses the command line of one command. */
import { parseArgs } from 'node:util';
import { type Command, type OptionTable, type OptionValues, unknownName, usageError } from './command.js';

/** The options that commands have besides their own. */
function commonOptions({ withoutData, needsDatabase }: Command): OptionTable {
  return {
    help: { type: 'boolean', short: 'h' },
    ...(withoutData === true ? {} : { data: { type: 'string' } }),
    ...(needsDatabase === true ? { yes: { type: 'boolean' } } : {}),
  };
}

/** Returns all options that a command takes. */
export function allOptions(command: Command): OptionTable {
  return { ...command.options, ...commonOptions(command) };
}

/**
 * Parses the arguments of a command. Node's own strict mode is not used, because its messages name neither the command nor
 * a similar option.
 *
 * @param name of the command, for messages
 * @throws AtlasError E_USAGE
 */
export async function parseCommandLine(name: string, command: Command, args: string[]) {
  const options = allOptions(command);
  const { values, positionals, tokens } = parseArgs({
    args,
    options,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { rawName, value, inlineValue } = token;
    const option = Object.hasOwn(options, token.name) ? options[token.name]! : undefined;
    if (option === undefined) {
      const known = Object.keys(options).map((flag) => `--${flag}`);
      throw usageError(await unknownName('option', rawName, known), name);
    }
    if (option.type === 'boolean') {
      if (value !== undefined) throw usageError(`${rawName} takes no value`, name);
    } else if (value === undefined) {
      throw usageError(`${rawName} needs a value`, name);
    } else if (!inlineValue && value.startsWith('-') && value !== '-') {
      throw usageError(
        `${rawName} needs a value; write ${rawName}=${value} if ${JSON.stringify(value)} is the value`,
        name,
      );
    }
  }
  return { values: values as OptionValues, positionals };
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
