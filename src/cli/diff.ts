/** `ipatlas diff`: what has another answer in one release than in another. */

import { formatAddress } from '../address/format.js';
import type { Family } from '../address/parse.js';
import { rangeSize } from '../address/words.js';
import { isDate } from '../country/country.js';
import {
  type CountryChange,
  countryChanges,
  formatSize,
  formatSizeUnit,
  LargestBlocks,
  type PairTotal,
  PairTotals,
  rangeList,
  type Segment,
  segments,
} from '../database/diff.js';
import { namedRelease } from '../database/release.js';
import { noPartition, openReleasePartition, openReleaseRanges } from '../database/release-files.js';
import { cellText } from '../enrich/formats/results.js';
import { AtlasError, EXIT, misuse } from '../errors.js';
import { writeFile } from '../files.js';
import { partitionAt, rangesAt, releaseOfDay } from '../history/day.js';
import { PAIRS_SHOWN } from '../limits.js';
import { formatCidr, rangeToCidrs } from '../range/cidr.js';
import { otherPartitions, type Partition } from '../rangefile/partitions.js';
import type { PartitionFile, RangeFile } from '../rangefile/reader.js';
import { compareReleases } from '../report/changes.js';
import { diffPage } from '../report/report-page.js';
import { grouped, table } from '../text-table.js';
import { type Command, type Invocation, outputPath, print } from './command.js';

const FAMILIES = [4, 6] as const;

interface Side {
  /** Id of the release, or the day that is asked for. */
  id: string;
  as_of: string;
  /** The countries. */
  file: RangeFile;
  /** What is compared: the countries, the networks or the labels. */
  ranges: PartitionFile;
}

function openSide(dataDir: string, name: string, other: Partition | undefined): Side {
  if (isDate(name)) {
    const { file } = rangesAt(dataDir, name);
    const ranges = other === undefined ? file : partitionAt(dataDir, name, other);
    if (ranges !== undefined) return { id: name, as_of: name, file, ranges };
    if (other!.history === undefined)
      throw misuse(`--${other!.name} needs releases: history has no ${other!.name}; name releases, not days`);
    throw new AtlasError('E_NO_DATABASE', `history has no ${other!.name} of ${name}; leave out --${other!.name}`);
  }
  const dir = namedRelease(dataDir, name);
  const { manifest, file } = openReleaseRanges(dir);
  const ranges = other === undefined ? file : openReleasePartition(dir, manifest, other);
  if (ranges === undefined) throw noPartition(manifest, other!);
  return { id: manifest.id, as_of: manifest.as_of, file, ranges };
}

/** Returns the directory of a release, or of that which was current on a day. */
function releaseToShow(dataDir: string, name: string): string {
  if (!isDate(name)) return namedRelease(dataDir, name);
  const { release, dir } = releaseOfDay(dataDir, name);
  if (dir !== undefined) return dir;
  throw misuse(`--html compares releases, and that of ${name}, ${release}, is not kept; use --json or --csv`);
}

/** Returns the countries whose name or membership differs; none if something else is compared. */
function changedCountries(before: Side, after: Side): CountryChange[] {
  return before.ranges === before.file ? countryChanges(before.file, after.file) : [];
}

/** The segments of one family whose answers differ. */
function* changes(before: PartitionFile, after: PartitionFile, family: Family): Generator<Segment> {
  for (const segment of segments(rangeList(before, family), rangeList(after, family))) {
    if (segment.from !== segment.to) yield segment;
  }
}

/** A changed range, as JSON and CSV tell it. */
function rangeFacts({ family, first, last, from, to }: Segment) {
  const cidrs: string[] = [];
  rangeToCidrs(family, first, last, (block, prefix) => cidrs.push(formatCidr(family, block, prefix)));
  const ends = { first: formatAddress(family, first), last: formatAddress(family, last) };
  return { family, ...ends, addresses: String(rangeSize(first, last)), from, to, cidrs };
}

function pairFacts(family: Family, { from, to, addresses, ranges }: PairTotal) {
  return { family, from, to, addresses: String(addresses), ranges };
}

