/** The program with all commands. */
import { EXIT, misuse } from '../errors.js';
import { print, unknownName, usageError } from './command.js';
import { PROGRAM_FLAGS, splitCommandLine } from './command-line.js';
import { helpPage, loadCommand, version } from './commands.js';
import { runCommand } from './run.js';

/** What no command's name has: a dot or a colon among hexadecimal digits. Also matches some text that is not an address. */
const LOOKS_LIKE_ADDRESS = /^[\da-f]*[.:][\da-f.:]*$/i;

/** What is typed in place of an address: a block of addresses, a name. */
const LOOKS_LIKE_BLOCK = /^([\da-f]*[.:][\da-f.:]*)\/\d+$/i;
const LOOKS_LIKE_NAME = /^[\w-]+(\.[\w-]+)*\.[a-z][\w-]*\.?$/i;

/** Refuses what looks like an address and is none, and says what to type. */
function refuseTarget(text: string): void {
  const [, address] = LOOKS_LIKE_BLOCK.exec(text) ?? [];
  if (address !== undefined)
    throw misuse(
      `${text} is a block of addresses; "ipatlas ${address}" looks up its address, "ipatlas history ${text}" its days`,
    );
  if (LOOKS_LIKE_NAME.test(text))
    throw misuse(
      `${text} is not an address, and ipatlas asks no name servers; "getent ahosts ${text}" prints the addresses of a host, "ipatlas enrich ${text}" reads a file`,
    );
}

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
  if (name !== undefined) refuseTarget(name);
  if (name !== undefined) return runCommand(name, (await loadCommand(name)).command, rest, { helpPage });
  if (['--version', '-v', '-V'].some((flag) => rest.includes(flag))) {
    await print(`${version()}\n`);
    return EXIT.ok;
  }
  if (rest.includes('--help') || rest.includes('-h')) {
    await print(await helpPage());
    return EXIT.ok;
  }
  if (rest[0]?.startsWith('--') === true && rest[0] !== '--data')
    throw usageError(
      await unknownName(
        'option',
        rest[0],
        Object.keys(PROGRAM_FLAGS).map((flag) => `--${flag}`),
      ),
    );
  if (rest.length > 0) throw usageError(`no command is given with ${JSON.stringify(rest[0])}`);
  process.stderr.write(await helpPage());
  return EXIT.usage;
}
