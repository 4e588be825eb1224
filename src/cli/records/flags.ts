/** The flags of the commands that process records, and the options that they mean. */
import { readFileSync } from 'node:fs';
import { knownLogs } from '../../enrich/known-logs.js';
import type { Logs } from '../../enrich/logs.js';
import { addable, SCHEMA_NAMES } from '../../enrich/members.js';
import {
  FORMAT_NAMES,
  type FormatName,
  INVALID_POLICIES,
  type InputOptions,
  MISSING_DATES,
  PICKS,
  parseEnrichOptions,
  type RequestedOptions,
} from '../../enrich/options.js';
import { COMPRESSIONS } from '../../enrich/output/compress.js';
import { AtlasError, causedError, EXIT, misuse } from '../../errors.js';
import { checkPrivate } from '../../files.js';
import { MAX_JOBS } from '../../limits.js';
import {
  type FlagTable,
  type Invocation,
  LANG_FLAG,
  listOf,
  type OptionValues,
  print,
  table,
  text,
} from '../command.js';

const FIELD_HELP =
  'where the address is: a key, a path with dots (client.ip), an element of an array (hops[0]), its first element with a ' +
  'country (hops[]), a column, or several of these with bars between them (src_ip|client.ip), of which the first one with an address ' +
  'counts; repeatable, default ip';

/** The flags of the inputs, for the commands that change nothing. */
export const INPUT_FLAGS = {
  field: { value: 'PATH', repeatable: true, help: FIELD_HELP },
  lenient: {
    help: 'also find addresses with a port, brackets, a prefix length, a zone or a name and a slash before it, and the first one in a list with commas, such as that of X-Forwarded-For or Forwarded',
  },
  'in-text': {
    help: 'for jsonl, json, csv and tsv: the fields are text in which the address is anywhere, as in the message of a log',
  },
  pick: {
    value: 'WHICH',
    choices: PICKS,
    help: 'which address counts if there are several, in text and for []: public (default), the first that has a country, or else the first; first; last',
  },
  format: {
    value: 'FORMAT',
    choices: FORMAT_NAMES,
    help: `${FORMAT_NAMES.join(', ')}; default jsonl. "ipatlas help enrich" describes them`,
  },
  at: { value: 'YYYY-MM-DD', help: 'with the answers of this day (UTC), see "ipatlas history"' },
  'at-field': {
    value: 'PATH',
    help: 'with the answers of the date of each record: a key, a path with dots, a column; for combined, "time". Dates: RFC 3339, of access logs, seconds, ms, µs or ns since 1970',
  },
  'at-missing': {
    value: 'WHICH',
    choices: MISSING_DATES,
    help: 'for a date that is missing, no date, or not kept: null (default), no result; first, the answers of the first day; now, those of today',
  },
  log: {
    value: 'NAME',
    common: () => ['list', ...Object.keys(knownLogs())],
    help: 'a log by its name, such as nginx, iis or suricata, which sets --format, --field, --lenient and --pick. "--log list" prints the names. Without --format and --log, the first lines decide',
  },
  logs: { value: 'FILE', help: 'more names for --log, as docs/logs.md describes' },
  delimiter: { value: 'C', help: 'for csv and tsv: the character between two cells' },
  'no-header': {
    help: 'for csv and tsv: the first record is not a header; --field is the number of a column, from 1',
  },
  items: {
    value: 'PATH',
    help: 'for json: the keys, with dots, that lead to the array inside the document; groups[].rows for one in each element of an array',
  },
  'no-guess': {
    help: 'without --format, inputs that are no log by name are JSON lines with the address at ip; nothing is found by the first lines',
  },
  jobs: {
    value: 'N',
    help: `threads: 1 to ${MAX_JOBS}; 0, the default, is one per core. The order of lines is kept`,
  },
  quiet: { help: 'no summary, no progress and no notices on stderr; errors stay' },
} as const satisfies FlagTable;

/** The flags of the inputs of `enrich`, which also say where the results go. */
export const ENRICH_INPUT_FLAGS: FlagTable = {
  ...INPUT_FLAGS,
  field: {
    value: 'PATH[=TARGET]',
    repeatable: true,
    help: `${FIELD_HELP}. A dot in a key is written as \\. (client\\.ip). TARGET is the key of the result, or its path in an object of PATH (client.ip=client.geo): default geo or, with several fields, the path and _geo`,
  },
  format: {
    value: 'FORMAT',
    choices: {
      jsonl: 'one JSON object per line (default)',
      json: 'one array of objects, or a document with such an array (--items)',
      'json-seq':
        'JSON objects one after the other: without line breaks between them, on several lines each, or as in RFC 7464',
      csv: 'a table with a header; columns such as NAME_country are appended',
      tsv: 'the same with tabs',
      w3c: 'W3C Extended Log Format, such as IIS and CloudFront write: "#Fields:" names the columns; default field c-ip',
      zeek: 'logs of Zeek, not those in JSON; default field id.orig_h',
      logfmt:
        'key=value or key="a value" anywhere in a line: logfmt, iptables, CEF, LEEF; --field is a key. KEY_country=… and so on is appended',
      list: 'one address per line; the result is appended after tabs',
      combined: 'access logs of nginx and Apache; the result is appended as quoted fields',
      text: 'any lines; the result of the first address that has a country is appended after tabs',
    } satisfies Record<FormatName, string>,
    help: 'the format of the input:',
  },
};

/** The flags that say what is added. */
export const ADD_FLAGS: FlagTable = {
  add: {
    value: 'LIST',
    repeatable: true,
    common: addable,
    help: `what to add, in this order: of ${addable().join(', ')}, with commas; default the first three. Also the names of labels`,
  },
  schema: {
    value: 'NAME',
    choices: SCHEMA_NAMES,
    help: 'for jsonl, json and json-seq: the field names of the Elastic Common Schema (ecs) or of OpenTelemetry (otel), in the object that --field names (client.ip=client), default source',
  },
  lang: LANG_FLAG,
};

