/**
 * The library: opens a release and looks up addresses.
 *
 * ```ts
 * import { openDatabase } from 'ipatlas';
 * const database = openDatabase('data');
 * database.lookup('8.8.8.8'); // { ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false }
 * ```
 */
export type { Reason } from './country/assignment.js';
export { Database, type OpenOptions } from './database/database.js';
export type { FieldLookup, FieldResult, ResultField } from './database/fields.js';
export type { Manifest, ManifestFile, ManifestInput } from './database/release.js';
export type { Country, LookupResult, ReasonedResult } from './database/results.js';
export { type BlockEnricher, type BlockEnricherOptions, createBlockEnricher } from './enrich/block-enricher.js';
export type { EnrichCounts } from './enrich/counts.js';
export {
  createEnricher,
  createEnricherStream,
  type Enricher,
  type EnricherOptions,
  type EnricherStream,
} from './enrich/enricher.js';
export type { Addable, SchemaName } from './enrich/members.js';
export type { FormatName, InvalidPolicy, MissingDate } from './enrich/options.js';
export { AtlasError, type ErrorCode } from './errors.js';
export { type OpenPastOptions, openDatabase, PastDatabase } from './history/open.js';
