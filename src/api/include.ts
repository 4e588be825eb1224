/** The query parameters of requests, and above all `include`: the members that results have besides the four. */
import { parse } from 'node:querystring';
import { namedLanguage } from '../country/names.js';

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
  /** The language of the countries' names; English without. */
  readonly lang?: string;
}

/** Undefined if a request asks for none; else an error if it names another one, an empty list, or an unknown language. */
export type Include = Included | 'include_unknown' | 'lang_unknown' | undefined;

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
    else return 'include_unknown';
  }
  const ofMembers = SETS[set]!;
  if (labels.size === 0) return ofMembers;
  return { ...ofMembers, search: `${ofMembers.search} labels`, labels: [...labels].sort() };
}

/** Returns what is asked for with the names of a language, a tag such as `de`. */
export function inLanguage(include: Include, tag: Parameter): Include {
  if (tag === undefined || typeof include === 'string') return include;
  const lang = typeof tag === 'string' ? namedLanguage(tag) : undefined;
  if (lang === undefined) return 'lang_unknown';
  if (/^en\b/.test(lang)) return include;
  const included = include ?? SETS[0]!;
  return { ...included, search: `${included.search} lang=${lang}`, lang };
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
  const { apikey, at, include: names, lang } = parse(query, '&', '=', { maxKeys: 0 });
  // Labels are not archived.
  const include = includedMembers(names, at === undefined ? labels : undefined);
  return { apikey, at, include: inLanguage(include, lang) };
}
