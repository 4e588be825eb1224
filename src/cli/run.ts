/** Runs a command of the command line: parses its arguments, and turns errors into a message and an exit code. */
import { debuglog, getSystemErrorMap } from 'node:util';
import { dataPlace } from '../database/origin.js';
import { AtlasError, ERROR_TABLE, EXIT, fileAdvice, isDiskError, messageOf } from '../errors.js';
import { isUnderNohup } from '../signals.js';
import { type Command, NOTES, print, printNote, printNotice, usageError } from './command.js';
import { parseCommandLine } from './command-line.js';

const debug = debuglog('ipatlas');

/** What a program loads only when it is needed. */
export interface RareDependencies {
  helpPage(name: string, action?: string): Promise<string>;
}

/** How long connections that a command left open may keep the process, in milliseconds. */
const LEFT_OPEN_MS = 1_000;

let mayHaveLeftConnections = false;

/** The data directory that the command line names, if it names one. */
let dataDir: string | undefined;

/**
 * Runs a command.
 *
 * @param args without the command's name
 * @returns the exit code
 * @throws AtlasError of the command line or of the command
 */
export async function runCommand(
  name: string,
  command: Command,
  args: string[],
  rare: RareDependencies,
): Promise<number> {
  const { values, action, positionals } = await parseCommandLine(name, command, args);
  if (values.help === true) {
    await print(await rare.helpPage(name, action));
    return EXIT.ok;
  }
  dataDir = values.data as string | undefined;
  const place = dataPlace(dataDir, values.seed === true);
  if (place.dataDir === '') throw usageError('--data (or IPATLAS_DATA) is empty', name);
  NOTES.areQuiet = values.quiet === true;
  if (place.ignored !== undefined && command.withoutData !== true)
    printNotice(`ipatlas: ./${place.ignored} has no files of ipatlas; the data directory is ${place.dataDir}\n`);
  mayHaveLeftConnections = command.mayLeaveConnections === true;
  return command.run({ ...place, values, action, positionals });
}

/**
 * What the environment can cause anywhere, such as a data directory that may not be read: an error of the user's system,
 * not a bug. ENOENT is left out because all files that may be missing are checked.
 */
const ENVIRONMENT_ERROR = /^(EACCES|EPERM|ENOTDIR|EISDIR|ELOOP|ENAMETOOLONG|EROFS|EMFILE|ENFILE)$/;

function environmentError(error: unknown): AtlasError | undefined {
  const { code = '', errno, path, syscall } = error as NodeJS.ErrnoException;
  const isFull = isDiskError(error);
  if (errno === undefined || !(isFull || ENVIRONMENT_ERROR.test(code))) return undefined;
  const [, reason] = getSystemErrorMap().get(errno) ?? [];
  const message = `${path ?? syscall} cannot be used: ${reason ?? code}; ${fileAdvice(error)}`;
  return new AtlasError(isFull ? 'E_DISK' : 'E_USAGE', message, { cause: error });
}

/** Returns a message in which the commands to type next are for the data directory of this command. */
function withDataDir(message: string): string {
  if (dataDir === undefined) return message;
  const advised = /"ipatlas (build|diff|history|info|keys|pull|releases|rollback|verify)\b(?![^"]*--(data|help))[^"]*/g;
  return message.replaceAll(advised, (command) => `${command} --data ${dataDir}`);
}

/** Prints an error in one line and returns the exit code. */
function report(thrown: unknown): number {
  const error = environmentError(thrown) ?? thrown;
  if (error instanceof AtlasError) {
    printNote(`ipatlas: ${withDataDir(error.message)}\n`);
    debug('%s', error.stack);
    return ERROR_TABLE[error.code].exit;
  }
  printNote(
    `ipatlas: internal error (bug): ${messageOf(error).replaceAll(/\s*\n\s*/g, ' ')}; please report it, with the output of the same command under NODE_DEBUG=ipatlas\n`,
  );
  debug('%s', error instanceof Error ? error.stack : error);
  return EXIT.fault;
}

/** Runs a program and returns its exit code. An error becomes one line on stderr. */
export async function exitCodeOf(program: () => Promise<number>): Promise<number> {
  try {
    return await program();
  } catch (error) {
    return report(error);
  }
}

/** Runs a program and sets the exit code of the process. */
export async function runProgram(program: () => Promise<number>): Promise<void> {
  // For an error outside the command's promise, unless the command has a handler of its own, as the server has.
  process.on('uncaughtException', (error) => {
    if (process.listenerCount('uncaughtException') === 1) process.exit(report(error));
  });
  if (isUnderNohup()) process.on('SIGHUP', () => {});
  process.exitCode = await exitCodeOf(program);
  if (mayHaveLeftConnections) setTimeout(() => process.exit(), LEFT_OPEN_MS).unref();
}

/**
 * Returns what start.cts calls: a function that runs one of some commands.
 *
 * @param commands by name
 */
export function programOf(commands: Readonly<Record<string, Command>>) {
  return (name: string, args: string[], rare: RareDependencies): Promise<void> =>
    runProgram(() => runCommand(name, commands[name]!, args, rare));
}
