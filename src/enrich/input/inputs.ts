/** The inputs of a run: all are checked before the run starts, and opened one after the other. */
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { misuse } from '../../errors.js';
import { STANDARD_FD, STDIN_PATH, standardStat } from '../../standard-streams.js';
import { statOutput } from '../output/output.js';
import { type ByteSource, openError, openSource } from './source.js';

function statInput(path: string): Stats | undefined {
  try {
    if (path === STDIN_PATH) return standardStat(STANDARD_FD.input);
    accessSync(path, constants.R_OK);
    return statSync(path);
  } catch (error) {
    throw openError(path, error);
  }
}

/**
 * Checks that all inputs can be read, so that a bad last file name fails now, not hours into the run.
 *
 * @param paths files; `-` is standard input
 * @returns bytes in all inputs, or undefined if one of them is not a regular file
 * @throws AtlasError E_USAGE for a file that does not exist or cannot be read
 */
export function checkInputs(paths: readonly string[]): number | undefined {
  let total: number | undefined = 0;
  for (const path of paths) {
    const stat = statInput(path);
    if (stat?.isDirectory()) throw misuse(`${path} is a directory; name its files`);
    total = total === undefined || !stat?.isFile() ? undefined : total + stat.size;
  }
  return total;
}

/**
 * Returns whether an output path is one of the inputs, under any name.
 *
 * @throws AtlasError E_OUTPUT if that cannot be determined
 */
export function isInput(path: string, inputs: readonly string[]): boolean {
  const file = statOutput(path);
  if (file === undefined) return false;
  return inputs.map(statInput).some((stat) => stat?.dev === file.dev && stat.ino === file.ino);
}

/** Opens inputs one after the other. */
export function* openSources(paths: readonly string[]): Generator<ByteSource> {
  for (const path of paths) yield openSource(path);
}
