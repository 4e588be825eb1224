/** What a command of the command line is, and what every command may use. */
import type { ParseArgsConfig } from 'node:util';
import { AtlasError } from '../errors.js';

export { table } from '../text-table.js';

export type OptionTable = NonNullable<ParseArgsConfig['options']>;
export type OptionValues = Record<string, string | boolean | (string | boolean)[] | undefined>;

/** A command line that was understood. */
export interface Invocation {
  /** The data directory, from `--data`, `IPATLAS_DATA` or the default. */
  dataDir: string;
  values: OptionValues;
  positionals: string[];
}

export interface Command {
  /** What `--help` prints: usage line, a sentence, each flag. */
  help: string;
  options: OptionTable;
  /** Fewest and most positional arguments. */
  arguments: [least: number, most: number];
  /**
   * Whether the command writes to file descriptor 1 and handles EPIPE itself. Then process.stdout must not be used: it makes
   * a pipe non-blocking, for all processes that share it.
   */
  writesToDescriptor?: true;
  /** @returns the exit code; throws AtlasError */
  run(invocation: Invocation): Promise<number>;
}

/** A string option's value. */
export function text(values: OptionValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

/**
 * The path of an output option.
 *
 * @returns undefined for standard output: the option is missing or `-`
 * @throws AtlasError E_USAGE if it is empty, as from an unset shell variable
 */
export function outputPath(values: OptionValues, name = 'output'): string | undefined {
  const path = text(values, name);
  if (path === '') throw new AtlasError('E_USAGE', `--${name} is empty; name a file, or - for standard output`);
  return path === '-' ? undefined : path;
}

/** Writes to stdout, waiting where the reader is slower. */
export async function print(output: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(output)) await new Promise((resolve) => process.stdout.once('drain', resolve));
}

/** Facts as aligned lines, `name  value`. */
export function factLines(facts: [string, string | number][]): string {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join('');
}
