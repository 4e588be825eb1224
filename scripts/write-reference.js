/**
 * Writes what the code says into the files that repeat it: docs/commands.md, the help pages of all commands; and the
 * defaults of the gates and other limits, in schemas and guides. "npm run docs"; tests find a difference.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { commandReference } from '../dist/src/cli/manual.js';
import { guideWithDefaults, schemaWithDefaults } from './gate-defaults.js';
import { FILES_WITH_LIMITS, withLimits } from './limit-texts.js';

const path = (name) => new URL(`../${name}`, import.meta.url);
const rewrite = (name, change) => writeFileSync(path(name), change(readFileSync(path(name), 'utf8')));

writeFileSync(path('docs/commands.md'), await commandReference());
rewrite('schemas/sources.schema.json', schemaWithDefaults);
rewrite('docs/rebuild.md', guideWithDefaults);
for (const file of FILES_WITH_LIMITS) rewrite(file, (text) => withLimits(file, text));
