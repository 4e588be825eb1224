/** Writes the manual page, dist/ipatlas.1, from the compiled table of commands. Run by "npm run build". */
import { writeFileSync } from 'node:fs';
import { manualPage } from '../dist/src/cli/manual.js';

// The date of the last commit would need git, which a packed source does not have; SOURCE_DATE_EPOCH makes it reproducible.
const epoch = process.env.SOURCE_DATE_EPOCH;
const date = epoch === undefined ? new Date() : new Date(1000 * Number(epoch));
writeFileSync(new URL('../dist/ipatlas.1', import.meta.url), await manualPage(date.toISOString().slice(0, 10)));
