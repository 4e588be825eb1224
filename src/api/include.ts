/** The query parameter `include` of lookups: the members that results have besides the four. */
import { parse } from 'node:querystring';

/** In the order in which results have them. */
export const INCLUDABLE = ['asn', 'as_name', 'network', 'continent'] as const;
export type Includable = (typeof INCLUDABLE)[number];

/** The members that a request asks for; undefined if it asks for none; `unknown` if it names another one, or an empty list. */
export type Include = readonly Includable[] | 'unknown' | undefined;

/** One list for each set of members, so that what is prepared for a set is found by its list. */
const LISTS = Array.from({ length: 2 ** INCLUDABLE.length }, (_, set) =>
  Object.freeze(INCLUDABLE.filter((_name, index) => (set & (1 << index)) !== 0)),
);

/**
 * Returns the value of `include` in a query string: names with commas, in any order; the parameter may be repeated.
 *
 * @param query without the question mark
 */
export function includeParameter(query: string): Include {
  if (!query.includes('include')) return undefined;
  const { include } = parse(query);
  if (include === undefined) return undefined;
  let set = 0;
  for (const name of String(include).split(',')) {
    const index = INCLUDABLE.indexOf(name as Includable);
    if (index < 0) return 'unknown';
    set |= 1 << index;
  }
  return LISTS[set];
}
