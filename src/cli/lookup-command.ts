/** The command lookup, and nothing else that it does not load. This module is built as one file; see start.cts. */
import { command as lookup } from './lookup.js';
import { programOf } from './run.js';

export const run = programOf({ lookup });
