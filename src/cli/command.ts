/** What a command of the command line is, and what every command may use. */
import { writeFileSync, writeSync } from 'node:fs';
import { isDate } from '../country/country.js';
import { type DataPlace, findDatabase, isSeed, manifestOfDatabase, seedText } from '../database/origin.js';
import { hasPartition, listsOfKinds, type Manifest } from '../database/release.js';
import { type AtlasError, EXIT, misuse, systemErrorCode, writeError } from '../errors.js';
import { KINDS, NETWORKS, type Partition } from '../rangefile/partitions.js';
import { CLEAR_LINE, isTerminal, PROGRESS, STANDARD_FD, STDIN_PATH } from '../standard-streams.js';
import { printable } from '../text-table.js';

export { table } from '../text-table.js';

/** A flag, as the parser, the help pages, the manual page and the completions need to know it. */
export interface Flag {
  /** What it does, for the help page. */
  help: string;
  /** The name of its value on the help page. Without one, the flag takes no value. FILE, DIR and ID are completed. */
  value?: string;
  /** One letter. */
  short?: string;
  /** Whether it may be given several times. */
  repeatable?: true;
  /** The values that it can have. Those with a description are listed on the help page. */
  choices?: readonly string[] | Readonly<Record<string, string>>;
  /** Whether it can have other values than its choices, which the command checks. */
  hasOthers?: true;
  /** What its values are mostly, for the completions: each of them, or several with commas between them if the value is a LIST. */
  common?: () => readonly string[];
}

/** Returns the values that a flag can have; undefined if any. */
export function choicesOf({ choices }: Flag): readonly string[] | undefined {
  return choices === undefined || Array.isArray(choices) ? choices : Object.keys(choices);
}

/** The flags of a command, by their names without dashes. */
export type FlagTable = Readonly<Record<string, Flag>>;
export type OptionValues = Record<string, string | boolean | (string | boolean)[] | undefined>;

/** A parsed command line. */
export interface Invocation extends DataPlace {
  values: OptionValues;
  /** The arguments that are not flags, without the action. */
  positionals: string[];
  /** The action, for a command that has actions. */
  action?: string | undefined;
}

/** One of several things that a command does, named by its first argument: `create` in `keys create`. */
export interface Action {
  /** The arguments and flags after the action's name, for the help page; an empty text if there are none. */
  usage: string;
  help: string;
  /** Fewest and most positional arguments after the action's name; by default none. */
  arguments?: readonly [least: number, most: number];
  /** The names of those flags of the command that go with it. */
  flags?: readonly string[];
}

export interface Command {
  /** Forms of the command line, without `ipatlas`. Those of a command with actions are made from them. */
  usage: readonly string[];
  /** What the command does: paragraphs with blank lines between them. */
  description: string;
  /** What the first argument can be, and what it means, if there are few. */
  words?: Readonly<Record<string, string>>;
  /** By name. The action without a name is what the command does if its first argument names no other. */
  actions?: Readonly<Record<string, Action>>;
  /** What the arguments are, for the completions; by default files, if there can be some. */
  operand?: 'release' | 'command' | 'none';
  options: FlagTable;
  /** Command lines and what they do, for the help page. */
  examples: Readonly<Record<string, string>>;
  /** Fewest and most positional arguments; by default none. Those of a command with actions are theirs. */
  arguments?: readonly [least: number, most: number];
  /** Whether the command can answer from the seed; it takes `--seed`. */
  answersFromSeed?: true;
  /** Whether the command has nothing to do with a data directory. */
  withoutData?: true;
  /** Whether a library may leave a connection open, such as one to a server that is silent: the process ends all the same. */
  mayLeaveConnections?: true;
  /** @returns the exit code; throws AtlasError */
  run(invocation: Invocation): Promise<number>;
}

/** A command with its name and summary. */
export interface NamedCommand {
  name: string;
  summary: string;
  command: Command;
}

/**
 * Returns the error for a wrong command line.
 *
 * @param command the command whose help explains it, if it is known
 */
export function usageError(message: string, command?: string): AtlasError {
  return misuse(`${message}; see "ipatlas ${command === undefined ? '' : `${command} `}--help"`);
}

/** Returns the message for an unknown name, with the most similar known one if there is one. */
export async function unknownName(kind: string, name: string, known: readonly string[]): Promise<string> {
  const { closestMatch } = await import('leven');
  // Up to a third of the characters may be wrong: "lokup" is meant to be "lookup", but "xyz" is nothing.
  const closest = closestMatch(name, [...known], { maxDistance: Math.ceil(name.length / 3) });
  return `unknown ${kind} ${JSON.stringify(name)}${closest === undefined ? '' : ` (did you mean ${JSON.stringify(closest)}?)`}`;
}

