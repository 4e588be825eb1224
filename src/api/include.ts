/** The query parameters of requests, and above all `include`: the members that results have besides the four. */
import { parse } from 'node:querystring';

/** In the order in which results have them. */
export const INCLUDABLE = ['asn', 'as_name', 'network', 'continent', 'is_eea', 'anycast', 'kind', 'operator'] as const;
export type Includable = (typeof INCLUDABLE)[number];

/** The members that a request asks for. */
export interface Included {
  /** Names the prepared search, which is kept: equal for the same `members`, with all labels or without any. */
  readonly search: string;
  readonly members: readonly Includable[];
  /** Names of labels; they are looked up together. */
  readonly labels: readonly string[];
}

/** Undefined if a request asks for none; `unknown` if it names another one, or an empty list. */
export type Include = Included | 'unknown' | undefined;

/** One for each set of members without labels. */
const SETS = Array.from({ length: 2 ** INCLUDABLE.length }, (_, set) => {
  const members = INCLUDABLE.filter((_name, index) => (set & (1 << index)) !== 0);
  return Object.freeze({ search: members.join(), members, labels: [] });
});

/** Value of a query parameter: text, several texts, or none. */
export type Parameter = string | string[] | undefined;

/**
 * Returns the members that the query parameter `include` names: names with commas, in any order; the parameter may be repeated.
 *
 * @param known returns the names of the labels that may be asked for
 */
export function includedMembers(value: Parameter, known: () => readonly string[] = () => []): Include {
  if (value === undefined) return undefined;
  let set = 0;
  const labels = new Set<string>();
  for (const name of String(value).split(',')) {
    const index = INCLUDABLE.indexOf(name as Includable);
    if (index >= 0) set |= 1 << index;
    else if (known().includes(name)) labels.add(name);
    else return 'unknown';
  }
  const ofMembers = SETS[set]!;
  if (labels.size === 0) return ofMembers;
  return { ...ofMembers, search: `${ofMembers.search} labels`, labels: [...labels].sort() };
}

/** The query parameters that the API reads. */
export type QueryParameters = {
  apikey: Parameter;
  /** A past day. */
  at: Parameter;
  include: Include;
};

const NONE: QueryParameters = { apikey: undefined, at: undefined, include: undefined };

/** Name of the parameter with the key; case-sensitive, unlike header names. */
export const KEY_PARAMETER = 'apikey';

/**
 * Returns the parameters in a query string.
 *
 * @param query without the question mark
 * @param labels returns the names of the labels that may be asked for
 */
export function queryParameters(query: string, labels: () => readonly string[] = () => []): QueryParameters {
  if (query === '') return NONE;
  const { apikey, at, include: names } = parse(query, '&', '=', { maxKeys: 0 });
  // Labels are not archived.
  return { apikey, at, include: includedMembers(names, at === undefined ? labels : undefined) };
}
