/** A partition that exists only in tests. */
import { LABELS, type Partition } from '../../src/rangefile/partitions.js';
import type { RowFile } from '../../src/rangefile/reader.js';

export const RISKS: Partition<RowFile> = {
  ...LABELS,
  name: 'risks',
  file: 'risks.ipr',
  columns: () => ['risk', 'flag'],
  members: ['risk', 'flag'],
  table: 'risk',
  subject: 'number',
  section: 'risk',
  history: 'history/risks',
  isPrivate: false,
  comparison: 'the risks',
  absence: 'has no risks',
};
