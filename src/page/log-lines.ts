/** Finds the addresses of a log where data/logs.json says that they are, or of other records where they were found, as `ipatlas enrich` does. */
import { findAddress } from '../address/lenient.js';
import { parseAddress } from '../address/parse.js';
import { findAddresses } from '../address/text.js';
import { EACH, type PathStep, parsePath, pathText, splitSpec } from '../enrich/field-path.js';
import type { DetectedFields } from '../enrich/find-fields.js';
import { columnsOf, separatorOf } from '../enrich/formats/headers.js';
import { jsonOf } from '../enrich/json-text.js';
import type { Log } from '../enrich/logs.js';
import { cellsOf } from '../enrich/table-text.js';
import type { RecordReader } from './extract.js';

/** Where the addresses of records are: options of a log, or what was found. */
type Reading = { [Key in Exclude<keyof Log, 'format' | 'fields'>]?: Log[Key] | undefined } & Pick<Log, 'format'> &
  Pick<DetectedFields, 'delimiter' | 'header'> & { fields?: readonly string[] | undefined };

/** Returns the texts in which the addresses of a line are. */
type TextReader = (line: string) => string[];

/** A key and its value in any text, quoted or up to a character that no address has. The next key may be in that value, but not in quotes. */
const PAIR =
  /(?<![\w.\x80-\uffff-])([\w.\x80-\uffff-]*)=(?:"((?:[^"\\]|\\.)*)"|(?=(\[[^\0-\x20,;|")}]*|[^\0-\x20,;|")}\]]*)))/gs;

const words = new Uint32Array(4);

/** Returns the values that the rest of a path leads to. */
function valuesAt(value: unknown, [step, ...rest]: readonly PathStep[]): unknown[] {
  if (step === undefined) return [value];
  if (step === EACH) return Array.isArray(value) ? value.flatMap((one) => valuesAt(one, rest)) : [];
  if (typeof value !== 'object' || value === null || Array.isArray(value) !== (typeof step === 'number')) return [];
  return Object.hasOwn(value, step) ? valuesAt((value as Record<string, unknown>)[step], rest) : [];
}

/** Returns the addresses in text: all, or the one that counts. */
function addressesInText(text: string, { pick, untrusted = [] }: Reading): string[] {
  const found = findAddresses(text);
  const addresses = found.map(({ address }) => address);
  if (pick !== 'first' && pick !== 'last') return addresses;
  const before = text.slice(0, found[0]?.at);
  const isLast = pick === 'last' || untrusted.some((one) => before.includes(one));
  return isLast ? addresses.slice(-1) : addresses.slice(0, 1);
}

/** Reads the records of a table. If it has no header, the names of columns are numbers. */
function tableReader({ format, columns: usual, delimiter, header }: Reading, names: readonly string[]): TextReader {
  const kind = format === 'w3c' || format === 'zeek' ? format : undefined;
  const isQuoted = format === 'csv' || format === 'tsv';
  let columns = usual?.split(' ') ?? [];
  let separator = delimiter ?? (format === 'csv' ? ',' : '\t');
  let open = '';
  const join = (line: string): string[] => {
    const record = open === '' ? line : `${open}\n${line}`;
    open = isQuoted && cellsOf(record, separator).isOpen ? record : '';
    return open === '' ? [record] : [];
  };
  function read(line: string): string[] {
    separator = (kind === 'zeek' && separatorOf(line)) || separator;
    const isSplit = kind === 'zeek' || (kind === 'w3c' && line.includes('\t'));
    const cells = isQuoted
      ? cellsOf(line, separator).cells
      : isSplit
        ? line.split(separator)
        : (line.match(/"(?:[^"]|"")*"[^ ]*|[^ ]+/g) ?? []);
    if (header === false) columns = cells.map((_, at) => `${at + 1}`);
    const isHeader = kind === undefined && header !== false && cells.some((cell) => names.includes(cell));
    const found = isHeader ? cells : kind && columnsOf(kind, line, separator);
    columns = found ?? columns;
    if (found !== undefined || (kind !== undefined && /^\ufeff?#/.test(line))) return [];
    return names.map((name) => (cells[columns.indexOf(name)] ?? '').replace(/^"(.*)"$/, '$1').replaceAll('""', '"'));
  }
  return (line) => join(line).flatMap(read);
}

/** Returns the texts in which the addresses of a line are. */
function textReader(log: Reading): TextReader {
  const paths = (log.fields ?? []).map((spec) => parsePath(splitSpec(spec).path, spec));
  const names = paths.map(pathText);
  switch (log.format) {
    case 'jsonl':
    case 'json': {
      const items: PathStep[] = log.format === 'json' ? [...(log.items?.split('.') ?? []), EACH] : [];
      return (line) => {
        const value = jsonOf(line);
        return paths.flatMap((path) => valuesAt(value, [...items, ...path])).filter((one) => typeof one === 'string');
      };
    }
    case 'logfmt':
      return (line) => {
        const pairs = [...line.matchAll(PAIR)].map(([, key, quoted, plain]) => [key, quoted ?? plain] as const);
        return names.map((name) => pairs.find(([key]) => key === name)?.[1] ?? '');
      };
    case 'combined':
      return (line) => [/^[^ ]*/.exec(line)![0]];
    case 'text':
      return (line) => [line];
    default:
      return tableReader(log, names);
  }
}

/** Returns what reads the lines of a log, or of records of another format, one after the other. */
export function recordReader(log: Reading): RecordReader {
  const texts = textReader(log);
  const read = (line: string): string[] =>
    texts(line).flatMap((text) => {
      if (log.format === 'text' || log.strings) return addressesInText(text, log);
      const address = log.lenient ? findAddress(text) : text;
      return address !== undefined && parseAddress(address, words) !== 0 ? [address] : [];
    });
  return { read, isDocument: log.format === 'json' };
}
