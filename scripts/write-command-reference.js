/** Writes docs/commands.md, the help pages of all commands, from the compiled table of commands: "npm run docs". */
import { writeFileSync } from 'node:fs';
import { commandReference } from '../dist/src/cli/manual.js';

writeFileSync(new URL('../docs/commands.md', import.meta.url), await commandReference());
