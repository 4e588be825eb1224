/** `ipatlas lookup`: one result a line, or a table for people. */
import { existsSync } from 'node:fs';
import { countryNames } from '../country/names.js';
import { Database, openFound } from '../database/database.js';
import { checkFields, neededPartitions, type ResultField, resultFields } from '../database/fields.js';
import type { Lookups } from '../database/lookups.js';
import { seedFacts } from '../database/origin.js';
import { chunksOf, openSource } from '../enrich/input/source.js';
import { EXIT, misuse } from '../errors.js';
import { MAX_ADDRESS_LENGTH } from '../limits.js';
import { isTerminal, STANDARD_FD, STDIN_PATH } from '../standard-streams.js';
import { printable } from '../text-table.js';
import {
  type Command,
  databaseOf,
  expectStdin,
  type Invocation,
  LANG_FLAG,
  listOf,
  noteMissing,
  parseDay,
  print,
  printNote,
  table,
  text,
  usageError,
} from './command.js';

type Line = { readonly [field: string]: unknown; ip: string; error?: string };

/** What is shown besides the four fields. */
interface Extras {
  reason: boolean;
  confidence: boolean;
}

/** Headers of the columns of a table whose names say less or are longer. */
const HEADERS: Partial<Record<string, string>> = { country_code: 'CODE', is_eu: 'EU' };
const DEFAULT_FIELDS: readonly ResultField[] = ['country', 'country_code', 'is_eu'];

/** Looks up the default fields, and those in `extras`. */
function lookupDefault(database: Lookups, ip: string, extras: Extras): Line | undefined {
  if (!extras.reason && !extras.confidence) {
    const found = database.lookup(ip);
    return found && { ...found };
  }
  const result = database.lookupWithReason(ip);
  if (result === undefined) return undefined;
  const { reason, confidence, ...fields } = result;
  return { ...fields, ...(extras.reason && { reason }), ...(extras.confidence && { confidence: confidence ?? null }) };
}

/**
 * Returns the fields to look up: those of `--add`, and of the flags that name one.
 *
 * @param labels the names of the labels of the release
 */
function fieldsOf(add: string[] | undefined, labels: readonly string[], extras: Extras): ResultField[] {
  const fields = add === undefined ? [...DEFAULT_FIELDS] : checkFields(add, labels, '--add');
  for (const name of ['reason', 'confidence'] as const) if (extras[name] && !fields.includes(name)) fields.push(name);
  return fields;
}

/** Returns the beginning of a text that is too long for an address, so that it does not widen the table. */
function shortened(text: string): string {
  return text.length > MAX_ADDRESS_LENGTH ? `${text.slice(0, MAX_ADDRESS_LENGTH)}…` : text;
}

function tableRow(line: Line, fields: readonly ResultField[]): string[] {
  if (line.error !== undefined) return [shortened(line.ip), line.error, ...fields.slice(1).map(() => '')];
  return [line.ip, ...fields.map((field) => cellOf(field, line[field]))];
}

function cellOf(field: ResultField, value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  // A result that has a country has no reason, which needs no mark.
  if (value === null || value === undefined) return ['reason', 'confidence'].includes(field) ? '' : '-';
  return field === 'confidence' ? `${value} %` : String(value);
}

async function* addresses(positionals: string[]): AsyncIterable<string> {
  for (const argument of positionals) {
    if (argument === STDIN_PATH) yield* linesOfStdin();
    else yield argument;
  }
}

/** Bytes read at once. */
const READ_BYTES = 65_536;

async function* linesOfStdin(): AsyncIterable<string> {
  // Not imported: arguments do not need it, and it takes up to 5 ms to load.
  const { createInterface } = process.getBuiltinModule('node:readline');
  const { Readable } = process.getBuiltinModule('node:stream');
  const source = openSource(STDIN_PATH);
  // An error of the source does not reach the reader of the lines, but ends them.
  let failure: unknown;
  const input = Readable.from(chunksOf(source, READ_BYTES)).on('error', (error) => {
    failure = error;
  });
  for await (const line of createInterface({ input })) if (line !== '') yield line;
  if (failure !== undefined) throw failure;
}

