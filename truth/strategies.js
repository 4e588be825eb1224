// The merge strategies that are compared, each as one list of ranges per family.
import { undelegatedSpace } from '../dist/pipeline/merging/evidence.js';
import { RangeBuilder } from '../dist/src/range/columns.js';
import { mergeRanges } from '../dist/src/range/merge.js';
import { UNDELEGATED_LAYER, voteRanges } from '../dist/src/range/vote.js';

/** Kind of each source, in the order of sources.json. */
const KINDS = {
  azure: 'operator',
  google: 'operator',
  oracle: 'operator',
  user: 'geolocation',
  whois: 'geolocation',
  dbip: 'geolocation',
  rir: 'registry',
  bgp: 'routing',
};

/** Lowest layer of a source. */
const FIRST_LAYER = 2;

/** Collects the rows of sources that name a country; the first source has the highest layer. */
function candidatesOf(sources, family) {
  const builder = new RangeBuilder(family);
  for (const [position, source] of sources.entries()) {
    const { first, last, value, count } = source[`v${family}`];
    const layer = FIRST_LAYER + sources.length - 1 - position;
    for (let i = 0; i < count; i++) if (value[i] !== 0) builder.add(first, last, i, value[i], layer);
  }
  return builder;
}

const bothFamilies = (merge) => ({ v4: merge(4), v6: merge(6) });

/** Merges by priority, the first name answering first. */
export function byPriority(databases, names) {
  const sources = names.map((name) => databases[name]);
  return bothFamilies((family) => mergeRanges(candidatesOf(sources, family).finish()));
}

/**
 * Merges by evidence.
 *
 * @param lineages lists of names; the sources of one list have one vote
 */
export function byEvidence(databases, lineages) {
  const names = Object.keys(KINDS).filter((name) => lineages.flat().includes(name));
  const voters = names.map((name, position) => ({
    layer: FIRST_LAYER + names.length - 1 - position,
    lineage: String(lineages.findIndex((list) => list.includes(name))),
    kind: KINDS[name],
  }));
  const sources = names.map((name) => databases[name]);
  const registries = sources.filter((_source, position) => voters[position].kind === 'registry');
  return bothFamilies((family) => {
    const builder = candidatesOf(sources, family);
    const rows = registries.map((source) => source[`v${family}`]);
    const { first, last, count } = undelegatedSpace(rows, family);
    for (let i = 0; i < count; i++) builder.add(first, last, i, 0, UNDELEGATED_LAYER);
    return voteRanges(builder.finish(), voters);
  });
}

/**
 * Lists the strategies whose sources are all available.
 *
 * @returns `name`, `whois` if a source derived from WHOIS takes part, `candidate` if it can be a default, `merge`, which
 *   returns the ranges of both families, and instead of `merge`, `bound` if it is not a strategy but the sources that a
 *   strategy may choose from
 */
export function listStrategies(databases) {
  const strategy = (name, names, rest) => ({ name, names, whois: names.includes('whois'), ...rest });
  const single = (name) => strategy(name, [name], { merge: () => byPriority(databases, [name]) });
  const priority = (...names) =>
    strategy(names.join(' > '), names, { candidate: true, merge: () => byPriority(databases, names) });
  const evidence = (...lineages) =>
    strategy(`evidence ${lineages.map((list) => list.join('+')).join(' | ')}`, lineages.flat(), {
      candidate: true,
      merge: () => byEvidence(databases, lineages),
    });
  const bound = (...names) =>
    strategy(`any of ${names.join(', ')}`, names, { bound: () => names.map((name) => byPriority(databases, [name])) });
  const strategies = [
    single('user'),
    single('whois'),
    single('rir'),
    single('dbip'),
    single('bgp'),
    priority('user', 'rir'),
    priority('whois', 'rir'),
    priority('rir', 'whois'),
    priority('dbip', 'rir'),
    priority('dbip', 'whois', 'rir'),
    evidence(['user', 'rir']),
    evidence(['whois', 'rir']),
    evidence(['dbip'], ['rir']),
    evidence(['dbip'], ['rir', 'bgp']),
    evidence(['dbip'], ['rir'], ['bgp']),
    evidence(['user', 'rir'], ['dbip']),
    evidence(['azure', 'google', 'oracle'], ['user', 'rir'], ['dbip']),
    evidence(['user'], ['dbip'], ['rir']),
    evidence(['dbip'], ['whois', 'rir']),
    evidence(['dbip'], ['whois'], ['rir']),
    evidence(['user', 'rir'], ['dbip'], ['whois']),
    bound('dbip', 'rir', 'bgp'),
    bound('user', 'dbip', 'rir', 'bgp'),
    bound('user', 'whois', 'dbip', 'rir', 'bgp'),
    single('geolite2'),
    single('ipfire'),
  ];
  return strategies.filter(({ names }) => names.every((name) => name in databases));
}
