/** Writes dist/eu-membership.json, so that a look-up by day does not parse data/reference/eu-membership.csv. Run by "npm run build". */
import { writeFileSync } from 'node:fs';
import { loadReference } from '../dist/pipeline/config/reference.js';

const { memberships } = loadReference();
writeFileSync(new URL('../dist/eu-membership.json', import.meta.url), `${JSON.stringify(memberships)}\n`);
