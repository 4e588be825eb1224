/** Finds the addresses of a log where data/logs.json says that they are, as `ipatlas enrich --log` does. */
import { findAddress } from '../address/lenient.js';
import { parseAddress } from '../address/parse.js';
import { EACH, type PathStep, parsePath, pathText, splitSpec } from '../enrich/field-path.js';
import { columnsOf, separatorOf } from '../enrich/formats/headers.js';
import type { Log } from '../enrich/logs.js';
import { findAddresses, type LogReader } from './extract.js';

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
function addressesInText(text: string, { pick, untrusted = [] }: Log): string[] {
  const found: string[] = [];
  let before = '';
  findAddresses(text, 0, text.length, (address, at) => {
    if (found.length === 0) before = text.slice(0, at);
    found.push(address);
  });
  if (pick === 'last') return found.slice(-1);
  if (pick !== 'first') return found;
  return untrusted.some((one) => before.includes(one)) ? found.slice(-1) : found.slice(0, 1);
}

/** Reads the records of a table whose header is a directive, or whose columns are known. */
function tableReader({ format, columns: usual }: Log, names: readonly string[]): TextReader {
  const kind = format === 'w3c' || format === 'zeek' ? format : undefined;
  let columns = usual?.split(' ') ?? [];
  let separator = '\t';
  return (line) => {
    separator = (kind === 'zeek' && separatorOf(line)) || separator;
    const isSplit = kind === 'zeek' || (kind === 'w3c' && line.includes('\t'));
    const cells = isSplit ? line.split(separator) : (line.match(/"(?:[^"]|"")*"[^ ]*|[^ ]+/g) ?? []);
    const isUsual = kind === undefined && cells.some((cell) => names.includes(cell));
    const header = isUsual ? cells : kind && columnsOf(kind, line, separator);
    columns = header ?? columns;
    if (header !== undefined || (kind !== undefined && /^\ufeff?#/.test(line))) return [];
    return names.map((name) => (cells[columns.indexOf(name)] ?? '').replace(/^"(.*)"$/, '$1').replaceAll('""', '"'));
  };
}

/** Returns the texts in which the addresses of a line are. */
function textReader(log: Log): TextReader {
  const paths = (log.fields ?? []).map((spec) => parsePath(splitSpec(spec).path, spec));
  const names = paths.map(pathText);
  switch (log.format) {
    case 'jsonl':
    case 'json': {
      const items: PathStep[] = log.format === 'json' ? [...(log.items?.split('.') ?? []), EACH] : [];
      return (line) => {
        let value: unknown;
        try {
          value = JSON.parse(line);
        } catch {
          return [];
        }
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

/** Returns what reads the lines of a log one after the other. */
export function logReader(log: Log): LogReader {
  const texts = textReader(log);
  const read = (line: string): string[] =>
    texts(line).flatMap((text) => {
      if (log.format === 'text' || log.strings) return addressesInText(text, log);
      const address = log.lenient ? findAddress(text) : text;
      return address !== undefined && parseAddress(address, words) !== 0 ? [address] : [];
    });
  return { read, isDocument: log.format === 'json' };
}
