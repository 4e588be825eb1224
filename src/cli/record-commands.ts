/** The commands that process records, and nothing else that they do not load. This module is built as one file; see start.cts. */
import { command as enrich } from './enrich.js';
import { command as extract } from './extract.js';
import { command as filter } from './filter.js';
import { command as redact } from './redact.js';
import { programOf } from './run.js';
import { command as summarize } from './summarize.js';

export const run = programOf({ enrich, extract, filter, redact, summarize });
