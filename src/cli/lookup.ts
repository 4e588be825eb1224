/** `ipatlas lookup`: one result a line, or a table for people. */
import { Database, openFound } from '../database/database.js';
import type { Lookups } from '../database/lookups.js';
import { seedFacts } from '../database/origin.js';
import type { LookupResult } from '../database/results.js';
import { chunksOf, openSource } from '../enrich/input/source.js';
import { AtlasError, EXIT } from '../errors.js';
import { MAX_ADDRESS_LENGTH } from '../limits.js';
import { STDIN_PATH } from '../standard-streams.js';
import { printable } from '../text-table.js';
import {
  type Command,
  databaseOf,
  expectStdin,
  type Invocation,
  parseDay,
  print,
  printNote,
  table,
  text,
} from './command.js';

type Line = Partial<LookupResult> & { ip: string; error?: string; reason?: string | null; confidence?: number | null };

/** What is shown besides the four fields. */
interface Extras {
  reason: boolean;
  confidence: boolean;
}

function lookupLine(database: Lookups, ip: string, extras: Extras): Line {
  if (!extras.reason && !extras.confidence) return database.lookup(ip) ?? { ip, error: 'invalid ip' };
  const result = database.lookupWithReason(ip);
  if (result === undefined) return { ip, error: 'invalid ip' };
  const { reason, confidence, ...fields } = result;
  return { ...fields, ...(extras.reason && { reason }), ...(extras.confidence && { confidence: confidence ?? null }) };
}

/** Returns the beginning of a text that is too long for an address, so that it does not widen the table. */
function shortened(text: string): string {
  return text.length > MAX_ADDRESS_LENGTH ? `${text.slice(0, MAX_ADDRESS_LENGTH)}…` : text;
}

function tableRow(line: Line, extras: Extras): string[] {
  const cells =
    line.error === undefined
      ? [line.ip, line.country ?? '-', line.country_code ?? '-', line.is_eu ? 'yes' : 'no']
      : [shortened(line.ip), line.error, '', ''];
  if (extras.reason) cells.push(line.reason ?? '');
  if (extras.confidence) cells.push(line.confidence == null ? '' : `${line.confidence} %`);
  return cells;
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
  const { values, positionals } = invocation;
  const engine = text(values, 'engine') ?? 'binary';
  if (engine !== 'binary' && engine !== 'sqlite') {
    throw new AtlasError('E_USAGE', `--engine is ${JSON.stringify(engine)}; it can be binary or sqlite`);
  }
  expectStdin(positionals);
  const extras: Extras = { reason: values.reason === true, confidence: values.confidence === true };
  const day = parseDay(values, 'at');
  if (day !== undefined && (values.engine !== undefined || extras.confidence)) {
    throw new AtlasError('E_USAGE', '--at does not go with --engine and --confidence: history has neither');
  }
  const found = day === undefined ? databaseOf(invocation) : undefined;
  // Only for those who ask for it: without --json, a result has the fields of the API.
  const facts = values.json === true && found !== undefined ? seedFacts(found) : undefined;
  const database =
    found === undefined
      ? (await import('../history/day.js')).lookupsAt(invocation.dataDir, day!)
      : openFound(found, { engine, confidence: extras.confidence });
  let invalid = 0;
  const header = ['IP', 'COUNTRY', 'CODE', 'EU'];
  if (extras.reason) header.push('REASON');
  if (extras.confidence) header.push('CONFIDENCE');
  const rows = [header];
  // A table needs all its rows to know its widths; a stream must not wait for its end.
  const asTable = process.stdout.isTTY && values.json !== true && !positionals.includes('-');
  for await (const ip of addresses(positionals)) {
    const line = lookupLine(database, ip, extras);
    if (line.error !== undefined) invalid++;
    if (asTable) rows.push(tableRow(line, extras));
    else await print(`${printable(JSON.stringify({ ...line, ...facts }))}\n`);
  }
  if (asTable) await print(table(rows));
  if (database instanceof Database) database.close();
  if (invalid === 0) return EXIT.ok;
  printNote(`ipatlas: ${invalid} of the addresses given ${invalid === 1 ? 'is' : 'are'} not valid\n`);
  return EXIT.badInput;
}

export const command: Command = {
  usage: ['lookup IP… | -'],
  description: `Looks addresses up. Prints one JSON object a line, or a table on a terminal. "-" reads addresses from stdin, one a
line. An address that is not valid gives {"ip":…,"error":"invalid ip"} and, at the end, exit code 4.`,
  options: {
    reason: { help: 'also show why an address has no country' },
    confidence: {
      help: 'also show which share of the lineages of sources agree, in percent, if the sources were merged by evidence',
    },
    at: { value: 'YYYY-MM-DD', help: 'the answers of this day (UTC), as far as history has them' },
    json: { help: 'print JSON lines on a terminal, too, which say so if they are from the seed' },
    engine: {
      value: 'ENGINE',
      choices: ['binary', 'sqlite'],
      help: 'binary (default): the range file; or sqlite: the mirror. Both give the same results',
    },
  },
  examples: {
    'ipatlas lookup 8.8.8.8 2001:4860:4860::8888': 'the countries of two addresses',
    'ipatlas lookup --reason 10.0.0.1': 'why an address has no country',
    'cut -d" " -f1 access.log | sort -u | ipatlas lookup - --json': 'one result for each different address of a log',
  },
  operand: 'none',
  arguments: [1, Number.POSITIVE_INFINITY],
  answersFromSeed: true,
  run,
};
