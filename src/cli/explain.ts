/** `ipatlas explain`: explains the result for an address. */
import {
  type ExplainedKinds,
  type ExplainedLabels,
  type ExplainedNetwork,
  type ExplainedRow,
  type Explanation,
  explain,
  type Step,
} from '../../pipeline/index.js';
import { isReason, REASONS } from '../country/assignment.js';
import { BinaryEngine } from '../database/binary-engine.js';
import { Lookups } from '../database/lookups.js';
import { openRanges, seedAnswers } from '../database/origin.js';
import { namedRelease } from '../database/release.js';
import type { ReasonedResult } from '../database/results.js';
import { EXIT, misuse } from '../errors.js';
import { releaseOfDay } from '../history/day.js';
import type { RangeFile } from '../rangefile/reader.js';
import { printable } from '../text-table.js';
import { type Command, databaseOf, type Invocation, parseDay, print, text } from './command.js';

function describeResult({ ip, country, country_code, is_eu, reason }: ReasonedResult): string {
  if (country !== null) return `${ip}: ${country} (${country_code}), ${is_eu ? '' : 'not '}in the European Union`;
  return `${ip}: no country, ${reason}: ${isReason(reason!) ? REASONS[reason] : ''}`;
}

function describeRow({ source, file, line, text, first, last, label, outcome, why, lineage }: ExplainedRow): string {
  const mark = { won: '✓', lost: '·', open: '?' }[outcome];
  const at = file === null ? '' : `, ${file}${line === null ? '' : ` line ${line}`}`;
  // A file without lines has no row text, so the range itself is shown.
  const row = file !== null && line === null ? `${first} – ${last} ${text}` : text;
  const of = lineage === undefined ? '' : ` (lineage ${lineage})`;
  return `  ${mark} ${source}${of}: ${label}${at}: ${row}\n${why === null ? '' : `      lost: ${why}\n`}`;
}

function describeStep({ address, range, vote, rows, sources_without_row: without }: Step): string {
  return [
    `\n${address}\n`,
    `  range ${range.first} – ${range.last} has the result ${range.answer}`,
    range.sources.length === 0 ? '' : `, from ${range.sources.join(', ')}`,
    range.confidence === undefined ? '\n' : `, confidence ${range.confidence} %\n`,
    vote === undefined ? '' : `  ${vote.agreeing} of ${vote.lineages} lineages agree with it\n`,
    ...rows.map(describeRow),
    rows.length === 0 ? '  no row covers it\n' : '',
    without.length === 0 ? '' : `  no data from ${without.join(', ')}\n`,
  ].join('');
}

function describeNetwork({ address, asn, as_name: name, first, last, rows }: ExplainedNetwork): string {
  const who = asn === null ? 'no network' : `AS${asn}${name === null ? '' : ` ${name}`}`;
  return [
    `\nnetwork of ${address}: ${who}, range ${first} – ${last}\n`,
    ...rows.map((row) => describeRow({ ...row, label: `AS${row.asn}` })),
    rows.length === 0 ? '  no row covers it\n' : '',
  ].join('');
}

function describeKinds({ address, anycast, kind, operator, missing, rows }: ExplainedKinds): string {
  const spread = anycast === null ? 'anycast unknown' : anycast ? 'anycast' : 'not anycast';
  const what = kind === null ? 'kind unknown' : kind === 'none' ? 'in no list' : `${kind} of ${operator}`;
  const without = missing.length === 0 ? '' : `; lists that the build did without: ${missing.join(', ')}`;
  const lines = rows.map(({ decides, ...row }) => {
    return describeRow({ ...row, outcome: decides.length > 0 ? 'won' : 'lost', why: null });
  });
  return `\nkind of network of ${address}: ${spread}, ${what}${without}\n${lines.join('')}`;
}

/** Returns labels as text; those without a value are left out. */
function labelText(labels: Record<string, unknown>): string {
  const known = Object.entries(labels).filter(([, value]) => value !== null);
  return known.map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(', ') || 'none';
}

function describeLabels({ address, labels, rows }: ExplainedLabels): string {
  const lines = rows.map(({ file, line, first, last, labels: values, decides }) => {
    const mark = decides.length > 0 ? '✓' : '·';
    return `  ${mark} ${file} line ${line}: ${first} – ${last}: ${labelText(values)}\n`;
  });
  return `\nlabels of ${address}: ${labelText(labels)}\n${lines.join('')}`;
}

