/** Tells whether a file descriptor is a terminal. */
import { fstatSync, statSync } from 'node:fs';
import { devNull } from 'node:os';
import { isatty } from 'node:tty';

/** Returns whether a file descriptor is a terminal. node:tty loads the network, which takes 2 ms, so it is asked last. */
export function isTerminal(fd: number): boolean {
  const stat = fstatSync(fd);
  if (!stat.isCharacterDevice() || stat.rdev === statSync(devNull, { throwIfNoEntry: false })?.rdev) return false;
  return isatty(fd);
}
