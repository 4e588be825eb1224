/** Waits between attempts that fail. */

/**
 * Returns the wait after failures in a row, in milliseconds: it doubles with each failure.
 *
 * @param failures at least 1
 * @param first wait after one failure
 * @param longest of all waits
 */
export function waitAfter(failures: number, first: number, longest: number): number {
  return Math.min(first * 2 ** (failures - 1), longest);
}