async function run(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  const positionals = invocation.positionals.length === 0 ? [STDIN_PATH] : invocation.positionals;
  if (invocation.positionals.length === 0 && isTerminal(STANDARD_FD.input))
    throw usageError(
      'an argument is missing; write "ipatlas lookup IP…", or "ipatlas lookup -" to type addresses',
      'lookup',
    );
  expectStdin(positionals);
  const extras: Extras = { reason: values.reason === true, confidence: values.confidence === true };
  const day = parseDay(values, 'at');
  const add = listOf(values, 'add');
  const lang = text(values, 'lang');
  if (lang !== undefined) countryNames(lang, '--lang');
  if (day !== undefined && (values.engine !== undefined || extras.confidence)) {
    throw misuse('--at does not go with --engine and --confidence: history has neither; leave out one of them');
  }
  const found = day === undefined ? databaseOf(invocation) : undefined;
  // Only for those who ask for it: without --json, a result has the fields of the API.
  const facts = values.json === true && found !== undefined ? seedFacts(found) : undefined;
  const database =
    found === undefined
      ? new (await import('../history/open.js')).PastDatabase(invocation.dataDir, day!, lang)
      : openFound(found, {
          engine: values.engine === 'sqlite' ? 'sqlite' : 'binary',
          confidence: extras.confidence,
          lang,
        });
  const fields = fieldsOf(add, database instanceof Database ? database.labelNames : [], extras);
  const find = add !== undefined ? database.fields(fields) : (ip: string) => lookupDefault(database, ip, extras);
  if (database instanceof Database) noteMissing(database.manifest, neededPartitions(fields));
  let invalid = 0;
  const rows = [['IP', ...fields.map((field) => HEADERS[field] ?? field.toUpperCase())]];
  // A table needs all its rows to know its widths; a stream must not wait for its end.
  const asTable = isTerminal(STANDARD_FD.output) && values.json !== true && !positionals.includes('-');
  for await (const ip of addresses(positionals)) {
    const line: Line = find(ip) ?? { ip, error: 'invalid ip' };
    if (line.error !== undefined) invalid++;
    if (asTable) rows.push(tableRow(line, fields));
    else await print(`${printable(JSON.stringify({ ...line, ...facts }))}\n`);
  }
  if (asTable) await print(table(rows));
  database.close();
  if (invalid === 0) return EXIT.ok;
  printNote(`ipatlas: ${invalid} of the addresses given ${invalid === 1 ? 'is' : 'are'} not valid\n`);
  const file = positionals.find((name) => name !== STDIN_PATH && existsSync(name));
  if (file !== undefined) printNote(`ipatlas: ${file} is a file; "ipatlas lookup - < ${file}" looks up its lines\n`);
  return EXIT.badInput;
}

export const command: Command = {
  usage: ['lookup [IP… | -]'],
  description: `Looks addresses up. Prints one JSON object a line, or a table on a terminal. "-", or no argument, reads addresses from stdin, one a
line. An address that is not valid gives {"ip":…,"error":"invalid ip"} and, at the end, exit code 4.`,
  options: {
    add: {
      value: 'LIST',
      repeatable: true,
      common: resultFields,
      help: `which fields to show, with commas: of ${resultFields().join(', ')}. asn and as_name are the number and the name of the network that announces the address, network is the largest CIDR block around it with the same answers; also the names of labels`,
    },
    reason: { help: 'also show why an address has no country' },
    confidence: {
      help: 'also show how many percent of the independent origins of the data agree, if the sources were merged by evidence',
    },
    at: { value: 'YYYY-MM-DD', help: 'the answers of this day (UTC), as far as history has them' },
    lang: LANG_FLAG,
    json: { help: 'print JSON lines on a terminal, too, which say so if they are from the seed' },
    engine: {
      value: 'ENGINE',
      choices: ['binary', 'sqlite'],
      help: 'binary (default): the file ranges.ipr; or sqlite: ranges.sqlite. Both give the same results',
    },
  },
  examples: {
    'ipatlas lookup 8.8.8.8 2001:4860:4860::8888': 'the countries of two addresses',
    'ipatlas lookup --add country_code,asn,as_name,network 8.8.8.8':
      'who announces an address, and the block around it',
    'ipatlas lookup --reason 10.0.0.1': 'why an address has no country',
    'cut -d" " -f1 access.log | sort -u | ipatlas lookup - --json': 'one result for each different address of a log',
  },
  operand: 'none',
  arguments: [0, Number.POSITIVE_INFINITY],
  answersFromSeed: true,
  run,
};
