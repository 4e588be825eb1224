/** Checks the whole archive. */
import { messageOf } from '../errors.js';
import type { FileRecord } from '../rangefile/layout.js';
import { type Archive, dayOf } from './archive.js';

/**
 * Decodes every entry of an archive, in order.
 *
 * @returns what is wrong, a sentence for each problem; empty if nothing is
 */
export function archiveProblems<Rec extends FileRecord>(archive: Archive<Rec>): string[] {
  const problems: string[] = [...archive.problems];
  let records: Rec[] = [];
  let isKnown = false;
  archive.entries.forEach((entry, index) => {
    const before = archive.entries[index - 1];
    const day = dayOf(entry.time);
    if (before !== undefined && entry.since !== undefined && entry.since > before.time) {
      problems.push(`the entry of ${dayOf(entry.since)} is lost`);
    }
    if (entry.kind === 'gap') {
      isKnown = false;
      return;
    }
    try {
      const file = archive.read(entry);
      if (entry.kind === 'base') records = [];
      else if (!isKnown || before?.time !== entry.since) {
        problems.push(`the answers of ${day} cannot be known without the entries before`);
        isKnown = false;
        return;
      }
      records = [...records, ...file.records()];
      for (const family of [4, 6] as const) file.layer(family, records.length);
      isKnown = true;
    } catch (error) {
      problems.push(messageOf(error));
      isKnown = false;
    }
  });
  const last = archive.entries.at(-1);
  const coverage = last && problems.length === 0 && last.kind !== 'gap' ? archive.at(dayOf(last.time)) : undefined;
  if (coverage !== undefined && 'missing' in coverage) problems.push(coverage.missing);
  return problems;
}
