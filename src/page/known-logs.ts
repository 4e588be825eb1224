/** The logs and names of fields as parts of the page's script, in place of src/enrich/known-logs.ts; see scripts/pack-page.js. */
import names from '../../data/address-names.json' with { type: 'json' };
import table from '../../data/logs.json' with { type: 'json' };
import type { AddressNames } from '../enrich/address-names.js';
import type { Logs } from '../enrich/logs.js';

export const knownLogs = (): Logs => table.logs as unknown as Logs;
export const addressNames = (): AddressNames => names;
