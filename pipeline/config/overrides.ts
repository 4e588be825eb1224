/**
 * `overrides.csv`: what the user knows better than every source and registry. Columns, in any order:
 *
 * - `range`: a CIDR block, `first-last`, or one address, of either family. IPv4-mapped ones are IPv4.
 * - `country`: an ISO code or an alias of one; empty or `-` for no country (reason `unknown`); or `reason:private` and the
 *   like for no country and why.
 * - `note` (may be missing): for people.
 * - `expires` (may be missing): the first day on which the row no longer applies, `YYYY-MM-DD`; empty: never.
 */

import { type Family, isMapped, parseAddress } from '../../src/address/parse.js';
import { addressWords } from '../../src/address/words.js';
import { type Assignment, REASONS } from '../../src/country/assignment.js';
import { type CountryReference, isDate, resolveCountry } from '../../src/country/country.js';
import { parseCidr } from '../../src/range/cidr.js';
import { addProblem, readConfigTable, refuseProblems } from './csv-table.js';
import { reasonIn } from './reference.js';

/** One row that applies. */
export interface Override {
  family: Family;
  /** First address, `addressWords(family)` words, most significant first. */
  first: Uint32Array;
  /** Last address, inclusive. */
  last: Uint32Array;
  answer: Exclude<Assignment, { kind: 'embedded' }>;
  note: string;
  /** Line of the file, from 1. */
  line: number;
}

/** The rows that apply, in the order of the file, and how many have expired. */
export interface Overrides {
  rows: Override[];
  expired: number;
}

type Range = Pick<Override, 'family' | 'first' | 'last'>;

/** The range with its words cut to its family. */
function toRange(family: Family, first: Uint32Array, last: Uint32Array): Range {
  const count = addressWords(family);
  return { family, first: first.slice(0, count), last: last.slice(0, count) };
}

/** A CIDR block or a single address, or what is wrong with it. */
function parseBlock(text: string): Range | string {
  const first = new Uint32Array(4);
  const last = new Uint32Array(4);
  const cidr = parseCidr(text, first, last);
  if (cidr === undefined) return `range "${text}" is no address, no CIDR block and no first-last`;
  if (cidr.hostBitsSet) return `range "${text}" has bits set behind its prefix; write the first address of the block`;
  if (cidr.family === 4 || !(isMapped(first) && isMapped(last))) return toRange(cidr.family, first, last);
  return { family: 4, first: first.slice(3), last: last.slice(3) };
}

/** Whether the first address is not above the second. */
function inOrder(first: Uint32Array, last: Uint32Array): boolean {
  const at = first.findIndex((word, i) => word !== last[i]);
  return at < 0 || first[at]! < last[at]!;
}

/** `first-last`, or what is wrong with it. */
function parseSpan(text: string, dash: number): Range | string {
  const ends = [text.slice(0, dash).trim(), text.slice(dash + 1).trim()] as const;
  const first = new Uint32Array(4);
  const last = new Uint32Array(4);
  const families = [parseAddress(ends[0], first), parseAddress(ends[1], last)] as const;
  for (const i of [0, 1] as const) if (families[i] === 0) return `range "${text}": "${ends[i]}" is no address`;
  const family = families[0] as Family;
  if (families[1] !== family) return `range "${text}" mixes IPv4 and IPv6`;
  const range = toRange(family, first, last);
  return inOrder(range.first, range.last) ? range : `range "${text}" ends before it begins`;
}

/** The range that the text names, or what is wrong with it. */
function parseRange(text: string): Range | string {
  const dash = text.indexOf('-');
  return dash < 0 ? parseBlock(text) : parseSpan(text, dash);
}

/** What the country cell says, or what is wrong with it. */
function parseAnswer(cell: string, reference: CountryReference): Override['answer'] | string {
  if (cell === '' || cell === '-') return { kind: 'none', reason: 'unknown' };
  const reason = reasonIn(cell);
  if (reason !== undefined) return { kind: 'none', reason };
  if (cell.startsWith('reason:')) return `"${cell}": the reasons are ${Object.keys(REASONS).join(', ')}`;
  const country = resolveCountry(reference, cell);
  if (country === 'none') return `country "${cell}" names no country; leave the cell empty where that is meant`;
  if (country === 'unknown') return `country "${cell}" is no ISO 3166-1 code`;
  return { kind: 'country', code: country.code };
}

/**
 * Reads the user's overrides. Rows may overlap; what then counts is decided where ranges are laid over each other.
 *
 * @param path the file
 * @param reference the codes and aliases
 * @param asOf the day of the build, `YYYY-MM-DD`; a row does not apply from its `expires` on
 * @throws AtlasError E_CONFIG with file and line of all that is wrong, rows that have expired included
 */
export function loadOverrides(path: string, reference: CountryReference, asOf: string): Overrides {
  const table = readConfigTable(path, ['range', 'country'], ['note', 'expires']);
  const rows: Override[] = [];
  let expired = 0;
  for (const { line, cells } of table.rows) {
    const range = parseRange(cells.range);
    const answer = parseAnswer(cells.country, reference);
    const { note, expires } = cells;
    const validDate = expires === '' || isDate(expires);
    if (!validDate) addProblem(table, line, `expires "${expires}": write a day as YYYY-MM-DD`);
    if (typeof range === 'string') addProblem(table, line, range);
    if (typeof answer === 'string') addProblem(table, line, answer);
    if (typeof range === 'string' || typeof answer === 'string') continue;
    if (expires !== '' && expires <= asOf) expired++;
    else rows.push({ ...range, answer, note, line });
  }
  refuseProblems([table]);
  return { rows, expired };
}
