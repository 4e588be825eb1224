/** Names of countries in another language, as a view of a range file in which they are part of the records. */
import { countryNames } from '../country/names.js';
import { recordMembers } from './layout.js';
import type { RangeFile } from './reader.js';

/**
 * Returns a view of a range file with the names of a language; the file itself for undefined.
 *
 * @throws AtlasError E_USAGE for an unknown language
 */
export function withNames(file: RangeFile, lang: string | undefined, option = 'lang'): RangeFile {
  if (lang === undefined) return file;
  const nameOf = countryNames(lang, option);
  const records = file.records.map((record) =>
    record.kind === 'country' ? { ...record, name: nameOf(record.code, record.name) } : record,
  );
  return { ...file, ...recordMembers(records) };
}
