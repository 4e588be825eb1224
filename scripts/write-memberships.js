/** Writes dist/memberships.json, so that a look-up by day does not parse the tables of data/reference. Run by "npm run build". */
import { writeFileSync } from 'node:fs';
import { loadReference } from '../dist/pipeline/config/reference.js';

const { memberships } = loadReference();
writeFileSync(new URL('../dist/memberships.json', import.meta.url), `${JSON.stringify(memberships)}\n`);
