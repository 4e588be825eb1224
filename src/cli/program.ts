/** The program with all commands. */
import { EXIT } from '../errors.js';
import { print, usageError } from './command.js';
import { splitCommandLine } from './command-line.js';
import { helpPage, loadCommand, version } from './commands.js';
import { runCommand } from './run.js';

/** What no command's name has: a dot or a colon among hexadecimal digits. Also matches some text that is not an address. */
const LOOKS_LIKE_ADDRESS = /^[\da-f]*[.:][\da-f.:]*$/i;

/**
 * Runs a command line.
 *
 * @param args without the program's name
 * @returns the exit code
 * @throws AtlasError of the command line or of the command
 */
export async function program(args: string[]): Promise<number> {
  const { name, rest } = splitCommandLine(args);
  if (name !== undefined && LOOKS_LIKE_ADDRESS.test(name)) return program(['lookup', ...args]);
  if (name !== undefined) return runCommand(name, (await loadCommand(name)).command, rest, { helpPage });
  if (rest.includes('--version') || rest.includes('-v')) {
    await print(`${version()}\n`);
    return EXIT.ok;
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    await print(await helpPage());
    return EXIT.ok;
  }
  if (rest.length > 0) throw usageError(`no command is given with ${JSON.stringify(rest[0])}`);
  process.stderr.write(await helpPage());
  return EXIT.usage;
}
