/**
 * Replaces files atomically: a reader sees the old file or the whole new one, at any moment and after any crash.
 *
 * The new content is written to a temporary file in the same directory, flushed, and renamed over the target.
 */
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { crypto } from './builtins.js';
import { AtlasError, systemErrorCode, writeError } from './errors.js';
import { SYSTEM, whenReleased } from './system.js';

/**
 * Makes a folder and those above it, unless it exists. Node's option `recursive` never returns where the system answers that
 * the folder above is missing although it is there, as in /proc.
 *
 * @throws the system error
 */
export function makeFolder(path: string, mode = 0o777): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above, mode);
  try {
    mkdirSync(path, mode);
  } catch (error) {
    // Another process may have made it meanwhile.
    if (systemErrorCode(error) !== 'EEXIST' || !statSync(path).isDirectory()) throw error;
  }
}

/** A file that is being written and has its final name only after `commit`. */
export interface PendingFile {
  /** File descriptor, open for writing. `commit` and `abandon` close it; the caller must not. */
  readonly fd: number;
  /** False if the target is a device, a named pipe or the like, which is written in place and not replaced. */
  readonly isReplacement: boolean;
  /**
   * Flushes the content to the disk and gives the file its final name.
   *
   * To keep the event loop free while a large file is flushed, await `fsync` of the descriptor first.
   *
   * @param path the final path, if it differs from the one given to {@link openPendingFile}; in the same directory
   * @throws the system error of the flush or the rename; the temporary file is then removed
   */
  commit(path?: string): void;
  /** Removes the temporary file; the target stays as it was. Does nothing after `commit` or an earlier `abandon`. */
  abandon(): void;
}

export interface PendingFileOptions {
  /** Permission bits, less the umask. Default: those of the file that is replaced, or 0666 for a new file. */
  mode?: number;
}

/** Characters of the target's name that the temporary name repeats: the whole name must fit into 255 bytes. */
const NAME_CHARACTERS = 50;

/** Symbolic links followed for one path: the limit of Linux (path_resolution(7)). */
const MAX_SYMLINKS = 40;

/** The temporary files of this process, removed if it exits without committing them. */
const pending = new Set<string>();

function removePending(): void {
  for (const path of pending) rmSync(path, { force: true });
}

/** The start of the names of temporary files for a target. */
function temporaryPrefix(target: string): string {
  return `.${Array.from(basename(target)).slice(0, NAME_CHARACTERS).join('')}.`;
}

/** What follows {@link temporaryPrefix}: the process id, 64 random bits, and the suffix. */
const TEMPORARY_TAIL = /^(\d+)\.[0-9a-f]{16}\.part$/;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) !== 'ESRCH'; // EPERM: it belongs to another user
  }
}

/** Whether the process that made a temporary file is gone. In a container, an earlier one often had the same id as this. */
function isLeftover(path: string, pid: number): boolean {
  return pid === process.pid ? !pending.has(path) : !isAlive(pid);
}

/** Runs an action that is not worth failing for if the process lacks the permission. */
function ifPermitted(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes(systemErrorCode(error) ?? '')) throw error;
  }
}

/**
 * Removes the temporary files for a target whose processes were killed before they could commit or remove them. Opening
 * a {@link PendingFile} does so for its target.
 *
 * Only process ids tell whether a file is still in use, so processes that replace the same file must run on one machine
 * and see each other's ids.
 *
 * @param target path of the file to be replaced
 * @throws a system error if the directory cannot be read, except for missing permission
 */
function removeLeftovers(target: string): void {
  const directory = dirname(target);
  const prefix = temporaryPrefix(target);
  ifPermitted(() => {
    for (const name of readdirSync(directory)) {
      if (!name.startsWith(prefix)) continue;
      const pid = TEMPORARY_TAIL.exec(name.slice(prefix.length))?.[1];
      const path = join(directory, name);
      // In a directory shared with other users, only the owner of a file may remove it.
      if (pid !== undefined && isLeftover(path, Number(pid))) ifPermitted(() => rmSync(path, { force: true }));
    }
  });
}

/** Follows symbolic links at the end of a path, also one whose target does not exist yet. */
function followLinks(path: string): string {
  let target = path;
  for (let links = 0; links < MAX_SYMLINKS; links++) {
    if (lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return target;
    target = resolve(realpathSync(dirname(target)), readlinkSync(target));
  }
  throw Object.assign(new Error(`ELOOP: too many symbolic links, ${path}`), { code: 'ELOOP' });
}

/**
 * Gives the temporary file the owner and the permissions of the file that it replaces. If the group cannot be kept, the
 * new group may do no more than everyone may.
 */
function copyOwnership(fd: number, { uid, gid, mode }: Stats, givenMode: number | undefined): void {
  let permissions = (givenMode ?? mode) & 0o777;
  try {
    fchownSync(fd, uid, gid);
  } catch (error) {
    if (systemErrorCode(error) !== 'EPERM') throw error;
    permissions &= 0o707 | ((permissions & 0o007) << 3);
  }
  if (givenMode === undefined) fchmodSync(fd, permissions);
}

/** Opens a device, a named pipe or the like. */
function openInPlace(path: string): PendingFile {
  const fd = openSync(path, 'w');
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(fd);
    isOpen = false;
  };
  return { fd, isReplacement: false, commit: close, abandon: close };
}

