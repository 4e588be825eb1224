/** Matches names with patterns of `*` and `?`. */
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { devicePath, SYSTEM } from './system.js';

/** Returns the last part of a path. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/**
 * Returns whether a path matches a pattern.
 *
 * A pattern without `/` is matched against the last part of the path, so that the dated top folder of an archive does
 * not matter. As in a shell, a leading dot is only matched by a dot. zx finds files on disk with its own glob; these
 * paths are names in archives and of fetched files, for which zx has no matcher.
 */
export function matchesPattern(pattern: string, path: string, { ignoreCase = false } = {}): boolean {
  const subject = pattern.includes('/') ? path : baseName(path);
  if (baseName(subject).startsWith('.') && !baseName(pattern).startsWith('.')) return false;
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, '[^/]*')
    .replaceAll('?', '[^/]');
  return new RegExp(`^${source}$`, ignoreCase ? 'is' : 's').test(subject);
}

/**
 * Returns arguments with the files that they match in place of `*` and `?` in the last part of a path: the shells of Windows
 * leave that to the program. As in a POSIX shell, an argument without a match stays; elsewhere all do. See {@link devicePath}.
 */
export function expandWildcards(args: readonly string[]): string[] {
  return args.flatMap((argument) => {
    const pattern = basename(argument);
    if (!SYSTEM.isWindows || !/[*?]/.test(pattern) || !existsSync(dirname(argument))) return devicePath(argument);
    const names = readdirSync(dirname(argument)).filter((name) => matchesPattern(pattern, name, { ignoreCase: true }));
    return names.length === 0 ? argument : names.sort().map((name) => join(dirname(argument), name));
  });
}