/** Adds up what differs in one family; `each` sees every changed range. */
async function totalsOf(
  before: PartitionFile,
  after: PartitionFile,
  family: Family,
  each: (change: Segment, addresses: bigint) => Promise<void> | void,
): Promise<PairTotals> {
  const totals = new PairTotals();
  for (const change of changes(before, after, family)) {
    const addresses = rangeSize(change.first, change.last);
    totals.add(change, addresses);
    await each(change, addresses);
  }
  return totals;
}

/** Writes pieces of text in large portions: a million small writes would take longer than the comparison. */
class Printer {
  #pieces = '';

  add(piece: string): Promise<void> | undefined {
    this.#pieces += piece;
    return this.#pieces.length > 65_536 ? this.flush() : undefined;
  }

  flush(): Promise<void> {
    const pieces = this.#pieces;
    this.#pieces = '';
    return print(pieces);
  }
}

async function printJson(before: Side, after: Side): Promise<void> {
  const printer = new Printer();
  const side = ({ id, as_of }: Side) => ({ release: id, as_of });
  const head = JSON.stringify({
    before: side(before),
    after: side(after),
    countries: changedCountries(before, after),
  });
  printer.add(`${head.slice(0, -1)},"ranges":[`);
  const pairs: object[] = [];
  let separator = '\n';
  for (const family of FAMILIES) {
    const totals = await totalsOf(before.ranges, after.ranges, family, (change) => {
      const line = `${separator}${JSON.stringify(rangeFacts(change))}`;
      separator = ',\n';
      return printer.add(line);
    });
    pairs.push(...totals.sorted().map((pair) => pairFacts(family, pair)));
  }
  printer.add(`],\n"pairs":[${pairs.map((pair) => `\n${JSON.stringify(pair)}`).join(',')}]}\n`);
  await printer.flush();
}

/** Only labels need quotes: all other cells are numbers, addresses and words. */
async function printRangesCsv(before: PartitionFile, after: PartitionFile): Promise<void> {
  const printer = new Printer();
  printer.add('family,first,last,addresses,from,to,cidrs\n');
  for (const family of FAMILIES) {
    for (const change of changes(before, after, family)) {
      const { first, last, addresses, from, to, cidrs } = rangeFacts(change);
      await printer.add(
        `${[family, first, last, addresses, cellText(from, ','), cellText(to, ','), cidrs.join(' ')].join()}\n`,
      );
    }
  }
  await printer.flush();
}

async function printPairsCsv(before: PartitionFile, after: PartitionFile): Promise<void> {
  await print('family,from,to,addresses,ranges\n');
  for (const family of FAMILIES) {
    const totals = await totalsOf(before, after, family, () => {});
    for (const pair of totals.sorted()) {
      const cells = Object.values(pairFacts(family, pair)).map((cell) => cellText(String(cell), ','));
      await print(`${cells.join()}\n`);
    }
  }
}

function describeCountry({ code, name, is_eu }: CountryChange): string {
  const facts: string[] = [];
  if (name[0] !== name[1]) facts.push(`is now called ${name[1]}, was ${name[0]}`);
  if (is_eu[0] !== is_eu[1]) facts.push(is_eu[1] ? 'is in the EU now' : 'is no longer in the EU');
  return `${code} ${facts.join('; ')}\n`;
}

async function printTable(before: Side, after: Side): Promise<void> {
  await print(`from  ${before.id}, as of ${before.as_of}\n`);
  await print(`to    ${after.id}, as of ${after.as_of}\n`);
  const countries = changedCountries(before, after);
  if (countries.length > 0) await print(`\n${countries.map(describeCountry).join('')}`);
  for (const family of FAMILIES) {
    const largest = new LargestBlocks();
    const totals = await totalsOf(before.ranges, after.ranges, family, (change, addresses) => {
      largest.add(change, addresses);
    });
    await print(`\n${describeFamily(family, totals.sorted(), largest)}`);
  }
}