/**
 * Opens a file that gets its name only when it is complete.
 *
 * The temporary file has an unpredictable name and must not exist before, so no symbolic link is followed. It is never
 * readable by more users than the file that it replaces, and keeps that file's permissions and, if the process may do so,
 * its owner and group. Access control lists and extended attributes are not copied. A process that exits removes its
 * temporary files; those of a process that was killed are removed when the same target is next opened.
 *
 * @param path the target. A symbolic link stays, and the file it names is replaced or created. What is not a regular
 *   file (a device, a named pipe) is written in place.
 * @param options permissions of the new file
 * @returns the open file; call `commit` or `abandon`
 * @throws a system error (`ENOENT`, `EACCES`, `EISDIR`, …) if the file cannot be created
 */
export function openPendingFile(path: string, options: PendingFileOptions = {}): PendingFile {
  const replaced = statSync(path, { throwIfNoEntry: false });
  if (replaced !== undefined && !replaced.isFile()) return openInPlace(path);
  const target = followLinks(path);
  removeLeftovers(target);
  const random = crypto().randomBytes(8).toString('hex');
  const temporary = join(dirname(target), `${temporaryPrefix(target)}${process.pid}.${random}.part`);
  const fd = openSync(temporary, 'wx', options.mode ?? (replaced === undefined ? 0o666 : replaced.mode & 0o777));
  if (pending.size === 0) process.on('exit', removePending);
  pending.add(temporary);

  function close(): void {
    pending.delete(temporary);
    if (pending.size === 0) process.off('exit', removePending);
    closeSync(fd);
  }
  function abandon(): void {
    if (!pending.has(temporary)) return;
    rmSync(temporary, { force: true });
    close();
  }
  function attempt(action: () => void): void {
    try {
      action();
    } catch (error) {
      abandon();
      throw error;
    }
  }

  attempt(() => {
    if (replaced !== undefined) copyOwnership(fd, replaced, options.mode);
  });
  return {
    fd,
    isReplacement: true,
    commit(finalPath = target) {
      attempt(() => {
        fsyncSync(fd);
        rename(temporary, finalPath);
      });
      close();
    },
    abandon,
  };
}

/** Content of a file in pieces, in order. Text is written as UTF-8. */
export type Pieces = Iterable<string | Uint8Array>;

/**
 * Writes pieces to a descriptor, however few bytes the system takes at a time.
 *
 * @returns the number of bytes
 */
export function writePieces(fd: number, pieces: Pieces): number {
  let total = 0;
  for (const piece of pieces) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece, 'utf8') : piece;
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
    total += bytes.length;
  }
  return total;
}

/**
 * Writes a whole file atomically, as {@link openPendingFile} describes.
 *
 * @returns the number of bytes
 * @throws a system error, or the error of the iterable; the target is then as it was
 */
export function replaceFile(path: string, pieces: Pieces, options?: PendingFileOptions): number {
  const file = openPendingFile(path, options);
  try {
    const total = writePieces(file.fd, pieces);
    file.commit();
    return total;
  } catch (error) {
    file.abandon();
    throw error;
  }
}

/**
 * Checks that only its owner can use the file of a key.
 *
 * @throws AtlasError E_CONFIG if others can
 */
export function checkPrivate(path: string): void {
  // Windows has access control lists instead, which Node cannot read: the permissions of the folder count there.
  if (SYSTEM.isWindows || (statSync(path).mode & 0o077) === 0) return;
  throw new AtlasError('E_CONFIG', `the key ${path} is accessible to other users; run "chmod 600 ${path}"`);
}

/**
 * Writes a file that the user named, as {@link replaceFile} does.
 *
 * @throws AtlasError E_OUTPUT if the path cannot be written, E_DISK if the disk is full or fails
 */
export function writeFile(path: string, pieces: Pieces): number {
  try {
    return replaceFile(path, pieces);
  } catch (error) {
    throw writeError(path, error);
  }
}

/** Renames a file or folder; see {@link whenReleased}. A file replaces a file of that name. */
export function rename(from: string, to: string): void {
  whenReleased(() => SYSTEM.rename(from, to));
}

/** Flushes the content of a file, or the names in a folder, to the disk. */
export function flush(path: string): void {
  // Windows cannot open a folder, and flushes a file only if it is open for writing.
  if (SYSTEM.isWindows && statSync(path).isDirectory()) return;
  const handle = openSync(path, SYSTEM.isWindows ? 'r+' : 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
