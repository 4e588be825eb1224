/** Names of files in which `*` matches any characters except `/`, and `?` any one. */

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