/** Returns a string option's value, or undefined if it is not given. */
export function text(values: OptionValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

/** Returns the names in a list with commas, which may be given in several parts. */
export function listOf(values: OptionValues, name: string): string[] | undefined {
  return (values[name] as string[] | undefined)?.flatMap((part) => part.split(','));
}

/** The flag of the language of names. */
export const LANG_FLAG = {
  value: 'TAG',
  help: 'the language of the names of countries, such as de or pt-BR: those of CLDR in this version of Node; English by default',
};

/**
 * Returns the day that a flag names, `YYYY-MM-DD`; undefined if it is not given.
 *
 * @throws AtlasError E_USAGE if it is not a day
 */
export function parseDay(values: OptionValues, flag: string): string | undefined {
  const day = text(values, flag);
  if (day === undefined || isDate(day)) return day;
  throw misuse(`--${flag} ${JSON.stringify(day)} is not a date; write it as 2026-01-31`);
}

/**
 * Returns the path of an output option.
 *
 * @returns undefined for standard output: the option is missing or `-`
 * @throws AtlasError E_USAGE if it is empty, as from an unset shell variable
 */
export function outputPath(values: OptionValues, name = 'output'): string | undefined {
  const path = text(values, name);
  if (path === '') throw misuse(`--${name} is empty; name a file, or - for standard output`);
  return path === '-' ? undefined : path;
}

/** How long to wait before a full pipe is written to again, in milliseconds. */
const FULL_PIPE_MS = 10;

/**
 * Writes to standard output. Ends the process quietly if the reader closes the pipe early, as in `ipatlas … | head -1`.
 * `process.stdout` would load the streams first, which takes 3 ms.
 */
export async function print(output: string | Uint8Array): Promise<void> {
  for (let rest = Buffer.from(output as string); rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(STANDARD_FD.output, rest));
    } catch (error) {
      if (systemErrorCode(error) === 'EPIPE') process.exit(EXIT.ok);
      if (systemErrorCode(error) !== 'EAGAIN') throw writeError('standard output', error);
      // Another process made the pipe non-blocking, and it is full.
      await new Promise((resolve) => setTimeout(resolve, FULL_PIPE_MS));
    }
  }
}

/**
 * Writes a short note to stderr, at most PIPE_BUF (4096) bytes. `process.stderr` would load the streams first, which takes 3 ms.
 */
export function printNote(note: string): void {
  const line = (PROGRESS.isShown ? CLEAR_LINE : '') + printable(note);
  try {
    writeFileSync(STANDARD_FD.error, line);
  } catch (error) {
    const code = systemErrorCode(error);
    // Nobody reads notes any more.
    if (code === 'EPIPE') return;
    // Another process made the pipe non-blocking, and it is full: nothing of so short a note was written (pipe(7)).
    if (code !== 'EAGAIN') throw error;
    process.stderr.write(line);
  }
}

/** Whether the command line asks for no notices. */
export const NOTES = { areQuiet: false };

/** Writes a note that `--quiet` leaves out: one that is neither an error nor what was asked for. */
export function printNotice(note: string): void {
  if (!NOTES.areQuiet) printNote(note);
}

/**
 * Returns the directory of the current release, or the path of the seed, and says so on stderr if it is the seed.
 *
 * @throws AtlasError E_NO_DATABASE if there is no release and the seed does not answer
 */
export function databaseOf(place: DataPlace): string {
  const database = findDatabase(place);
  if (isSeed(database)) printNotice(`ipatlas: ${seedText(manifestOfDatabase(database))}\n`);
  return database;
}

/**
 * Checks that standard input, `-`, is at most one of the inputs, since it can be read once. Says so if it is a terminal: a
 * command that waits for input looks like one that hangs.
 *
 * @throws AtlasError E_USAGE
 */
export function expectStdin(inputs: readonly string[]): void {
  const count = inputs.filter((path) => path === STDIN_PATH).length;
  if (count > 1) throw misuse('"-", standard input, is named twice; it can be read once');
  if (count === 0 || !isTerminal(STANDARD_FD.input) || !isTerminal(STANDARD_FD.error)) return;
  printNotice('ipatlas: reading from the terminal; Ctrl-D at the start of a line ends the input\n');
}

/** Returns facts as aligned lines, `name  value`. */
export function factLines(facts: [string, string | number][]): string {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts.map(([name, value]) => `${name.padEnd(width)}  ${printable(String(value))}\n`).join('');
}

/** Says which of the members asked for are null because of what a release does not have. */
export function noteMissing(manifest: Manifest, asked: readonly Partition[]): void {
  const { id, kinds } = manifest;
  if (asked.includes(NETWORKS) && !hasPartition(manifest, NETWORKS)) {
    printNotice(
      `ipatlas: release ${id} has no networks, so asn and as_name are null: no source says who announces the addresses\n`,
    );
  }
  if (!asked.includes(KINDS)) return;
  const missing = kinds?.missing ?? [];
  const why =
    missing.length === 0
      ? 'it has no lists of them'
      : `it was built without ${missing.map((list) => list.id).join(', ')}`;
  if (missing.length > 0 || listsOfKinds(manifest).length === 0) {
    printNotice(
      `ipatlas: release ${id} does not know all kinds of networks (${why}), so kind is null where no list says it\n`,
    );
  }
}

/**
 * Parses a list of AS numbers, such as `13335,AS15169`.
 *
 * @throws AtlasError E_USAGE for what is no AS number of 1 to 4294967295 (RFC 6793)
 */
export function parseAsns(list: string): number[] {
  return list.split(',').map((part) => {
    const number = /^(?:AS)?([1-9]\d{0,9})$/i.exec(part.trim())?.[1];
    if (number !== undefined && Number(number) <= 0xffff_ffff) return Number(number);
    throw misuse(`--asn has ${JSON.stringify(part)}; write AS numbers with commas between them, such as 13335,AS15169`);
  });
}
