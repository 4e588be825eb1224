import type { LookupDatabase } from '../../src/lookup/index.js';

export function checkLookups(db: LookupDatabase, list: string): { count: number; wrong: string[] };
