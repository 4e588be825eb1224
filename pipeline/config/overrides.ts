/**
 * Reads `overrides.csv`: the user's own ranges, which take precedence over every source and registry. Columns, in any
 * order:
 *
 * - `range`: a CIDR block, `first-last`, or one address, of either family. IPv4-mapped ranges are IPv4.
 * - `country`: an ISO code or an alias of one; empty or `-` for no country (reason `unknown`); or a reason for no country,
 *   such as `reason:private`.
 * - `note` (optional): for people.
 * - `expires` (optional): the first day on which the row no longer applies, `YYYY-MM-DD`; empty for never.
 */
import { type Family, parseAddress } from '../../src/address/parse.js';
import { addressWords, compareAddresses } from '../../src/address/words.js';
import { type Assignment, REASONS } from '../../src/country/assignment.js';
import { type CountryReference, isDate, resolveCountry } from '../../src/country/country.js';
import { parseBlock } from '../../src/range/cidr.js';
import { addProblem, readConfigTable, refuseProblems } from './csv-table.js';
import { reasonIn } from './reference.js';

/** One row that applies. */
export interface Override {
  family: Family;
  /** First address, `addressWords(family)` words, most significant first. */
  first: Uint32Array;
  /** Last address, inclusive. */
  last: Uint32Array;
  result: Exclude<Assignment, { kind: 'embedded' }>;
  /** The range as the file has it. */
  text: string;
  note: string;
  /** Line of the file, from 1. */
  line: number;
}

/** The rows that apply, in the order of the file, and the number of expired rows. */
export interface Overrides {
  rows: Override[];
  expired: number;
}

type Range = Pick<Override, 'family' | 'first' | 'last'>;

/** Returns a range with as many words as its family has. */
function toRange(family: Family, first: Uint32Array, last: Uint32Array): Range {
  const count = addressWords(family);
  return { family, first: first.slice(0, count), last: last.slice(0, count) };
}

/** Parses `first-last`. Returns what is wrong if it is not valid. */
function parseSpan(text: string, dash: number): Range | string {
  const ends = [text.slice(0, dash).trim(), text.slice(dash + 1).trim()] as const;
  const first = new Uint32Array(4);
  const last = new Uint32Array(4);
  const families = [parseAddress(ends[0], first), parseAddress(ends[1], last)] as const;
  for (const i of [0, 1] as const) if (families[i] === 0) return `range "${text}": "${ends[i]}" is not an address`;
  const family = families[0] as Family;
  if (families[1] !== family) return `range "${text}" mixes IPv4 and IPv6`;
  const range = toRange(family, first, last);
  return compareAddresses(range.first, 0, range.last, 0, addressWords(family)) <= 0
    ? range
    : `range "${text}" ends before it begins`;
}

/** Parses a range. Returns what is wrong if it is not valid. */
export function parseRange(text: string): Range | string {
  const dash = text.indexOf('-');
  if (dash >= 0) return parseSpan(text, dash);
  const block = parseBlock(text);
  if (block === undefined) return `range "${text}" is not an address, a CIDR block or first-last`;
  if (block.hostBitsSet) return `range "${text}" has bits set after its prefix; write the first address of the block`;
  return block;
}

/** Parses the country. Returns what is wrong if it is not valid. */
function parseResult(cell: string, reference: CountryReference): Override['result'] | string {
  if (cell === '' || cell === '-') return { kind: 'none', reason: 'unknown' };
  const reason = reasonIn(cell);
  if (reason !== undefined) return { kind: 'none', reason };
  if (cell.startsWith('reason:')) return `"${cell}": the reasons are ${Object.keys(REASONS).join(', ')}`;
  const country = resolveCountry(reference, cell);
  if (country === 'none') return `country "${cell}" names no country; leave the cell empty if that is intended`;
  if (country === 'unknown') return `country "${cell}" is not an ISO 3166-1 code`;
  return { kind: 'country', code: country.code };
}

/**
 * Reads the user's overrides. Rows may overlap; merging decides which one applies.
 *
 * @param path the file
 * @param reference the country codes and aliases
 * @param asOf the day of the build, `YYYY-MM-DD`; a row does not apply from its `expires` on
 * @throws AtlasError E_CONFIG with file and line of every error, also in expired rows
 */
export function loadOverrides(path: string, reference: CountryReference, asOf: string): Overrides {
  const table = readConfigTable(path, ['range', 'country'], ['note', 'expires']);
  const rows: Override[] = [];
  let expired = 0;
  for (const { line, cells } of table.rows) {
    const range = parseRange(cells.range);
    const result = parseResult(cells.country, reference);
    const { note, expires } = cells;
    const validDate = expires === '' || isDate(expires);
    if (!validDate) addProblem(table, line, `expires "${expires}": write a day as YYYY-MM-DD`);
    if (typeof range === 'string') addProblem(table, line, range);
    if (typeof result === 'string') addProblem(table, line, result);
    if (typeof range === 'string' || typeof result === 'string') continue;
    if (expires !== '' && expires <= asOf) expired++;
    else rows.push({ ...range, result, text: cells.range, note, line });
  }
  refuseProblems([table]);
  return { rows, expired };
}