/** The flags that say what becomes of records that are not valid. */
export const POLICY_FLAGS = {
  'on-invalid': {
    value: 'POLICY',
    choices: INVALID_POLICIES,
    help: 'for a line that is not a JSON object, or a record that does not match the header: keep (default), drop, or fail (exit code 4)',
  },
  rejects: { value: 'FILE', help: 'also write such lines to FILE' },
  'none-ok': { help: 'exit code 0, not 4, if no record of all inputs has an address' },
} as const satisfies FlagTable;

/** The flags that hide addresses. */
export const REDACT_FLAGS = {
  redact: {
    value: 'HOW',
    choices: {
      drop: 'null in JSON, an empty cell, - in logs, [redacted] in text',
      truncate: 'zeros after the first 24 bits of IPv4 and 48 of IPv6 addresses; truncate:16,32 for others',
      ipcrypt: 'encrypted into an IPv6 address (draft-denis-ipcrypt); needs --redact-key',
      'ipcrypt-pfx': 'encrypted so that networks stay together; needs --redact-key',
    },
    hasOthers: true,
    help: 'hide the addresses in the fields, and in text all, in the output and the rejects:',
  },
  'redact-key': { value: 'FILE', help: 'the key of ipcrypt or ipcrypt-pfx; "ipatlas redact --new-key FILE" makes one' },
  'redact-all': { help: 'hide all addresses in any value or text of a record; keys of JSON stay' },
} as const satisfies FlagTable;

/** The flags of the outputs. */
export const OUTPUT_FLAGS = {
  output: {
    value: 'FILE',
    short: 'o',
    help: 'write to FILE, which is replaced at the end and may be an input; "-" is stdout',
  },
  'output-dir': {
    value: 'DIR',
    help: 'write a file for each input into DIR, under the name of the input. It gets its name when it is complete, and is compressed as the name says',
  },
  suffix: {
    value: 'TEXT',
    help: 'add TEXT to the names of these files, before .gz or .zst: with .geo, a.log.gz becomes a.log.geo.gz; without --output-dir, in the folder of the input',
  },
  resume: { help: 'for --output-dir and --suffix: pass over inputs whose file exists' },
  compress: {
    value: 'KIND',
    short: 'z',
    choices: COMPRESSIONS,
    help: 'compress the output: gzip or zstd (from Node 22.15 on)',
  },
  stats: { value: 'FILE', help: 'write the counts to FILE as JSON; "-" is stdout, if the output is a file' },
} as const satisfies FlagTable;

/** Returns how messages call an option of an enrichment: as a flag. */
export function flagOf(option: keyof RequestedOptions): string {
  if (option === 'header') return '--no-header';
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Refuses a flag that needs the networks together with the day of each record. @throws AtlasError E_USAGE */
export function refuseEachDay(values: OptionValues, flag: string): void {
  if (values['at-field'] === undefined) return;
  throw misuse(`${flag} does not go with --at-field: the networks are not known for each day; use --at`);
}

/** Parses the flags that say how records are enriched. @throws AtlasError as {@link parseEnrichOptions} does */
export function enrichOptionsOf(values: OptionValues): InputOptions {
  return parseEnrichOptions(requestedOptions(values), flagOf, logsFor.get(values));
}

export function requestedOptions(values: OptionValues): RequestedOptions {
  const { format, log, items, delimiter, field, schema, lang, lenient, pick, at } = values;
  const requested = {
    ...{ format, log, items, field, schema, lang, lenient, pick, at },
    delimiter: delimiter === '\\t' ? '\t' : delimiter,
    header: values['no-header'] !== true,
    add: listOf(values, 'add'),
    inText: values['in-text'],
    onInvalid: values['on-invalid'],
    atField: values['at-field'],
    atMissing: values['at-missing'],
    inline: values.inline,
    inlineTemplate: values['inline-template'],
    redact: values.redact,
    redactKey: readRedactKey(values),
    redactAll: values['redact-all'],
    reverse: values.reverse,
  };
  return requested as RequestedOptions;
}

/** Reads the key that addresses are encrypted with: its bytes, or their hexadecimal digits. */
function readRedactKey(values: OptionValues): Uint8Array | undefined {
  const path = text(values, 'redact-key');
  if (path === undefined) return undefined;
  let key: Buffer;
  try {
    checkPrivate(path);
    key = readFileSync(path);
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw causedError(
      'E_CONFIG',
      `the key ${path} cannot be read`,
      error,
      'make one with "ipatlas redact --new-key FILE"',
    );
  }
  const digits = key.toString('latin1').trim();
  return /^([0-9a-f]{32}){1,2}$/i.test(digits) ? Buffer.from(digits, 'hex') : key;
}

/** The names of logs of a command line with --logs. */
const logsFor = new WeakMap<OptionValues, Logs>();

/** Returns the logs that a command line can name. */
export function logsOf(values: OptionValues): Logs {
  return logsFor.get(values) ?? knownLogs();
}

/** Runs a command after reading the names of logs of --logs, or prints the names for `--log list`. */
export async function withLogs({ values }: Invocation, run: () => number | Promise<number>): Promise<number> {
  const file = text(values, 'logs');
  if (file !== undefined) logsFor.set(values, await (await import('../../enrich/logs-file.js')).readLogs(file));
  if (text(values, 'log') !== 'list') return run();
  const rows = Object.entries(logsOf(values)).map(([name, { title, format, client }]) => [name, title, format, client]);
  await print(table([['name', 'log', 'format', 'address'], ...rows]));
  return EXIT.ok;
}
