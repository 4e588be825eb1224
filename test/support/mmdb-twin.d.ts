import type { Database } from '../../src/database/database.js';
import type { RangeFile } from '../../src/rangefile/reader.js';

export function compareWithTwin(options: {
  database: Pick<Database, 'lookupWithReason'>;
  file: RangeFile;
  twin: { get(ip: string): unknown };
  csvFiles: string[];
  random: number;
  everyRow: number;
}): { compared: number; explained: Record<string, number>; unexplained: string[] };