function describe(explanation: Explanation): string {
  const { result, release, as_of, notation, steps, network, kinds, labels, sources, corrections, override, notes } =
    explanation;
  const [, inside] = steps;
  return [
    `${describeResult(result)}\n`,
    `release ${release}, as of ${as_of}\n`,
    notation === 'mapped' ? 'an IPv4-mapped address is that IPv4 address\n' : '',
    inside === undefined
      ? ''
      : `the result is that of the IPv4 address inside, ${inside.address} (${steps[0]!.range.answer})\n`,
    ...steps.map(describeStep),
    network === null ? '' : describeNetwork(network),
    kinds === null ? '' : describeKinds(kinds),
    labels === null ? '' : describeLabels(labels),
    sources.length === 0 ? '' : '\nsources:\n',
    ...sources.map(({ id, version, data_date: date, license }) => {
      return `  ${[`${id} ${version}`.trim(), `data of ${date ?? 'unknown date'}`, license].join(', ')}\n`;
    }),
    '\nIf the country is wrong:\n',
    ...corrections.map(({ source, address }) => `  ${source} takes corrections: ${address}\n`),
    `  this line of overrides.csv corrects it here, with the right code for XX: ${override}\n`,
    ...notes.map((note) => `\nnote: ${note}\n`),
  ].join('');
}

/**
 * Explains the answer of a past day: all of it if the release is still there, otherwise only the answer.
 *
 * @throws AtlasError as `openDay` does
 */
async function explainDay({ dataDir, values, positionals }: Invocation, day: string): Promise<number> {
  const { file, release, event, dir } = releaseOfDay(dataDir, day);
  if (dir !== undefined) return explainRelease(dir, { dataDir, values, positionals });
  const why =
    event === 'import'
      ? `the answer was imported from ${release}, which has no rows of sources`
      : `the release ${release} is not kept, and only its answers are`;
  return printResult(file, { release, as_of: day, notes: [why] }, { values, positionals });
}

/** Prints a result without rows of sources, and why there are none. */
async function printResult(
  file: RangeFile,
  facts: { release: string; as_of: string; notes: [string] },
  { values, positionals: [address] }: Pick<Invocation, 'values' | 'positionals'>,
): Promise<number> {
  const result = new Lookups(new BinaryEngine(file)).lookupWithReason(address!);
  if (result === undefined) throw misuse(`${JSON.stringify(address)} is not an IP address such as 8.8.8.8`);
  await print(
    values.json === true
      ? `${JSON.stringify({ result, ...facts })}\n`
      : printable(`${describeResult(result)}\n${facts.notes[0]}\n`),
  );
  return EXIT.ok;
}

async function run(invocation: Invocation): Promise<number> {
  const { dataDir, values } = invocation;
  const day = parseDay(values, 'at');
  if (day === undefined && values.release === undefined && seedAnswers(invocation)) {
    const { file, manifest } = openRanges(databaseOf(invocation));
    const why = 'it comes without the rows of its sources, which "ipatlas build" fetches';
    return printResult(file, { release: manifest.id, as_of: manifest.as_of, notes: [why] }, invocation);
  }
  if (day === undefined) return explainRelease(namedRelease(dataDir, text(values, 'release') ?? 'current'), invocation);
  if (values.release !== undefined) throw misuse('--at does not go with --release; give one of them');
  return explainDay(invocation, day);
}

async function explainRelease(
  dir: string,
  { dataDir, values, positionals }: Pick<Invocation, 'dataDir' | 'values' | 'positionals'>,
): Promise<number> {
  const explanation = await explain(dataDir, dir, positionals[0]!);
  await print(values.json === true ? `${JSON.stringify(explanation)}\n` : printable(describe(explanation)));
  return EXIT.ok;
}

export const command: Command = {
  usage: ['explain IP'],
  description: `Explains the result for an address: the range of the release, and every row of the sources, special-purpose registries
and overrides that covers the address: the one that won, and why the others lost. These are the rows that the release
was made from; the cache keeps them as long as the release, and reading them takes some seconds. It ends with where the sources that decided take corrections,
and with the line of overrides.csv that corrects the result here.`,
  options: {
    release: {
      value: 'ID',
      help: 'a release other than the current one: its id (also of a refused one) or its directory',
    },
    at: {
      value: 'YYYY-MM-DD',
      help: 'the answer of this day (UTC): all of it if its release is still there, else only the answer',
    },
    json: { help: 'the explanation as JSON' },
  },
  examples: {
    'ipatlas explain 8.8.8.8': 'which rows of which sources decided',
  },
  operand: 'none',
  arguments: [1, 1],
  answersFromSeed: true,
  run,
};
