/** What a command of the command line is, and what every command may use. */
import { writeFileSync } from 'node:fs';
import type { ParseArgsConfig } from 'node:util';
import { AtlasError, systemErrorCode } from '../errors.js';
import { STANDARD_FD } from '../standard-streams.js';

export { table } from '../text-table.js';

export type OptionTable = NonNullable<ParseArgsConfig['options']>;
export type OptionValues = Record<string, string | boolean | (string | boolean)[] | undefined>;

/** A parsed command line. */
export interface Invocation {
  /** The data directory, from `--data`, `IPATLAS_DATA` or the default. */
  dataDir: string;
  values: OptionValues;
  positionals: string[];
}

export interface Command {
  /**
   * What the help page, the manual page and the completions say: usage, description, and each flag, in the layout that
   * help.ts describes. The options that all commands have are added to it.
   */
  help: string;
  options: OptionTable;
  /** Fewest and most positional arguments. */
  arguments: [least: number, most: number];
  /** For the completions: the values of a flag, by its name, and those of the first argument, by an empty name. */
  choices?: Readonly<Record<string, readonly string[]>>;
  /** Whether the command needs a release. If there is none, a first build is offered, and `--yes` accepts it. */
  needsDatabase?: true;
  /** Whether the command has nothing to do with a data directory. */
  withoutData?: true;
  /**
   * Whether the command writes to file descriptor 1 and handles EPIPE itself. Then process.stdout must not be used: it makes
   * a pipe non-blocking, for all processes that share it.
   */
  writesToDescriptor?: true;
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
  return new AtlasError('E_USAGE', `${message}; see "ipatlas ${command === undefined ? '' : `${command} `}--help"`);
}

/** Returns the message for an unknown name, with the most similar known one if there is one. */
export async function unknownName(kind: string, name: string, known: readonly string[]): Promise<string> {
  const { closestMatch } = await import('leven');
  // Up to a third of the characters may be wrong: "lokup" is meant to be "lookup", but "xyz" is nothing.
  const closest = closestMatch(name, [...known], { maxDistance: Math.ceil(name.length / 3) });
  return `unknown ${kind} ${JSON.stringify(name)}${closest === undefined ? '' : `; did you mean ${JSON.stringify(closest)}?`}`;
}

/** Returns a string option's value, or undefined if it is not given. */
export function text(values: OptionValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

/**
 * Returns the path of an output option.
 *
 * @returns undefined for standard output: the option is missing or `-`
 * @throws AtlasError E_USAGE if it is empty, as from an unset shell variable
 */
export function outputPath(values: OptionValues, name = 'output'): string | undefined {
  const path = text(values, name);
  if (path === '') throw new AtlasError('E_USAGE', `--${name} is empty; name a file, or - for standard output`);
  return path === '-' ? undefined : path;
}

/** Writes to stdout, and waits if the reader is slower. */
export async function print(output: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(output)) await new Promise((resolve) => process.stdout.once('drain', resolve));
}

/**
 * Writes a short note to stderr, at most PIPE_BUF (4096) bytes. `process.stderr` would load the streams first, which takes 3 ms.
 */
export function printNote(note: string): void {
  try {
    writeFileSync(STANDARD_FD.error, note);
  } catch (error) {
    // Another process made the pipe non-blocking, and it is full: nothing of so short a note was written (pipe(7)).
    if (systemErrorCode(error) !== 'EAGAIN') throw error;
    process.stderr.write(note);
  }
}

/** Returns facts as aligned lines, `name  value`. */
export function factLines(facts: [string, string | number][]): string {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join('');
}
