/** The inputs of an enrichment: looked at all at once before the work begins, opened one after the other. */
import { accessSync, constants, fstatSync, type Stats, statSync } from 'node:fs';
import { AtlasError, messageOf, systemErrorCode } from '../../errors.js';
import { statOutput } from '../output/output.js';
import { type ByteSource, openSource } from './source.js';

/** Stands for standard input among the names of files. */
export const STDIN_PATH = '-';

function statInput(path: string): Stats {
  try {
    if (path === STDIN_PATH) return fstatSync(0);
    accessSync(path, constants.R_OK);
    return statSync(path);
  } catch (error) {
    const reason = systemErrorCode(error) === 'ENOENT' ? 'there is no such file' : messageOf(error);
    throw new AtlasError('E_USAGE', `${path} cannot be read: ${reason}`, { cause: error });
  }
}

/**
 * Makes sure that all inputs can be read, so that a slip in the last name does not show only after hours.
 *
 * @param paths of files; `-` is standard input
 * @returns bytes in all of them, or undefined where one is no regular file
 * @throws AtlasError E_USAGE for a file that is not there or cannot be read
 */
export function checkInputs(paths: readonly string[]): number | undefined {
  let total: number | undefined = 0;
  for (const path of paths) {
    const stat = statInput(path);
    if (stat.isDirectory()) throw new AtlasError('E_USAGE', `${path} is a directory; name its files`);
    total = total === undefined || !stat.isFile() ? undefined : total + stat.size;
  }
  return total;
}

/**
 * Whether a path that is to be written is one of the inputs, under whatever name.
 *
 * @throws AtlasError E_OUTPUT where that cannot be found out
 */
export function isInput(path: string, inputs: readonly string[]): boolean {
  const file = statOutput(path);
  if (file === undefined) return false;
  return inputs.map(statInput).some(({ dev, ino }) => dev === file.dev && ino === file.ino);
}

/** Opens the inputs, each when its turn has come. Whoever takes a source closes it. */
export async function* openInputs(paths: readonly string[]): AsyncGenerator<ByteSource> {
  for (const path of paths) yield await openSource(path);
}
