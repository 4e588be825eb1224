/** Checks the whole archive. */

import { dayOf } from '../day.js';
import type { FileRecord } from '../rangefile/layout.js';
import { type Archive, isOfFuture } from './archive.js';

/**
 * Decodes every entry of an archive, in order.
 *
 * @returns what is wrong, a sentence for each problem; empty if nothing is
 */
export function archiveProblems<Rec extends FileRecord>(archive: Archive<Rec>): string[] {
  const problems: string[] = [...archive.problems];
  archive.entries.forEach((entry, index) => {
    const before = archive.entries[index - 1];
    if (before !== undefined && entry.since !== undefined && entry.since > before.time) {
      problems.push(`the entry of ${dayOf(entry.since)} is lost`);
    }
  });
  const decoded = archive.walk((file, { length }) => [file.layer(4, length), file.layer(6, length)].length);
  for (const { entry, unknown, problem } of decoded) {
    if (unknown === 'damaged') problems.push(problem);
    if (unknown === 'before')
      problems.push(`the answers of ${dayOf(entry.time)} cannot be known without the entries before`);
  }
  for (const { time } of archive.entries.filter(isOfFuture)) {
    problems.push(
      `the entry of ${dayOf(time)} is of the future: set the clock, or remove it with "ipatlas history repair"`,
    );
  }
  const last = archive.entries.at(-1);
  const coverage = last && problems.length === 0 && last.kind !== 'gap' ? archive.at(dayOf(last.time)) : undefined;
  if (coverage !== undefined && 'missing' in coverage) problems.push(coverage.missing);
  return problems;
}
