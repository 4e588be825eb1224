/** The query parameter `include` of lookups: the members that results have besides the four. */
import { parse } from 'node:querystring';

/** In the order in which results have them. */
export const INCLUDABLE = ['asn', 'as_name', 'network', 'continent'] as const;
export type Includable = (typeof INCLUDABLE)[number];

/** The members that a request asks for. */
export interface Included {
  /** Identifies the members: equal for equal `members`, independent of `labels`. Prepared results are cached under it. */
  readonly set: number;
  readonly members: readonly Includable[];
  /** Names of labels; they are looked up together. */
  readonly labels: readonly string[];
}

/** Undefined if a request asks for none; `unknown` if it names another one, or an empty list. */
export type Include = Included | 'unknown' | undefined;

/** One for each set of members without labels. */
const SETS = Array.from({ length: 2 ** INCLUDABLE.length }, (_, set) =>
  Object.freeze({ set, members: INCLUDABLE.filter((_name, index) => (set & (1 << index)) !== 0), labels: [] }),
);

/**
 * Returns the value of `include` in a query string: names with commas, in any order; the parameter may be repeated.
 *
 * @param query without the question mark
 * @param known returns the names of the labels that may be asked for
 */
export function includeParameter(query: string, known: () => readonly string[] = () => []): Include {
  if (!query.includes('include')) return undefined;
  const { include } = parse(query);
  if (include === undefined) return undefined;
  let set = 0;
  const labels = new Set<string>();
  for (const name of String(include).split(',')) {
    const index = INCLUDABLE.indexOf(name as Includable);
    if (index >= 0) set |= 1 << index;
    else if (known().includes(name)) labels.add(name);
    else return 'unknown';
  }
  if (labels.size === 0) return SETS[set];
  return { set: set + SETS.length, members: SETS[set]!.members, labels: [...labels].sort() };
}