function describeFamily(family: Family, pairs: PairTotal[], { blocks }: LargestBlocks): string {
  const addresses = pairs.reduce((sum, pair) => sum + pair.addresses, 0n);
  const ranges = pairs.reduce((sum, pair) => sum + pair.ranges, 0);
  if (ranges === 0) return `IPv${family}: no difference\n`;
  const unit = formatSizeUnit(family);
  const lines = pairs.slice(0, PAIRS_SHOWN).map(({ from, to, ...pair }) => {
    return [from, to, formatSize(family, pair.addresses), grouped(pair.ranges)];
  });
  const more = pairs.length - lines.length;
  return [
    `IPv${family}: ${formatSize(family, addresses)} ${unit} in ${grouped(ranges)} ranges have another answer\n`,
    table([['FROM', 'TO', unit.toUpperCase(), 'RANGES'], ...lines], [2, 3]),
    more > 0 ? `… and ${grouped(more)} more pairs; --json and --csv have them all\n` : '',
    'largest blocks:\n',
    table(blocks.map(({ first, prefix, from, to }) => [`  ${formatCidr(family, first, prefix)}`, from, '→', to])),
  ].join('');
}

async function run({ dataDir, values, positionals }: Invocation): Promise<number> {
  const [other, ...more] = otherPartitions().filter(({ name }) => values[name] === true);
  if (other !== undefined && (values.html !== undefined || more.length > 0)) {
    throw misuse(`--${other.name} does not go with --${more[0]?.name ?? 'html'}; leave out one of them`);
  }
  const forms = ['json', 'csv', 'html'].filter((name) => values[name] !== undefined);
  if (forms.length > 1) throw misuse(`give --${forms[0]} or --${forms[1]}, not both`);
  if (values.html !== undefined) {
    const [before, after] = positionals.map((name) => releaseToShow(dataDir, name)) as [string, string];
    await writePage(outputPath(values, 'html'), diffPage(compareReleases(before, after)));
    return EXIT.ok;
  }
  const [before, after] = positionals.map((name) => openSide(dataDir, name, other)) as [Side, Side];
  if (values.json === true) await printJson(before, after);
  else if (values.csv !== true) await printTable(before, after);
  else if (values.by === 'pair') await printPairsCsv(before.ranges, after.ranges);
  else await printRangesCsv(before.ranges, after.ranges);
  return EXIT.ok;
}

/** Writes a page to a file, or to standard output if there is no path. */
export async function writePage(path: string | undefined, page: string): Promise<void> {
  if (path === undefined) await print(page);
  else writeFile(path, [page]);
}

export const command: Command = {
  usage: ['diff A B'],
  description: `Shows which addresses have a different result in release B than in release A: totals for each pair of results, and the
ranges. A and B are ids of releases (also of refused ones), "current", directories of releases, or days (2026-01-31). A result is a
country code, or a reason in lower case (private, unallocated, …), or the scheme (6to4, nat64, teredo) of an embedded
IPv4 address, whose country is the result.`,
  // Not before it is asked for: a test adds a partition.
  get options() {
    return {
      json: { help: 'print everything as one JSON object: changed countries, ranges, pairs' },
      csv: { help: 'print every range that changed, one per row, with its CIDR blocks' },
      html: { value: 'FILE', help: 'write one HTML page with a map of the changes; - is standard output' },
      ...Object.fromEntries(
        otherPartitions().map(({ name, comparison }) => [
          name,
          { help: `compare ${comparison}, instead of the countries` },
        ]),
      ),
      by: {
        value: 'WHAT',
        choices: ['range', 'pair'],
        help: 'rows of --csv: range (default), or pair, the totals for each pair of results',
      },
    };
  },
  examples: {
    'ipatlas releases': 'the ids of the releases to compare',
    'ipatlas diff 2026-01-01-0123456789ab current': 'what changed since then',
    'ipatlas diff 2025-12-31 2026-01-31': 'what changed in a month, see "ipatlas history"',
    'ipatlas diff 2026-01-01-0123456789ab current --csv > changes.csv': 'every range that changed',
  },
  operand: 'release',
  arguments: [2, 2],
  run,
};
