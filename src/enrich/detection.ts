/** What an input was recognized as: in words, as flags, and as options. */
import type { FormatName } from './choices.js';
import {
  type InputOptions,
  type OptionNaming,
  parseEnrichOptions,
  parseLogOptions,
  type RequestedOptions,
} from './options.js';
import type { DetectedLog } from './recognize-log.js';

/** What was found: options of an enrichment, and the other fields that have addresses. */
export interface DetectedFields {
  format: FormatName;
  items?: string | undefined;
  delimiter?: string | undefined;
  header?: false | undefined;
  field?: readonly string[] | undefined;
  /** Whether the user named the fields, which may be in no record. */
  isGiven?: true | undefined;
  lenient?: true | undefined;
  /** Whether the field is text in which the address is anywhere. */
  inText?: true | undefined;
  others: string[];
  /** Whether a client can forge the field. */
  isUntrusted: boolean;
  /** The flags with which public addresses of the same records are looked up, if the field has private ones only. */
  publicElsewhere?: string | undefined;
}

/** What an input was recognized as: a log by name, or what was found in its first lines. */
export type Detection = DetectedLog | DetectedFields;

/** Returns the options of what was recognized; what is requested stays. Throws as {@link parseEnrichOptions} does. */
export function optionsOf(found: Detection, requested: RequestedOptions, nameOf: OptionNaming): InputOptions {
  if ('log' in found) return parseLogOptions(requested, found.log, nameOf);
  const { format, items, delimiter, header = true, field } = found;
  const { lenient = found.lenient, inText = found.inText } = requested;
  return parseEnrichOptions({ ...requested, format, items, delimiter, header, field, lenient, inText }, nameOf);
}

/** Returns the flags that say what was found. */
export function flagsOf(found: Detection): string {
  if ('log' in found) return `--log ${found.names[0]}`;
  const { format, delimiter, header, items, field, lenient, inText } = found;
  const quoted = (text: string): string => (/^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const flags: [string, string | undefined][] = [
    ['format', format],
    ['delimiter', delimiter],
    ['items', items],
    ['field', field?.[0]],
  ];
  const texts = flags.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${quoted(value)}`]));
  const switches = [header === false && '--no-header', lenient && '--lenient', inText && '--in-text'];
  return [...texts, ...switches.filter((one) => typeof one === 'string')].join(' ');
}

const TITLES: { [Format in FormatName]?: string } = {
  jsonl: 'JSON lines',
  json: 'JSON',
  'json-seq': 'JSON objects one after the other',
  csv: 'CSV',
  tsv: 'TSV',
};

/** Says what an input was recognized as. */
export function describe(found: Detection): string {
  const flags = `; the same with: ${flagsOf(found)}`;
  if ('log' in found) return `${found.names.join('/')} ${found.log.title}; ${found.log.client}${flags}`;
  const { format, field, header, inText, others, isUntrusted, isGiven } = found;
  const kind = format === 'csv' || format === 'tsv' ? 'column' : 'field';
  const title = `${TITLES[format] ?? format}${header === false ? ' without a header' : ''}`;
  const fields = field?.map((one) => one.replaceAll('|', ' or ')).join(', ');
  const where = fields === undefined || isGiven ? '' : `, ${inText ? 'text of ' : ''}${kind} ${fields}`;
  const forged = isUntrusted ? ', untrusted: a client can forge it' : '';
  const also =
    others.length === 0 ? '' : ` (also ${others.join(', ')} ${others.length === 1 ? 'has' : 'have'} addresses)`;
  return `${title}${where}${forged}${also}${flags}`;
}
