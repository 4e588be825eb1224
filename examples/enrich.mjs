// Adds the country to the JSON lines of standard input: node examples/enrich.mjs < access.jsonl
import { pipeline } from 'node:stream/promises';
import { createEnricher, openDatabase } from 'ipatlas';

const database = openDatabase(process.env.IPATLAS_DATA ?? 'data');
const enricher = createEnricher(database, { field: 'ip=geo', add: ['country_code', 'is_eu'] });
await pipeline(process.stdin, enricher, process.stdout);
console.error(`found: ${enricher.counts.found} of ${enricher.counts.lines} lines`);
