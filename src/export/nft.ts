/**
 * The format `nft`: the chosen countries as two named sets, one a family, in the table `inet ipatlas`.
 *
 * The file is one transaction: it makes what is missing, empties the sets and fills them. So loading a newer one replaces
 * the addresses while rules go on using the sets.
 */
import type { Family } from '../address/parse.js';
import { blockLines } from './lines.js';
import { exportedRanges, mergeNeighbors, type Selection } from './ranges.js';

export const NFT_TABLE = 'inet ipatlas';

/** What nft takes as an identifier, with room for the family's digit behind it. */
export const NFT_SET_NAME = /^[A-Za-z][A-Za-z0-9_]{0,29}$/;

function* setOf(selection: Selection, family: Family, set: string): Generator<string> {
  yield `add set ${NFT_TABLE} ${set} { type ipv${family}_addr; flags interval; }\nflush set ${NFT_TABLE} ${set}\n`;
  // To a set it does not matter which of the countries a block is in.
  const ranges = mergeNeighbors(exportedRanges(selection, family), () => true);
  const ends = selection.file.records.map(() => ',\n');
  let isEmpty = true;
  for (const lines of blockLines(family, ranges, ends)) {
    if (isEmpty) yield `add element ${NFT_TABLE} ${set} {\n`;
    isEmpty = false;
    yield lines;
  }
  if (!isEmpty) yield '}\n';
}

/**
 * @param title goes into a comment
 * @param setName the sets are called so, with `4` or `6` behind it
 */
export function* nft(selection: Selection, title: string, setName: string): Generator<string> {
  yield `# ${title}\nadd table ${NFT_TABLE}\n`;
  for (const family of selection.families) yield* setOf(selection, family, `${setName}${family}`);
}
